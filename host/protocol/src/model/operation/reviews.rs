//! Reviews of the changes of a task: the requests for them, and their answers.

use crate::model::id::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Request for the caller's review of a task's changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewRequest {
    /// Returns the draft, and the review that was sent last.
    Show {
        /// Task with the worktree.
        task: TaskId,
    },
    /// Adds comments to the draft, or begins one: all of them, or none.
    Comment {
        /// Task with the worktree.
        task: TaskId,
        /// The comments.
        comments: Vec<NewReviewComment>,
    },
    /// Removes comments from the draft: all of them, or none.
    Remove {
        /// Task with the worktree.
        task: TaskId,
        /// Numbers of the comments.
        comments: Vec<u32>,
    },
    /// Removes the draft.
    Discard {
        /// Task with the worktree.
        task: TaskId,
    },
    /// Sends the draft to the agent as one message.
    Send {
        /// Task with the worktree.
        task: TaskId,
        /// Id of the draft; none for the one that exists.
        review: Option<String>,
        /// Text before the comments.
        text: Option<String>,
    },
}

impl ReviewRequest {
    /// Task whose changes the review is about.
    pub fn task(&self) -> &TaskId {
        match self {
            Self::Show { task }
            | Self::Comment { task, .. }
            | Self::Remove { task, .. }
            | Self::Discard { task }
            | Self::Send { task, .. } => task,
        }
    }

    /// Name of the operation, for metrics.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Show { .. } => "show_review",
            Self::Comment { .. } => "comment_review",
            Self::Remove { .. } => "remove_review_comments",
            Self::Discard { .. } => "discard_review",
            Self::Send { .. } => "send_review",
        }
    }
}

/// Side of a diff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiffSide {
    /// The file before the task.
    Old,
    /// The file as the task left it.
    #[default]
    New,
}

/// A comment to be added to a draft.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewReviewComment {
    /// Path of a changed file from the top of the repository, as `hub/tasks/diff` shows it; without
    /// one, the comment is about the changes as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Side of the diff that the lines are of; `new` by default.
    #[serde(default)]
    pub side: DiffSide,
    /// First line, counted from 1; without one, the comment is about the file as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Last line; by default the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// The comment, at most 16 KiB.
    pub text: String,
}

/// A comment of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewComment {
    /// Number within the review.
    pub number: u32,
    /// Path of the file; absent for a comment on the changes as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Side of the diff; absent for a comment without lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side: Option<DiffSide>,
    /// First line at the time of the comment; absent for a comment without lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Last line at the time of the comment; absent for a comment without lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// First of the same lines now; absent if they are outdated or where they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now_line: Option<u32>,
    /// Lines at the time of the comment; long lines are cut, and control characters are escaped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quoted: Vec<String>,
    /// The comment.
    pub text: String,
    /// Reason why the comment is about lines of an earlier state; absent if they are unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outdated: Option<OutdatedReason>,
}

/// Reason why a comment is outdated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutdatedReason {
    /// The lines, or the file of a comment without lines, were changed.
    Changed,
    /// The file, or the worktree, was removed.
    Removed,
}

/// A review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewInfo {
    /// Id of the review.
    pub review_id: String,
    /// Time of its first comment (RFC 3339).
    pub created_at: String,
    /// Its comments, in the order of their numbers.
    pub comments: Vec<ReviewComment>,
    /// Task that got it; absent for a draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_task_id: Option<TaskId>,
    /// Time at which it was sent (RFC 3339); absent for a draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<String>,
}

/// The caller's reviews of a task: the answer to all methods for reviews but `hub/reviews/send`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewReport {
    /// Task with the worktree.
    pub task_id: TaskId,
    /// The draft; absent if none exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<ReviewInfo>,
    /// The review that was sent last; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<ReviewInfo>,
}

/// A sent review: the answer to `hub/reviews/send`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentReview {
    /// Id of the review.
    pub review_id: String,
    /// Task with the worktree.
    pub task_id: TaskId,
    /// Task that got the message: a new one of the same conversation, or the one whose question it
    /// answers.
    pub sent_task_id: TaskId,
    /// Number of comments.
    pub comments: usize,
    /// True if an earlier request had sent it; absent if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// Answer to a request for a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ReviewAnswer {
    /// Reviews of the task.
    Report(Box<ReviewReport>),
    /// A review that was sent.
    Sent(SentReview),
}
