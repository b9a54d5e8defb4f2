//! Worktrees of tasks. A new task that asks for one works in it, and the changes become the
//! artifact `patch` when a run of its agent ends.

use super::{
    SubmitError, Tasks,
    new_task::{Settled, Settling},
    worktree_setup::rules_of,
};
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_config::WorktreeSettings;
use a2a_hub_protocol::{
    id::{ArtifactId, ContextId, TaskId},
    message::{Content, Message, Part},
    task::Artifact,
};
use a2a_hub_runtime::{
    Ended, Failure, Run,
    port::tasks::{Emitted, TaskPort},
};
use a2a_hub_store::{Head, StorageError};
use a2a_hub_worktrees::{NewWorktree, Worktree, WorktreeError, Worktrees};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::Arc,
    task::{Context, Poll},
};

/// Id of the artifact with the changes.
pub(super) const PATCH: &str = "patch";

/// Largest patch in an artifact, in bytes. A larger one is replaced by a table of files.
const PATCH_LIMIT: usize = 512 << 10;

/// Most worktrees of one hub.
const MAX_WORKTREES: usize = 256;

impl Tasks {
    /// Gives tasks worktrees.
    #[must_use]
    pub fn with_worktrees(mut self, worktrees: Worktrees) -> Self {
        Arc::make_mut(&mut self.0).worktrees = Some(worktrees);
        self
    }

    /// The worktrees of the tasks.
    ///
    /// # Errors
    /// This hub has none.
    pub fn worktrees(&self) -> Result<&Worktrees, WorktreeError> {
        self.worktrees.as_ref().ok_or_else(|| {
            WorktreeError::Unsupported("this hub gives its tasks no worktrees".to_owned())
        })
    }

    /// Follows the operator's settings of worktrees from now on.
    pub fn follow_worktrees(&self, settings: &WorktreeSettings) {
        if let Some(worktrees) = &self.worktrees {
            worktrees.follow(rules_of(settings));
        }
    }

    /// Summary of a task, if it exists.
    pub async fn find_head(&self, id: &TaskId) -> Result<Option<Head>, StorageError> {
        self.storage.head(id).await
    }

    /// Decides in which directory a new task works, and creates its worktree if it asks for one.
    /// The message then names the directory of the worktree.
    pub(super) async fn settle_directory(
        &self,
        new: Settling<'_>,
        message: &mut Message,
    ) -> Result<Settled, SubmitError> {
        let Settling { id, context, agent, is_child, directory, base } = new;
        let base = base.or_else(|| self.base_of_flow(agent, directory.as_deref()));
        let Some(base) = base else {
            if let Some(directory) = directory.as_deref().filter(|_| !is_child) {
                self.require_own_worktree(directory, context).await?;
            }
            return Ok(Settled { directory, fact: None });
        };
        let worktrees = self.worktrees()?;
        let Some(directory) = directory else {
            let why = "a worktree needs a repository; name a directory of it (`metadata.workingDirectory`, `--cwd`)";
            return Err(WorktreeError::Refused(why.to_owned()).into());
        };
        if agent.is_elsewhere() {
            let why = format!(
                "`{}` works on another machine, and in no directory of this one; give its task no worktree",
                agent.id
            );
            return Err(WorktreeError::Refused(why).into());
        }
        if !Path::new(&directory).starts_with(worktrees.root()) {
            let opened = agent.require_directory(&directory).await;
            opened.map_err(|why| WorktreeError::Refused(why.to_string()))?;
        } else if !is_child {
            self.require_own_worktree(&directory, context).await?;
        }
        if worktrees.count().await? >= MAX_WORKTREES {
            return Err(WorktreeError::Refused(format!(
                "this hub has {MAX_WORKTREES} worktrees, which is the most; remove some: `a2a-hub worktrees prune`"
            ))
            .into());
        }
        let made = worktrees
            .create(NewWorktree {
                task: id.to_string(),
                directory: directory.into(),
                base,
                now_ms: clock::now_ms(),
            })
            .await?;
        let Some(directory) = made.directory.to_str().map(str::to_owned) else {
            self.abandon_worktree(id).await;
            let why = "the path of the hub's data directory is not UTF-8";
            return Err(WorktreeError::Unsupported(why.to_owned()).into());
        };
        let facts = message.metadata.get_or_insert_default();
        facts.insert("workingDirectory".to_owned(), directory.as_str().into());
        tracing::info!(task = %id, path = directory, base = made.base, "the task works in a worktree");
        Ok(Settled { directory: Some(directory), fact: Some(metadata_of(&made)) })
    }

    /// Commit from which the worktree of a flow's task starts, by the flow's file. A task in a
    /// worktree gets no further one.
    fn base_of_flow(&self, agent: &Agent, directory: Option<&str>) -> Option<String> {
        let root = self.worktrees.as_ref().map(Worktrees::root);
        let is_in_worktree =
            directory.zip(root).is_some_and(|(it, root)| Path::new(it).starts_with(root));
        agent.worktree_base().filter(|_| !is_in_worktree).map(str::to_owned)
    }

    /// Refuses a directory in the worktree of another conversation's task.
    async fn require_own_worktree(
        &self,
        directory: &str,
        context: &ContextId,
    ) -> Result<(), SubmitError> {
        let Some(worktrees) = &self.worktrees else { return Ok(()) };
        let Ok(below) = Path::new(directory).strip_prefix(worktrees.root()) else { return Ok(()) };
        let owner = below.components().next().and_then(|task| task.as_os_str().to_str());
        let owner = match owner.map(TaskId::new) {
            Some(owner) => self.find_head(&owner).await?,
            None => None,
        };
        if owner.is_some_and(|owner| owner.context == *context) {
            return Ok(());
        }
        Err(WorktreeError::Refused(format!(
            "`{directory}` is no worktree of this conversation; go on with the conversation of its task \
             (`a2a-hub send AGENT --context ID --cwd {directory}`)"
        ))
        .into())
    }

    /// Removes the worktree of a task that did not begin.
    pub(super) async fn abandon_worktree(&self, id: &TaskId) {
        let Some(worktrees) = self.worktrees.as_ref().filter(|it| it.find(id.as_str()).is_ok())
        else {
            return;
        };
        if let Err(why) = worktrees.discard(id.as_str()).await {
            tracing::warn!(task = %id, %why, "the worktree of a task that did not begin stays");
        }
    }
}

/// Metadata of a worktree.
fn metadata_of(made: &Worktree) -> Value {
    let Worktree { tree, base, branch, from, checkout, repository, .. } = made;
    let repository = checkout.as_ref().unwrap_or(repository);
    json!({ "path": tree, "base": base, "branch": branch, "from": from, "repository": repository })
}

/// A run in a worktree: its changes are emitted before its end.
pub(super) struct RunInWorktree {
    run: Box<dyn Run>,
    /// Present while the run goes on.
    changes: Option<Changes>,
    /// Emits the changes, and returns the end of the run.
    ending: Option<BoxFuture<'static, Ended>>,
}

/// Source and target of a run's changes.
pub(super) struct Changes {
    pub(super) worktrees: Worktrees,
    pub(super) task: TaskId,
    pub(super) port: Arc<dyn TaskPort>,
    /// True if an earlier run of the task reported changes.
    pub(super) has_patch: bool,
}

impl RunInWorktree {
    pub(super) fn new(run: Box<dyn Run>, changes: Changes) -> Self {
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

impl Changes {
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
