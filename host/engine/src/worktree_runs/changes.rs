//! Changes of a run in a worktree: they become the artifact `patch` before the run ends.

use super::worktree_of_run::{PATCH, WorktreeOfRun};
use a2a_hub_clock as clock;
use a2a_hub_core::task::metadata::CONFLICTS;
use a2a_hub_protocol::{
    hub::event::HubEventKind,
    id::{ArtifactId, TaskId},
    message::{Content, Message, Part, Role},
    operation::ConflictWith,
    task::Artifact,
};
use a2a_hub_runtime::{Ended, Failure, Run, port::tasks::Emitted};
use a2a_hub_worktrees::{Omission, WorktreeConflict, WorktreeError};
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

    async fn detach(&mut self) -> bool {
        self.run.detach().await
    }

    async fn end(&mut self) {
        self.ending = None;
        self.run.end().await;
    }
}

impl WorktreeOfRun {
    /// Emits the present changes, unless none were ever made. A failure is reported as a status of
    /// the task, because the files stay where they are.
    async fn emit(self) {
        let Self { worktrees, task, has_patch, .. } = &self;
        let found = worktrees.diff(task.as_str(), false, PATCH_LIMIT).await;
        let found = match found {
            Err(WorktreeError::TooLarge { .. }) => {
                worktrees.diff(task.as_str(), true, PATCH_LIMIT).await.map(|diff| (diff, true))
            }
            other => other.map(|diff| (diff, false)),
        };
        let events = match found {
            Ok((diff, _)) if diff.snapshot.files == 0 && !has_patch => {
                match omissions_text(&diff.snapshot.left_out) {
                    Some(text) => vec![working(text)],
                    None => return,
                }
            }
            Ok((diff, is_table)) => {
                let omissions = omissions_text(&diff.snapshot.left_out).map(working);
                // Bytes, so that a client shows a file, and saves it.
                let mut part = Part::new(Content::Raw(diff.bytes));
                part.media_type =
                    Some(if is_table { "text/plain" } else { "text/x-diff" }.to_owned());
                part.filename =
                    Some(if is_table { "changes.txt" } else { "changes.patch" }.to_owned());
                let mut artifact = Artifact::new(ArtifactId::new(PATCH), vec![part]);
                artifact.name = Some("changes of the worktree".to_owned());
                artifact.metadata = json!(diff.snapshot).as_object().cloned();
                let conflicts = self.conflicts().await;
                if !conflicts.is_empty() {
                    let facts = artifact.metadata.get_or_insert_default();
                    facts.insert(CONFLICTS.to_owned(), json!(conflicts));
                }
                let warning = (!conflicts.is_empty()).then(|| working(warning(task, &conflicts)));
                let patch = Emitted::Artifact { artifact, append: false, last_chunk: true };
                [patch].into_iter().chain(omissions).chain(warning).collect()
            }
            Err(why) => {
                tracing::warn!(%task, %why, "cannot read the changes of a worktree");
                vec![working(format!("The changes cannot be read: {why}"))]
            }
        };
        let sent: Result<(), Failure> = self.port.emit(events).await;
        if sent.is_err() {
            tracing::debug!(%task, "task ended before its changes were emitted");
        }
    }

    /// Conflicts of the changes with those of other open worktrees, which become events of the hub.
    /// The run ends as it would without them if they cannot be found.
    async fn conflicts(&self) -> Vec<ConflictWith> {
        let task = &self.task;
        let found = self.worktrees.find_conflicts(task.as_str(), clock::now_ms()).await;
        let found = found.unwrap_or_else(|why| {
            tracing::warn!(%task, %why, "cannot check a worktree for conflicts");
            Vec::new()
        });
        let named: Vec<_> = found.into_iter().map(conflict_with).collect();
        for conflict in &named {
            tracing::info!(%task, with = %conflict.task_id, paths = ?conflict.paths, "two worktrees conflict");
            (self.publish)(HubEventKind::WorktreeConflict {
                task_id: task.clone(),
                context_id: self.context.clone(),
                conflict: conflict.clone(),
            });
        }
        named
    }
}

/// A conflict, as clients see it.
pub fn conflict_with(found: WorktreeConflict) -> ConflictWith {
    let WorktreeConflict { task, paths, more } = found;
    ConflictWith { task_id: TaskId::new(task), paths, more }
}

/// Text that names what the changes lack; none if they lack nothing.
fn omissions_text(omissions: &[Omission]) -> Option<String> {
    let named = omissions.iter().take(NAMED).map(|it| format!("- `{}` {}", it.name, it.reason));
    let named = named.collect::<Vec<_>>().join("\n");
    let more = omissions.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("\n- and {more} more") } else { String::new() };
    (!omissions.is_empty()).then(|| format!("Not in the result of the worktree:\n{named}{more}"))
}

fn working(text: String) -> Emitted {
    Emitted::Working { message: Some(Message::text(Role::Agent, text)), metadata: None }
}

/// Most conflicts, and parts that are left out, that a text names: the artifact has all of them.
const NAMED: usize = 5;

/// Warning for the task that ends.
fn warning(task: &TaskId, conflicts: &[ConflictWith]) -> String {
    let named = conflicts.iter().take(NAMED).map(|ConflictWith { task_id, paths, more }| {
        let paths = paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        let more = if *more > 0 { format!(" and {more} more") } else { String::new() };
        format!("- with task `{task_id}` in {paths}{more}")
    });
    let named = named.collect::<Vec<_>>().join("\n");
    let more = conflicts.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("\n- with {more} more tasks") } else { String::new() };
    format!(
        "The changes conflict with those of other worktrees:\n{named}{more}\n\nOnly the first that you apply fits. Take the \
         other one as a branch, and merge it: `a2a-hub task apply {task} --branch NAME`."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_names_tasks_and_paths() {
        let with = |task: &str, more| ConflictWith {
            task_id: TaskId::new(task),
            paths: vec!["a".to_owned(), "src/b".to_owned()],
            more,
        };
        let text = warning(&TaskId::new("t1"), &[with("t2", 0), with("t3", 4)]);
        assert!(text.contains("- with task `t2` in `a`, `src/b`\n"), "{text}");
        assert!(text.contains("- with task `t3` in `a`, `src/b` and 4 more\n\n"), "{text}");
        assert!(text.contains("task apply t1 --branch NAME"), "{text}");
        let many: Vec<_> = (0..16).map(|at| with(&format!("t{at}"), 0)).collect();
        let text = warning(&TaskId::new("t"), &many);
        assert!(text.contains("- with 11 more tasks") && !text.contains("`t5`"), "{text}");
    }
}
