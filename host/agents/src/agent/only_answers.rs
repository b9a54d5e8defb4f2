//! An agent that can do nothing but answer.

use super::Agent;
use a2a_hub_core::grant::EffectiveGrant;

impl Agent {
    /// Whether all that it can do is to answer: nothing of its work can be noticed but by what it tells.
    pub fn only_answers(&self) -> bool {
        self.runtime.is_enclosed() && is_nothing(&self.held) && !self.replays()
    }
}

/// Whether whoever holds this holds no capability.
fn is_nothing(held: &EffectiveGrant) -> bool {
    // Each of them, lest a new one be forgotten.
    let EffectiveGrant {
        programs,
        memory_bytes,
        memory_items: _,
        files_bytes,
        http,
        workspace,
        agents,
        tools,
        directories: _,
        refused: _,
    } = held;
    programs.is_empty()
        && memory_bytes.is_none()
        && files_bytes.is_none()
        && http.is_empty()
        && workspace.is_none()
        && agents.is_empty()
        && tools.is_empty()
}
