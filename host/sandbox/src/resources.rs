//! What a guest holds by a handle. The store owns it, and it ends with the store.

#![expect(unreachable_pub, reason = "the contract's generated bindings re-export them")]

use a2a_hub_runtime::{
    Failure,
    port::{
        process::{ChildPort, Said},
        tasks::Answer,
    },
};
use tokio::task::JoinSet;

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

/// A call to another agent. None can be made, so there is none.
pub enum Delegated {}
