//! Access check for conversations that a call continues.

use super::{said, usual};
use a2a_hub_protocol::task::TaskState;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn agent_continues_only_its_childrens_contexts() {
    let (stand, agents) = usual();
    let call = |agent: &str, context: &str| {
        let call = json!({ "agent": agent, "in": context, "do": {"end": "heard"} });
        json!({ "calls": [call] })
    };
    let first = json!({"calls": [{"agent": "b", "do": {"end": "first"}}]});
    let root = stand.begin(&agents, "a", first).await;
    let of_client = stand.until(&root, TaskState::Completed).await.context_id;
    let of_child = stand.only_child(&root).await.context_id;

    let again = stand.begin(&agents, "a", call("b", of_child.as_str())).await;
    assert_eq!(said(&stand.until(&again, TaskState::Completed).await), "heard");
    assert_eq!(stand.only_child(&again).await.context_id, of_child);

    let (of_child, of_client, long) = (of_child.as_str(), of_client.as_str(), "c".repeat(129));
    for (what, agent, called, context) in [
        ("that of another agent's child", "c", "b", of_child),
        ("that of its child, with another agent", "a", "c", of_child),
        ("its client's", "a", "b", of_client),
        ("one that nobody has", "a", "b", "plan"),
        ("none", "a", "b", ""),
        ("one with too long a name", "a", "b", &long),
    ] {
        let root = stand.begin(&agents, agent, call(called, context)).await;
        let failed = stand.until(&root, TaskState::Failed).await;
        assert!(said(&failed).contains("go on with that conversation"), "{what}: {failed:?}");
        assert_eq!(stand.below(&root).await, [], "{what}");
    }
    assert!(stand.tasks.trees().is_empty());
}
