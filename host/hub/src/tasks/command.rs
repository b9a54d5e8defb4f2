//! What a task's actor begins with, and what it is asked meanwhile.

use super::{run_queue::Admitted, standing::Answers};
use a2a_hub_core::access::Principal;
use a2a_hub_protocol::{
    client::ClientCapabilities, error::A2aError, id::QuestionId, message::Message,
};
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// What somebody asks of a task.
pub(super) enum Command {
    /// Stop, and answer once it has.
    Cancel(Principal),
    /// Fail, for a budget of a task above is used up, as this says.
    Exhausted(String),
    /// The client says more.
    Input(Box<Input>),
    /// Let the agent go that waits, for others need its room; dropped once that is done.
    Park(oneshot::Sender<()>),
    /// The hub is going down.
    Shutdown,
}

/// What the client says to a task that there is.
pub(super) struct Input {
    pub(super) message: Message,
    /// The question that the message names as the one it answers.
    pub(super) answers: Option<QuestionId>,
    pub(super) client: ClientCapabilities,
    /// Who says it, for the log.
    pub(super) by: Principal,
    /// Is told whether the task was waiting for it.
    pub(super) told: oneshot::Sender<Result<(), A2aError>>,
}

/// What an actor begins with.
pub(super) enum Begin {
    /// Giving the task to its agent.
    Work(Box<Start>, Admitted, Kept),
    /// Running its agent again, which was at work when the hub before this one ended; the client has given these answers already.
    Replay(Box<Start>, Admitted, Kept, Answers),
    /// Looking after the children of its agent's run, which ended with the hub before this one.
    Tend(Admitted, Kept, Answers),
    /// Waiting for the client, without an agent at work: the hub that had one is gone.
    Parked(Kept),
    /// Listening to the agent, which is elsewhere and has been at work all the time.
    Follow(Admitted, Kept),
}

/// What the client has said that the agent is given later, each in a run of its own, oldest first.
pub(super) type Kept = VecDeque<Box<Start>>;

/// What the agent is to be given, once it is the task's turn.
pub(super) struct Start {
    /// What the client said last.
    pub(super) message: Message,
    /// What the client can do with an answer.
    pub(super) client: ClientCapabilities,
    /// Where the client would have the work done.
    pub(super) directory: Option<String>,
    /// Whether somebody listens while it works.
    pub(super) streamed: bool,
    /// Whether something may have been said before.
    pub(super) goes_on: bool,
    /// Where the message stands in the task's history.
    pub(super) at: usize,
    /// Who says it; none if that is not known.
    pub(super) by: Option<Principal>,
}
