//! Worktree of a child: a new one, or for a flow that of another child.

use super::{Delegation, call_errors::refused};
use crate::tasks::new_task::ChildWorkspace;
use a2a_hub_agents::Agent;
use a2a_hub_core::grant::delegate::Callee;
use a2a_hub_protocol::{
    hub_metadata::{WORKTREE, WorktreeWish, worktree_wish},
    id::TaskId,
    message::Message,
};
use a2a_hub_runtime::{Failure, directories};

impl Delegation {
    /// Decides where a child works: by its message's wish for a worktree, and by the directory
    /// that the call names.
    pub(super) async fn child_workspace(
        &self,
        child: &Agent,
        callee: &Callee,
        message: &Message,
        directory: Option<String>,
    ) -> Result<ChildWorkspace, Failure> {
        let requested = message.metadata.as_ref().and_then(|facts| facts.get(WORKTREE));
        let wish = match requested.filter(|requested| !requested.is_null()) {
            Some(requested) => worktree_wish(requested, WORKTREE)
                .map_err(|why| Failure::Invalid(format!("call another agent: {}", why.message)))?,
            None => None,
        };
        if wish.is_some() && !self.agent.lends_worktrees(callee) {
            let (caller, child) = (&self.agent.id, callee);
            return Err(Failure::Denied(format!(
                "have `{child}` work in a worktree: `{caller}` is a plug-in without that permission; \
                 `a2a-hub plugin grant {caller} --delegate {child}:worktrees` allows it"
            )));
        }
        // A child that works in another place than this task inherits no additional directories.
        let inherits = wish.is_none() && directory.is_none() && !child.is_elsewhere();
        let additional = self.additional(message, inherits).await?;
        let (directory, base) = match wish {
            Some(WorktreeWish::OfTask(task)) => {
                (Some(self.directory_of_child(&task, directory.as_ref()).await?), None)
            }
            Some(WorktreeWish::New { base }) => (self.directory(directory).await?, Some(base)),
            None => (self.directory(directory).await?, None),
        };
        Ok(ChildWorkspace { directory, base, additional })
    }

    /// Additional directories of a child: those that its message names, each in a directory of
    /// this task, or by default all of this task's.
    async fn additional(&self, message: &Message, inherits: bool) -> Result<Vec<String>, Failure> {
        let parent_directories = directories::additional(&self.task);
        let Some(named) = directories::named(message) else {
            return Ok(if inherits { parent_directories } else { Vec::new() });
        };
        for named in named.iter().filter(|named| !directories::contain(&parent_directories, named))
        {
            self.directory(Some(named.clone())).await?;
        }
        Ok(named)
    }

    /// Directory of the worktree of another child of this task.
    async fn directory_of_child(
        &self,
        task: &TaskId,
        directory: Option<&String>,
    ) -> Result<String, Failure> {
        let action = format!("have another agent work in the worktree of task `{task}`");
        if let Some(directory) = directory {
            let rule = format!("the call names the directory `{directory}` as well; leave it out");
            return Err(Failure::Invalid(format!("{action}: {rule}")));
        }
        let head = self.tasks.head(task).await.map_err(refused)?;
        if head.parent.as_ref() != Some(&self.task.id) {
            return Err(Failure::Denied(format!("{action}: it is no child of this task")));
        }
        let worktrees = self
            .tasks
            .worktrees()
            .map_err(|why| Failure::Unavailable(format!("{action}: {why}")))?;
        let found = worktrees.find(task.as_str());
        let found = found.map_err(|why| Failure::Unavailable(format!("{action}: {why}")))?;
        let directory = found.directory.to_str().map(str::to_owned);
        directory.ok_or_else(|| Failure::Unavailable(format!("{action}: its path is not UTF-8")))
    }
}
