//! Notices of tasks' events that people should read: derived from the tasks' logs.

use crate::StorageError;
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    id::{AgentId, ContextId, TaskId, TenantId},
    operation::{NoticeKind, ReadNotices},
};
use parking_lot::Mutex;
use std::{fmt, sync::Arc};

/// Most notices of a tenant: older ones are dropped.
pub const MAX_NOTICES: usize = 1_000;

/// Notice of an event of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredNotice {
    /// Number in the order of arrival; it is never used again.
    pub number: u64,
    /// Kind.
    pub kind: NoticeKind,
    /// Task.
    pub task: TaskId,
    /// Agent of the task.
    pub agent: AgentId,
    /// Conversation of the task.
    pub context: ContextId,
    /// Request of the task, in one line.
    pub title: String,
    /// Reason of the failure, result or conflict, in one line; it may be empty.
    pub text: String,
    /// Time of the event (RFC 3339).
    pub at: String,
    /// Time at which the notice was marked as read (RFC 3339); none before.
    pub read_at: Option<String>,
    /// Principal that marked it.
    pub read_by: Option<Principal>,
}

/// Filter for notices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeFilter {
    /// Tenant.
    pub tenant: TenantId,
    /// Only notices of these kinds; of every kind, if it is empty.
    pub kinds: Vec<NoticeKind>,
    /// True to include the notices that were read.
    pub includes_read: bool,
    /// Only notices with a lower number.
    pub before: Option<u64>,
    /// Limit of results.
    pub limit: usize,
}

impl NoticeFilter {
    /// True if the filter admits the kind.
    pub(crate) fn admits(&self, kind: NoticeKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

/// Notices that match a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticePage {
    /// The notices, the newest first.
    pub notices: Vec<StoredNotice>,
    /// Number of all notices of the tenant that nobody has read, whatever the filter.
    pub unread: u64,
}

/// Called with the tenant after its notices have changed.
pub type NoticeListener = Arc<dyn Fn(&TenantId) + Send + Sync>;

/// Notices of the tasks' events. Appends to the logs make them; a task that is deleted takes its
/// notices with it. Tasks that ended before version 0.2 have none.
#[async_trait::async_trait]
pub trait NoticeStore: Send + Sync {
    /// Notices that match, the newest first.
    async fn notices(&self, filter: NoticeFilter) -> Result<NoticePage, StorageError>;

    /// Marks notices of a tenant as read by a principal, durably, and returns their number. Notices
    /// that were read before stay as they are; unknown ones are ignored.
    async fn mark_notices_read(
        &self,
        tenant: &TenantId,
        which: ReadNotices,
        by: &Principal,
    ) -> Result<u64, StorageError>;

    /// Sets the listener for changes, in place of an earlier one. It is called after a change is
    /// durable, and misses a change whose caller did not wait for its end.
    fn set_notice_listener(&self, listener: NoticeListener);
}

/// Place of the listener of a store.
#[derive(Default)]
pub(crate) struct NoticeSignal(Mutex<Option<NoticeListener>>);

impl NoticeSignal {
    pub(crate) fn set(&self, listener: NoticeListener) {
        *self.0.lock() = Some(listener);
    }

    /// Calls the listener, if one is set.
    pub(crate) fn notify(&self, tenant: &TenantId) {
        // Cloned, so that a listener may use the store.
        let listener = self.0.lock().clone();
        if let Some(listener) = listener {
            listener(tenant);
        }
    }
}

impl fmt::Debug for NoticeSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NoticeSignal").field(&self.0.lock().is_some()).finish()
    }
}
