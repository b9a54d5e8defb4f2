//! Tasks tied to the connection that started them: they are cancelled when it closes, breaks, is
//! dropped, or panics.

use crate::{dispatcher::Dispatcher, stream_quota::StreamPermit};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::{Hub, Reply, ReplyStream};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TaskId,
    operation::Operation,
};
use tokio_util::sync::CancellationToken;

/// A started or resumed task with its event stream.
pub struct Begun {
    /// Events of the task.
    pub events: ReplyStream,
    /// Id of the task.
    pub task: TaskId,
    /// Cancels the task when it is dropped.
    pub guard: CancelOnDrop,
    /// The stream's place among those that the hub serves.
    pub permit: Option<StreamPermit>,
}

/// Cancels its task on drop, unless the guard was disarmed or the hub stops. After a stop, the next
/// process resumes the task.
#[must_use]
pub struct CancelOnDrop {
    hub: Hub,
    caller: Principal,
    task: Option<TaskId>,
    stop: CancellationToken,
}

impl CancelOnDrop {
    /// Disarms the guard, so that the task continues.
    pub fn disarm(mut self) {
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
    /// Sends a message whose task ends with the connection of `caller`. If this future is dropped
    /// before the task is known, the task is cancelled afterwards. After `stop`, which signals the
    /// hub's shutdown, nothing is cancelled.
    pub async fn begin(
        &self,
        caller: &Principal,
        operation: Operation,
        stop: &CancellationToken,
    ) -> Result<Begun, A2aError> {
        let (dispatcher, caller, stop) = (self.clone(), caller.clone(), stop.clone());
        let begun = async move {
            let (reply, permit) = dispatcher.ask(&caller, operation).await?;
            let Reply::Stream(events) = reply else { return Err(unexpected()) };
            let ReplyStream::Task(of) = &events else { return Err(unexpected()) };
            let (hub, task) = (dispatcher.hub().clone(), of.task().clone());
            let guard = CancelOnDrop { hub, caller, task: Some(task.clone()), stop };
            Ok(Begun { events, task, guard, permit })
        };
        self.hub().see_through(begun).await
    }
}

/// Error for an answer that does not match the caller's operation.
pub fn unexpected() -> A2aError {
    A2aError::new(ErrorKind::Internal, "the hub answered with something else than was asked for")
}
