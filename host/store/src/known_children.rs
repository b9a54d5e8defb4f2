//! Children of a task by the keys of their calls. Each child is read once, so that the cost of a
//! call does not grow with the number of children.

use crate::{HeadFilter, StorageError, TaskStore};
use a2a_hub_protocol::id::{AgentId, TaskId};
use std::collections::HashMap;

/// Number of children that are read at once.
const PAGE: usize = 64;

/// Children of one task that were read so far.
#[derive(Default)]
pub struct KnownChildren {
    by_key: HashMap<String, KnownChild>,
    /// Newest child that was read.
    newest: Option<TaskId>,
}

/// Child that a call with a key began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownChild {
    /// Task of the child.
    pub task: TaskId,
    /// Agent of the child.
    pub agent: AgentId,
}

impl KnownChildren {
    /// Child of `parent` with this key: the latest, since earlier ones were rejected at once. Reads
    /// the children that began since the last time. All calls name the same parent.
    ///
    /// # Errors
    ///
    /// If the store cannot be read. The next call goes on from there.
    pub async fn under(
        &mut self,
        tasks: &dyn TaskStore,
        parent: &TaskId,
        key: &str,
    ) -> Result<Option<KnownChild>, StorageError> {
        let mut new = Vec::new();
        loop {
            let (parent, limit, offset) = (Some(parent.clone()), PAGE, new.len());
            let page = HeadFilter { parent, limit, offset, ..HeadFilter::default() };
            let page = tasks.heads(page).await?;
            let is_last = page.len() < PAGE;
            let unknown =
                page.into_iter().take_while(|head| Some(&head.task) != self.newest.as_ref());
            let before = new.len();
            new.extend(unknown);
            if is_last || new.len() < before + PAGE {
                break;
            }
        }
        for head in new.into_iter().rev() {
            let begun = tasks.beginning(&head.task).await?;
            if let Some(key) = begun.and_then(|begun| begun.parent?.key) {
                let child = KnownChild { task: head.task.clone(), agent: head.agent };
                self.by_key.insert(key, child);
            }
            self.newest = Some(head.task);
        }
        Ok(self.by_key.get(key).cloned())
    }
}
