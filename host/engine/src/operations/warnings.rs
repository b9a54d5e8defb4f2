//! Warnings for the operator, and for whatever monitors the hub.

use super::{Hub, triggers::TriggerOperations};
use a2a_hub_protocol::operation::StorageCondition;

impl Hub {
    /// Current failures of the hub itself, which last until the operator fixes them, one sentence
    /// each: its store, what that had lost when it was opened, the grants file, span export.
    /// Answers at once, even if the store does not.
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

    /// Warnings of the status, one sentence each: those of the start, and current ones. A current
    /// warning ends once its cause is fixed.
    pub(super) fn warnings_now(&self) -> Vec<String> {
        let agents = &self.agents;
        let start = self.warnings.iter().cloned();
        let grants = agents.grants_trouble().into_iter();
        let names = agents.name_troubles().into_iter().chain(agents.alias_troubles());
        let names = names.chain(agents.workspace_troubles());
        let groups = agents.group_troubles().into_iter();
        let schedules = self.schedule_troubles().into_iter();
        let triggers = TriggerOperations::of(self).map(|triggers| triggers.troubles());
        let triggers = triggers.unwrap_or_default().into_iter();
        let current = grants.chain(names).chain(groups).chain(schedules).chain(triggers);
        start.chain(current).chain(self.tasks.span_trouble()).collect()
    }
}
