//! Run permit lent to other tasks while an agent's program waits for a child task.

use crate::tasks::guest_port::GuestRequest;
use a2a_hub_runtime::port::tasks::WaitsFor;
use a2a_hub_store::feed::Lent;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

/// A task's run permit, lent to other tasks.
pub(in crate::tasks) struct LentTurn {
    queue: mpsc::Sender<GuestRequest>,
    actors: TaskTracker,
    state: LoanState,
}

enum LoanState {
    Lent,
    /// Reclaimed, not yet granted.
    Called(oneshot::Receiver<()>),
    Back,
}

impl LentTurn {
    /// Lends the permit of the task whose actor reads `queue`; a reclaim on drop runs in `actors`.
    pub(in crate::tasks) fn new(queue: mpsc::Sender<GuestRequest>, actors: TaskTracker) -> Self {
        Self { queue, actors, state: LoanState::Lent }
    }
}

#[async_trait::async_trait]
impl Lent for LentTurn {
    async fn back(&mut self) {
        if matches!(self.state, LoanState::Lent) {
            let Ok(permit) = self.queue.reserve().await else {
                // An actor that is gone grants no permits.
                self.state = LoanState::Back;
                return;
            };
            let (call, called) = oneshot::channel();
            permit.send(GuestRequest::Resume(WaitsFor::Agents, call));
            self.state = LoanState::Called(called);
        }
        if let LoanState::Called(called) = &mut self.state {
            // An error means the same.
            let _ = called.await;
            self.state = LoanState::Back;
        }
    }
}

impl Drop for LentTurn {
    fn drop(&mut self) {
        if !matches!(self.state, LoanState::Lent) {
            return;
        }
        let queue = self.queue.clone();
        self.actors.spawn(async move {
            let (call, _) = oneshot::channel();
            let _ = queue.send(GuestRequest::Resume(WaitsFor::Agents, call)).await;
        });
    }
}
