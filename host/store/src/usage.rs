//! Usage of tasks, summed over their logs.

use crate::StorageError;
use a2a_hub_core::usage::{DATE, UsageMeter};
use a2a_hub_protocol::operation::{UsageQuery, UsageReport};
use jiff::Timestamp;

/// Usage of all tasks. Deleting a task does not change it, except in groups by task.
#[async_trait::async_trait]
pub trait UsageStore: Send + Sync {
    /// Sums of the usage of tasks, from the day of `query.since` on.
    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StorageError>;
}

/// Origin of a task: the root of its tree. Unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskOrigin {
    /// Identity of the principal that began the tree.
    pub(super) person: String,
    /// Agent at the root of the tree.
    pub(super) flow: String,
}

/// Meter for the log of a task.
pub(super) fn meter() -> UsageMeter {
    UsageMeter::new(|time| Some(time.parse::<Timestamp>().ok()?.as_millisecond()))
}

/// First day of a query.
pub(super) fn since_day(query: &UsageQuery) -> Option<String> {
    query.since.as_ref()?.get(..DATE).map(str::to_owned)
}
