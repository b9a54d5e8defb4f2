//! Warnings for the operator, and for whatever monitors the hub.

use super::{Hub, automation::OwnedRuns, triggers::TriggerOperations};
use crate::tasks::TaskHistory;
use a2a_hub_protocol::operation::StorageCondition;

impl Hub {
    /// Current failures of the hub itself, which last until the operator fixes them, one sentence
    /// each: its store, what that had lost when it was opened, the index for searches, the grants
    /// file, automation that its owners hold, span export, notifiers, TLS. Everybody who reaches
    /// the hub may read them, so of notifiers and automation they have only numbers. Answers at
    /// once, even if the store does not.
    pub fn failures(&self) -> Vec<String> {
        let storage = match self.tasks.storage_known() {
            StorageCondition::Ok => None,
            StorageCondition::Failing { since, error, fix } => {
                Some(format!("nothing can be stored since {since}: {error}; {fix}"))
            }
        };
        let spans = self.tasks.span_export_failure();
        let losses = self.losses.iter().cloned();
        let losses = losses.chain(TaskHistory(&self.tasks).index_failure());
        let current =
            self.agents.grants_error().into_iter().chain(OwnedRuns(self).suspended_automation());
        let lasting = storage.into_iter().chain(losses).chain(current);
        let notifiers = self.notifiers.as_ref().and_then(|notifiers| notifiers.failure_count());
        lasting.chain(spans).chain(notifiers).chain(self.tls_warnings()).collect()
    }

    /// Warnings about the TLS certificate.
    fn tls_warnings(&self) -> Vec<String> {
        self.tls.as_ref().map(|tls| tls.status().warnings()).unwrap_or_default()
    }

    /// Warnings of the status, one sentence each: those of the start, and current ones. A current
    /// warning ends once its cause is fixed.
    pub(super) fn warnings_now(&self) -> Vec<String> {
        let agents = &self.agents;
        let start = self.warnings.iter().cloned();
        let grants = agents.grants_error().into_iter();
        let names = agents.name_warnings().into_iter().chain(agents.alias_warnings());
        let names = names.chain(agents.workspace_warnings());
        let groups = agents.group_warnings().into_iter();
        let schedules = self.schedule_warnings().into_iter();
        let triggers = TriggerOperations::new(self).map(|triggers| triggers.warnings());
        let triggers = triggers.unwrap_or_default().into_iter();
        let current = grants.chain(names).chain(groups).chain(schedules).chain(triggers);
        let search = TaskHistory(&self.tasks).index_failure();
        let current = current.chain(search).chain(self.tasks.span_export_failure());
        let services = self.notifier_failures().into_iter().chain(self.tls_warnings());
        start.chain(current).chain(services).collect()
    }

    fn notifier_failures(&self) -> Vec<String> {
        self.notifiers.as_ref().map(|notifiers| notifiers.failures()).unwrap_or_default()
    }
}
