//! Who knocks at the hub's doors, by the trees of processes that its supervisor knows.

use a2a_hub_core::access::Principal;
use a2a_hub_process::{Kin, OnBehalf, Supervisor};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_server::Lineage;

/// The trees of agents' programs, asked whose a process is.
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
        // An agent that may send requests to this machine has the hub itself knock.
        Kin::Own => return None,
        // Which task it works for is looked up when it asks: a connection may live longer than a task.
        Kin::Tree(OnBehalf { agent, tree, .. }) => {
            // Programs are started for agents only, which all have a name.
            let agent = AgentId::parse(agent);
            agent.map_or(Principal::Anonymous, |agent| Principal::of_tree(agent, &tree))
        }
        Kin::Unknown => Principal::Anonymous,
    })
}
