//! Permissions of an agent's programs, narrowed by the calling agent or by the client.

use a2a_hub_config::Permissions;
use a2a_hub_core::task::metadata;
use a2a_hub_protocol::task::Task;
use std::{collections::BTreeMap, sync::Arc};

/// Setting for what an agent's program may do without asking, and the member of a message's
/// metadata that narrows it.
const PERMISSIONS: &str = "permissions";

/// The operator's settings for an agent, narrowed to `max` for one task.
pub(super) fn narrowed(
    settings: &Arc<BTreeMap<String, String>>,
    max: Option<Permissions>,
) -> Arc<BTreeMap<String, String>> {
    let set = settings.get(PERMISSIONS).and_then(|set| Permissions::named(set));
    match (set, max) {
        (Some(set), Some(max)) if max < set => {
            let mut settings = BTreeMap::clone(settings);
            settings.insert(PERMISSIONS.to_owned(), max.word().to_owned());
            Arc::new(settings)
        }
        _ => Arc::clone(settings),
    }
}

/// Most permissive mode for an agent's programs in this task; none if nothing bounds it. In a child
/// task the programs ask before each change, unless the operator grants the caller more; their
/// questions go to the client of the root task. A client narrows the mode in its messages; the
/// latest value counts.
pub(super) fn max_permissions(task: &Task, is_child: bool) -> Option<Permissions> {
    let granted = metadata::text(task, metadata::GRANTED_PERMISSIONS).and_then(Permissions::named);
    let of_agents = is_child.then_some(granted.unwrap_or_default());
    let of_client = metadata::last_client_value(task, PERMISSIONS).map(|word| {
        // An unknown word allows the least.
        Permissions::named(word).unwrap_or(Permissions::ReadOnly)
    });
    [of_agents, of_client].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        message::{Message, Role},
        task::{TaskState, TaskStatus},
    };
    use serde_json::json;

    fn task(said: &[Option<&str>]) -> Task {
        let message = |word: &Option<&str>| {
            let metadata = word.map(|word| [(PERMISSIONS.to_owned(), json!(word))]);
            let metadata = metadata.map(|facts| facts.into_iter().collect());
            Message { metadata, ..Message::text(Role::User, "hi") }
        };
        Task {
            id: TaskId::fresh(),
            context_id: ContextId::fresh(),
            status: TaskStatus {
                state: TaskState::Working,
                message: None,
                timestamp: String::new(),
            },
            artifacts: Vec::new(),
            history: said.iter().map(message).collect(),
            metadata: None,
        }
    }

    #[test]
    fn strictest_permission_of_all_parties_wins() {
        for (set, said, is_child, counts) in [
            ("full", &[None][..], false, "full"),
            ("full", &[None], true, "ask"),
            ("full", &[Some("edit")], false, "edit"),
            ("full", &[Some("edit")], true, "ask"),
            ("edit", &[Some("full")], false, "edit"),
            ("ask", &[Some("read-only")], true, "read-only"),
            ("read-only", &[Some("ask")], false, "read-only"),
            ("full", &[Some("edit"), None, Some("read-only")], false, "read-only"),
            ("full", &[Some("read-only"), Some("edit"), None], false, "edit"),
            ("full", &[Some("everything")], false, "read-only"),
        ] {
            let settings = [(PERMISSIONS.to_owned(), set.to_owned())].into_iter().collect();
            let told = narrowed(&Arc::new(settings), max_permissions(&task(said), is_child));
            assert_eq!(told[PERMISSIONS], counts, "{set} {said:?} {is_child}");
        }
    }
}
