//! Tasks whose agent's quota is used up: they wait for the reset, and continue once.

use super::*;
use a2a_hub_core::{grant::Resume, task::quota::QuotaReaction};
use std::sync::atomic::AtomicUsize;

/// Time until the quota resets, which exceeds the time limit of a task.
const QUOTA: Duration = Duration::from_secs(600);

fn waiting_config() -> AgentConfig {
    AgentConfig { on_quota: Some(QuotaReaction::Wait), ..config() }
}

/// Failure for lack of quota, with this time of the reset.
fn used_up(resets_at: impl Into<serde_json::Value>) -> Ended {
    let resets_at = resets_at.into();
    let message = Some(Message::text(Role::Agent, "You've hit your limit"));
    let facts = json!({ "reason": "rate_limited", "quotaResetsAt": resets_at, "cost_usd": 1.0 });
    let metadata = facts.as_object().cloned();
    Ended::Status { state: TaskState::Failed, message, metadata }
}

fn in_a_while() -> serde_json::Value {
    json!(clock::now_ms() + u64::try_from(QUOTA.as_millis()).unwrap())
}

/// Agent whose first runs are refused, and that keeps sessions.
fn limited(refusals: usize) -> Fake {
    let runs = AtomicUsize::new(0);
    let fake = Fake::new(move |stage: Stage| {
        let is_refused = runs.fetch_add(1, Ordering::SeqCst) < refusals;
        async move {
            stage.report_working("at it").await.unwrap();
            if is_refused { used_up(in_a_while()) } else { completed(&stage.text()) }
        }
    });
    fake.resuming(Resume::Session).holding(Resumability::Session)
}

fn seen(fake: &Fake) -> Vec<String> {
    let seen = fake.seen.lock().unwrap();
    let starts = seen.iter().filter(|what| what.starts_with("start: "));
    starts.map(|what| what[7..].chars().take(10).collect()).collect()
}

/// Waits until the task waits for its quota.
async fn until_it_waits(stand: &Stand, id: &TaskId) -> Task {
    let waits = async {
        loop {
            let task = stand.tasks.get(id).await.unwrap().task;
            if a2a_hub_core::task::metadata::waiting_until(&task).is_some() {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), waits).await.expect("it waits")
}

#[tokio::test(start_paused = true)]
async fn task_continues_after_quota_reset() {
    let (stand, fake) = (Stand::new(), limited(1));
    let one_at_a_time = AgentConfig { max_running: Some(1), ..waiting_config() };
    let task = stand.submit(&fake.agent(one_at_a_time), "Fix it").await;
    let waits = until_it_waits(&stand, &task).await;
    assert_eq!(waits.status.state, TaskState::Working);
    let facts = waits.metadata.clone().unwrap();
    assert_eq!((&facts["reason"], &facts["quotaWaits"]), (&json!("rate_limited"), &json!(1)));
    let told = waits.status.message.unwrap().joined_text();
    let (vendor, hub) = told.split_once('\n').unwrap();
    assert_eq!(vendor, "You've hit your limit");
    let until = facts["waitsUntil"].as_str().unwrap();
    assert_eq!(hub, format!("The task waits until {until}."));
    let began = Instant::now();
    let over = stand.until(&task, TaskState::Completed).await;
    assert!(began.elapsed() > QUOTA - Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(began.elapsed() < QUOTA + Duration::from_secs(90), "{:?}", began.elapsed());
    assert_eq!(seen(&fake), ["Fix it", "[The quota"], "the prompt is sent once");
    assert_eq!(over.metadata.unwrap().get("waitsUntil"), None);
    let texts = over.history.iter().map(Message::joined_text).collect::<Vec<_>>();
    let is_continuation = |text: &&String| text.contains("Continue where you stopped");
    assert_eq!(texts.iter().filter(is_continuation).count(), 1, "{texts:?}");
}

/// Tasks of one account wait as one, in two agents: one tries first.
#[tokio::test(start_paused = true)]
async fn account_is_tried_by_one_task_first() {
    let stand = Stand::new();
    let (fake, other) = (limited(1), limited(0));
    let shared = || AgentConfig { account: Some("team".to_owned()), ..waiting_config() };
    let (a, b) = (fake.agent_called("a", shared()), other.agent_called("b", shared()));
    let alone = limited(0).agent_called("alone", waiting_config());
    let first = stand.submit(&a, "one").await;
    until_it_waits(&stand, &first).await;
    let later = [stand.submit(&a, "two").await, stand.submit(&b, "three").await];
    let free = stand.submit(&alone, "four").await;
    stand.until(&free, TaskState::Completed).await;
    for task in &later {
        let held = stand.tasks.get(task).await.unwrap().task;
        assert_eq!(held.status.state, TaskState::Submitted, "it has not begun");
        assert!(metadata_of(&held, "waitsUntil").is_string(), "{held:?}");
    }
    assert_eq!((seen(&fake).len(), seen(&other).len()), (1, 0), "nobody runs into the limit");
    for task in later.iter().chain([&first]) {
        let over = stand.until(task, TaskState::Completed).await;
        assert_eq!(metadata_of(&over, "waitsUntil"), json!(null));
    }
    assert_eq!((seen(&fake).len(), seen(&other).len()), (3, 1));
}

fn metadata_of(task: &Task, name: &str) -> serde_json::Value {
    task.metadata.as_ref().and_then(|facts| facts.get(name)).cloned().unwrap_or_default()
}

/// A refusal without end: three waits, and then an honest failure.
#[tokio::test(start_paused = true)]
async fn task_waits_three_times_at_most() {
    let (stand, fake) = (Stand::new(), limited(usize::MAX));
    // Each wait may last so long, and not all of them.
    let short = AgentConfig { quota_wait_ms: 700_000, ..waiting_config() };
    let began = Instant::now();
    let task = stand.submit(&fake.agent(short), "Fix it").await;
    let over = stand.until(&task, TaskState::Failed).await;
    assert_eq!(seen(&fake).len(), 4);
    assert!(began.elapsed() > QUOTA * 3 - Duration::from_secs(3), "{:?}", began.elapsed());
    let told = over.status.message.as_ref().unwrap().joined_text();
    assert!(
        told.ends_with("The task does not wait for its quota: it has waited 3 times already."),
        "{told}"
    );
    assert_eq!(metadata_of(&over, "reason"), "rate_limited");
}

#[tokio::test(start_paused = true)]
async fn hostile_reset_times_fail_at_once() {
    let far = "253402300799";
    for (resets_at, expected) in [
        (json!(null), "the agent did not say when the quota resets"),
        (json!(-5), "the agent did not say when the quota resets"),
        (serde_json::from_str(far).unwrap(), "the agent did not say when the quota resets"),
        (json!(17), "the agent did not say when the quota resets"),
        (json!(clock::now_ms() + 25 * 3_600_000), "`quota_wait_ms` allows 24 h 0 min"),
    ] {
        let fake = Fake::new(move |_| {
            let ended = used_up(resets_at.clone());
            async move { ended }
        });
        let (stand, fake) = (Stand::new(), fake.resuming(Resume::Session));
        let began = Instant::now();
        let task = stand.submit(&fake.agent(waiting_config()), "Fix it").await;
        let over = stand.until(&task, TaskState::Failed).await;
        assert!(began.elapsed() < Duration::from_secs(1));
        let told = over.status.message.as_ref().unwrap().joined_text();
        assert!(told.contains(expected), "{told}");
    }
}

/// A past reset is tried again soon, and no more than three times.
#[tokio::test(start_paused = true)]
async fn past_reset_is_no_busy_loop() {
    let fake = Fake::new(|_| async { used_up(json!(clock::now_ms() - 1_000)) });
    let (stand, fake) = (Stand::new(), fake.resuming(Resume::Session));
    let began = Instant::now();
    let task = stand.submit(&fake.agent(waiting_config()), "Fix it").await;
    stand.until(&task, TaskState::Failed).await;
    assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(seen(&fake).len(), 4);
}

/// Without the setting, and for an agent without sessions, the task fails as before.
#[tokio::test(start_paused = true)]
async fn wait_needs_setting_and_session() {
    for on_quota in [None, Some(QuotaReaction::Fail), Some(QuotaReaction::Handoff)] {
        let (stand, fake) = (Stand::new(), limited(1));
        let task = stand.submit(&fake.agent(AgentConfig { on_quota, ..config() }), "Fix it").await;
        let over = stand.until(&task, TaskState::Failed).await;
        let told = over.status.message.as_ref().unwrap().joined_text();
        assert_eq!(told, "You've hit your limit");
    }
    let (stand, fake) = (Stand::new(), limited(1).resuming(Resume::Nothing));
    let task = stand.submit(&fake.agent(waiting_config()), "Fix it").await;
    let over = stand.until(&task, TaskState::Failed).await;
    let told = over.status.message.as_ref().unwrap().joined_text();
    assert!(told.contains("keeps no session"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn killed_hub_waits_on_and_continues_once() {
    let (killed, fake) = (Stand::new(), limited(1));
    let agent = fake.agent(waiting_config());
    let task = killed.submit(&agent, "Fix it").await;
    let until = metadata_of(&until_it_waits(&killed, &task).await, "waitsUntil");
    let held = killed.submit(&agent, "Another").await;
    let mut hub = killed;
    // A hub that is killed again and again neither forgets nor repeats the wait.
    for _ in 0..3 {
        let next = hub.next_hub();
        let found = agent.clone();
        let recovered = next.recover(move |_: &AgentId| Some(found.clone())).await;
        assert_eq!((recovered.waiting, recovered.failed), (1, 0));
        let waits = until_it_waits(&next, &task).await;
        assert_eq!(metadata_of(&waits, "waitsUntil"), until);
        hub = next;
    }
    assert_eq!(seen(&fake).len(), 1);
    let over = hub.until(&task, TaskState::Completed).await;
    hub.until(&held, TaskState::Completed).await;
    assert_eq!(over.history.len(), 2, "{:?}", over.history);
    let mut starts = seen(&fake);
    starts.sort();
    assert_eq!(starts, ["Another", "Fix it", "[The quota"]);
}

#[tokio::test(start_paused = true)]
async fn stopped_hub_leaves_wait_to_next() {
    let (stand, fake) = (Stand::new(), limited(1));
    let agent = fake.agent(waiting_config());
    let task = stand.submit(&agent, "Fix it").await;
    let before = until_it_waits(&stand, &task).await;
    stand.submit(&agent, "Another").await;
    let idle = timeout(Duration::from_secs(5), stand.tasks.idle()).await;
    idle.expect("a stop does not wait for the quota").unwrap();
    assert_eq!(stand.tasks.shutdown().await, [], "no agent was interrupted");
    assert_eq!(stand.tasks.get(&task).await.unwrap().task.status, before.status);
    let next = stand.next_hub();
    next.recover(move |_: &AgentId| Some(agent.clone())).await;
    next.until(&task, TaskState::Completed).await;
    next.tasks.idle().await.unwrap();
    assert_eq!(seen(&fake).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn waiting_task_is_cancelled_at_once() {
    let (stand, fake) = (Stand::new(), limited(1));
    let task = stand.submit(&fake.agent(waiting_config()), "Fix it").await;
    until_it_waits(&stand, &task).await;
    let began = Instant::now();
    let over = stand.tasks.cancel(&task, Principal::Operator).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(metadata_of(&over, "waitsUntil"), json!(null), "{over:?}");
    tokio::time::sleep(QUOTA * 2).await;
    assert_eq!(seen(&fake).len(), 1, "nothing follows");
}

/// A person tries now; what succeeds opens the account for the others.
#[tokio::test(start_paused = true)]
async fn retry_now_ends_wait() {
    let (stand, fake) = (Stand::new(), limited(1));
    let agent = fake.agent(waiting_config());
    let task = stand.submit(&agent, "Fix it").await;
    until_it_waits(&stand, &task).await;
    let held = stand.submit(&agent, "Another").await;
    let began = Instant::now();
    stand.tasks.retry_now(&task).await.unwrap();
    stand.until(&task, TaskState::Completed).await;
    stand.until(&held, TaskState::Completed).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let refused = stand.tasks.retry_now(&task).await.unwrap_err();
    let why = A2aError::from(refused).message;
    assert!(why.contains("completed"), "{why}");
    let slow = stand.submit(&busy(true).agent(waiting_config()), "slow").await;
    let why = A2aError::from(stand.tasks.retry_now(&slow).await.unwrap_err()).message;
    assert!(why.contains("does not wait for the quota"), "{why}");
}

/// A message during the wait is kept for the run after the one that continues.
#[tokio::test(start_paused = true)]
async fn message_during_wait_reaches_later_run() {
    let (stand, fake) = (Stand::new(), limited(1));
    let agent = fake.agent(waiting_config());
    let task = stand.submit(&agent, "Fix it").await;
    until_it_waits(&stand, &task).await;
    stand.answer(&task, "and the docs").await.unwrap();
    let next = stand.next_hub();
    next.recover(move |_: &AgentId| Some(agent.clone())).await;
    next.until(&task, TaskState::Completed).await;
    assert_eq!(seen(&fake), ["Fix it", "[The quota", "and the do"]);
}

/// A flood of messages during the wait is bounded like the queue.
#[tokio::test(start_paused = true)]
async fn new_tasks_during_wait_are_bounded() {
    let (stand, fake) = (Stand::new(), limited(1));
    let agent = fake.agent(AgentConfig { max_queued: 3, ..waiting_config() });
    let first = stand.submit(&agent, "one").await;
    until_it_waits(&stand, &first).await;
    for text in ["two", "three"] {
        stand.submit(&agent, text).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let refused = stand.try_submit(&agent, Message::text(Role::User, "four")).await.unwrap_err();
    assert!(refused.to_string().contains("3 of its tasks wait for the reset"), "{refused}");
    stand.until(&first, TaskState::Completed).await;
    stand.tasks.idle().await.unwrap();
    assert_eq!(seen(&fake).len(), 4);
}
