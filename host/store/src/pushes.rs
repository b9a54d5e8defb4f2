//! Push configs and their progress.

use a2a_hub_protocol::{
    id::{TaskId, TenantId},
    push::PushConfig,
};

/// A push config and its progress. The events after its cursor, in the task's log, are still to be
/// sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPush {
    /// The push config.
    pub config: PushConfig,
    /// Progress of its deliveries.
    pub progress: Progress,
    /// Number of the last event in the task's log.
    pub last: u64,
}

/// Progress of a config's deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Cursor: number of the last event that is done.
    pub sent: u64,
    /// Failure of the next event, if it fails.
    pub failure: Option<DeliveryFailure>,
}

/// Failure of an event's delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryFailure {
    /// Number of tries.
    pub attempts: u32,
    /// Time of the first failure: RFC 3339 in UTC.
    pub since: String,
    /// Last error.
    pub error: String,
    /// Earliest time of the next try: RFC 3339 in UTC.
    pub again: Option<String>,
    /// True if delivery was abandoned; nothing is sent until a retry is requested.
    pub dead: bool,
}

/// Filter for configs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushFilter {
    /// Task.
    pub task: Option<TaskId>,
    /// Tenant of the task.
    pub tenant: Option<TenantId>,
    /// Only configs that may have events to send: their task is not over, or has unsent events.
    pub open_only: bool,
    /// Only abandoned configs.
    pub dead_only: bool,
    /// Limit of results.
    pub limit: usize,
}

impl Default for PushFilter {
    /// Matches all configs.
    fn default() -> Self {
        Self { task: None, tenant: None, open_only: false, dead_only: false, limit: usize::MAX }
    }
}

impl Progress {
    /// True if delivery was abandoned; nothing is sent until a retry is requested.
    pub fn is_dead(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.dead)
    }
}
