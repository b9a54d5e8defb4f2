//! What the operator set for this agent.

use crate::Context;
use crate::host::Host;

impl Context {
    /// What the operator set for this agent under that name.
    ///
    /// Always there: `workspace`, the directory that programs start in unless they are told another; `permissions` (`ask`,
    /// `read-only`, `edit` or `full`); and `approval_timeout`, the milliseconds that a question for permission waits before it
    /// counts as denied.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.hub.read_setting(name)
    }
}
