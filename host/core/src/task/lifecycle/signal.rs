//! Signals of a task: inputs of its state machine.

use super::Fault;
use crate::task::recovery::Resumability;
use a2a_hub_protocol::task::TaskState;
use std::time::{Duration, Instant};

/// Input of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The task received its run permit.
    Turn,
    /// The agent sent an event.
    AgentEvent {
        /// True if it is a status that says that the task is working.
        working: bool,
    },
    /// The agent asks the client.
    AgentQuestion {
        /// State in which the task waits.
        state: TaskState,
        /// Timeout that the agent sets for the answer.
        timeout: Option<Duration>,
        /// True if the agent only waits.
        waits: bool,
    },
    /// The asking agent only waits from now on (true), or works again (false).
    Waits(bool),
    /// The agent continues, and does not repeat the question that is pending in the record.
    WentOn,
    /// The agent withdraws its question.
    Withdrawn,
    /// The agent ended, with this state of the task.
    Ended(TaskState),
    /// All supervised children of an earlier run have ended.
    Tended,
    /// The agent's run ended because its quota is used up; the task waits until that instant.
    QuotaUsedUp(Instant),
    /// The quota of the task's account is used up until that instant: the task does not start its
    /// agent now.
    AccountClosed(Instant),
    /// The wait for the quota is over.
    QuotaReset,
    /// The task could not be handed to the agent.
    Lost(Fault),
    /// The client sent a message: the answer that the task waits for, or further input for the
    /// agent.
    ClientMessage,
    /// The agent reads the oldest message that it has not received.
    Read,
    /// A caller cancels the task.
    Cancel,
    /// A budget that applies to the task is used up: the task fails, and the event itself names the
    /// budget.
    Exhausted,
    /// Others need the capacity that the agent occupies while it waits for the client, and the
    /// agent can be restarted.
    Park,
    /// The hub shuts down gracefully.
    Shutdown,
    /// Answer to [`Effect::Leave`](super::Effect::Leave): true if the agent continues without the
    /// hub.
    Detached(bool),
    /// Answer to [`Effect::AskHold`](super::Effect::AskHold).
    Resumability(Resumability),
    /// The instant from [`Lifecycle::wake_at`](super::Lifecycle::wake_at) has passed.
    Time,
}

impl Signal {
    /// State in which the recorded event itself leaves the task, if it sets one.
    pub(super) fn state(self) -> Option<TaskState> {
        match self {
            Self::AgentEvent { working: true } | Self::Read => Some(TaskState::Working),
            Self::AgentQuestion { state, .. } | Self::Ended(state) => Some(state),
            Self::Exhausted => Some(TaskState::Failed),
            Self::AgentEvent { working: false }
            | Self::Turn
            | Self::WentOn
            | Self::Waits(_)
            | Self::Withdrawn
            | Self::Tended
            | Self::QuotaUsedUp(_)
            | Self::AccountClosed(_)
            | Self::QuotaReset
            | Self::Lost(_)
            | Self::ClientMessage
            | Self::Cancel
            | Self::Park
            | Self::Shutdown
            | Self::Detached(_)
            | Self::Resumability(_)
            | Self::Time => None,
        }
    }
}
