//! A running guest's way to its task's actor: everything it says goes through one bounded queue, in order.

use a2a_hub_protocol::{client::ClientCapabilities, message::Message};
use a2a_hub_runtime::{
    Failure,
    port::tasks::{Emitted, Need, TaskPort},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

/// What a guest says to its task's actor.
pub(super) enum Said {
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
    pub(super) answer: oneshot::Sender<Result<Message, Failure>>,
}

/// What the client can do with an answer, as it said with its last message: written by the actor, read by the guest.
#[derive(Clone)]
pub(super) struct LatestClient(Arc<Mutex<ClientCapabilities>>);

impl LatestClient {
    pub(super) fn new(client: ClientCapabilities) -> Self {
        Self(Arc::new(Mutex::new(client)))
    }

    pub(super) fn set(&self, client: ClientCapabilities) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    fn get(&self) -> ClientCapabilities {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The speaking end.
pub(super) struct ToActor {
    pub(super) queue: mpsc::Sender<Said>,
    pub(super) client: LatestClient,
}

#[async_trait::async_trait]
impl TaskPort for ToActor {
    async fn emit(&self, events: Vec<Emitted>) -> Result<(), Failure> {
        self.queue.send(Said::Emit(events)).await.map_err(|_| Failure::Cancelled)
    }

    async fn ask(
        &self,
        need: Need,
        prompt: Message,
        patience: Option<Duration>,
    ) -> Result<Message, Failure> {
        let (answer, answered) = oneshot::channel();
        let question = Question { need, prompt, patience, answer };
        self.queue.send(Said::Ask(question)).await.map_err(|_| Failure::Cancelled)?;
        answered.await.unwrap_or(Err(Failure::Cancelled))
    }

    fn client_capabilities(&self) -> ClientCapabilities {
        self.client.get()
    }
}
