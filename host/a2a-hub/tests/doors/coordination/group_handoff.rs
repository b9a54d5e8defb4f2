//! Handoff within a group: if its agent has no quota left, another member goes on.

use a2a_hub::{
    ChildRequest, Ended, Hub, Native, Principal, Reply, ReplyStream, Stage, completed,
    config::{Config, Permissions},
    local::card,
    protocol::{
        event::TaskEvent,
        id::AgentId,
        message::{Message, Role},
        operation::{Answer, Operation, Page, SendMessage, TaskQuery},
        task::{Task, TaskState},
    },
};
use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// Messages that agents got, each with the agent's name and its metadata.
type Heard = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A hub with the agents `a`, `b` and `c` of the group `coders`.
struct Coders {
    hub: Hub,
    heard: Heard,
}

/// Failure with this reason, as an agent that drives a CLI reports it.
fn failed(reason: &str, text: &str) -> Ended {
    let message = Some(Message::text(Role::Agent, text));
    let metadata = Some(Map::from_iter([("reason".to_owned(), json!(reason))]));
    Ended::Status { state: TaskState::Failed, message, metadata }
}

impl Coders {
    /// Starts a hub whose agents end in this way.
    async fn start(config: &str, ends: [fn() -> Ended; 3]) -> Result<Self> {
        let text = "aliases.coders = ['a', 'b', 'c']\nrouting.coders.on_quota = 'handoff'\n";
        let mut config: Config = toml::from_str(&format!("{text}{config}"))?;
        (config.http.enabled, config.socket.enabled) = (false, false);
        let heard = Heard::default();
        let mut builder = Hub::in_memory().config(config);
        for (name, end) in ["a", "b", "c"].into_iter().zip(ends) {
            let hears = Arc::clone(&heard);
            let agent = Native::new(move |stage: Stage| {
                let facts = json!(stage.work.message.metadata);
                hears.lock().expect("no panic").push((name.to_owned(), stage.text(), facts));
                async move {
                    let _ = stage.report_working("I read the parser.").await;
                    end()
                }
            });
            builder = builder.agent(id(name), card(name, "Codes", &["code"]), agent);
        }
        let boss = Native::new(|stage: Stage| async move {
            let request = ChildRequest::new("coders", Message::text(Role::User, "Fix the parser"));
            match stage.outcome_of(request).await {
                Ok(Ended::Status { state, .. }) => completed(state.name()),
                other => completed(&format!("{other:?}")),
            }
        });
        let builder = builder.agent(id("boss"), card("Boss", "Calls", &[]), boss.calling_others());
        Ok(Self { hub: builder.start().await?, heard })
    }

    /// Sends a message and waits for the end, after all handoffs.
    async fn send(&self, to: &str, facts: Value) -> Result<Task> {
        let answer =
            self.hub.handle(&Principal::Operator, Operation::SendMessage(message(to, facts)));
        match timeout(Duration::from_secs(20), answer).await?? {
            Reply::One(Answer::Task(task)) => Ok(*task),
            Reply::One(_) | Reply::Stream(_) => bail!("no task came of it"),
        }
    }

    /// Tasks of the hub, oldest first.
    async fn tasks(&self) -> Result<Vec<Task>> {
        let query = TaskQuery::all(Page { limit: 100, offset: 0 });
        match self.hub.handle(&Principal::Operator, Operation::ListTasks(query)).await? {
            Reply::One(Answer::Tasks { tasks, .. }) => {
                Ok(tasks.into_iter().rev().map(|listed| listed.task).collect())
            }
            Reply::One(_) | Reply::Stream(_) => bail!("no list"),
        }
    }

    fn names(&self) -> Vec<String> {
        self.heard.lock().expect("no panic").iter().map(|(name, ..)| name.clone()).collect()
    }
}

fn id(name: &str) -> AgentId {
    AgentId::parse(name).expect("a good name")
}

fn message(to: &str, facts: Value) -> Box<SendMessage> {
    let Value::Object(mut facts) = facts else { panic!("{facts}") };
    facts.insert("targetAgent".to_owned(), json!(to));
    let message = Message { metadata: Some(facts), ..Message::text(Role::User, "Fix the parser") };
    Box::new(SendMessage::new(message, None).expect("good facts"))
}

fn fact<'t>(task: &'t Task, name: &str) -> &'t Value {
    task.metadata.as_ref().and_then(|facts| facts.get(name)).unwrap_or(&Value::Null)
}

fn words(task: &Task) -> String {
    task.status.message.as_ref().map(Message::joined_text).unwrap_or_default()
}

fn limited() -> Ended {
    failed("rate_limited", "You have hit your limit.\nIt resets at 3 pm.")
}

fn logged_out() -> Ended {
    failed("not_logged_in", "Please log in.")
}

fn done() -> Ended {
    completed("It is fixed.")
}

#[tokio::test]
async fn quota_failure_moves_task_to_next_member() -> Result<()> {
    // One run permit for all: the failed task gives it back.
    let coders = Coders::start("max_tasks = 1", [limited, logged_out, done]).await?;
    let task = coders.send("coders", json!({})).await?;
    assert_eq!((task.status.state, words(&task).as_str()), (TaskState::Completed, "It is fixed."));
    assert_eq!(coders.names(), ["a", "b", "c"]);
    let all = coders.tasks().await?;
    let [first, second, third] = &all[..] else { bail!("{} tasks", all.len()) };
    assert_eq!(third.id, task.id);
    for (old, agent, to, next, reason) in
        [(first, "a", "b", second, "rate_limited"), (second, "b", "c", third, "not_logged_in")]
    {
        assert_eq!(old.status.state, TaskState::Canceled);
        let told = json!({ "to": to, "task": next.id, "reason": reason });
        assert_eq!(*fact(old, "handoff"), told);
        let from = json!({ "agent": agent, "task": old.id, "reason": reason });
        assert_eq!(*fact(next, "handoffFrom"), from);
        assert_eq!(next.context_id, first.context_id);
    }
    let passed = fact(third, "routing")["passedOver"].as_array().context("passedOver")?;
    let passed: Vec<_> = passed.iter().map(|it| (&it["agent"], &it["why"])).collect();
    let expected = [
        (&json!("a"), &json!("rate_limited: You have hit your limit.")),
        (&json!("b"), &json!("not_logged_in: Please log in.")),
    ];
    assert_eq!(passed, expected);
    let heard = coders.heard.lock().expect("no panic").clone();
    let (_, text, _) = &heard[1];
    assert!(text.contains("```\nFix the parser\n```") && text.contains("I read the parser."));
    coders.hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn later_messages_avoid_member_without_quota() -> Result<()> {
    let coders = Coders::start("", [limited, done, done]).await?;
    let mut last = None;
    for _ in 0..3 {
        last = Some(coders.send("coders", json!({})).await?);
    }
    // By their turns, `a` would have the third message.
    assert_eq!(coders.names(), ["a", "b", "c", "b"]);
    let passed = fact(&last.context("a task")?, "routing")["passedOver"].clone();
    let why = "its quota was used up a short time ago, or nobody was logged in";
    assert!(
        passed
            .as_array()
            .context("passedOver")?
            .contains(&json!({ "agent": "a", "reason": "health", "why": why }))
    );
    let named = coders.send("a", json!({})).await?;
    assert_eq!(named.status.state, TaskState::Failed);
    coders.hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn last_failure_stands_and_names_all() -> Result<()> {
    let coders = Coders::start("", [limited, logged_out, limited]).await?;
    let task = coders.send("coders", json!({})).await?;
    assert_eq!(
        (task.status.state, fact(&task, "reason")),
        (TaskState::Failed, &json!("rate_limited"))
    );
    let text = words(&task);
    assert!(text.starts_with("You have hit your limit.\nIt resets at 3 pm.\n\n"), "{text}");
    for says in ["No other agent of `coders` goes on", "`a` had it", "`b` had it"] {
        assert!(text.contains(says), "{says}: {text}");
    }
    assert_eq!(coders.names(), ["a", "b", "c"], "each once");
    Ok(())
}

/// A member that rejects what the hub hands over is passed over as well.
#[tokio::test]
async fn rejecting_member_is_passed_over() -> Result<()> {
    let rejects = || {
        let message = Some(Message::text(Role::Agent, "not mine"));
        Ended::Status { state: TaskState::Rejected, message, metadata: None }
    };
    let coders = Coders::start("", [limited, rejects, done]).await?;
    let task = coders.send("coders", json!({})).await?;
    assert_eq!((task.status.state, coders.names().len()), (TaskState::Completed, 3));
    Ok(())
}

#[tokio::test]
async fn other_failures_stay_with_their_agent() -> Result<()> {
    let coders = Coders::start("", [limited, || failed("overloaded", "busy"), done]).await?;
    let named = coders.send("a", json!({})).await?;
    assert_eq!(named.status.state, TaskState::Failed, "the client named the agent");
    let other = Coders::start("", [|| failed("max_budget", "that is all"), limited, done]).await?;
    let task = other.send("coders", json!({})).await?;
    assert_eq!((task.status.state, words(&task).as_str()), (TaskState::Failed, "that is all"));
    assert_eq!(other.names(), ["a"]);
    Ok(())
}

#[tokio::test]
async fn permissions_and_budget_are_kept() -> Result<()> {
    let config = "agents.a.permissions = 'read-only'\nagents.b.permissions = 'edit'";
    let coders = Coders::start(config, [limited, limited, done]).await?;
    let budget = json!({ "tasks": 3, "costUsd": 0.5 });
    let task = coders.send("coders", json!({ "budget": budget })).await?;
    assert_eq!(task.status.state, TaskState::Completed);
    let heard = coders.heard.lock().expect("no panic").clone();
    for (agent, _, facts) in &heard[1..] {
        let word = Permissions::ReadOnly.word();
        assert_eq!(facts["permissions"], word, "{agent} has no more than the first one");
        assert_eq!(facts["budget"], budget, "{agent}");
    }
    Ok(())
}

/// A stream of the old task ends as after a handoff by hand.
#[tokio::test]
async fn stream_ends_with_name_of_successor() -> Result<()> {
    let coders = Coders::start("", [limited, done, done]).await?;
    let send = Operation::StreamMessage(message("coders", json!({})));
    let reply = coders.hub.handle(&Principal::Operator, send).await?;
    let Reply::Stream(ReplyStream::Task(mut heard)) = reply else { bail!("no stream") };
    let mut last = None;
    while let Some(event) = timeout(Duration::from_secs(20), heard.next()).await? {
        if let TaskEvent::Status(update) = &event?.event {
            last = Some(update.clone());
        }
    }
    let last = last.context("a status")?;
    assert_eq!(last.status.state, TaskState::Canceled);
    assert_eq!(last.metadata.context("facts")?["handoff"]["to"], "b");
    Ok(())
}

/// A run of a schedule lasts until the last of its tasks is over, so that runs do not overlap.
#[tokio::test]
async fn schedule_follows_its_run_to_second_agent() -> Result<()> {
    let config = "[schedule.yearly]
        cron = '0 0 1 1 *'
        zone = 'UTC'
        agent = 'coders'
        message = 'Fix the parser'
        permissions = 'ask'
        budget = { tasks = 5 }";
    let coders = Coders::start(config, [limited, || failed("asks", ""), done]).await?;
    let run = Operation::RunSchedule { name: "yearly".to_owned() };
    coders.hub.handle(&Principal::Operator, run).await?;
    let listed = timeout(Duration::from_secs(20), async {
        loop {
            let list = coders.hub.handle(&Principal::Operator, Operation::ListSchedules).await?;
            let Reply::One(Answer::Schedules(all)) = list else { bail!("no schedules") };
            let last = all.into_iter().next().and_then(|it| it.last).context("a run")?;
            if last.state == Some(TaskState::Failed) {
                return Ok(last);
            }
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await??;
    let all = coders.tasks().await?;
    assert_eq!((all.len(), &listed.task), (2, &all[0].id), "{listed:?}");
    assert_eq!(all[0].status.state, TaskState::Canceled);
    let run = fact(&all[0], "schedule");
    assert_eq!((run, &run["name"]), (fact(&all[1], "schedule"), &json!("yearly")));
    Ok(())
}

/// An agent that waits for a group's answer gets the failure.
#[tokio::test]
async fn sub_task_stays_with_its_agent() -> Result<()> {
    let coders =
        Coders::start("agents.boss.grant.delegate = ['a', 'b', 'c']", [limited, done, done]);
    let coders = coders.await?;
    let task = coders.send("boss", json!({})).await?;
    assert_eq!((words(&task), coders.names().len()), ("failed".to_owned(), 1));
    Ok(())
}
