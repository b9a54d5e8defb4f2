//! Events that an actor handles, and the data that accompanies the signal of an event.

use crate::tasks::{
    command::{ActorCommand, RunInput},
    guest_port::GuestRequest,
    run_queue::RunPermit,
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    error::A2aError,
    event::TaskEvent,
    message::{Message, Metadata},
    question::Question as AgentQuestion,
};
use a2a_hub_runtime::{Ended, port::tasks::ClientAnswer};
use tokio::sync::oneshot;

/// An event that the actor handles.
pub(in crate::tasks) enum ActorEvent {
    Command(Option<ActorCommand>),
    Turn(RunPermit),
    Time,
    Request(GuestRequest),
    Withdrawn,
    /// The agent waits for a message, and one is there.
    Read,
    Ended(Ended),
}

/// Data that accompanies a signal.
#[derive(Default)]
pub(in crate::tasks) struct SignalPayload {
    /// Events to record.
    pub(in crate::tasks) events: Vec<TaskEvent>,
    /// Input of the agent, if it is started by this signal.
    pub(in crate::tasks) start: Option<Box<RunInput>>,
    /// Answer for the agent, if this signal answers its question.
    pub(in crate::tasks) answer: Option<ClientAnswer>,
    /// Client's answer to a restored question; delivered when the agent asks it again.
    pub(in crate::tasks) restored_answer: Option<(AgentQuestion, Message)>,
    /// Principal that requested it.
    pub(in crate::tasks) by: Option<Principal>,
    /// Metadata of the last status, if the task is cancelled.
    pub(in crate::tasks) facts: Option<Metadata>,
    /// Reports whether the message was accepted.
    pub(in crate::tasks) reply_tx: Option<oneshot::Sender<Result<(), A2aError>>>,
    /// Notified once the events are stored.
    pub(in crate::tasks) stored_tx: Option<oneshot::Sender<()>>,
    /// Notified once the agent is evicted.
    pub(in crate::tasks) evicted_tx: Option<oneshot::Sender<()>>,
}
