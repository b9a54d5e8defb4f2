//! Storage failure of a task: an event that was not stored never happened, and is not published. A
//! task at work fails as soon as the store accepts that; a task that waits for its client keeps
//! waiting.

use super::{TaskActor, abort_reason::AbortReason, recorder::Unstorable};
use crate::conversations::refusals::not_waiting;
use crate::tasks::command::ActorCommand;
use a2a_hub_clock as clock;
use a2a_hub_core::task::metadata;
use a2a_hub_store::until_usable;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};

/// First pause before the task's failure is stored again; it doubles each time. A store that is
/// known to fail is not tried until it works again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Time after which subscribers are disconnected, since they would wait in vain.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl TaskActor {
    /// Fails the task as soon as the store accepts that; false if the hub shuts down before.
    pub(in crate::tasks) async fn give_up(&mut self, why: AbortReason) -> bool {
        let id = &self.recorder.task().id;
        tracing::error!(task = %id, reason = why.reason().name(), "task aborted, storing its failure");
        let (begun, storage) = (Instant::now(), Arc::clone(self.recorder.storage()));
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(ActorCommand::Shutdown) | None => return false,
                    Some(ActorCommand::Input(input)) => {
                        let task = self.recorder.task();
                        let refused = not_waiting(&task.id, task.status.state);
                        // The sender may be gone; then nobody needs the reply.
                        let _ = input.reply_tx.send(Err(refused));
                    }
                    Some(ActorCommand::RetryNow(reply_tx)) => {
                        let task = self.recorder.task();
                        let refused = not_waiting(&task.id, task.status.state);
                        let _ = reply_tx.send(Err(refused));
                    }
                    // No agent is at work on it any more.
                    Some(ActorCommand::Cancel { .. } | ActorCommand::Exhausted(_) | ActorCommand::ChangeBoard(_)
                        | ActorCommand::ReportQuestions(_) | ActorCommand::Postpone(..) | ActorCommand::Park(_)) => {}
                },
                () = until_usable(&*storage, pause) => {
                    if self.fail_after_all(why).await.is_ok() {
                        return true;
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                () = sleep_until(begun + DISCONNECT_TIMEOUT), if begun.elapsed() < DISCONNECT_TIMEOUT => {
                    // Disconnected subscribers may subscribe again.
                    self.recorder.hang_up();
                }
            }
        }
    }

    async fn fail_after_all(&mut self, why: AbortReason) -> Result<(), Unstorable> {
        if !self.recorder.take_back().await? || self.recorder.task().status.state.is_final() {
            return Ok(());
        }
        let failed = metadata::failed(self.recorder.task(), why.reason(), why.text(), clock::now());
        self.recorder.record(metadata::with_pending_messages(failed, &self.pending_messages()));
        self.recorder.flush(None).await
    }
}
