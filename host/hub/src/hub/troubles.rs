//! What is wrong with a hub and waits for its operator: for whoever watches over it.

use super::Hub;
use a2a_hub_protocol::operation::StorageCondition;

impl Hub {
    /// What is wrong with the hub itself, now and until its operator mends it, each in a sentence: its store, what that had lost when it
    /// was opened, the file of grants, where traces go. It is told at once, also where the store does not answer.
    pub fn troubles(&self) -> Vec<String> {
        let storage = match self.tasks.storage_known() {
            StorageCondition::Ok => None,
            StorageCondition::Failing { since, error, fix } => {
                Some(format!("nothing can be stored since {since}: {error}; {fix}"))
            }
        };
        let spans = self.tasks.span_trouble();
        let losses = self.losses.iter().cloned();
        storage.into_iter().chain(losses).chain(self.agents.grants_trouble()).chain(spans).collect()
    }

    /// What its status warns of, each in a sentence: what was found at the start, and what is so now. It heals where it is mended.
    pub(super) fn warnings_now(&self) -> Vec<String> {
        let agents = &self.agents;
        let start = self.warnings.iter().cloned();
        let grants = agents.grants_trouble().into_iter();
        let names = agents.name_troubles().into_iter().chain(agents.alias_troubles());
        let groups = agents.group_troubles().into_iter();
        start.chain(grants).chain(names).chain(groups).chain(self.tasks.span_trouble()).collect()
    }
}
