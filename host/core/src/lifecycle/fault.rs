//! Why the hub gives a task up, and how long it waits before it does.

use crate::{reason::FailureReason, span::Span};
use std::time::Duration;

/// How long a task, and an answer to what it asks, may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The task, from its beginning; the time that its client takes to answer does not count.
    pub task: Duration,
    /// An answer, unless the agent asks for less.
    pub answer: Duration,
}

/// Why the hub gives a task up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its turn did not come in time.
    Queued,
    /// It took too long.
    TooLong,
    /// Nobody answered what an agent had asked that is gone.
    Unanswered,
    /// The hub was stopped while the agent was at work.
    HubStopped,
    /// The agent that had the task is another one now.
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

    /// The reason that machines are told.
    pub fn reason(self) -> FailureReason {
        match self {
            Self::Queued | Self::TooLong | Self::Unanswered => FailureReason::Timeout,
            Self::HubStopped => FailureReason::HubStopped,
            Self::AgentReplaced => FailureReason::HubRestarted,
            Self::Unreadable => FailureReason::Internal,
        }
    }

    /// What people are told of a task that was given so long.
    pub fn text(self, patience: Patience) -> String {
        let told = match self {
            Self::Queued => {
                let patience = Span(patience.task);
                return format!(
                    "The agent was busy for longer than the {patience} that the task was given."
                );
            }
            Self::TooLong => {
                let patience = Span(patience.task);
                return format!("The task took longer than the {patience} it was given.");
            }
            Self::Unanswered => "Nobody answered in time.",
            Self::HubStopped => "The hub was stopped while the agent was at work.",
            Self::AgentReplaced => "The agent that had this task is another one now.",
            Self::Unreadable => "The hub cannot read what was said before; its log says why.",
        };
        told.to_owned()
    }
}
