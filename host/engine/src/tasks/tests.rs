//! Tests of tasks with a fake agent, a local or a remote store, and paused time.

mod birth;
mod distant;
mod going_on;
mod handed_on;
mod inheriting;
mod lanes;
mod lending;
mod long_lists;
mod quota_waits;
mod reading;
mod routed;
mod stand;
mod stopping;
mod trees;

use super::*;
use crate::tests::scripted_agent::Fake;
use a2a_hub_agents::native::{Stage, completed};
use a2a_hub_config::AgentConfig;
use a2a_hub_core::{access_control::Principal, task::recovery::Resumability};
use a2a_hub_protocol::{
    id::TenantId,
    message::{Metadata, Role},
};
use a2a_hub_runtime::{Ended, Failure, port::tasks::Emitted};
use a2a_hub_store::{StoreHealth as _, TaskLog as _, memory::MemoryStorage};
use distant::Distant;
use stand::Stand;
use std::future::pending;
use tokio::time::Instant;

fn config() -> AgentConfig {
    AgentConfig { timeout_ms: 60_000, answer_timeout_ms: 600_000, ..AgentConfig::default() }
}

/// Agent that asks its client once, and completes with the answer.
fn curious() -> Fake {
    Fake::new(|stage: Stage| async move {
        match stage.ask("which one?", None).await {
            Ok(answer) => completed(&answer.message.joined_text()),
            Err(why) => Ended::Failed(why),
        }
    })
}

/// Agent that works for ever; `heeds` tells whether it obeys a cancellation.
fn busy(heeds: bool) -> Fake {
    Fake::new(move |stage: Stage| async move {
        stage.report_working("at it").await.unwrap();
        if heeds {
            stage.cancelled.cancelled().await;
            return Ended::Failed(Failure::Cancelled);
        }
        pending().await
    })
}

#[tokio::test(start_paused = true)]
async fn silent_agent_is_reported_as_working() {
    for stand in Stand::each() {
        let agent = Fake::new(|_| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            completed("done")
        });
        let task = stand.submit(&agent.agent(config()), "go").await;
        let begun = Instant::now();
        stand.until(&task, TaskState::Working).await;
        assert!(begun.elapsed() < Duration::from_secs(1));
        stand.until(&task, TaskState::Completed).await;
        assert_eq!(stand.story(&task).await, "created, working, completed “done”");
    }
}

#[tokio::test(start_paused = true)]
async fn answer_reaches_asking_agent_once() {
    for stand in Stand::each() {
        let task = stand.submit(&curious().agent(config()), "go").await;
        stand.until(&task, TaskState::InputRequired).await;
        stand.answer(&task, "the left one").await.unwrap();
        stand.until(&task, TaskState::Completed).await;
        assert!(stand.answer(&task, "the right one").await.is_err(), "it is over");
        let story = "created, working, input-required “which one?”, said “the left one”, working, completed “the left one”";
        assert_eq!(stand.story(&task).await, story);
    }
}

#[tokio::test(start_paused = true)]
async fn task_timeout_excludes_wait_for_client() {
    for stand in Stand::each() {
        let agent = Fake::new(|stage: Stage| async move {
            let _ = stage.ask("which one?", None).await;
            pending().await
        });
        let task = stand.submit(&agent.agent(config()), "go").await;
        stand.until(&task, TaskState::InputRequired).await;
        tokio::time::sleep(Duration::from_secs(500)).await;
        stand.answer(&task, "any").await.unwrap();
        let answered = Instant::now();
        let failed = stand.until(&task, TaskState::Failed).await;
        assert!(answered.elapsed() > Duration::from_secs(59), "{:?}", answered.elapsed());
        assert_eq!(a2a_hub_core::task::metadata::text(&failed, "reason"), Some("timeout"));
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_question_times_out_for_agent() {
    for stand in Stand::each() {
        let agent = Fake::new(|stage: Stage| async move {
            match stage.ask("which one?", Some(Duration::from_secs(5))).await {
                Err(Failure::Timeout) => completed("nobody said"),
                other => completed(&format!("{other:?}")),
            }
        });
        let task = stand.submit(&agent.agent(config()), "go").await;
        stand.until(&task, TaskState::Completed).await;
        assert!(stand.story(&task).await.ends_with("working, completed “nobody said”"));
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_task_of_unresponsive_agent() {
    for heeds in [true, false] {
        let (stand, fake) = (Stand::new(), busy(heeds));
        let task = stand.submit(&fake.agent(config()), "go").await;
        stand.until(&task, TaskState::Working).await;
        let cancelled = stand.tasks.cancel(&task, Principal::Operator).await.unwrap();
        assert_eq!(cancelled.status.state, TaskState::Canceled);
        assert_eq!(*fake.seen.lock().unwrap(), ["start: go", "clean up", "forget"], "{heeds}");
    }
}

#[tokio::test(start_paused = true)]
async fn asking_task_releases_its_run_permit() {
    for stand in Stand::each() {
        let agent = curious().agent(AgentConfig { max_running: Some(1), ..config() });
        let first = stand.submit(&agent, "first").await;
        let second = stand.submit(&agent, "second").await;
        stand.until(&first, TaskState::InputRequired).await;
        stand.until(&second, TaskState::InputRequired).await;
        for task in [&second, &first] {
            stand.answer(task, "any").await.unwrap();
            stand.until(task, TaskState::Completed).await;
        }
        assert!(stand.story(&second).await.starts_with("created, working, input-required"));
    }
}

/// After an orderly shutdown, the outcome of a running task depends on its agent's resumability.
#[tokio::test(start_paused = true)]
async fn shutdown_outcome_follows_agent_resumability() {
    for (hold, story) in [
        (Resumability::Nothing, "failed “The hub was stopped while the agent was at work.”"),
        (
            Resumability::Session,
            "input-required “The hub was restarted while Fake was at work; send any message to go on: it starts Fake again.”",
        ),
        (Resumability::Work, "working “at it”"),
    ] {
        let stand = Stand::new();
        let task = stand.submit(&busy(true).holding(hold).agent(config()), "go").await;
        stand.until(&task, TaskState::Working).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        stand.tasks.shutdown().await;
        assert!(stand.story(&task).await.ends_with(story), "{}", stand.story(&task).await);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_task_survives_shutdown() {
    for stand in Stand::each() {
        let task = stand.submit(&curious().agent(config()), "go").await;
        stand.until(&task, TaskState::InputRequired).await;
        stand.tasks.shutdown().await;
        assert!(stand.story(&task).await.ends_with("input-required “which one?”"));
    }
}

/// Events that are not stored are not published; once the store recovers, the task fails.
#[tokio::test(start_paused = true)]
async fn storage_failure_fails_task_after_recovery() {
    let stand = Stand::new();
    let agent = Fake::new(|stage: Stage| async move {
        stage.report_working("at it").await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        stage.report_working("lost").await.unwrap();
        pending().await
    });
    let task = stand.submit(&agent.agent(config()), "go").await;
    stand.until(&task, TaskState::Working).await;
    stand.storage.refuse(true);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(stand.story(&task).await.ends_with("working “at it”"));
    stand.storage.refuse(false);
    // The store monitor's probes succeed for some time.
    for _ in 0..10 {
        stand.storage.probe().await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let failed = stand.until(&task, TaskState::Failed).await;
    assert_eq!(a2a_hub_core::task::metadata::text(&failed, "reason"), Some("storage"));
}

#[tokio::test(start_paused = true)]
async fn unstored_answer_can_be_sent_again() {
    let stand = Stand::new();
    let task = stand.submit(&curious().agent(config()), "go").await;
    stand.until(&task, TaskState::InputRequired).await;
    stand.storage.refuse(true);
    assert!(stand.answer(&task, "the left one").await.is_err());
    stand.storage.refuse(false);
    stand.answer(&task, "the right one").await.unwrap();
    stand.until(&task, TaskState::Completed).await;
    assert!(!stand.story(&task).await.contains("left"), "{}", stand.story(&task).await);
}

/// After a kill, the outcome of a running task depends on its agent's resumability.
#[tokio::test(start_paused = true)]
async fn recovery_outcome_follows_agent_resumability() {
    for (hold, becomes, story) in [
        (
            Resumability::Nothing,
            "failed",
            "failed “The hub was restarted while the agent was at work; what it had done by then is kept.”",
        ),
        (Resumability::Session, "waiting", "said “go on”, working, working “at it”"),
        (Resumability::Work, "followed", "working “at it”, working “at it”"),
    ] {
        let (killed, fake) = (Stand::new(), busy(true).holding(hold));
        let task = killed.submit(&fake.agent(config()), "go").await;
        killed.until(&task, TaskState::Working).await;
        let (next, agent) = (killed.next_hub(), fake.agent(config()));
        let recovered = next.recover(move |_: &AgentId| Some(agent.clone())).await;
        let told = [
            ("started", recovered.started),
            ("waiting", recovered.waiting),
            ("followed", recovered.followed),
            ("failed", recovered.failed),
        ];
        assert_eq!(told.into_iter().filter(|(_, n)| *n > 0).collect::<Vec<_>>(), [(becomes, 1)]);
        if becomes == "waiting" {
            next.answer(&task, "go on").await.unwrap();
            next.until(&task, TaskState::Working).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(next.story(&task).await.ends_with(story), "{}", next.story(&task).await);
    }
}

#[tokio::test(start_paused = true)]
async fn stored_answer_is_delivered_after_kill() {
    let killed = Stand::new();
    let task = killed.submit(&curious().agent(config()), "go").await;
    killed.until(&task, TaskState::InputRequired).await;
    // The answer is stored, and no agent has received it.
    let said = TaskEvent::Input(Message::text(Role::User, "the left one"));
    let seq = killed.tasks.get(&task).await.unwrap().seq;
    killed.storage.append(&task, seq, vec![Arc::new(said)]).await.unwrap();
    let next = killed.next_hub();
    let echo =
        Fake::new(|stage: Stage| async move { completed(&stage.work.message.joined_text()) });
    let agent = echo.agent(config());
    next.recover(move |_: &AgentId| Some(agent.clone())).await;
    next.until(&task, TaskState::Completed).await;
    assert!(next.story(&task).await.ends_with("completed “the left one”"));
}

/// Another writer appended to the task's log, so this hub's state is stale.
#[tokio::test(start_paused = true)]
async fn conflicting_append_fails_task() {
    let stand = Stand::new();
    let agent = Fake::new(|stage: Stage| async move {
        stage.report_working("at it").await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        completed("done")
    });
    let task = stand.submit(&agent.agent(config()), "go").await;
    stand.until(&task, TaskState::Working).await;
    let seq = stand.tasks.get(&task).await.unwrap().seq;
    let said = TaskEvent::Input(Message::text(Role::User, "by another hub"));
    stand.storage.append(&task, seq, vec![Arc::new(said)]).await.unwrap();
    stand.until(&task, TaskState::Failed).await;
    let story = stand.story(&task).await;
    assert!(story.contains("said “by another hub”, failed") && !story.contains("done"), "{story}");
}

#[tokio::test(start_paused = true)]
async fn requesting_principal_is_stored_with_events() {
    for stand in Stand::each() {
        let task = stand.submit(&curious().agent(config()), "go").await;
        stand.until(&task, TaskState::InputRequired).await;
        stand.answer(&task, "the left one").await.unwrap();
        stand.until(&task, TaskState::Completed).await;
        let other = stand.submit(&busy(true).agent(config()), "go").await;
        stand.until(&other, TaskState::Working).await;
        stand.tasks.cancel(&other, Principal::Anonymous).await.unwrap();
        let (operator, client) = (Principal::Operator, Principal::Client("ci".to_owned()));
        // Events: created, working, question; answer, working; completed.
        let asked = [(1, operator.clone()), (4, client.clone()), (5, client)];
        assert_eq!(stand.storage.askers(&task).await.unwrap(), asked);
        let last = stand.tasks.get(&other).await.unwrap().seq;
        let asked = [(1, operator), (last, Principal::Anonymous)];
        assert_eq!(stand.storage.askers(&other).await.unwrap(), asked);
    }
}

/// Messages to a working agent are delivered in later runs, with the history so far.
#[tokio::test(start_paused = true)]
async fn message_to_working_task_starts_another_run() {
    for stand in Stand::each() {
        let fake = Fake::new(|stage: Stage| async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let before = stage.work.history.iter().map(Message::joined_text);
            let before = before.collect::<Vec<_>>().join(", ");
            completed(&format!("{} after [{before}]", stage.work.message.joined_text()))
        });
        let task = stand.submit(&fake.agent(config()), "first").await;
        stand.until(&task, TaskState::Working).await;
        stand.answer(&task, "second").await.unwrap();
        stand.answer(&task, "third").await.unwrap();
        stand.until(&task, TaskState::Completed).await;
        let story = stand.story(&task).await;
        let first = "said “second”, said “third”, working “first after []”, said “first after []”";
        assert!(story.contains(first), "{story}");
        let last = "completed “third after [first, second, first after [], second after [first, first after []]]”";
        assert!(story.ends_with(last), "{story}");
        let seen = fake.seen.lock().unwrap().join(", ");
        assert_eq!(seen, "start: first, forget, start: second, forget, start: third, forget");
    }
}

#[tokio::test(start_paused = true)]
async fn message_before_question_does_not_answer_it() {
    let stand = Stand::new();
    let fake = Fake::new(|stage: Stage| async move {
        if stage.work.message.joined_text() != "go" {
            return completed(&stage.work.message.joined_text());
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        match stage.ask("may I?", None).await {
            Ok(answer) => completed(&answer.message.joined_text()),
            Err(why) => Ended::Failed(why),
        }
    });
    let task = stand.submit(&fake.agent(config()), "go").await;
    stand.until(&task, TaskState::Working).await;
    stand.answer(&task, "yes, and hurry").await.unwrap();
    stand.until(&task, TaskState::InputRequired).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(stand.story(&task).await.ends_with("input-required “may I?”"));
    stand.answer(&task, "no").await.unwrap();
    stand.until(&task, TaskState::Completed).await;
    let story = stand.story(&task).await;
    assert!(
        story.contains("working “no”") && story.ends_with("completed “yes, and hurry”"),
        "{story}"
    );
}

#[tokio::test(start_paused = true)]
async fn failed_task_lists_unheard_messages() {
    let stand = Stand::new();
    let fake = Fake::new(|_| async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ended::Failed(Failure::Invalid("no".to_owned()))
    });
    let task = stand.submit(&fake.agent(config()), "first").await;
    stand.until(&task, TaskState::Working).await;
    stand.answer(&task, "second").await.unwrap();
    let failed = stand.until(&task, TaskState::Failed).await;
    let second = failed.history.last().unwrap().message_id.clone();
    assert_eq!(failed.metadata.unwrap()["unheard"], json!([second]));
}

/// A message to a working task is stored before its agent receives it, so the hub may be killed in
/// between.
#[tokio::test(start_paused = true)]
async fn queued_message_survives_kill() {
    for hold in [Resumability::Nothing, Resumability::Session, Resumability::Work] {
        let killed = Stand::new();
        let task = killed.submit(&busy(true).holding(hold).agent(config()), "first").await;
        killed.until(&task, TaskState::Working).await;
        killed.answer(&task, "second").await.unwrap();
        killed.answer(&task, "third").await.unwrap();
        let fake = Fake::new(|stage: Stage| async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            completed(&stage.work.message.joined_text())
        });
        let fake = fake.holding(hold);
        let (next, agent) = (killed.next_hub(), fake.agent(config()));
        next.recover(move |_: &AgentId| Some(agent.clone())).await;
        let stored = next.tasks.get(&task).await.unwrap().task;
        let kept = stored.history[1..3].iter().map(|said| said.message_id.clone());
        let kept: Vec<_> = kept.collect();
        if hold == Resumability::Nothing {
            assert_eq!(stored.status.state, TaskState::Failed);
            assert_eq!(stored.metadata.unwrap()["unheard"], json!(kept));
            continue;
        }
        if hold == Resumability::Session {
            next.answer(&task, "go on").await.unwrap();
        }
        let done = next.until(&task, TaskState::Completed).await;
        assert!(!a2a_hub_core::task::metadata::has(&done, "unheard"), "{:?}", done.metadata);
        let seen = fake.seen.lock().unwrap().join(", ");
        let began = if hold == Resumability::Work { "follow" } else { "start: go on" };
        assert_eq!(seen, format!("{began}, forget, start: second, forget, start: third, forget"));
    }
}

/// Only the hub records which messages were received: an agent that could do so might lose its
/// client's messages.
#[tokio::test(start_paused = true)]
async fn agent_cannot_forge_unheard_fact() {
    let killed = Stand::new();
    let fake = Fake::new(|stage: Stage| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let forged = Metadata::from_iter([("unheard".to_owned(), json!(null))]);
        let said = Emitted::Working { message: None, metadata: Some(forged) };
        stage.port.emit(vec![said]).await.unwrap();
        pending().await
    });
    let task = killed.submit(&fake.agent(config()), "first").await;
    killed.until(&task, TaskState::Working).await;
    killed.answer(&task, "second").await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (next, agent) = (killed.next_hub(), fake.agent(config()));
    next.recover(move |_: &AgentId| Some(agent.clone())).await;
    let failed = next.until(&task, TaskState::Failed).await;
    let second = failed.history[1].message_id.clone();
    assert_eq!(failed.metadata.unwrap()["unheard"], json!([second]));
}

/// Inputs that an echoing agent gets for a task after a kill, until the task is over.
async fn heard_after(killed: &Stand, task: &TaskId) -> String {
    let fake = Fake::new(|stage: Stage| async move { completed(&stage.text()) });
    let (next, agent) = (killed.next_hub(), fake.agent(config()));
    next.recover(move |_: &AgentId| Some(agent.clone())).await;
    next.until(task, TaskState::Completed).await;
    fake.seen.lock().unwrap().join(", ")
}

/// A queued task begins with its first message, not with the latest one.
#[tokio::test(start_paused = true)]
async fn queued_task_keeps_message_order_after_kill() {
    let (killed, first_hub) = (Stand::new(), AgentConfig { max_running: Some(1), ..config() });
    let agent = busy(true).agent(first_hub);
    killed.submit(&agent, "other").await;
    let task = killed.submit(&agent, "first").await;
    killed.answer(&task, "second").await.unwrap();
    let seen = heard_after(&killed, &task).await;
    assert_eq!(seen, "start: first, forget, start: second, forget");
}

/// The agent receives a stored answer first, even if another message follows it.
#[tokio::test(start_paused = true)]
async fn stored_answer_precedes_later_message_after_kill() {
    let killed = Stand::new();
    let task = killed.submit(&curious().agent(config()), "go").await;
    killed.until(&task, TaskState::InputRequired).await;
    let said = ["the left one", "and hurry"]
        .map(|text| Arc::new(TaskEvent::Input(Message::text(Role::User, text))));
    let seq = killed.tasks.get(&task).await.unwrap().seq;
    killed.storage.append(&task, seq, said.to_vec()).await.unwrap();
    let seen = heard_after(&killed, &task).await;
    assert_eq!(seen, "start: the left one, forget, start: and hurry, forget");
}

/// All agents share the capacity: many waiting tasks can exhaust it, although no agent has too
/// many.
#[tokio::test(start_paused = true)]
async fn waiting_tasks_use_half_of_shared_capacity() {
    let (stand, fake) = (Stand::new(), curious().in_room_for(4));
    let [first, second, third] =
        ["first", "second", "third"].map(|id| fake.agent_called(id, config()));
    let asked = async |agent| {
        let task = stand.submit(agent, "go").await;
        stand.until(&task, TaskState::InputRequired).await;
        task
    };
    let waits = [asked(&first).await, asked(&second).await];
    for agent in [&first, &second] {
        let refused = stand.try_submit(agent, Message::text(Role::User, "go")).await.unwrap_err();
        let why = refused.to_string();
        assert!(why.contains("2 tasks of this hub wait") && why.contains("`max_tasks`"), "{why}");
    }
    // An agent without waiting tasks is not affected, nor is a remote one.
    asked(&third).await;
    let elsewhere = curious().agent_called("elsewhere", config());
    asked(&elsewhere).await;
    for task in &waits {
        stand.answer(task, "any").await.unwrap();
        stand.until(task, TaskState::Completed).await;
    }
    asked(&second).await;
}
