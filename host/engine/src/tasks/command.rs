//! Commands and initial states of a task's actor.

use super::{recovery::pending_questions::Answers, run_queue::PermitRequest};
use a2a_hub_core::{
    access_control::Principal,
    task::{metadata, open_questions},
};
use a2a_hub_protocol::boards::BoardContribution;
use a2a_hub_protocol::{
    client::ClientCapabilities,
    error::A2aError,
    id::QuestionId,
    message::{Message, Metadata},
    question::Question,
    task::Task,
};
use a2a_hub_store::StorageError;
use std::{collections::VecDeque, time::Duration};
use tokio::sync::oneshot;

/// A command to a task's actor.
pub(super) enum ActorCommand {
    /// Cancel the task; the sender waits for the channel to close.
    Cancel {
        /// Principal that cancels it.
        by: Principal,
        /// Metadata of the last status.
        facts: Option<Metadata>,
    },
    /// Fail the task, because the budget of an ancestor is used up; contains the reason.
    Exhausted(String),
    /// Deliver a client's message.
    Input(Box<Input>),
    /// Record a change of a blackboard by a program of the agent at work.
    ChangeBoard(Box<BoardChange>),
    /// Report the deadline of the open question, and the queued questions.
    ReportQuestions(oneshot::Sender<QuestionState>),
    /// Set a question aside for this time; reports whether the task asks it, once that is stored.
    Postpone(QuestionId, Duration, oneshot::Sender<Result<bool, StorageError>>),
    /// Continue now, and do not wait for the quota; reports whether the task waited.
    RetryNow(oneshot::Sender<Result<(), A2aError>>),
    /// Evict the waiting agent to free capacity; the sender is dropped once that is done.
    Park(oneshot::Sender<()>),
    /// The hub shuts down.
    Shutdown,
}

/// A change of the blackboard of the flow that called the task.
pub(super) struct BoardChange {
    /// Id, which the flow's answer names.
    pub(super) id: String,
    pub(super) contribution: BoardContribution,
    /// Reports whether the change is recorded.
    pub(super) reply_tx: oneshot::Sender<Result<(), A2aError>>,
}

/// Questions of a task, as its actor knows them.
pub(super) struct QuestionState {
    /// Request that the task works on, in one line.
    pub(super) request: String,
    /// The open question.
    pub(super) open: Option<OpenedQuestion>,
    /// Time until the deadline of the open question; none if no question waits for an answer.
    pub(super) expires_in: Option<Duration>,
    /// True if that deadline is near.
    pub(super) expiring: bool,
    /// Questions that a person set aside.
    pub(super) set_aside: Vec<QuestionId>,
    /// Further questions of the agent itself, which it asks once the open one is answered.
    pub(super) queued: Vec<OpenedQuestion>,
}

impl QuestionState {
    /// Questions of a task as its record has them.
    pub(super) fn of_record(task: &Task) -> Self {
        let question = Question::from_metadata(task.metadata.as_ref());
        let open = question.filter(|_| metadata::asks(task)).zip(task.status.message.clone());
        let opened_at = task.status.timestamp.clone();
        Self {
            request: open_questions::request(task),
            open: open.map(|(question, prompt)| OpenedQuestion { question, prompt, opened_at }),
            expires_in: None,
            expiring: false,
            set_aside: Vec::new(),
            queued: Vec::new(),
        }
    }
}

/// A question that was posed, with its prompt.
pub(super) struct OpenedQuestion {
    pub(super) question: Question,
    pub(super) prompt: Message,
    /// Time at which it was posed (RFC 3339).
    pub(super) opened_at: String,
}

/// A client's message to an existing task.
pub(super) struct Input {
    pub(super) message: Message,
    /// Question that the message names as the one it answers.
    pub(super) answers: Option<QuestionId>,
    /// True if the message answers no question.
    pub(super) is_further: bool,
    pub(super) client: ClientCapabilities,
    /// Sender of the message, for the log.
    pub(super) by: Principal,
    /// Reports whether the task accepted the message.
    pub(super) reply_tx: oneshot::Sender<Result<(), A2aError>>,
}

/// Initial state of an actor.
pub(super) enum Begin {
    /// Give the task to its agent.
    Work(Box<RunInput>, PermitRequest, PendingInputs),
    /// Replay an agent that was at work when the previous process ended; contains the answers that
    /// the client has given already.
    Replay(Box<RunInput>, PermitRequest, PendingInputs, Answers),
    /// Relay for the children of an agent whose run ended with the previous process.
    Tend(PermitRequest, PendingInputs, Answers),
    /// Wait for the client without an agent: the process that ran it is gone.
    Evicted(PendingInputs),
    /// Wait for the quota of the agent's account, and have the agent continue then.
    AwaitQuota(ClientCapabilities, PendingInputs),
    /// Follow a remote agent, which has been at work all the time.
    Follow(PermitRequest, PendingInputs),
}

/// Client's messages for later runs of the agent, one run each, oldest first.
pub(super) type PendingInputs = VecDeque<Box<RunInput>>;

/// Input of one agent run.
pub(super) struct RunInput {
    /// The client's last message.
    pub(super) message: Message,
    /// Capabilities of the client.
    pub(super) client: ClientCapabilities,
    /// Working directory that the client requested.
    pub(super) directory: Option<String>,
    /// True if somebody may follow the events while the agent works.
    pub(super) live: bool,
    /// True if the conversation may have earlier messages.
    pub(super) goes_on: bool,
    /// Index of the message in the task's history.
    pub(super) at: usize,
    /// Sender of the message; none if unknown.
    pub(super) by: Option<Principal>,
}
