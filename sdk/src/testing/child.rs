//! Child of a scripted task, in the state in which its updates leave it.

use crate::{CallOptions, ChildTask, TaskState, Update};

/// Describes a child by all that it will report.
pub(super) fn child(id: &str, agent: &str, options: &CallOptions, updates: &[Update]) -> ChildTask {
    let end = updates.iter().find_map(|update| match update {
        Update::Finished(outcome) => Some(outcome.state().unwrap_or(TaskState::Completed)),
        Update::Event(_) => None,
    });
    let state = end.unwrap_or(TaskState::Working);
    ChildTask { task_id: id.to_owned(), agent: agent.to_owned(), key: options.key.clone(), state }
}
