//! Builds the message that a child task receives from its parent's agent.

use crate::tasks::new_task::ChildWorkspace;
use a2a_hub_core::{
    context_memory::inherit,
    grant::delegate::Callee,
    task::trace_context::{Trace, without_trace},
};
use a2a_hub_protocol::{
    budget::Budget,
    hub_metadata::{self, ADDITIONAL_DIRECTORIES, TARGET_SKILL},
    id::{ContextId, TaskId},
    message::{Message, Role},
    task::Task,
};
use a2a_hub_runtime::{Failure, directories};

/// Metadata keys addressed to the hub that are not passed on: an operator's instructions to the
/// parent do not apply to its children.
const NOT_HANDED_ON: [&str; 7] = [
    "resume",
    "workingDirectory",
    ADDITIONAL_DIRECTORIES,
    "targetAgent",
    TARGET_SKILL,
    "targetVersion",
    "allowOlder",
];

/// A further message to a child, whose skill is that of its first message.
pub(super) fn further(mut message: Message) -> Message {
    if let Some(facts) = &mut message.metadata {
        facts.remove(TARGET_SKILL);
    }
    message
}

/// Message as the child receives it, with its span in the trace and the skill that its parent may
/// call it for.
pub(in crate::tasks) fn build(
    parent: &Task,
    message: Message,
    (child, callee): (&TaskId, &Callee),
    context_id: Option<ContextId>,
    ChildWorkspace { directory, additional, .. }: &ChildWorkspace,
) -> Message {
    let trace = Trace::for_task(&parent.id, parent.metadata.as_ref()).child(child);
    let facts = without_trace(message.metadata.clone().unwrap_or_default());
    // The hub performs the inheritance request itself; the child does not see it.
    let mut facts = inherit::without(facts);
    for right in NOT_HANDED_ON {
        facts.remove(right);
    }
    facts.extend(trace.members());
    facts.extend(callee.skill.clone().map(|skill| (TARGET_SKILL.to_owned(), skill.into())));
    let directory = directory.as_deref();
    facts.extend(directory.map(|dir| ("workingDirectory".to_owned(), dir.into())));
    facts.extend(directories::member(additional));
    Message { role: Role::User, task_id: None, context_id, metadata: Some(facts), ..message }
}

/// Budget that the message itself sets for the child, in addition to the call's. Checks the
/// message's other hub metadata as well.
pub(in crate::tasks) fn budget(message: &Message) -> Result<Budget, Failure> {
    hub_metadata::check(message)
        .and_then(|()| Budget::from_metadata(message.metadata.as_ref()))
        .map_err(|why| Failure::Invalid(format!("call another agent: {}", why.message)))
}
