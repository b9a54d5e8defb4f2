//! The end of an agent's work on a task, whether it heeds that or not.

use super::actor::{RunningTask, TaskActor};
use std::time::Duration;
use tokio::time::timeout;

/// How long a cancelled guest may take to come to an end by itself.
const GRACE: Duration = Duration::from_millis(500);

impl TaskActor {
    /// Stops the guest: asks it first, then ends it, and its programs with it.
    pub(super) async fn stop(&mut self) {
        let Some(RunningTask { mut run, mut said, .. }) = self.guest.take() else { return };
        let task = &self.recorder.task().id;
        run.cancel();
        let stopped = timeout(GRACE, async {
            loop {
                tokio::select! {
                    _ = run.ended() => return,
                    // What it still says is not heard any more, but must not hold it up.
                    Some(_) = said.recv() => {}
                }
            }
        });
        if stopped.await.is_err() {
            tracing::warn!(%task, agent = %self.agent.id, "the agent did not heed cancel and was ended");
        }
        run.end().await;
        self.agent.programs_gone(task.as_str()).await;
    }
}
