//! Detection of agents without side effects.

use super::Agent;
use a2a_hub_core::grant::EffectiveGrant;

impl Agent {
    /// True if answers are the agent's only effect: its runtime is sealed, it holds no capability,
    /// and its runs are not replayed.
    pub fn only_answers(&self) -> bool {
        self.runtime.is_enclosed() && is_nothing(&self.effective) && !self.replays()
    }
}

/// True if the grant holds no capability.
fn is_nothing(grant: &EffectiveGrant) -> bool {
    // Destructures every field, so that the compiler reports a new one.
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
    } = grant;
    programs.is_empty()
        && memory_bytes.is_none()
        && files_bytes.is_none()
        && http.is_empty()
        && workspace.is_none()
        && agents.is_empty()
        && tools.is_empty()
}
