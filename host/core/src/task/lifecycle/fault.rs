//! Reasons for which the hub fails a task, and the timeouts that lead to them.

use crate::{failure_reason::FailureReason, text::duration::Span};
use std::time::Duration;

/// Timeouts of a task and of an answer to its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTimeouts {
    /// Timeout of the task from its start; the time that the client takes to answer does not count.
    pub task: Duration,
    /// Timeout of an answer, unless the agent sets a shorter one.
    pub answer: Duration,
}

/// Reason for which the hub fails a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The run permit did not come in time.
    Queued,
    /// The task took too long.
    TooLong,
    /// The client did not answer the question of an agent that is gone.
    Unanswered,
    /// The hub was stopped while the agent was at work.
    HubStopped,
    /// The agent that had the task has been replaced.
    AgentReplaced,
    /// The conversation so far cannot be read.
    Unreadable,
}

impl Fault {
    /// Every fault, in the order of the type.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::TooLong,
        Self::Unanswered,
        Self::HubStopped,
        Self::AgentReplaced,
        Self::Unreadable,
    ];

    /// Machine-readable reason.
    pub fn reason(self) -> FailureReason {
        match self {
            Self::Queued | Self::TooLong | Self::Unanswered => FailureReason::Timeout,
            Self::HubStopped => FailureReason::HubStopped,
            Self::AgentReplaced => FailureReason::HubRestarted,
            Self::Unreadable => FailureReason::Internal,
        }
    }

    /// Text for people; names the timeout if it was exceeded.
    pub fn text(self, timeouts: TaskTimeouts) -> String {
        let message = match self {
            Self::Queued => {
                let limit = Span(timeouts.task);
                return format!(
                    "The agent was busy for longer than the {limit} that the task was given."
                );
            }
            Self::TooLong => {
                let limit = Span(timeouts.task);
                return format!("The task exceeded its time limit of {limit}.");
            }
            Self::Unanswered => "Nobody answered in time.",
            Self::HubStopped => "The hub was stopped while the agent was at work.",
            Self::AgentReplaced => "The agent that had this task is another one now.",
            Self::Unreadable => "The hub cannot read what was said before; its log says why.",
        };
        message.to_owned()
    }
}
