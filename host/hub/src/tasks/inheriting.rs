//! What of its memory an agent hands over with a task: taken from what it has in mind, and put where the other one finds it, before
//! that one's task is created.
//!
//! A hub that is killed in between leaves either nothing, or what nobody comes for: the next one forgets it, for its conversation has
//! no task. What is handed over again in a conversation that there is stands there once.

use a2a_hub_agents::{Agent, Mind};
use a2a_hub_core::context_memory::{
    inherit::Inherit,
    transfer::{Giver, Inherited, transfer},
};
use a2a_hub_protocol::{id::ContextId, message::Message, task::Task};
use a2a_hub_runtime::{Failure, HubWork};
use std::sync::Arc;
use tokio::sync::oneshot;

/// What is to be handed over: what the call says or, where that says nothing, its message.
pub(super) fn asked_for(
    said: Option<Inherit>,
    message: &Message,
) -> Result<Option<Inherit>, Failure> {
    match said {
        Some(asked) => Ok(Some(asked)),
        None => Inherit::of(message.metadata.as_ref())
            .map_err(|why| Failure::Invalid(format!("call another agent: {}", why.message))),
    }
}

/// Hands over what is asked for of what `parent` has in mind. Returns the message with the conversation in which `child` finds it, what
/// went and, where that conversation is a new one, the place where it is.
pub(super) async fn hand_over(
    parent: (&Arc<Agent>, &Task),
    child: &Agent,
    mut message: Message,
    asked: Option<Inherit>,
) -> Result<(Message, Option<Inherited>, Option<Mind>), Failure> {
    let Some(asked) = asked else { return Ok((message, None, None)) };
    let is_new = message.context_id.is_none();
    let context = message.context_id.clone().unwrap_or_else(ContextId::fresh);
    let context = context.of_tenant(parent.1.context_id.tenant());
    message.context_id = Some(context.clone());
    let told = transferred(parent, (child, &context), asked, &message).await?;
    let fresh = child.mind(&context).filter(|_| is_new && told.delivered);
    Ok((message, Some(told), fresh))
}

/// Hands over to `child`, in the conversation `context`, what is asked for of what `parent` has in mind in its task. Tells what went.
async fn transferred(
    (parent, task): (&Arc<Agent>, &Task),
    (child, context): (&Agent, &ContextId),
    asked: Inherit,
    message: &Message,
) -> Result<Inherited, Failure> {
    let from = Giver { agent: parent.id.clone(), task: task.id.clone() };
    let nothing = |why: String| Ok(Inherited::nothing(from.clone(), asked.scope, why));
    if child.is_elsewhere() {
        return nothing(
            "agents elsewhere are handed nothing; send what it needs in the message".into(),
        );
    }
    let Some(own) = parent.mind(&task.context_id) else {
        return nothing(not_granted(parent, "it has nothing in mind"));
    };
    let Some(other) = child.mind(context) else {
        return nothing(not_granted(child, "it can keep nothing in mind"));
    };
    let text = message.joined_text();
    let (working, items) = own.offered(asked.query.as_deref(), &text, &asked.names).await?;
    // As urgently as the caller's own work is done.
    let (done, made) = oneshot::channel();
    let work: HubWork = Box::pin(async move {
        // Who waited may have gone away.
        let _ = done.send(transfer(from.clone(), working, items, &asked, &text));
    });
    parent.on_behalf(work).await;
    let made = made.await.map_err(|why| Failure::Internal(format!("hand over memory: {why}")))?;
    let taken = other.take_in(made.changes()).await;
    match taken.map_err(|why| Failure::Internal(format!("hand over memory: {why}")))? {
        None => Ok(made.fact),
        Some(why) => Ok(Inherited::nothing(made.fact.from, made.fact.scope, why)),
    }
}

fn not_granted(agent: &Agent, what: &str) -> String {
    format!("`{}` is not granted `memory`: {what}", agent.id)
}
