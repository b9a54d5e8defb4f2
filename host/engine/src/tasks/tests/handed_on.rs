//! A hub that is killed while it hands a task over: the new task is in its log, and the end of the
//! old one is not.

use super::*;
use crate::conversations::handoff;

fn id(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

/// Log of a new task of the agent `second` that goes on with `old`.
async fn successor(
    killed: &Stand,
    old: &TaskId,
    reason: Option<&str>,
    queued: Option<(String, serde_json::Value)>,
) -> TaskId {
    let mut task = killed.tasks.get(old).await.unwrap().task;
    task.id = TaskId::fresh();
    task.status.state = TaskState::Submitted;
    task.history = vec![Message::text(Role::User, "Go on")];
    task.metadata = Some(handoff::fact_of_new(&id("first"), old, reason));
    task.metadata.get_or_insert_default().extend(queued);
    let created = TaskEvent::Created(Box::new(Created::new(id("second"), task.clone())));
    killed.storage.append(&task.id, 0, vec![Arc::new(created)]).await.unwrap();
    task.id
}

#[tokio::test(start_paused = true)]
async fn killed_handoff_is_completed_once() {
    use Resumability::{Nothing, Replay, Session, Work};
    for hold in [Nothing, Session, Work, Replay] {
        let killed = Stand::new();
        let first = busy(true).holding(hold);
        let old = killed.submit(&first.agent_called("first", config()), "Fix it").await;
        killed.until(&old, TaskState::Working).await;
        let new = successor(&killed, &old, Some("rate_limited"), None).await;

        let second = Fake::new(|stage: Stage| async move { completed(&stage.text()) });
        let next = killed.next_hub();
        let agents = [("first", first.clone()), ("second", second.clone())];
        let agents = agents.map(|(name, fake)| fake.agent_called(name, config()));
        next.recover(move |id: &AgentId| agents.iter().find(|it| it.id == *id).cloned()).await;
        next.until(&new, TaskState::Completed).await;
        let over = next.tasks.get(&old).await.unwrap().task;
        assert_eq!(over.status.state, TaskState::Canceled, "{}", next.story(&old).await);
        let fact = json!({ "to": "second", "task": new, "reason": "rate_limited" });
        assert_eq!(over.metadata.unwrap()["handoff"], fact);
        let seen = |fake: &Fake| fake.seen.lock().unwrap().clone();
        assert_eq!(seen(&first), ["start: Fix it"], "{hold:?}: no more than before the kill");
        assert_eq!(seen(&second), ["start: Go on", "forget"], "{hold:?}");
    }
}

/// The operator's handoff is completed by the new task, which waits for the end of the old one.
#[tokio::test(start_paused = true)]
async fn killed_handoff_by_hand_is_completed() {
    for hold in [Resumability::Nothing, Resumability::Session, Resumability::Work] {
        let killed = Stand::new();
        let first = busy(true).holding(hold);
        let old = killed.submit(&first.agent_called("first", config()), "Fix it").await;
        killed.until(&old, TaskState::Working).await;
        let new = successor(&killed, &old, None, None).await;
        let second = Fake::new(|stage: Stage| async move { completed(&stage.text()) });
        let next = killed.next_hub();
        let agents = [("first", first), ("second", second)];
        let agents = agents.map(|(name, fake)| fake.agent_called(name, config()));
        next.recover(move |id: &AgentId| agents.iter().find(|it| it.id == *id).cloned()).await;
        next.until(&new, TaskState::Completed).await;
        let over = next.tasks.get(&old).await.unwrap().task.status.state;
        let is_failed = hold == Resumability::Nothing;
        let expected = if is_failed { TaskState::Failed } else { TaskState::Canceled };
        assert_eq!(over, expected, "{hold:?}");
    }
}

/// A client that cancels a task while the hub hands it over wants no other agent at work.
#[tokio::test(start_paused = true)]
async fn cancelled_task_is_not_continued() {
    for (reason, state) in
        [(Some("rate_limited"), TaskState::Rejected), (None, TaskState::Completed)]
    {
        let killed = Stand::new();
        let first = busy(true);
        let old = killed.submit(&first.agent_called("first", config()), "Fix it").await;
        killed.until(&old, TaskState::Working).await;
        killed.tasks.cancel(&old, Principal::Operator).await.unwrap();
        let new = successor(&killed, &old, reason, Some((QUEUED.to_owned(), json!(true)))).await;
        let next = killed.next_hub();
        next.recover(|id: &AgentId| {
            let second = Fake::new(|stage: Stage| async move { completed(&stage.text()) });
            (id.as_str() == "second").then(|| second.agent_called("second", config()))
        })
        .await;
        next.until(&new, state).await;
    }
}
