//! Origin of a task.

use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::serde_json::{Map, Value};

/// True if another agent gave this task: the hub names its parent.
pub(crate) fn is_child(task: &Task) -> bool {
    let of = |metadata: &Option<String>| {
        let metadata = metadata.as_deref().unwrap_or_default();
        let all: Map<String, Value> = serde_json::from_str(metadata).unwrap_or_default();
        all.contains_key("parentTaskId")
    };
    of(&task.metadata) || of(&task.message.metadata)
}
