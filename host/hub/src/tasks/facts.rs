//! What a task says of itself in its metadata, beside what its agent says there.

use a2a_hub_protocol::task::Task;

/// The fact that tells a task still waits for its turn.
pub(super) const QUEUED: &str = "queued";

/// The fact that tells why a task is where it is.
pub(super) const REASON: &str = "reason";

/// The reason of a task that its client must send on its way again.
pub(super) const RECOVERY: &str = "recovery";

/// A fact of a task that is a text.
pub(super) fn fact<'a>(task: &'a Task, name: &str) -> Option<&'a str> {
    task.metadata.as_ref()?.get(name)?.as_str()
}

pub(super) fn has_fact(task: &Task, name: &str) -> bool {
    task.metadata.as_ref().is_some_and(|facts| facts.contains_key(name))
}

/// Where the client would have the work done, as it said last.
pub(super) fn working_directory(task: &Task) -> Option<String> {
    let said = task.history.iter().rev().filter_map(|message| message.metadata.as_ref());
    let mut directories = said.filter_map(|facts| facts.get("workingDirectory")?.as_str());
    directories.next().map(str::to_owned)
}
