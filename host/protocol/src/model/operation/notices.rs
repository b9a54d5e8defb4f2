//! Notices of a tenant's tasks: what happened and needs no answer. The requests for them, and their
//! answers.

use crate::model::id::{AgentId, ContextId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeKind {
    /// A task without a parent task failed, or its agent rejected it.
    Failed,
    /// A task without a parent task failed because a vendor's quota or rate limit is used up.
    Quota,
    /// A task that a schedule or trigger began has completed.
    Finished,
    /// The changes of a task in a worktree conflict with those of another task.
    Conflict,
}

impl NoticeKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Failed, Self::Quota, Self::Finished, Self::Conflict];

    /// Name of the kind, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Quota => "quota",
            Self::Finished => "finished",
            Self::Conflict => "conflict",
        }
    }

    /// Parses the output of [`NoticeKind::name`].
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Request for the notices of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeRequest {
    /// Lists notices, the newest first.
    List(NoticeQuery),
    /// Marks notices as read.
    MarkRead(ReadNotices),
}

/// Filter of notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeQuery {
    /// Only notices of these kinds; of every kind, if it is empty.
    pub kinds: Vec<NoticeKind>,
    /// True to include the notices that were read.
    pub includes_read: bool,
    /// Only notices older than the one with this id; all, if `None`.
    pub before: Option<u64>,
    /// Maximum number of notices.
    pub limit: usize,
}

/// Notices to mark as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadNotices {
    /// The notices with these ids.
    Ids(Vec<u64>),
    /// All notices.
    All {
        /// Id of the newest notice to mark; every notice is marked if `None`.
        until: Option<u64>,
    },
}

impl NoticeRequest {
    /// Name of the operation, for metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::List(_) => "list_notices",
            Self::MarkRead(_) => "mark_notices_read",
        }
    }
}

/// Answer to a [`NoticeRequest`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NoticeAnswer {
    /// Notices.
    List(NoticeList),
    /// Number of notices that were marked.
    Marked(NoticesRead),
}

/// Notices: the answer to `hub/notices/list`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoticeList {
    /// The notices, the newest first.
    pub notices: Vec<Notice>,
    /// Number of all notices that nobody has read, of every kind.
    pub unread: u64,
    /// Value of `before` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Something that happened to a task, to be read and not answered.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// Id: the number of the notice in the order of arrival.
    pub id: u64,
    /// Kind: `failed`, `quota`, `finished` or `conflict`.
    #[schemars(with = "String")]
    pub kind: NoticeKind,
    /// Task that it is about.
    pub task_id: TaskId,
    /// Agent of the task.
    pub agent_id: AgentId,
    /// Conversation of the task.
    pub context_id: ContextId,
    /// Request that the task works on, in one line that may be shortened.
    pub title: String,
    /// Reason of the failure, result or conflict, in one line that may be shortened; it may be
    /// empty.
    pub text: String,
    /// Time of the event: RFC 3339 in UTC.
    pub at: String,
    /// Time at which the used-up quota resets, if the vendor's error says so: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<String>,
    /// True if somebody has read it.
    pub read: bool,
    /// Time at which it was marked as read: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_at: Option<String>,
    /// Principal that marked it, such as `operator`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_by: Option<String>,
}

/// Result of marking notices as read: the answer to `hub/notices/read`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoticesRead {
    /// Number of notices that this request marked.
    pub marked: u64,
}
