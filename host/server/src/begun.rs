//! Tasks that end with the connection that began them, however that ends: hung up, broken off, dropped, or with a panic.

use super::dispatcher::Dispatcher;
use a2a_hub_core::access::Principal;
use a2a_hub_hub::{Hub, Reply, ReplyStream};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TaskId,
    operation::Operation,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

/// A task that was begun or went on, and what it tells.
pub(super) struct Begun {
    pub(super) heard: ReplyStream,
    pub(super) task: TaskId,
    pub(super) guard: CancelOnDrop,
    /// The stream's place among those that the hub serves.
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

/// Cancels its task when it is dropped, unless it was disarmed or the hub stops: then the next hub goes on with the task.
#[must_use]
pub(super) struct CancelOnDrop {
    hub: Hub,
    caller: Principal,
    task: Option<TaskId>,
    stop: CancellationToken,
}

impl CancelOnDrop {
    /// Leaves the task as it is from now on.
    pub(super) fn disarm(mut self) {
        self.task = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(task) = self.task.take().filter(|_| !self.stop.is_cancelled()) {
            self.hub.cancel_in_background(self.caller.clone(), task);
        }
    }
}

impl Dispatcher {
    /// Sends a message whose task is to end with the connection of `caller`. If this future is dropped before the task is known, the
    /// task is cancelled once it is. Nothing is cancelled after `stop`, which fires when the hub stops.
    pub(super) async fn begin(
        &self,
        caller: &Principal,
        operation: Operation,
        stop: &CancellationToken,
    ) -> Result<Begun, A2aError> {
        let (dispatcher, caller, stop) = (self.clone(), caller.clone(), stop.clone());
        let begun = async move {
            let (reply, permit) = dispatcher.ask(&caller, operation).await?;
            let Reply::Stream(heard) = reply else { return Err(unexpected()) };
            let ReplyStream::Task(of) = &heard else { return Err(unexpected()) };
            let (hub, task) = (dispatcher.hub().clone(), of.task().clone());
            let guard = CancelOnDrop { hub, caller, task: Some(task.clone()), stop };
            Ok(Begun { heard, task, guard, permit })
        };
        self.hub().see_through(begun).await
    }
}

/// The hub answered in a way that no operation of the caller asks for.
pub(super) fn unexpected() -> A2aError {
    A2aError::new(ErrorKind::Internal, "the hub answered with something else than was asked for")
}
