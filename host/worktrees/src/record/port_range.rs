//! Reserved TCP ports.

use serde::{Deserialize, Serialize};

/// Reserved ports of a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRange {
    /// First port.
    pub first: u16,
    /// Number of ports.
    pub count: u16,
}

impl PortRange {
    pub(crate) fn end(self) -> u16 {
        self.first.saturating_add(self.count)
    }
}
