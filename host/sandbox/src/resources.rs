//! What a guest holds by a handle. The store owns it, and it ends with the store.

#![expect(unreachable_pub, reason = "the contract's generated bindings re-export them")]

use a2a_hub_core::context_memory::inherit::Inherit;
use a2a_hub_protocol::{budget::Budget, id::TaskId, message::Message};
use a2a_hub_runtime::{
    Failure,
    port::{
        delegate::{CallPort, DelegatePort, JoinChild, Update},
        http::{self, BodyPort},
        process::{ChildPort, Said},
        tasks::Answer,
    },
};
use futures::future::BoxFuture;
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::{sync::OwnedSemaphorePermit, task::JoinSet};

/// A running program, as the guest holds it. The store owns it, so that it never outlives the task.
pub struct Child {
    pub(crate) port: Box<dyn ChildPort>,
    /// What was heard of it while the guest waited for something else, and is to be told next.
    pub(crate) heard: Option<Result<Said, Failure>>,
}

impl Child {
    /// What it does next. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<Said, Failure> {
        match self.heard.take() {
            Some(heard) => heard,
            None => self.port.next().await,
        }
    }

    /// Waits until there is something to tell of it, and leaves that where it is.
    pub(crate) async fn ready(&mut self) {
        if self.heard.is_none() {
            self.heard = Some(self.port.next().await);
        }
    }
}

impl Default for Child {
    /// What stands in its place while it is waited for beside others.
    fn default() -> Self {
        Self { port: Box::new(Away), heard: None }
    }
}

/// Nothing: what it stands for is elsewhere, and nobody can ask it before that is back.
struct Away;

#[async_trait::async_trait]
impl ChildPort for Away {
    async fn next(&mut self) -> Result<Said, Failure> {
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

    async fn park(self: Box<Self>, _: String, _: Option<Said>) -> Result<(), Failure> {
        Err(Failure::Cancelled)
    }
}

#[async_trait::async_trait]
impl BodyPort for Away {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        Ok(None)
    }
}

/// An answer over HTTP whose body is read as it comes. Dropping it hangs up.
pub struct Exchange {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    body: Box<dyn BodyPort>,
    /// What came while the guest waited for something else, and is to be told next.
    heard: Option<Result<Option<Vec<u8>>, Failure>>,
    /// Its place among those that the task may have.
    permit: Option<OwnedSemaphorePermit>,
}

impl Exchange {
    pub(crate) fn new(answer: http::Answer, permit: OwnedSemaphorePermit) -> Self {
        let http::Answer { status, headers, body } = answer;
        Self { status, headers, body, heard: None, permit: Some(permit) }
    }

    /// The next piece of the body. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let said = match self.heard.take() {
            Some(heard) => heard,
            None => self.body.next().await,
        };
        if !matches!(said, Ok(Some(_))) {
            self.hang_up();
        }
        said
    }

    /// Waits until there is a piece to tell, and leaves it where it is.
    pub(crate) async fn ready(&mut self) {
        if self.heard.is_none() {
            self.heard = Some(self.body.next().await);
        }
    }

    /// Nothing more is read, and another may take its place.
    pub(crate) fn hang_up(&mut self) {
        (self.body, self.permit) = (Box::new(Away), None);
    }
}

impl Default for Exchange {
    /// What stands in its place while it is waited for beside others.
    fn default() -> Self {
        let (status, headers, heard) = Default::default();
        Self { status, headers, body: Box::new(Away), heard, permit: None }
    }
}

/// A step of a run that is recorded.
#[derive(Debug)]
pub struct Step {
    /// What it came to in an earlier run, in which it is over.
    pub(crate) kept: Option<String>,
}

/// A question to the client that the guest does not stand still for.
#[derive(Default)]
pub struct Question {
    /// What is to be asked once somebody waits for the answer: in a run that is replayed it may have come already.
    pub(crate) later: Option<BoxFuture<'static, Result<Answer, Failure>>>,
    /// Waits for the answer, as the only one; withdraws the question when it is dropped.
    pub(crate) asking: JoinSet<Result<Answer, Failure>>,
    pub(crate) answer: Option<Result<Answer, Failure>>,
}

impl Question {
    /// Waits until it is answered, and leaves the answer where it is.
    pub(crate) async fn answered(&mut self) -> &Result<Answer, Failure> {
        if let Some(asking) = self.later.take() {
            self.asking.spawn(asking);
        }
        let asking = &mut self.asking;
        if self.answer.is_none() {
            // Nobody ends it but who drops it, and a panic in there is the hub's.
            let answer = asking.join_next().await.and_then(Result::ok);
            self.answer = Some(answer.unwrap_or(Err(Failure::Cancelled)));
        }
        self.answer.get_or_insert(Err(Failure::Cancelled))
    }
}

/// A call of another agent.
pub struct Delegated {
    port: Box<dyn CallPort>,
    /// The child to be joined, if the call was made in an earlier run and nothing new was heard of it.
    joins: Option<(Arc<dyn DelegatePort>, JoinChild)>,
    /// What was heard of it while the guest waited for something else, and is to be told next.
    heard: Option<Result<Update, Failure>>,
    is_over: bool,
}

impl Delegated {
    pub(crate) fn new(port: Box<dyn CallPort>) -> Self {
        Self { port, joins: None, heard: None, is_over: false }
    }

    /// A call of an earlier run of the guest.
    pub(crate) fn recalled(port: Arc<dyn DelegatePort>, child: JoinChild) -> Self {
        Self { joins: Some((port, child)), ..Self::default() }
    }

    /// The id of the child.
    pub(crate) fn task(&self) -> &TaskId {
        self.joins.as_ref().map_or_else(|| self.port.task(), |(_, child)| &child.task)
    }

    /// The guest heard this of the child in an earlier run.
    pub(crate) fn recall(&mut self, update: &Update) {
        self.is_over |= matches!(update, Update::Finished(_));
        if let Some((_, child)) = &mut self.joins {
            child.heard += 1;
        }
    }

    /// The hub's side, which knows what the guest has heard by now.
    pub(crate) async fn port(&mut self) -> Result<&mut dyn CallPort, Failure> {
        if let Some((port, child)) = &self.joins {
            self.port = port.join(child).await?;
            self.joins = None;
        }
        Ok(&mut *self.port)
    }

    async fn hear(&mut self) -> Result<Update, Failure> {
        self.port().await?.next().await
    }

    /// What happens to the child next. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<Update, Failure> {
        let heard = match self.heard.take() {
            Some(heard) => heard,
            None => self.hear().await,
        };
        self.is_over |= matches!(heard, Ok(Update::Finished(_)));
        heard
    }

    /// Waits until there is something to tell of it, and leaves that where it is.
    pub(crate) async fn ready(&mut self) {
        if self.heard.is_none() {
            self.heard = Some(self.hear().await);
        }
    }

    /// Lets go of it: a child that has not ended is cancelled, for nobody hears it any more.
    pub(crate) async fn let_go(mut self) {
        if self.is_over {
            return;
        }
        // It may have ended meanwhile; its parent's end ends it in any case.
        if let Ok(port) = self.port().await {
            let _ = port.cancel().await;
        }
    }
}

impl Default for Delegated {
    /// What stands in its place while it is waited for beside others.
    fn default() -> Self {
        Self::new(Box::new(Away))
    }
}

#[async_trait::async_trait]
impl CallPort for Away {
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

/// The id of no task.
static NO_TASK: LazyLock<TaskId> = LazyLock::new(|| TaskId::new(""));

/// How a call is to be made, beyond whom it is for and what it says.
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
