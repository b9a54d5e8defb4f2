//! A running guest's way to its task's actor: everything it says goes through one bounded queue, in order.

use crate::clock;
use a2a_hub_core::facts;
use a2a_hub_protocol::{
    event::{ArtifactUpdate, TaskEvent},
    message::Message,
    task::{Task, TaskState},
};
use a2a_hub_runtime::{
    Failure,
    port::tasks::{Answer, Emitted, Need, TaskPort},
};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// What a guest says to its task's actor.
pub(super) enum GuestRequest {
    /// Something for the listeners.
    Emit(Vec<Emitted>),
    /// A question to the client.
    Ask(Question),
}

/// A question that waits for the client.
pub(super) struct Question {
    pub(super) need: Need,
    pub(super) prompt: Message,
    /// How long the guest waits for the answer.
    pub(super) patience: Option<Duration>,
    pub(super) answer: oneshot::Sender<Result<Answer, Failure>>,
}

/// The port that a run speaks to: what it says is queued for the actor of its task.
pub(super) struct ToActor {
    pub(super) queue: mpsc::Sender<GuestRequest>,
}

/// What a guest emitted, as its task's log has it.
pub(super) fn event(task: &Task, emitted: Emitted) -> TaskEvent {
    match emitted {
        Emitted::Working { message, metadata } => {
            facts::status(task, TaskState::Working, message, metadata, clock::now())
        }
        Emitted::Artifact { artifact, append, last_chunk } => {
            TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk })
        }
    }
}

#[async_trait::async_trait]
impl TaskPort for ToActor {
    async fn emit(&self, events: Vec<Emitted>) -> Result<(), Failure> {
        self.queue.send(GuestRequest::Emit(events)).await.map_err(|_| Failure::Cancelled)
    }

    async fn ask(
        &self,
        need: Need,
        prompt: Message,
        patience: Option<Duration>,
    ) -> Result<Answer, Failure> {
        let (answer, answered) = oneshot::channel();
        let question = Question { need, prompt, patience, answer };
        self.queue.send(GuestRequest::Ask(question)).await.map_err(|_| Failure::Cancelled)?;
        answered.await.unwrap_or(Err(Failure::Cancelled))
    }
}
