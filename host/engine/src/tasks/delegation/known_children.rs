//! Children of a task by the keys of their calls. Each child is read once, so that the cost of a
//! call does not grow with the number of children.

use super::{Delegation, call_errors::failed};
use a2a_hub_protocol::id::{AgentId, TaskId};
use a2a_hub_runtime::Failure;
use a2a_hub_store::{HeadFilter, StorageError};
use std::collections::HashMap;

/// Number of children that are read at once.
const PAGE: usize = 64;

/// Children that were read so far.
#[derive(Default)]
pub(super) struct KnownChildren {
    by_key: HashMap<String, KnownChild>,
    /// Newest child that was read.
    newest: Option<TaskId>,
}

/// Child that a call began.
#[derive(Clone)]
pub(super) struct KnownChild {
    pub(super) task: TaskId,
    pub(super) agent: AgentId,
}

impl Delegation {
    /// Existing child with this key: the latest, since earlier ones were rejected at once.
    pub(super) async fn child_under(&self, key: &str) -> Result<Option<KnownChild>, Failure> {
        let mut known = self.known_children.lock().await;
        let read = self.read_new_children(&mut known).await;
        read.map_err(|why| failed("list children", &why))?;
        Ok(known.by_key.get(key).cloned())
    }

    /// Reads the children that began since the last time.
    async fn read_new_children(&self, known: &mut KnownChildren) -> Result<(), StorageError> {
        let mut new = Vec::new();
        loop {
            let parent = Some(self.task.id.clone());
            let (limit, offset) = (PAGE, new.len());
            let page = HeadFilter { parent, limit, offset, ..HeadFilter::default() };
            let page = self.tasks.storage.heads(page).await?;
            let is_last = page.len() < PAGE;
            let unknown =
                page.into_iter().take_while(|head| Some(&head.task) != known.newest.as_ref());
            let before = new.len();
            new.extend(unknown);
            if is_last || new.len() < before + PAGE {
                break;
            }
        }
        for head in new.into_iter().rev() {
            if let Some(key) = self.tasks.key_of(&head.task).await? {
                let child = KnownChild { task: head.task.clone(), agent: head.agent };
                known.by_key.insert(key, child);
            }
            known.newest = Some(head.task);
        }
        Ok(())
    }
}
