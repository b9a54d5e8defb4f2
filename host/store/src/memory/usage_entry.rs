//! Usage of a task in memory.

use crate::usage::TaskOrigin;
use a2a_hub_core::usage::{UsageEntry, UsageGroups, UsageOrigin};
use a2a_hub_protocol::id::{AgentId, TaskId, TenantId};

/// Usage of a task, with its origin.
#[derive(Debug)]
pub(super) struct MemoryUsage {
    pub(super) agent: AgentId,
    pub(super) tenant: TenantId,
    pub(super) origin: TaskOrigin,
    pub(super) entries: Vec<UsageEntry>,
}

impl MemoryUsage {
    /// Adds it to sums, as that of a deleted task without an id.
    pub(super) fn add_to(&self, groups: &mut UsageGroups, task: Option<&TaskId>) {
        let origin = UsageOrigin {
            task: task.map(TaskId::as_str),
            agent: self.agent.as_str(),
            tenant: self.tenant.as_str(),
            person: &self.origin.person,
            flow: &self.origin.flow,
        };
        self.entries.iter().for_each(|entry| groups.add(origin, entry));
    }
}
