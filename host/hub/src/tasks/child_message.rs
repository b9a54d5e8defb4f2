//! What a child is told of what its parent's agent says.

use a2a_hub_core::{
    context_memory::inherit,
    trace::{Trace, without_trace},
};
use a2a_hub_protocol::{
    budget::Budget,
    hub_metadata,
    id::{ContextId, TaskId},
    message::{Message, Role},
    task::Task,
};
use a2a_hub_runtime::Failure;

/// What stands in the metadata of a message for the hub: what an operator said to the parent is no word to its children.
const NOT_HANDED_ON: [&str; 6] =
    ["resume", "workingDirectory", "targetAgent", "targetSkill", "targetVersion", "allowOlder"];

/// The message as the child hears it, with its place in the trace.
pub(super) fn told(
    parent: &Task,
    message: Message,
    child: &TaskId,
    context_id: Option<ContextId>,
    directory: Option<&str>,
) -> Message {
    let trace = Trace::of(&parent.id, parent.metadata.as_ref()).child(child);
    let facts = without_trace(message.metadata.clone().unwrap_or_default());
    // What was asked for is done here, and not said to the child.
    let mut facts = inherit::without(facts);
    for right in NOT_HANDED_ON {
        facts.remove(right);
    }
    facts.extend(trace.members());
    facts.extend(directory.map(|dir| ("workingDirectory".to_owned(), dir.into())));
    Message { role: Role::User, task_id: None, context_id, metadata: Some(facts), ..message }
}

/// What the message itself says may follow from the child, beside what the call allows. What else it says to the hub is checked, too.
pub(super) fn budget(message: &Message) -> Result<Budget, Failure> {
    hub_metadata::check(message)
        .and_then(|()| Budget::of(message.metadata.as_ref()))
        .map_err(|why| Failure::Invalid(format!("call another agent: {}", why.message)))
}
