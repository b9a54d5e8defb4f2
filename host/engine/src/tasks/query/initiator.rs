//! Principal that began a tree of tasks, which is the owner of the tasks in it.

use crate::{error::HubError, tasks::Tasks};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::id::TaskId;

/// Most levels of a tree of tasks.
const MAX_LEVELS: usize = 100;

impl Tasks {
    /// Principal whose message began the tree of a task; none for an unknown task, or one of a hub
    /// that stored no principals.
    pub(crate) async fn initiator(&self, task: &TaskId) -> Result<Option<Principal>, HubError> {
        let mut at = task.clone();
        for _ in 0..MAX_LEVELS {
            let Some(head) = self.storage.head(&at).await? else { return Ok(None) };
            let Some(parent) = head.parent else {
                let mut senders = self.storage.askers(&at).await?.into_iter();
                return Ok(senders.next().map(|(_, by)| by));
            };
            at = parent;
        }
        Ok(None)
    }
}
