//! Keys of calls: many of them, each of which finds its child.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test(start_paused = true)]
async fn many_keys_find_their_children() {
    const MANY: usize = 150;
    let fake = Fake::new(|stage: Stage| async move {
        if stage.text() != "many" {
            return follow_script(stage).await;
        }
        let keyed = |number: usize| ChildRequest {
            key: Some(format!("key {number}")),
            ..ChildRequest::new(
                "b",
                Message::text(Role::User, json!({"end": number.to_string()}).to_string()),
            )
        };
        let all = || join_all((0..MANY).map(|number| stage.outcome_of(keyed(number))));
        for outcomes in [all().await, all().await] {
            for (number, outcome) in outcomes.into_iter().enumerate() {
                assert_eq!(told(&outcome.unwrap()), number.to_string());
            }
        }
        completed("as said")
    });
    let stand = Stand::new();
    let wide = AgentConfig { max_running: Some(200), max_queued: 200, ..config() };
    let agents = agents_of(&stand, &wide, &fake);
    let root = stand.submit(agents.named("a"), "many").await;
    let done = said(&stand.until(&root, TaskState::Completed).await);
    assert_eq!(done, "as said");
    assert_eq!(stand.tasks.children(&root).await.unwrap().len(), MANY);
}

#[tokio::test(start_paused = true)]
async fn child_of_agent_that_left_is_joined() {
    let has_left = Arc::new(AtomicBool::new(false));
    let leaves = Arc::clone(&has_left);
    let fake = Fake::new(move |stage: Stage| {
        let leaves = Arc::clone(&leaves);
        async move {
            if stage.text() != "twice" {
                return follow_script(stage).await;
            }
            let keyed = |key: &str| ChildRequest {
                key: Some(key.to_owned()),
                ..ChildRequest::new(
                    "b",
                    Message::text(Role::User, json!({"end": "once"}).to_string()),
                )
            };
            let first = stage.outcome_of(keyed("draft")).await.unwrap();
            leaves.store(true, Ordering::Relaxed);
            let again = stage.outcome_of(keyed("draft")).await.unwrap();
            let other = stage.call(keyed("final")).await.err().unwrap();
            completed(&format!("{} {} {other}", told(&first), told(&again)))
        }
    });
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &fake);
    let known = agents.0.clone();
    stand.know(move |id| {
        let is_gone = id.as_str() == "b" && has_left.load(Ordering::Relaxed);
        known.get(id).filter(|_| !is_gone).cloned()
    });
    let root = stand.submit(agents.named("a"), "twice").await;
    let done = said(&stand.until(&root, TaskState::Completed).await);
    assert_eq!(done, "once once call `b`: it has left");
    stand.only_child(&root).await;
}
