//! Worktrees: the requests for them, and their answers.

use super::reviews::ReviewInfo;
use crate::model::id::{AgentId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Request for the worktrees of tasks. For administrators only; [`WorktreeRequest::Apply`] for the
/// operator only, because it changes the operator's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorktreeRequest {
    /// Lists all worktrees.
    List,
    /// Returns the present changes of a task.
    Diff {
        /// Task with the worktree.
        task: TaskId,
        /// True for a table of files in place of a patch.
        summary: bool,
        /// Files and directories to show; all if empty.
        paths: Vec<String>,
        /// True for the changes since the caller's last review.
        since_review: bool,
    },
    /// Takes over the changes of a task.
    Apply {
        /// Task with the worktree.
        task: TaskId,
        /// Place that receives the changes.
        to: ApplyTo,
        /// Message of the commit; by default the first line of the task's message.
        message: Option<String>,
        /// True to take over files that programs obey, too.
        accepts_all: bool,
        /// Directory of another checkout of the repository, which receives the changes.
        checkout: Option<PathBuf>,
        /// Files and directories whose changes are taken over; all if empty.
        paths: Vec<String>,
    },
    /// Removes a worktree with all its files.
    Discard {
        /// Task with the worktree.
        task: TaskId,
        /// True to remove also what no result has.
        force: bool,
    },
    /// Removes the worktrees of finished tasks, and keeps their changes as refs.
    Prune {
        /// Time since the creation in milliseconds from which on a worktree is removed.
        older_than_ms: u64,
        /// True to remove also what no result has.
        force: bool,
        /// True to keep no changes, and to remove those of earlier worktrees.
        forget: bool,
        /// Directory of another repository in which the changes of earlier worktrees are removed.
        directory: Option<PathBuf>,
    },
}

impl WorktreeRequest {
    /// Task with the worktree that the request is about; `None` if it is about several.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Diff { task, .. } | Self::Apply { task, .. } | Self::Discard { task, .. } => {
                Some(task)
            }
            Self::List | Self::Prune { .. } => None,
        }
    }
}

/// Place that receives the changes of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApplyTo {
    /// The files of the checkout.
    #[default]
    Files,
    /// The files and the index of the checkout.
    Index,
    /// A new commit on the branch of the checkout.
    Commit,
    /// A new branch of this name. The checkout is not touched.
    Branch(String),
}

/// A worktree: an element of the answer to `hub/worktrees/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeInfo {
    /// Task that it was made for.
    pub task_id: TaskId,
    /// Agent of the task; absent if the task is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Name of the task's state; absent if the task is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Task that began the task, such as a flow's; absent if a client began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    /// Top directory of its files.
    pub path: PathBuf,
    /// The user's checkout, or the bare repository.
    pub repository: PathBuf,
    /// Commit that the work starts from.
    pub base: String,
    /// Branch that was checked out when it was made; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_branch: Option<String>,
    /// Time of creation (RFC 3339).
    pub created_at: String,
    /// Time of its automatic removal (RFC 3339); absent as long as a task works in it, and if age
    /// removes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<String>,
    /// First line of the task's message; absent if the task is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Latest known changes; absent before the agent's first result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<WorktreeSize>,
    /// True if a checkout has the latest known changes; absent if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// Conflicts with other worktrees of the repository whose changes may still be taken; absent if
    /// none is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictWith>,
}

/// Size of the changes in a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorktreeSize {
    /// Number of changed files.
    pub files: u64,
    /// Number of added lines.
    pub insertions: u64,
    /// Number of removed lines.
    pub deletions: u64,
}

/// Conflict with the changes of another task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConflictWith {
    /// The other task.
    pub task_id: TaskId,
    /// Files that git cannot merge; ten at most.
    pub paths: Vec<String>,
    /// Number of further files.
    pub more: usize,
}

/// Counted changes of a worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeChanges {
    /// Commit that the work starts from.
    pub base: String,
    /// Number of commits that the agent made.
    pub commits: u64,
    /// Number of changed files.
    pub files: u64,
    /// Number of added lines, without binary files.
    pub insertions: u64,
    /// Number of removed lines, without binary files.
    pub deletions: u64,
    /// True if files differ from the agent's last commit.
    pub dirty: bool,
    /// Parts of the worktree that are not among the changes; absent if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutPart>,
}

/// A part of a worktree that is not among its changes: a file that cannot be read, a name that git
/// refuses, commits on another branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOutPart {
    /// Path or branch, for people.
    pub name: String,
    /// Reason, and the way out. It finishes "`NAME` …".
    pub reason: String,
}

/// Changes of a worktree: the answer to `hub/tasks/diff`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeDiff {
    /// Counts.
    #[serde(flatten)]
    pub changes: WorktreeChanges,
    /// Patch for `git apply`, with binary files, or a table of files. Bytes that are not UTF-8 are
    /// replaced.
    pub text: String,
    /// The same in base64, if it has bytes that are not UTF-8; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Review since which these are the changes, with its comments that are outdated; absent unless
    /// `sinceReview` was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewInfo>,
}

/// Changes that were taken over: the answer to `hub/tasks/apply`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeApplied {
    /// Commit with the changes; absent if none was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// New branch; absent if none was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Checkout whose files were changed; absent if none were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkout: Option<PathBuf>,
    /// Changed files of the checkout.
    pub files: Vec<String>,
    /// Parts of the worktree that are not among the changes; absent if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutPart>,
}

/// A removed worktree: an element of the answers to `hub/worktrees/prune` and `hub/tasks/discard`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeRemoved {
    /// Task of the worktree.
    pub task_id: TaskId,
    /// Ref of the repository that keeps the changes; absent if nothing was changed, or if they were
    /// discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_as: Option<String>,
    /// Reason why the worktree stays after all; absent if it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Answer to a request for worktrees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum WorktreeAnswer {
    /// All worktrees, oldest first.
    List(Vec<WorktreeInfo>),
    /// Changes of a task.
    Diff(WorktreeDiff),
    /// Changes that were taken over.
    Applied(WorktreeApplied),
    /// Removed worktrees.
    Removed(Vec<WorktreeRemoved>),
}

impl WorktreeRequest {
    /// Name of the operation, for metrics.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::List => "list_worktrees",
            Self::Diff { .. } => "diff_worktree",
            Self::Apply { .. } => "apply_worktree",
            Self::Discard { .. } => "discard_worktree",
            Self::Prune { .. } => "prune_worktrees",
        }
    }
}
