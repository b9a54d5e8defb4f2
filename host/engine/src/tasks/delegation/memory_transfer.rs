//! Transfers context memory from a parent's agent to a child's, before the child task is created.
//!
//! If the hub is killed in between, either nothing was stored, or a memory whose conversation has
//! no task; the next process deletes that. A repeated transfer to an existing conversation is
//! stored once.

use a2a_hub_agents::{Agent, GrantedMemory};
use a2a_hub_core::{
    access_control::Principal,
    context_memory::{
        inherit::Inherit,
        transfer::{Giver, Inherited, transfer},
    },
};
use a2a_hub_protocol::{id::ContextId, message::Message, task::Task};
use a2a_hub_runtime::{Failure, HubWork};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Agent that gives memory, with the task in which it had it.
pub(in crate::tasks) type GiverTask = (Arc<Agent>, Task);

/// Requested transfer: the call's or, if the call has none, its message's.
pub(in crate::tasks) fn requested_transfer(
    inherit: Option<Inherit>,
    message: &Message,
) -> Result<Option<Inherit>, Failure> {
    match inherit {
        Some(inherit) => Ok(Some(inherit)),
        None => Inherit::from_metadata(message.metadata.as_ref())
            .map_err(|why| Failure::Invalid(format!("call another agent: {}", why.message))),
    }
}

/// Transfers the requested memory of `giver`, in the share of the calling agent `by`. Returns the
/// message with the conversation in which `child` finds the memory, the record of the transfer and,
/// if that conversation is new, the child's memory of it.
pub(in crate::tasks) async fn hand_over(
    giver: &GiverTask,
    (child, by): (&Agent, &Principal),
    mut message: Message,
    inherit: Option<Inherit>,
) -> Result<(Message, Option<Inherited>, Option<GrantedMemory>), Failure> {
    let Some(inherit) = inherit else { return Ok((message, None, None)) };
    let is_new = message.context_id.is_none();
    let context = message.context_id.clone().unwrap_or_else(ContextId::fresh);
    let context = context.of_tenant(giver.1.context_id.tenant());
    message.context_id = Some(context.clone());
    let inherited = transferred(giver, (child, &context, by), inherit, &message).await?;
    let fresh = child.context_memory(&context, Some(by)).filter(|_| is_new && inherited.delivered);
    Ok((message, Some(inherited), fresh))
}

/// Transfers the requested memory of the agent in its task to `child` in the conversation
/// `context`. Returns the record of the transfer.
async fn transferred(
    (agent, task): &GiverTask,
    (child, context, by): (&Agent, &ContextId, &Principal),
    inherit: Inherit,
    message: &Message,
) -> Result<Inherited, Failure> {
    let from = Giver { agent: agent.id.clone(), task: task.id.clone() };
    let nothing = |why: String| Ok(Inherited::nothing(from.clone(), inherit.scope, why));
    if child.is_elsewhere() {
        return nothing(
            "agents elsewhere are handed nothing; send what it needs in the message".into(),
        );
    }
    let Some(source_memory) = agent.context_memory(&task.context_id, None) else {
        return nothing(not_granted(agent, "it has nothing in mind"));
    };
    let Some(other) = child.context_memory(context, Some(by)) else {
        return nothing(not_granted(child, "it can keep nothing in mind"));
    };
    let text = message.joined_text();
    let (working, items) =
        source_memory.offered(inherit.query.as_deref(), &text, &inherit.names).await?;
    // Runs with the priority of the caller's own work.
    let (done, outcome) = oneshot::channel();
    let work: HubWork = Box::pin(async move {
        // The receiver may be gone.
        let _ = done.send(transfer(from.clone(), working, items, &inherit, &text));
    });
    agent.run_hub_work(work).await;
    let outcome =
        outcome.await.map_err(|why| Failure::Internal(format!("hand over memory: {why}")))?;
    let taken = other.take_in(outcome.changes()).await;
    match taken.map_err(|why| Failure::Internal(format!("hand over memory: {why}")))? {
        None => Ok(outcome.fact),
        Some(why) => Ok(Inherited::nothing(outcome.fact.from, outcome.fact.scope, why)),
    }
}

fn not_granted(agent: &Agent, reason: &str) -> String {
    format!("`{}` is not granted `memory`: {reason}", agent.id)
}
