//! Work that runs to completion even if its caller is dropped.

use super::Tasks;
use crate::error::HubError;
use a2a_hub_protocol::error::A2aError;
use futures::future::{CatchUnwind, FutureExt as _};
use std::{
    any::Any,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::runtime::Handle;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

/// Future that is polled in place while it is awaited, which saves a wake-up between two tasks. If
/// it is dropped before its end, the work continues as a spawned task.
struct SeeingThrough<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// None once the work is done.
    work: Option<Pin<Box<CatchUnwind<AssertUnwindSafe<F>>>>>,
    /// Counts the work in the tracker, wherever it runs.
    counted: TaskTrackerToken,
    runtime: Handle,
}

impl<F> SeeingThrough<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// Wraps work that `among` counts. Must be called on the runtime on which the work may
    /// continue.
    fn new(work: F, among: &TaskTracker) -> Self {
        let work = Some(Box::pin(AssertUnwindSafe(work).catch_unwind()));
        Self { work, counted: among.token(), runtime: Handle::current() }
    }
}

impl<F> Future for SeeingThrough<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// Result of the work, or its panic.
    type Output = Result<F::Output, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<F> Drop for SeeingThrough<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.runtime.spawn(self.counted.task_tracker().track_future(work));
        }
    }
}

impl Tasks {
    /// Runs work to completion, even if the caller is dropped.
    pub async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, HubError>> + Send + 'static,
    ) -> Result<T, HubError> {
        let done = SeeingThrough::new(work, &self.actors).await;
        done.unwrap_or_else(|_| Err(A2aError::internal().into()))
    }

    /// Starts work that nobody awaits. Without a runtime, which means after the hub's end, nothing
    /// is started.
    pub fn run_in_background(&self, work: impl Future<Output: Send> + Send + 'static) {
        if Handle::try_current().is_ok() {
            drop(SeeingThrough::new(work, &self.actors));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::pending, time::Duration};
    use tokio::{
        sync::oneshot,
        task::{try_id, yield_now},
        time::timeout,
    };

    #[tokio::test]
    async fn dropped_future_continues_as_spawned_task() {
        let tasks = TaskTracker::new();
        let of_its_own = async { try_id().is_some() };
        assert!(!SeeingThrough::new(of_its_own, &tasks).await.unwrap(), "where it is awaited");

        let (go_on, may) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let work = async move {
            let _ = may.await;
            let _ = done.send(try_id().is_some());
        };
        let waits = timeout(Duration::from_millis(1), SeeingThrough::new(work, &tasks)).await;
        assert!(waits.is_err() && tasks.len() == 1, "it is counted after that, too");
        go_on.send(()).unwrap();
        assert!(is_done.await.unwrap(), "in a task of its own");
        tasks.close();
        tasks.wait().await;
    }

    #[tokio::test]
    async fn awaited_work_is_tracked_and_panic_contained() {
        let tasks = TaskTracker::new();
        let breaks = SeeingThrough::new(
            async {
                yield_now().await;
                panic!("broken")
            },
            &tasks,
        );
        assert_eq!(tasks.len(), 1);
        let broken: Result<(), _> = breaks.await;
        assert_eq!(broken.unwrap_err().downcast_ref(), Some(&"broken"));
        assert!(tasks.is_empty());
        drop(SeeingThrough::new(pending::<()>(), &tasks));
        assert_eq!(tasks.len(), 1, "what was never awaited is done as well");
    }
}
