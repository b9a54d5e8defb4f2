//! Access check for conversations: an agent may continue only a conversation of its earlier
//! children. A speaker in a conversation sees its history, and uses the sessions and the memory
//! that the other agent has of it.

use super::{Delegation, call_errors::refused};
use a2a_hub_protocol::id::{AgentId, ContextId, MAX_ID};
use a2a_hub_runtime::Failure;
use a2a_hub_store::HeadFilter;

/// Number of a conversation's tasks that are checked, newest first.
const MAX_CHECKED_TASKS: usize = 100;

impl Delegation {
    /// Conversation that a call of `child` names, if the caller has given that agent a task in it
    /// before. An unknown conversation is refused like someone else's: an agent that names it first
    /// could return once others speak in it.
    pub(in crate::tasks) async fn conversation(
        &self,
        named: String,
        child: &AgentId,
    ) -> Result<ContextId, Failure> {
        let no_such = || {
            let caller = &self.agent.id;
            Failure::Denied(format!(
                "go on with that conversation: `{caller}` has given `{child}` no task in it; name the conversation of an earlier \
                 call of the same agent, or none, for a new one"
            ))
        };
        if !(1..=MAX_ID).contains(&named.len()) {
            return Err(no_such());
        }
        let context = ContextId::new(named).of_tenant(self.task.context_id.tenant());
        let its = HeadFilter {
            context: Some(context.clone()),
            agent: Some(child.clone()),
            limit: MAX_CHECKED_TASKS,
            ..HeadFilter::default()
        };
        let heads = self.tasks.storage.heads(its).await.map_err(refused)?;
        for parent in heads.into_iter().filter_map(|head| head.parent) {
            let whose = self.tasks.storage.whose(&parent).await;
            let whose = whose.map_err(refused)?;
            if whose.is_some_and(|(agent, _)| agent == self.agent.id) {
                return Ok(context);
            }
        }
        Err(no_such())
    }
}
