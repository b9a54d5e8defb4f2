//! Settings that the operator made for this agent.

use crate::Context;
use crate::host::Host;

impl Context {
    /// Reads a setting that the operator made for this agent.
    ///
    /// Always set: `workspace`, the default working directory of programs; `permissions` (`ask`,
    /// `read-only`, `edit` or `full`); and `approval_timeout`, the milliseconds after which an
    /// unanswered question for permission counts as denied.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.hub.read_setting(name)
    }
}
