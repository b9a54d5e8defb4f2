//! Paging of lists by limit and offset, or by a cursor.

use crate::model::id::TaskId;

/// Section of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Maximum number of items.
    pub limit: usize,
    /// Number of items to skip.
    pub offset: usize,
}

/// Cursor of a task page: a position in the order of last status changes, latest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCursor {
    /// Time of the task's last status change: RFC 3339 in UTC with milliseconds.
    pub updated: String,
    /// Id of the task, which orders tasks of the same millisecond.
    pub id: TaskId,
}
