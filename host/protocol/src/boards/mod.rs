//! Blackboards of flows for agents at work and other clients: the reports of boards in the metadata
//! of a flow's task, the changes that agents make while they work, and the requests and tools of a
//! model. No I/O; the flow's rule book decides about each change.

mod change;
mod report;
mod tools;

pub use change::{
    BLACKBOARD_CHANGE, BoardContribution, MAX_TASK_CHANGES, TooManyChanges, answer_to, next_change,
};
pub use report::{board_report, has_boards, has_open_board};
pub use tools::{BoardTool, board_call, board_tools};

/// Request for the blackboards of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum BoardRequest {
    /// Reads them.
    Read {
        /// Task of the flow; by default that of the flow in which the calling program works.
        task: Option<String>,
        /// Step of the board; all, if `None`.
        step: Option<String>,
    },
    /// Changes the board of the flow in which the calling program works.
    Change(BoardContribution),
}

impl BoardRequest {
    /// Name of the operation, for metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read_blackboard",
            Self::Change(_) => "change_blackboard",
        }
    }
}
