//! Stops an agent's run, cooperatively or by force.

use super::{TaskActor, running_task::RunningTask};
use std::time::Duration;
use tokio::time::timeout;

/// Time that a cancelled guest has to end by itself.
const GRACE: Duration = Duration::from_millis(500);

impl TaskActor {
    /// Stops the guest: cancels it first, then kills it, and its programs with it.
    pub(in crate::tasks) async fn stop(&mut self) {
        let Some(RunningTask { mut run, mut requests, .. }) = self.guest.take() else { return };
        let task = &self.recorder.task().id;
        run.cancel();
        let stopped = timeout(GRACE, async {
            loop {
                tokio::select! {
                    _ = run.ended() => return,
                    // Drains further output, so that a full queue does not block the guest.
                    Some(_) = requests.recv() => {}
                }
            }
        });
        if stopped.await.is_err() {
            tracing::warn!(%task, agent = %self.agent.id, "agent ignored cancel, ending its run");
        }
        run.end().await;
        self.agent.wait_for_programs(task.as_str()).await;
    }
}
