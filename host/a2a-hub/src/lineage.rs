//! Identifies peers of the hub's transports by the process trees that the supervisor knows.

use a2a_hub_core::access_control::Principal;
use a2a_hub_process::{ProcessOrigin, Supervisor, TreeOwner};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_server::Lineage;

/// Process trees of agents' programs, as a lookup from a process to its agent.
pub(crate) struct ProgramTrees(pub(crate) Supervisor);

impl Lineage for ProgramTrees {
    fn of_process(&self, pid: i32) -> Option<Principal> {
        principal(self.0.origin(pid))
    }

    fn of_sockets(&self, inodes: &[u64]) -> Vec<Option<Principal>> {
        self.0.origins_of_sockets(inodes).into_iter().map(principal).collect()
    }
}

fn principal(origin: ProcessOrigin) -> Option<Principal> {
    Some(match origin {
        ProcessOrigin::Outside => Principal::Operator,
        // The process is the hub itself: an agent's HTTP request may have reached the hub.
        ProcessOrigin::Hub => return None,
        // The task is looked up at each request, because a connection may outlive a task.
        ProcessOrigin::Tree(TreeOwner { agent, tree, .. }) => {
            // Only agents with valid ids start programs.
            let agent = AgentId::parse(agent);
            agent.map_or(Principal::Anonymous, |agent| Principal::of_tree(agent, &tree))
        }
        ProcessOrigin::Unknown => Principal::Anonymous,
    })
}
