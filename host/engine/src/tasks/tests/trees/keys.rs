//! Keys of calls: many of them, each of which finds its child.

use super::*;

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
