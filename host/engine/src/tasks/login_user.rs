//! Party that a tree of tasks works for, which decides about the login of the agents' programs.

use a2a_hub_core::identity::LoginUser;
use a2a_hub_protocol::id::TaskId;
use a2a_hub_store::{StorageError, TaskStore};

/// Most levels of a tree of tasks.
const MAX_LEVELS: usize = 100;

/// Party that began the tree of a task; unknown if a task above it was deleted.
pub(in crate::tasks) async fn login_user(
    storage: &dyn TaskStore,
    task: &TaskId,
) -> Result<LoginUser, StorageError> {
    let mut root = task.clone();
    for _ in 0..MAX_LEVELS {
        let Some(head) = storage.head(&root).await? else { return Ok(LoginUser::Unknown) };
        let Some(parent) = head.parent else {
            let askers = storage.askers(&root).await?;
            return Ok(LoginUser::of(askers.first().map(|(_, by)| by)));
        };
        root = parent;
    }
    Ok(LoginUser::Unknown)
}
