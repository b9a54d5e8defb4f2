//! Limits of a tree of tasks, by the API key of the caller that began it: the agents that it may
//! reach, and the scopes of cards.

use super::Delegation;
use a2a_hub_agents::Agent;
use a2a_hub_core::{grant::delegate::Callee, identity::CardScopes, task::metadata};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::Failure;

impl Delegation {
    /// Refuses an agent that the key does not name by which this tree of tasks began.
    pub(in crate::tasks) fn require_reach(&self, agent: &AgentId) -> Result<(), Failure> {
        if metadata::may_reach(&self.task, agent) {
            return Ok(());
        }
        let reach = metadata::reachable_agents(&self.task).unwrap_or_default();
        Err(Failure::Denied(format!(
            "call `{agent}`: the API key that began this work reaches {} only; its scope `send:AGENT:alone` leaves out what agents \
             call, and a key with `send:AGENT` does not",
            if reach.is_empty() {
                "no other agent".to_owned()
            } else {
                format!("`{}`", reach.join("`, `"))
            }
        )))
    }

    /// Refuses a skill whose scopes this tree of tasks does not hold.
    pub(super) fn require_scopes(&self, child: &Agent, callee: &Callee) -> Result<(), Failure> {
        let scopes = CardScopes::of_tree(self.task.metadata.as_ref());
        let allowed = scopes.require_for(&child.card, callee.skill.as_deref());
        allowed.map_err(|why| {
            Failure::Denied(format!("call `{callee}` for the caller that began this work: {why}"))
        })
    }
}
