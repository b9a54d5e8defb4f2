//! Worktrees of tasks: which directory a new task works in, and whose worktree that is.

use super::{
    SubmitError, Tasks,
    new_task::{Settled, Settling},
};
use crate::conversations::handoff::{self, MAX_HANDOFFS};
use crate::error::{HubError, refused_directory};
use crate::worktree_runs::rules_of;
use a2a_hub_agents::Agent;
use a2a_hub_clock as clock;
use a2a_hub_config::WorktreeSettings;
use a2a_hub_core::{task::metadata, text::shell::shell_word};
use a2a_hub_protocol::{
    hub_metadata::WORKTREE_TASK,
    id::{ContextId, TaskId},
    message::Message,
};
use a2a_hub_runtime::{Failure, directories};
use a2a_hub_store::{Head, StorageError};
use a2a_hub_worktrees::{NewWorktree, Worktree, WorktreeError, WorktreeOwner, Worktrees};
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};

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

    /// Task whose worktree has the changes of a task: itself, the one that was handed over to it,
    /// or the child that a flow names.
    pub async fn worktree_holder(&self, mut task: TaskId) -> Result<TaskId, HubError> {
        let worktrees = self.worktrees()?;
        let mut stored = None;
        for _ in 0..MAX_HANDOFFS {
            if worktrees.find(task.as_str()).is_ok() {
                return Ok(task);
            }
            stored = self.stored(&task).await?;
            let old = stored.as_ref().and_then(|it| handoff::predecessor(&it.task));
            let Some(old) = old else { break };
            task = old;
        }
        let named = stored.as_ref().and_then(|it| metadata::text(&it.task, WORKTREE_TASK));
        let Some(child) = named.map(TaskId::new) else { return Ok(task) };
        let head = self.find_head(&child).await?;
        // A task names its own children only, whatever its agent says.
        let is_child = head.is_some_and(|head| head.parent.as_ref() == Some(&task));
        Ok(if is_child { child } else { task })
    }

    /// Task whose worktree a person reads for a task: as for [`Tasks::worktree_holder`], or the one
    /// in whose worktree a later task of the conversation goes on.
    pub async fn shown_worktree(&self, task: TaskId) -> Result<TaskId, HubError> {
        let holder = self.worktree_holder(task.clone()).await?;
        if self.worktrees()?.find(holder.as_str()).is_ok() {
            return Ok(holder);
        }
        Ok(self.worktree_before(&task).await?.unwrap_or(holder))
    }

    /// Task of the worktree in which a task goes on that a client began.
    async fn worktree_before(&self, task: &TaskId) -> Result<Option<TaskId>, HubError> {
        let Some(head) = self.find_head(task).await?.filter(|head| head.parent.is_none()) else {
            return Ok(None);
        };
        let Some(holder) = head.directory.and_then(|it| self.holder_of(&it)) else {
            return Ok(None);
        };
        // Only tasks of its conversation work there; what a log says is checked all the same.
        let of = self.find_head(&holder).await?;
        Ok(of.filter(|of| of.context == head.context).map(|of| of.task))
    }

    /// Task of the worktree in which a directory lies.
    fn holder_of(&self, directory: &str) -> Option<TaskId> {
        let worktrees = self.worktrees.as_ref()?;
        let relative = Path::new(directory).strip_prefix(worktrees.root()).ok()?;
        let task = relative.components().next()?.as_os_str().to_str()?;
        worktrees.find(task).is_ok().then(|| TaskId::new(task))
    }

    /// Decides in which directory a new task works, and creates its worktree if it asks for one.
    /// The message then names the directory of the worktree.
    pub(super) async fn settle_directory(
        &self,
        new: Settling<'_>,
        message: &mut Message,
    ) -> Result<Settled, SubmitError> {
        let Settling { id, context, agent, parent, directory, base } = new;
        let base = base.or_else(|| self.base_of_flow(agent, directory.as_deref()));
        let is_in_worktree = base.is_some() || self.is_in_worktree(directory.as_deref());
        self.settle_additional(agent, is_in_worktree, parent.is_some(), message).await?;
        let Some(base) = base else {
            if let Some(directory) = directory.as_deref().filter(|_| parent.is_none()) {
                self.require_conversation_worktree(directory, context).await?;
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
        } else if parent.is_none() {
            self.require_conversation_worktree(&directory, context).await?;
        }
        // The agent whose task asked for it, so that none can take all of them.
        let asking = match parent {
            Some(parent) => self.find_head(parent).await?.map(|head| head.agent.to_string()),
            None => None,
        };
        let worktree = worktrees
            .create(NewWorktree {
                task: id.to_string(),
                directory: directory.into(),
                base,
                now_ms: clock::now_ms(),
                owner: WorktreeOwner {
                    tenant: context.tenant().to_string(),
                    parent: parent.map(ToString::to_string),
                    agent: asking,
                },
                bounds: agent.repository_bounds().await,
            })
            .await?;
        let Some(directory) = worktree.directory.to_str().map(str::to_owned) else {
            self.abandon_worktree(id).await;
            let why = "the path of the hub's data directory is not UTF-8";
            return Err(WorktreeError::Unsupported(why.to_owned()).into());
        };
        let facts = message.metadata.get_or_insert_default();
        facts.insert("workingDirectory".to_owned(), directory.as_str().into());
        let root =
            parent.map(|parent| self.trees().ancestors(parent).pop().unwrap_or(parent.clone()));
        self.worktrees_in_use.lock().insert(id.clone(), root.unwrap_or_else(|| id.clone()));
        tracing::info!(task = %id, path = directory, base = worktree.base, "the task works in a worktree");
        Ok(Settled { directory: Some(directory), fact: Some(metadata_of(&worktree)) })
    }

    /// Commit from which the worktree of a flow's task starts, by the flow's file. A task in a
    /// worktree gets no further one.
    fn base_of_flow(&self, agent: &Agent, directory: Option<&str>) -> Option<String> {
        agent.worktree_base().filter(|_| !self.is_in_worktree(directory)).map(str::to_owned)
    }

    /// True if this directory lies in the worktree of a task.
    fn is_in_worktree(&self, directory: Option<&str>) -> bool {
        let root = self.worktrees.as_ref().map(Worktrees::root);
        directory.zip(root).is_some_and(|(it, root)| Path::new(it).starts_with(root))
    }

    /// Checks the additional directories of a new task. The message then names them with their
    /// links resolved. A child names them without links, which could lead out of the directories
    /// of its parent.
    async fn settle_additional(
        &self,
        agent: &Agent,
        is_in_worktree: bool,
        is_child: bool,
        message: &mut Message,
    ) -> Result<(), SubmitError> {
        let Some(named) = directories::named(message).filter(|named| !named.is_empty()) else {
            return Ok(());
        };
        if is_in_worktree {
            let why = "a task with a worktree works nowhere else; leave out the additional directories \
                       (`metadata.additionalDirectories`, `--add-dir`), or the worktree";
            return Err(WorktreeError::Refused(why.to_owned()).into());
        }
        let resolved = agent.additional_directories(named.clone()).await;
        let refused = |why: Failure| SubmitError::Directory(refused_directory(&why));
        let resolved = resolved.map_err(refused)?;
        let is_link = |(named, real): &(&String, &String)| Path::new(named) != Path::new(real);
        if let Some((link, real)) = named.iter().zip(&resolved).find(|it| is_child && is_link(it)) {
            let why =
                format!("`{link}` is no path without links, as a child's is; it leads to `{real}`");
            return Err(refused(Failure::Denied(why)));
        }
        directories::set(message, &resolved);
        Ok(())
    }

    /// Refuses a directory in the worktree of another conversation's task.
    async fn require_conversation_worktree(
        &self,
        directory: &str,
        context: &ContextId,
    ) -> Result<(), SubmitError> {
        let Some(worktrees) = &self.worktrees else { return Ok(()) };
        let Ok(relative) = Path::new(directory).strip_prefix(worktrees.root()) else {
            return Ok(());
        };
        let owner = relative.components().next().and_then(|task| task.as_os_str().to_str());
        let owner = match owner.map(TaskId::new) {
            Some(owner) => self.find_head(&owner).await?,
            None => None,
        };
        if owner.is_some_and(|owner| owner.context == *context) {
            return Ok(());
        }
        Err(WorktreeError::Refused(format!(
            "`{directory}` is no worktree of this conversation; go on with the conversation of its task \
             (`a2a-hub send AGENT --context ID --cwd {}`)",
            shell_word(directory)
        ))
        .into())
    }

    /// Removes the worktree of a task that did not begin.
    pub(super) async fn abandon_worktree(&self, id: &TaskId) {
        let Some(worktrees) = self.worktrees.as_ref().filter(|it| it.find(id.as_str()).is_ok())
        else {
            return;
        };
        if let Err(why) = worktrees.discard(id.as_str(), true).await {
            tracing::warn!(task = %id, %why, "cannot remove the worktree of a task that did not start");
        }
    }
}

/// Metadata of a worktree.
fn metadata_of(worktree: &Worktree) -> Value {
    let Worktree { tree, base, branch, from, checkout, repository, .. } = worktree;
    let repository = checkout.as_ref().unwrap_or(repository);
    json!({ "path": tree, "base": base, "branch": branch, "from": from, "repository": repository })
}
