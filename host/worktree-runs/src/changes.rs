//! Changes of a run in a worktree: they become the artifact `patch` before the run ends.

use crate::{PATCH, WorktreeOfRun};
use a2a_hub_protocol::{
    id::ArtifactId,
    message::{Content, Message, Part},
    task::Artifact,
};
use a2a_hub_runtime::{Ended, Failure, Run, port::tasks::Emitted};
use a2a_hub_worktrees::WorktreeError;
use futures::future::BoxFuture;
use serde_json::json;
use std::task::{Context, Poll};

/// Largest patch in an artifact, in bytes. A larger one is replaced by a table of files.
const PATCH_LIMIT: usize = 512 << 10;

/// A run in a worktree: its changes are emitted before its end.
pub(crate) struct RunInWorktree {
    run: Box<dyn Run>,
    /// Present while the run goes on.
    changes: Option<WorktreeOfRun>,
    /// Emits the changes, and returns the end of the run.
    ending: Option<BoxFuture<'static, Ended>>,
}

impl RunInWorktree {
    pub(crate) fn new(run: Box<dyn Run>, changes: WorktreeOfRun) -> Self {
        Self { run, changes: Some(changes), ending: None }
    }
}

#[async_trait::async_trait]
impl Run for RunInWorktree {
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        if self.ending.is_none() {
            let Poll::Ready(ended) = self.run.poll_ended(cx) else { return Poll::Pending };
            let Some(changes) = self.changes.take() else { return Poll::Ready(ended) };
            self.ending = Some(Box::pin(async move {
                // A direct message has no task that could have artifacts.
                if !matches!(ended, Ended::Reply(_)) {
                    changes.emit().await;
                }
                ended
            }));
        }
        match &mut self.ending {
            Some(ending) => {
                let ended = ending.as_mut().poll(cx);
                if ended.is_ready() {
                    self.ending = None;
                }
                ended
            }
            None => Poll::Pending,
        }
    }

    fn cancel(&self) {
        self.run.cancel();
    }

    async fn leave(&mut self) -> bool {
        self.run.leave().await
    }

    async fn end(&mut self) {
        self.ending = None;
        self.run.end().await;
    }
}

impl WorktreeOfRun {
    /// Emits the present changes, unless none were ever made. A failure is reported as a status of the
    /// task, because the files stay where they are.
    async fn emit(self) {
        let Self { worktrees, task, port, has_patch } = self;
        let found = worktrees.diff(task.as_str(), false, PATCH_LIMIT).await;
        let found = match found {
            Err(WorktreeError::TooLarge { .. }) => {
                worktrees.diff(task.as_str(), true, PATCH_LIMIT).await.map(|diff| (diff, true))
            }
            other => other.map(|diff| (diff, false)),
        };
        let told = match found {
            Ok((diff, _)) if diff.snapshot.files == 0 && !has_patch => return,
            Ok((diff, is_table)) => {
                // Bytes, so that a client shows a file, and saves it.
                let mut part = Part::new(Content::Raw(diff.text.into_bytes()));
                part.media_type =
                    Some(if is_table { "text/plain" } else { "text/x-diff" }.to_owned());
                part.filename =
                    Some(if is_table { "changes.txt" } else { "changes.patch" }.to_owned());
                let mut artifact = Artifact::new(ArtifactId::new(PATCH), vec![part]);
                artifact.name = Some("changes of the worktree".to_owned());
                artifact.metadata = json!(diff.snapshot).as_object().cloned();
                Emitted::Artifact { artifact, append: false, last_chunk: true }
            }
            Err(why) => {
                tracing::warn!(%task, %why, "the changes of a worktree cannot be read");
                let text = format!("The changes cannot be read: {why}");
                let message = Message::text(a2a_hub_protocol::message::Role::Agent, text);
                Emitted::Working { message: Some(message), metadata: None }
            }
        };
        let sent: Result<(), Failure> = port.emit(vec![told]).await;
        if sent.is_err() {
            tracing::debug!(%task, "the task ended before its changes were told");
        }
    }
}
