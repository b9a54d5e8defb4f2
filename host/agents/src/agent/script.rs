//! The agent that runs the programs of flows: only flows call it, each with its own commands.

use super::{Agent, AgentSource, FLOW_RUNNER, permission_limits::max_permissions};
use a2a_hub_core::{
    grant::permissions::Permissions,
    task::{metadata, trace_context::PARENT_TASK},
};
use a2a_hub_protocol::{
    id::AgentId,
    message::{Content, Message},
    task::Task,
};
use a2a_hub_runtime::Failure;
use serde_json::Value;

/// Id of the bundled agent that runs the programs of flows.
pub(crate) const SCRIPT: &str = "script";

impl Agent {
    /// True if this is the agent that runs the programs of flows.
    pub fn is_script(&self) -> bool {
        matches!(self.source, AgentSource::Script)
    }

    /// True if lists of agents for people leave the agent out, such as a flow of `a2a-hub best`. It
    /// is called by its name.
    pub fn is_unlisted(&self) -> bool {
        self.source.is_unlisted(&self.id)
    }

    /// True if other agents find the agent: a listed one, or the bundled one that runs the flow
    /// files that models write.
    pub(crate) fn is_listed_for_agents(&self) -> bool {
        !self.is_unlisted() || self.id.as_str() == FLOW_RUNNER
    }

    /// True if the agent runs a flow file: its own one, or those in messages of clients.
    pub fn is_flow(&self) -> bool {
        self.source.runs_flows(&self.id)
    }

    /// Commit from which the worktree of each task starts, by the flow file of the agent; none
    /// without one.
    pub fn worktree_base(&self) -> Option<&str> {
        self.source.flow().and_then(|flow| flow.needs.worktree())
    }

    /// True if the name is that of the agent that runs the programs of flows, and this agent is a
    /// flow with programs.
    pub fn calls_script(&self, name: &AgentId) -> bool {
        let runs = matches!(&self.source, AgentSource::Flow(flow) if flow.needs.runs_programs());
        name.as_str() == SCRIPT && runs
    }

    /// Refuses a call of `child` by this agent in `task`, if the child runs the programs of flows
    /// and the message holds no command of this agent's own file.
    pub fn require_trusted_command(
        &self,
        child: &Self,
        task: &Task,
        message: &Message,
    ) -> Result<(), Failure> {
        if !child.is_script() {
            return Ok(());
        }
        let denied = |why: &str| Err(Failure::Denied(format!("call `{}`: {why}", child.id)));
        let AgentSource::Flow(flow) = &self.source else {
            return denied(
                "it works for flows only, which the operator trusts by `a2a-hub flow trust NAME`",
            );
        };
        let mut data = message.parts.iter().filter_map(|part| match &part.content {
            Content::Data(data) => Some(data),
            Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
        });
        let command = data.next().and_then(|data| data.get("run")).and_then(Value::as_array);
        let words: Option<Vec<_>> = command.and_then(|all| all.iter().map(Value::as_str).collect());
        if !words.is_some_and(|words| flow.needs.runs(&words)) {
            return denied("no step of this flow's trusted file runs that command");
        }
        let is_child = metadata::has(task, PARENT_TASK);
        if max_permissions(task, is_child) == Some(Permissions::ReadOnly) {
            return denied(
                "the flow's task is limited to `read-only`, and a program may change files; start the flow without that limit",
            );
        }
        Ok(())
    }
}
