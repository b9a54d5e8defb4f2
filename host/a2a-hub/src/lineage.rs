//! Identifies peers of the hub's transports by the process trees that the supervisor knows.

use a2a_hub_core::access_control::Principal;
use a2a_hub_process::{Kin, Supervisor, TreeOwner};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_server::Lineage;

/// Process trees of agents' programs, as a lookup from a process to its agent.
pub(crate) struct ProgramTrees(pub(crate) Supervisor);

impl Lineage for ProgramTrees {
    fn of_process(&self, pid: i32) -> Option<Principal> {
        principal(self.0.kin(pid))
    }

    fn of_sockets(&self, inodes: &[u64]) -> Vec<Option<Principal>> {
        self.0.kin_of_sockets(inodes).into_iter().map(principal).collect()
    }
}

fn principal(kin: Kin) -> Option<Principal> {
    Some(match kin {
        Kin::Outside => Principal::Operator,
        // The process is the hub itself: an agent's HTTP request may have reached the hub.
        Kin::Own => return None,
        // The task is looked up at each request, because a connection may outlive a task.
        Kin::Tree(TreeOwner { agent, tree, .. }) => {
            // Only agents with valid ids start programs.
            let agent = AgentId::parse(agent);
            agent.map_or(Principal::Anonymous, |agent| Principal::of_tree(agent, &tree))
        }
        Kin::Unknown => Principal::Anonymous,
    })
}
