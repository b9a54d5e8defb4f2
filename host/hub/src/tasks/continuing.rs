//! Which conversation an agent may have another one go on with: that of an earlier child of its own, and no other. Who speaks in a
//! conversation hears what was said there, and goes on with the sessions and the memory that the other agent has of it.

use super::{call_refused::refused, delegation::Delegation};
use a2a_hub_protocol::id::{AgentId, ContextId, MAX_ID};
use a2a_hub_runtime::Failure;
use a2a_hub_store::HeadFilter;

/// How many tasks of a conversation are looked at, the newest first.
const LOOKED_AT: usize = 100;

impl Delegation {
    /// The conversation that a call of `child` names, if the agent that calls had given that agent a task in it before. One that is new is
    /// refused like one that is somebody else's: who names it first could come back once others speak in it.
    pub(super) async fn conversation(
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
            limit: LOOKED_AT,
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
