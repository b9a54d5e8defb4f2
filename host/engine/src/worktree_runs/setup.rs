//! Setup of worktrees: the operator's programs run before the agent begins.

use super::worktree_of_run::WorktreeOfRun;
use a2a_hub_protocol::{
    message::{Message, Role},
    task::TaskState,
};
use a2a_hub_runtime::{Ended, Failure, RunAfter, StartAgent, port::tasks::Emitted};
use a2a_hub_worktrees::WorktreeError;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Reason of a task that failed because its worktree could not be set up.
const REASON: &str = "worktree_setup";

/// A run whose worktree is set up before the agent begins.
pub(crate) fn run_after_setup(worktree: WorktreeOfRun, start: StartAgent) -> RunAfter {
    let cancelled = CancellationToken::new();
    let (worktrees, task) = (worktree.worktrees.clone(), worktree.task.clone());
    let setup = worktree.prepare(cancelled.clone());
    RunAfter::new(setup, start, move || cancelled.cancel())
        .or_else(async move { worktrees.setup_over(task.as_str()).await })
}

impl WorktreeOfRun {
    /// Sets the worktree up; returns the end of the task if that fails or is cancelled. The
    /// worktree is removed then.
    async fn prepare(self, cancelled: CancellationToken) -> Option<Ended> {
        let done = tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            done = self.set_up() => Some(done),
        };
        let why = match done {
            Some(Ok(())) => return None,
            Some(Err(why)) => Some(why),
            None => None,
        };
        let Self { worktrees, task, .. } = self;
        if let Err(stays) = worktrees.discard(task.as_str(), true).await {
            tracing::warn!(%task, why = %stays, "cannot remove a worktree whose setup failed");
        }
        let Some(why) = why else { return Some(Ended::Failed(Failure::Cancelled)) };
        tracing::warn!(%task, %why, "worktree setup failed");
        let text = format!(
            "{why}\n\nThe agent did not begin, and the worktree was removed. Correct this and send the message again, or change \
             `worktrees.setup` in the configuration of the hub."
        );
        let message = Some(Message::text(Role::Agent, text));
        let metadata = json!({ "reason": REASON }).as_object().cloned();
        Some(Ended::Status { state: TaskState::Failed, message, metadata })
    }

    async fn set_up(&self) -> Result<(), WorktreeError> {
        self.worktrees.begin(self.task.as_str()).await?;
        if let Some(note) = self.worktrees.take_note(self.task.as_str()).await? {
            self.report_status(note).await;
        }
        let Some(pending) = self.worktrees.pending_setup(self.task.as_str()).await? else {
            return Ok(());
        };
        let text = format!("Setting up the worktree: {}", pending.command_lines());
        self.report_status(text).await;
        self.worktrees.set_up(pending).await
    }

    async fn report_status(&self, text: String) {
        let message = Some(Message::text(Role::Agent, text));
        // A task that has ended takes no message; its run is cancelled then.
        let _ = self.port.emit(vec![Emitted::Working { message, metadata: None }]).await;
    }
}
