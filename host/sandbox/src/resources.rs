//! What a guest holds by a handle. The store owns it, and it ends with the store.

#![expect(unreachable_pub, reason = "the contract's generated bindings re-export them")]

use a2a_hub_core::tree::Budget;
use a2a_hub_protocol::{id::TaskId, message::Message};
use a2a_hub_runtime::{
    Failure,
    port::{
        delegate::{CallPort, Update},
        http::{self, BodyPort},
        process::{ChildPort, Said},
        tasks::Answer,
    },
};
use std::{sync::LazyLock, time::Duration};
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

/// A question to the client that the guest does not stand still for.
#[derive(Default)]
pub struct Question {
    /// Waits for the answer, as the only one; withdraws the question when it is dropped.
    pub(crate) asking: JoinSet<Result<Answer, Failure>>,
    pub(crate) answer: Option<Result<Answer, Failure>>,
}

impl Question {
    /// Waits until it is answered, and leaves the answer where it is.
    pub(crate) async fn answered(&mut self) -> &Result<Answer, Failure> {
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
    pub(crate) port: Box<dyn CallPort>,
    /// What was heard of it while the guest waited for something else, and is to be told next.
    heard: Option<Result<Update, Failure>>,
    is_over: bool,
}

impl Delegated {
    pub(crate) fn new(port: Box<dyn CallPort>) -> Self {
        Self { port, heard: None, is_over: false }
    }

    /// What happens to the child next. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<Update, Failure> {
        let heard = match self.heard.take() {
            Some(heard) => heard,
            None => self.port.next().await,
        };
        self.is_over |= matches!(heard, Ok(Update::Finished(_)));
        heard
    }

    /// Waits until there is something to tell of it, and leaves that where it is.
    pub(crate) async fn ready(&mut self) {
        if self.heard.is_none() {
            self.heard = Some(self.port.next().await);
        }
    }

    /// Lets go of it: a child that has not ended is cancelled, for nobody hears it any more.
    pub(crate) async fn let_go(self) {
        if !self.is_over {
            // It may have ended meanwhile; its parent's end ends it in any case.
            let _ = self.port.cancel().await;
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
}
