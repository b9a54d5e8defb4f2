//! Trees of tasks that a narrowed key began: they call agents that the key names, and no others.

use super::*;

/// Metadata of a root task whose key names these agents alone.
pub(super) fn limited_to(agents: &[&str]) -> Metadata {
    json!({ "reachableAgents": agents }).as_object().cloned().unwrap()
}

#[tokio::test(start_paused = true)]
async fn limited_tree_calls_named_agents_only() {
    let call = |agent: &str, script: Value| json!({ "calls": [{ "agent": agent, "do": script }] });
    let deep = call("b", call("c", json!({ "end": "deep" })));
    for (reach, script, ends) in [
        (&["a", "b", "c"][..], &deep, Ok("deep")),
        (&["a", "b"], &deep, Err("reaches `a`, `b` only")),
        (&["b"], &call("b", json!({ "end": "flat" })), Ok("flat")),
        (&["a"], &call("b", json!({ "end": "flat" })), Err("reaches `a` only")),
        (&[], &call("b", json!({ "end": "flat" })), Err("reaches no other agent")),
    ] {
        let (stand, agents) = usual();
        let script = script.to_string();
        let root = stand.submit_run(agents.named("a"), &script, limited_to(reach)).await;
        match ends {
            Ok(end) => {
                let done = stand.until(&root, TaskState::Completed).await;
                assert_eq!(said(&done), end);
                let child = stand.only_child(&root).await;
                assert_eq!(fact(&child, "reachableAgents"), &json!(reach), "each task has it");
            }
            Err(why) => {
                // A caller goes on after the failure of a child.
                let is_below = reach.contains(&"b");
                let end = if is_below { TaskState::Completed } else { TaskState::Failed };
                let root = stand.until(&root, end).await;
                let failed = if is_below { stand.only_child(&root.id).await } else { root };
                assert_eq!(failed.status.state, TaskState::Failed);
                let told = said(&failed);
                assert!(told.contains(why), "{reach:?}: {told}");
            }
        }
    }
}
