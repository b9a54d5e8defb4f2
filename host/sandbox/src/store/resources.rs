//! Resources that a guest holds by handles. The store owns them, and they end with it.

#![expect(unreachable_pub, reason = "the contract's generated bindings re-export them")]

use a2a_hub_core::context_memory::inherit::Inherit;
use a2a_hub_protocol::{budget::Budget, id::TaskId, message::Message};
use a2a_hub_runtime::{
    Failure,
    port::{
        delegate::{CallPort, DelegatePort, JoinChild, Update},
        http::{self, BodyPort},
        process::{ChildPort, ProgramEvent},
        tasks::ClientAnswer,
    },
};
use futures::future::BoxFuture;
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::{sync::OwnedSemaphorePermit, task::JoinSet};

/// A running program. The store owns it, so that it never outlives the task.
pub struct GuestProcess {
    pub(crate) port: Box<dyn ChildPort>,
    /// Output received during a wait for another source, returned next.
    pub(crate) buffered: Option<Result<ProgramEvent, Failure>>,
}

impl GuestProcess {
    /// Next output of the program. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<ProgramEvent, Failure> {
        match self.buffered.take() {
            Some(output) => output,
            None => self.port.next().await,
        }
    }

    /// Waits until output is ready, and keeps it.
    pub(crate) async fn ready(&mut self) {
        if self.buffered.is_none() {
            self.buffered = Some(self.port.next().await);
        }
    }
}

impl Default for GuestProcess {
    /// Placeholder during a wait for several sources.
    fn default() -> Self {
        Self { port: Box::new(TakenOut), buffered: None }
    }
}

/// Placeholder: the real resource is taken out for a wait, and nobody can use it before it is back.
struct TakenOut;

#[async_trait::async_trait]
impl ChildPort for TakenOut {
    async fn next(&mut self) -> Result<ProgramEvent, Failure> {
        Err(Failure::Cancelled)
    }

    async fn write(&mut self, _: &[u8]) -> Result<(), Failure> {
        Err(Failure::Cancelled)
    }

    fn close_stdin(&mut self) {}

    fn interrupt(&mut self) {}

    fn kill(&mut self) {}

    fn retire(self: Box<Self>, _: Duration) {}

    async fn settled(&mut self) {}

    async fn park(self: Box<Self>, _: String, _: Option<ProgramEvent>) -> Result<(), Failure> {
        Err(Failure::Cancelled)
    }
}

#[async_trait::async_trait]
impl BodyPort for TakenOut {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        Ok(None)
    }
}

/// An HTTP response with a streamed body. Dropping it closes the connection.
pub struct Exchange {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    body: Box<dyn BodyPort>,
    /// Piece received during a wait for another source, returned next.
    buffered: Option<Result<Option<Vec<u8>>, Failure>>,
    /// Permit among the task's concurrent requests.
    permit: Option<OwnedSemaphorePermit>,
}

impl Exchange {
    pub(crate) fn new(answer: http::HttpResponse, permit: OwnedSemaphorePermit) -> Self {
        let http::HttpResponse { status, headers, body } = answer;
        Self { status, headers, body, buffered: None, permit: Some(permit) }
    }

    /// Next piece of the body. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let piece = match self.buffered.take() {
            Some(piece) => piece,
            None => self.body.next().await,
        };
        if !matches!(piece, Ok(Some(_))) {
            self.hang_up();
        }
        piece
    }

    /// Waits until a piece is ready, and keeps it.
    pub(crate) async fn ready(&mut self) {
        if self.buffered.is_none() {
            self.buffered = Some(self.body.next().await);
        }
    }

    /// Closes the connection and releases the permit.
    pub(crate) fn hang_up(&mut self) {
        (self.body, self.permit) = (Box::new(TakenOut), None);
    }
}

impl Default for Exchange {
    /// Placeholder during a wait for several sources.
    fn default() -> Self {
        let (status, headers, buffered) = Default::default();
        Self { status, headers, body: Box::new(TakenOut), buffered, permit: None }
    }
}

/// A step of a recorded run.
#[derive(Debug)]
pub struct Step {
    /// Result of the step in an earlier run that completed it.
    pub(crate) result: Option<String>,
}

/// A question to the client that does not block the guest.
#[derive(Default)]
pub struct PendingQuestion {
    /// The request, sent once the guest waits for the answer: a replay may have the answer already.
    pub(crate) later: Option<BoxFuture<'static, Result<ClientAnswer, Failure>>>,
    /// Task that waits for the answer; dropping it withdraws the question.
    pub(crate) asking: JoinSet<Result<ClientAnswer, Failure>>,
    pub(crate) answer: Option<Result<ClientAnswer, Failure>>,
}

impl PendingQuestion {
    /// Waits for the answer, and keeps it.
    pub(crate) async fn answered(&mut self) -> &Result<ClientAnswer, Failure> {
        if let Some(asking) = self.later.take() {
            self.asking.spawn(asking);
        }
        let asking = &mut self.asking;
        if self.answer.is_none() {
            // Only a drop ends the task, and a panic in it is the hub's fault.
            let answer = asking.join_next().await.and_then(Result::ok);
            self.answer = Some(answer.unwrap_or(Err(Failure::Cancelled)));
        }
        self.answer.get_or_insert(Err(Failure::Cancelled))
    }
}

/// A call of another agent.
pub struct Delegated {
    port: Box<dyn CallPort>,
    /// Child to join, if an earlier run made the call and nothing new was received since.
    joins: Option<(Arc<dyn DelegatePort>, JoinChild)>,
    /// Event received during a wait for another source, returned next.
    buffered: Option<Result<Update, Failure>>,
    is_over: bool,
}

impl Delegated {
    pub(crate) fn new(port: Box<dyn CallPort>) -> Self {
        Self { port, joins: None, buffered: None, is_over: false }
    }

    /// A call of an earlier run.
    pub(crate) fn recalled(port: Arc<dyn DelegatePort>, child: JoinChild) -> Self {
        Self { joins: Some((port, child)), ..Self::default() }
    }

    /// Id of the child task.
    pub(crate) fn task(&self) -> &TaskId {
        self.joins.as_ref().map_or_else(|| self.port.task(), |(_, child)| &child.task)
    }

    /// Skips an event that the guest received in an earlier run.
    pub(crate) fn recall(&mut self, update: &Update) {
        self.is_over |= matches!(update, Update::Finished(_));
        if let Some((_, child)) = &mut self.joins {
            child.received += 1;
        }
    }

    /// Port of the call, joined at the right position first if necessary.
    pub(crate) async fn port(&mut self) -> Result<&mut dyn CallPort, Failure> {
        if let Some((port, child)) = &self.joins {
            self.port = port.join(child).await?;
            self.joins = None;
        }
        Ok(&mut *self.port)
    }

    async fn receive(&mut self) -> Result<Update, Failure> {
        self.port().await?.next().await
    }

    /// Next event of the child. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Update, Failure> {
        let update = match self.buffered.take() {
            Some(update) => update,
            None => self.receive().await,
        };
        self.is_over |= matches!(update, Ok(Update::Finished(_)));
        update
    }

    /// Waits until an event is ready, and keeps it.
    pub(crate) async fn ready(&mut self) {
        if self.buffered.is_none() {
            self.buffered = Some(self.receive().await);
        }
    }

    /// Drops the call: an unfinished child is cancelled, because nobody receives its events.
    pub(crate) async fn let_go(mut self) {
        if self.is_over {
            return;
        }
        // The child may have ended meanwhile; the parent's end cancels it in any case.
        if let Ok(port) = self.port().await {
            let _ = port.cancel().await;
        }
    }
}

impl Default for Delegated {
    /// Placeholder during a wait for several sources.
    fn default() -> Self {
        Self::new(Box::new(TakenOut))
    }
}

#[async_trait::async_trait]
impl CallPort for TakenOut {
    fn task(&self) -> &TaskId {
        &NO_TASK
    }

    async fn next(&mut self) -> Result<Update, Failure> {
        Err(Failure::Cancelled)
    }

    async fn answer(&self, _: Message) -> Result<(), Failure> {
        Err(Failure::Cancelled)
    }

    async fn cancel(&self) -> Result<(), Failure> {
        Err(Failure::Cancelled)
    }
}

/// Id of the placeholder.
static NO_TASK: LazyLock<TaskId> = LazyLock::new(|| TaskId::new(""));

/// Options of a call besides agent and message.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    pub(crate) key: Option<String>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) budget: Budget,
    pub(crate) working_directory: Option<String>,
    pub(crate) context_id: Option<String>,
    pub(crate) answers_questions: bool,
    pub(crate) inherit: Inherit,
}
