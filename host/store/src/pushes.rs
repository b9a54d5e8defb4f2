//! Where notifications are sent, and how far that has come.

use a2a_hub_protocol::{
    id::{TaskId, TenantId},
    push::PushConfig,
};

/// A config and how its deliveries go. What is still to be sent is what the task's log holds beyond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPush {
    /// Where the notifications of a task are sent.
    pub config: PushConfig,
    /// How far it has come.
    pub progress: Progress,
    /// The number of the last event in the task's log.
    pub last: u64,
}

/// How far the deliveries of a config have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of the last event that needs no sending any more.
    pub sent: u64,
    /// How the next one fails, if it does.
    pub trouble: Option<DeliveryFailure>,
}

/// How an event fails to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryFailure {
    /// How often it was tried.
    pub attempts: u32,
    /// When it failed for the first time: RFC 3339 in UTC.
    pub since: String,
    /// How it failed last.
    pub error: String,
    /// When it is tried again at the soonest: RFC 3339 in UTC.
    pub again: Option<String>,
    /// Whether it was given up: nothing is sent until somebody says so.
    pub dead: bool,
}

/// Which configs to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushFilter {
    /// Only those of this task.
    pub task: Option<TaskId>,
    /// Only those of this tenant's tasks.
    pub tenant: Option<TenantId>,
    /// Only those that may have something to send yet: whose task is not over, or has events that were not sent.
    pub open_only: bool,
    /// Only those that were given up.
    pub dead_only: bool,
    /// At most so many.
    pub limit: usize,
}

impl Default for PushFilter {
    /// All of them.
    fn default() -> Self {
        Self { task: None, tenant: None, open_only: false, dead_only: false, limit: usize::MAX }
    }
}

impl Progress {
    /// Whether nothing is sent until somebody says so.
    pub fn is_dead(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.dead)
    }
}
