//! Setup of worktrees: the operator's programs run before the agent begins.

use crate::{StartAgent, WorktreeOfRun};
use a2a_hub_protocol::{
    id::TaskId,
    message::{Message, Role},
    task::TaskState,
};
use a2a_hub_runtime::{Ended, Failure, Run, port::tasks::Emitted};
use a2a_hub_worktrees::{WorktreeError, Worktrees};
use futures::future::BoxFuture;
use serde_json::json;
use std::task::{Context, Poll, ready};
use tokio_util::sync::CancellationToken;

/// Reason of a task that failed because its worktree could not be set up.
const REASON: &str = "worktree_setup";

/// A run whose worktree is set up before the agent begins.
pub(crate) struct RunAfterSetup {
    stage: SetupStage,
    worktrees: Worktrees,
    task: TaskId,
    cancelled: CancellationToken,
}

/// Stage of such a run.
enum SetupStage {
    /// Programs run. The future returns the end of the task if the agent cannot begin.
    Preparing(BoxFuture<'static, Option<Ended>>, StartAgent),
    Running(Box<dyn Run>),
    Over,
}

impl RunAfterSetup {
    pub(crate) fn new(worktree: WorktreeOfRun, start: StartAgent) -> Self {
        let cancelled = CancellationToken::new();
        let (worktrees, task) = (worktree.worktrees.clone(), worktree.task.clone());
        let setup = worktree.prepare(cancelled.clone());
        let stage = SetupStage::Preparing(Box::pin(setup), start);
        Self { stage, worktrees, task, cancelled }
    }
}

#[async_trait::async_trait]
impl Run for RunAfterSetup {
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        if let SetupStage::Preparing(setup, _) = &mut self.stage {
            let ended = ready!(setup.as_mut().poll(cx));
            let stage = std::mem::replace(&mut self.stage, SetupStage::Over);
            match (ended, stage) {
                (None, SetupStage::Preparing(_, start)) => {
                    self.stage = SetupStage::Running(start());
                }
                (Some(ended), _) => return Poll::Ready(ended),
                (None, SetupStage::Running(_) | SetupStage::Over) => {}
            }
        }
        match &mut self.stage {
            SetupStage::Running(run) => run.poll_ended(cx),
            SetupStage::Preparing(..) | SetupStage::Over => Poll::Pending,
        }
    }

    fn cancel(&self) {
        self.cancelled.cancel();
        if let SetupStage::Running(run) = &self.stage {
            run.cancel();
        }
    }

    async fn leave(&mut self) -> bool {
        match &mut self.stage {
            SetupStage::Running(run) => run.leave().await,
            SetupStage::Preparing(..) | SetupStage::Over => false,
        }
    }

    async fn end(&mut self) {
        match std::mem::replace(&mut self.stage, SetupStage::Over) {
            SetupStage::Running(mut run) => run.end().await,
            SetupStage::Preparing(setup, _) => {
                drop(setup);
                self.worktrees.setup_over(self.task.as_str()).await;
            }
            SetupStage::Over => {}
        }
    }
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
        if let Err(stays) = worktrees.discard(task.as_str()).await {
            tracing::warn!(%task, why = %stays, "a worktree that was not set up stays");
        }
        let Some(why) = why else { return Some(Ended::Failed(Failure::Cancelled)) };
        tracing::warn!(%task, %why, "the worktree of a task was not set up");
        let text = format!(
            "{why}\n\nThe agent did not begin, and the worktree was removed. Correct this and send the message again, or change \
             `worktrees.setup` in the configuration of the hub."
        );
        let message = Some(Message::text(Role::Agent, text));
        let metadata = json!({ "reason": REASON }).as_object().cloned();
        Some(Ended::Status { state: TaskState::Failed, message, metadata })
    }

    async fn set_up(&self) -> Result<(), WorktreeError> {
        let Some(pending) = self.worktrees.pending_setup(self.task.as_str()).await? else {
            return Ok(());
        };
        let text = format!("Setting up the worktree: {}", pending.told());
        let message = Some(Message::text(Role::Agent, text));
        // A task that has ended takes no message; its run is cancelled then.
        let _ = self.port.emit(vec![Emitted::Working { message, metadata: None }]).await;
        self.worktrees.set_up(pending).await
    }
}
