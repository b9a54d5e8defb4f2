//! The turn of a task whose agent's program waits for other agents.

use super::{feed::Lent, port::GuestRequest};
use a2a_hub_runtime::port::tasks::WaitsFor;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

/// A task's turn, lent to other tasks.
pub(super) struct LentTurn {
    queue: mpsc::Sender<GuestRequest>,
    actors: TaskTracker,
    state: Turn,
}

enum Turn {
    Lent,
    /// It was asked for, and comes.
    Called(oneshot::Receiver<()>),
    Back,
}

impl LentTurn {
    /// The turn of the task whose actor hears this; what asks for it once more runs there.
    pub(super) fn new(queue: mpsc::Sender<GuestRequest>, actors: TaskTracker) -> Self {
        Self { queue, actors, state: Turn::Lent }
    }
}

#[async_trait::async_trait]
impl Lent for LentTurn {
    async fn back(&mut self) {
        if matches!(self.state, Turn::Lent) {
            let Ok(room) = self.queue.reserve().await else {
                // An actor that is gone gives no turns.
                self.state = Turn::Back;
                return;
            };
            let (call, called) = oneshot::channel();
            room.send(GuestRequest::Resume(WaitsFor::Agents, call));
            self.state = Turn::Called(called);
        }
        if let Turn::Called(called) = &mut self.state {
            // The same.
            let _ = called.await;
            self.state = Turn::Back;
        }
    }
}

impl Drop for LentTurn {
    fn drop(&mut self) {
        if !matches!(self.state, Turn::Lent) {
            return;
        }
        let queue = self.queue.clone();
        self.actors.spawn(async move {
            let (call, _) = oneshot::channel();
            let _ = queue.send(GuestRequest::Resume(WaitsFor::Agents, call)).await;
        });
    }
}
