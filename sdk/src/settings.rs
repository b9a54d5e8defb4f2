//! What the operator set for this agent.

use crate::Context;
use crate::host::Host;

impl Context {
    /// A setting of this agent, if the operator gave one.
    pub fn setting(&self, name: &str) -> Option<String> {
        Host::setting(&self.hub, name)
    }
}
