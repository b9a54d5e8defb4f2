//! Origin of an agent: remote, or part of the hub and its flows.

use super::{Agent, AgentSource};

impl Agent {
    /// True if the agent is remote.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.source, AgentSource::Remote(_))
    }

    /// True if the agent came with the hub or its program, or is a flow of the operator: it is no
    /// plug-in, and not remote.
    pub fn is_first_party(&self) -> bool {
        matches!(
            self.source,
            AgentSource::BuiltIn
                | AgentSource::Acp
                | AgentSource::Native
                | AgentSource::Flow(..)
                | AgentSource::Script
        )
    }
}
