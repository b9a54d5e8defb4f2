//! Facts about a task that rules are compared with: agents, repository and principal.

use crate::tasks::Tasks;
use a2a_hub_agents::Agent;
use a2a_hub_core::{access_control::Principal, permission::rules::RequestScope, task::metadata};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    task::Task,
};
use a2a_hub_store::{StorageError, TaskStore};
use a2a_hub_worktrees::Worktrees;
use std::path::{Path, PathBuf};

/// Most levels of a tree of tasks above a request.
const MAX_LEVELS: usize = 100;

/// Checkout of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckoutPaths {
    pub(super) root: String,
    pub(super) repository: String,
}

/// Facts about a task of this agent, which works in `directory` if its client named one.
pub(super) async fn scope_of(
    tasks: &Tasks,
    task: &TaskId,
    directory: Option<String>,
    agent: &Agent,
) -> Result<RequestScope, StorageError> {
    let (through, principal) = origin(&*tasks.storage, task).await?;
    let directory = directory.or_else(|| agent.default_directory().map(str::to_owned));
    let CheckoutPaths { root, repository } =
        checkout_of(tasks, directory.unwrap_or_default()).await;
    Ok(RequestScope {
        agent: agent.id.clone(),
        through,
        root,
        repository,
        principal: principal.map(|by| by.person()),
        confined: agent.confines_programs(),
    })
}

/// Facts about a stored task of this agent.
pub(super) async fn scope_of_task(
    tasks: &Tasks,
    task: &Task,
    agent: &Agent,
) -> Result<RequestScope, StorageError> {
    scope_of(tasks, &task.id, metadata::working_directory(task), agent).await
}

/// Agents of the tasks above, from the root on, and the principal that began the tree. None if
/// somebody else has sent a message to one of these tasks, whose text must not use the permissions
/// of the first.
async fn origin(
    storage: &dyn TaskStore,
    task: &TaskId,
) -> Result<(Vec<AgentId>, Option<Principal>), StorageError> {
    let (mut ancestors, mut senders) = (Vec::new(), Vec::new());
    let mut next = Some(task.clone());
    while let Some(id) = next.take().filter(|_| ancestors.len() < MAX_LEVELS) {
        let Some(head) = storage.head(&id).await? else { break };
        ancestors.push(head.agent);
        // The first of the root comes first.
        senders.splice(0..0, storage.askers(&id).await?.into_iter().map(|(_, by)| by));
        next = head.parent;
    }
    ancestors.reverse();
    // The task itself is none of those above.
    ancestors.pop();
    let begun_by = senders.first().cloned();
    let principal = begun_by.filter(|begun_by| senders.iter().all(|by| speaks_for(by, begun_by)));
    Ok((ancestors, principal))
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
fn speaks_for(by: &Principal, begun_by: &Principal) -> bool {
    match by {
        Principal::Operator
        | Principal::OperatorHttp
        | Principal::OperatorToken
        | Principal::Device { .. }
        | Principal::AgentTask { .. } => true,
        Principal::Automation { .. }
        | Principal::Client(_)
        | Principal::Person { .. }
        | Principal::Anonymous => by.person() == begun_by.person(),
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
            (Principal::Operator, client("a"), true),
            (Principal::OperatorHttp, Principal::Operator, true),
            (client("a"), client("a"), true),
            (client("b"), client("a"), false),
            (client("a"), Principal::Operator, false),
            (trigger(), trigger(), true),
            (trigger(), Principal::Operator, false),
            (Principal::Anonymous, Principal::OperatorHttp, false),
        ] {
            assert_eq!(speaks_for(&by, &begun_by), speaks, "{by:?} {begun_by:?}");
        }
    }
}
