//! Principals of processes, by their position in the tree: an agent's program never counts as the
//! operator.

use a2a_hub_core::access_control::Principal;
use std::sync::Arc;

/// Maps processes and sockets to principals.
pub trait Lineage: Send + Sync {
    /// Principal of a process of the hub's own user: the operator, or an agent's program. `None` if
    /// the process is unknown, so that it needs a token like another user's.
    fn of_process(&self, pid: i32) -> Option<Principal>;

    /// Principals of the owners of the sockets with these inodes, in the same order.
    fn of_sockets(&self, inodes: &[u64]) -> Vec<Option<Principal>>;
}

/// Lineage without process tracking: each process of the hub's own user is the operator.
pub struct NoLineage;

impl Lineage for NoLineage {
    fn of_process(&self, _: i32) -> Option<Principal> {
        Some(Principal::Operator)
    }

    fn of_sockets(&self, inodes: &[u64]) -> Vec<Option<Principal>> {
        vec![Some(Principal::Operator); inodes.len()]
    }
}

/// Shared lineage for the servers.
pub type Lineages = Arc<dyn Lineage>;
