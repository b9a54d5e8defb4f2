//! Facts about a task that rules are compared with: agents, repository and principal.

use crate::tasks::Tasks;
use a2a_hub_agents::Agent;
use a2a_hub_core::{access_control::Principal, permission::rules::RuleSubject, task::metadata};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    id::{AgentId, TaskId, TenantId},
    permission::PermissionRequest,
    task::Task,
};
use a2a_hub_store::{StorageError, TaskStore};
use a2a_hub_worktrees::{Worktrees, is_sensitive_path};
use std::path::{Path, PathBuf};

/// Most levels of a tree of tasks above a request.
const MAX_LEVELS: usize = 100;

/// Facts about the task whose agent's program requests a permission.
#[derive(Clone, Debug)]
pub(in crate::tasks) struct PermissionScope {
    pub(super) tenant: TenantId,
    pub(super) agent: AgentId,
    /// Agents above, from the root on.
    pub(super) through: Vec<AgentId>,
    /// Checkout that the task works in: its worktree, or the repository.
    pub(super) root: String,
    /// Source repository of the checkout.
    pub(super) repository: String,
    /// Principal that began the tree of tasks; none if unknown.
    pub(super) principal: Option<String>,
    /// True if the hub confines the agent's programs.
    pub(super) confined: bool,
}

/// Checkout of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckoutPaths {
    pub(super) root: String,
    pub(super) repository: String,
}

impl PermissionScope {
    /// The request of a program in this task, at that time (RFC 3339).
    pub(super) fn subject<'a>(
        &'a self,
        request: &'a PermissionRequest,
        now: &'a str,
    ) -> RuleSubject<'a> {
        RuleSubject {
            request,
            agent: &self.agent,
            through: &self.through,
            root: &self.root,
            repository: &self.repository,
            principal: self.principal.as_deref(),
            confined: self.confined,
            is_sensitive: &is_sensitive_path,
            now,
        }
    }
}

impl PermissionScope {
    /// Facts about a task of this agent; `by` sent the message that the agent works on.
    pub(super) async fn of_task(
        tasks: &Tasks,
        task: &Task,
        agent: &Agent,
        by: Option<&Principal>,
    ) -> Result<Self, StorageError> {
        let (through, root_task) = ancestor_agents(&*tasks.storage, &task.id).await?;
        let begun_by = tasks.storage.askers(&root_task).await?.into_iter().next();
        let begun_by = begun_by.map(|(_, principal)| principal);
        let directory = metadata::working_directory(task);
        let directory = directory.or_else(|| agent.default_directory().map(str::to_owned));
        let CheckoutPaths { root, repository } =
            checkout_of(tasks, directory.unwrap_or_default()).await;
        Ok(Self {
            tenant: task.context_id.tenant().clone(),
            agent: agent.id.clone(),
            through,
            root,
            repository,
            principal: begun_by.filter(|begun_by| speaks_for(by, begun_by)).map(|by| by.to_log()),
            confined: agent.confines_programs(),
        })
    }
}

/// Agents of the tasks above, from the root on, and the root itself.
async fn ancestor_agents(
    storage: &dyn TaskStore,
    task: &TaskId,
) -> Result<(Vec<AgentId>, TaskId), StorageError> {
    let (mut ancestors, mut root) = (Vec::new(), task.clone());
    let mut parent = storage.head(task).await?.and_then(|head| head.parent);
    while let Some(id) = parent.take().filter(|_| ancestors.len() < MAX_LEVELS) {
        let Some(head) = storage.head(&id).await? else { break };
        ancestors.push(head.agent);
        (root, parent) = (id, head.parent);
    }
    ancestors.reverse();
    Ok((ancestors, root))
}

/// Checkout that contains a directory: a worktree of the hub, or a repository.
pub(super) async fn checkout_of(tasks: &Tasks, directory: String) -> CheckoutPaths {
    let worktree = tasks.worktrees.as_ref().and_then(|it| worktree_of(it, &directory));
    if let Some(checkout) = worktree {
        return checkout;
    }
    let fallback = directory.clone();
    let found = run_blocking(move || repository_of(Path::new(&directory))).await;
    let root = found.ok().flatten().and_then(|root| root.to_str().map(str::to_owned));
    let root = root.unwrap_or(fallback);
    CheckoutPaths { repository: root.clone(), root }
}

/// True if the rules for the principal that began a tree of tasks hold for a message of `by`. The
/// text of a client must not use the permissions of the operator, and neither that of a trigger.
fn speaks_for(by: Option<&Principal>, begun_by: &Principal) -> bool {
    match by {
        None
        | Some(
            Principal::Operator
            | Principal::OperatorHttp
            | Principal::OperatorToken
            | Principal::AgentTask { .. },
        ) => true,
        Some(by @ (Principal::Automation { .. } | Principal::Client(_) | Principal::Anonymous)) => {
            by == begun_by
        }
    }
}

/// Checkout of the hub's worktree that contains a directory.
fn worktree_of(worktrees: &Worktrees, directory: &str) -> Option<CheckoutPaths> {
    let relative = Path::new(directory).strip_prefix(worktrees.root()).ok()?;
    let owner = relative.components().next()?.as_os_str().to_str()?;
    let worktree = worktrees.find(owner).ok()?;
    let repository = worktree.checkout.as_ref().unwrap_or(&worktree.repository);
    Some(CheckoutPaths {
        root: worktree.tree.to_str()?.to_owned(),
        repository: repository.to_str()?.to_owned(),
    })
}

/// Top directory of the repository that contains `directory`, or else `directory` itself, with
/// links resolved. A file `.git` counts like a directory, and is not followed: an agent could have
/// it name another repository.
fn repository_of(directory: &Path) -> Option<PathBuf> {
    let directory = directory.canonicalize().ok()?;
    let top = directory.ancestors().find(|path| path.join(".git").symlink_metadata().is_ok());
    Some(top.map(Path::to_path_buf).unwrap_or(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_uses_no_permissions() {
        let client = |name: &str| Principal::Client(name.to_owned());
        let trigger = || Principal::Automation { name: "hook".to_owned() };
        for (by, begun_by, speaks) in [
            (None, Principal::Operator, true),
            (Some(Principal::Operator), client("a"), true),
            (Some(Principal::OperatorHttp), Principal::Operator, true),
            (Some(client("a")), client("a"), true),
            (Some(client("b")), client("a"), false),
            (Some(client("a")), Principal::Operator, false),
            (Some(trigger()), trigger(), true),
            (Some(trigger()), Principal::Operator, false),
            (Some(Principal::Anonymous), Principal::OperatorHttp, false),
        ] {
            assert_eq!(speaks_for(by.as_ref(), &begun_by), speaks, "{by:?} {begun_by:?}");
        }
    }
}
