//! Reads a tree of tasks from the logs. The tree is searched level by level, so that a truncated
//! tree keeps the tasks near its root, and returned in depth-first order.

use crate::{error::HubError, tasks::Tasks};
use a2a_hub_core::{
    task::{
        metadata::{self, REASON},
        tree_budget::Usage,
    },
    text::plain_text::line,
};
use a2a_hub_protocol::{
    message::joined_text,
    operation::{TaskTree, TreeQuery, TreeQuestion, TreeTask},
    question::Question,
    task::Task,
};
use a2a_hub_store::{Head, HeadFilter, StorageError};

/// Maximum length, in characters, of a task's request and of its question.
const LINE: usize = 200;

/// A task found in the tree.
struct FoundTask {
    head: Head,
    depth: usize,
    /// Index of its parent in the list of found tasks.
    parent: Option<usize>,
    /// Number of its direct children that are left out.
    hidden: usize,
}

impl Tasks {
    /// Returns the requested task and its descendants, within the query's depth and limit.
    pub async fn tree(&self, query: &TreeQuery) -> Result<TaskTree, HubError> {
        let found = self.found(self.head(&query.id).await?, query).await?;
        let cut = found.iter().any(|found| found.hidden > 0);
        let mut tasks = Vec::with_capacity(found.len());
        for place in in_order(found.iter().map(|found| found.parent)) {
            if let Some(found) = found.get(place) {
                tasks.extend(self.drawn(found).await?);
            }
        }
        Ok(TaskTree { tasks, cut })
    }

    /// Finds the tasks of a tree, level by level.
    async fn found(&self, root: Head, query: &TreeQuery) -> Result<Vec<FoundTask>, StorageError> {
        let mut found = vec![FoundTask { head: root, depth: 0, parent: None, hidden: 0 }];
        let mut at = 0;
        while let Some(FoundTask { head, depth, .. }) = found.get(at) {
            let depth = depth + 1;
            let below = HeadFilter { parent: Some(head.task.clone()), ..HeadFilter::default() };
            let children = self.storage.heads(below).await?;
            let room = if depth <= query.depth { query.limit - found.len() } else { 0 };
            if let Some(parent) = found.get_mut(at) {
                parent.hidden = children.len().saturating_sub(room);
            }
            // The store returns the newest first.
            let oldest = children.into_iter().rev().take(room);
            found.extend(oldest.map(|head| FoundTask { head, depth, parent: Some(at), hidden: 0 }));
            at += 1;
        }
        Ok(found)
    }

    /// Describes one task; none if it was deleted in the meantime.
    async fn drawn(&self, found: &FoundTask) -> Result<Option<TreeTask>, StorageError> {
        let FoundTask { head, depth, hidden, .. } = found;
        let Some(stored) = self.storage.task(&head.task).await? else { return Ok(None) };
        let task = stored.task;
        let Usage { tokens, cost_usd } = Usage::of(task.metadata.as_ref());
        let asked = task.history.first().map(|said| joined_text(&said.parts)).unwrap_or_default();
        let key = match &head.parent {
            Some(_) => self.key_of(&head.task).await?,
            None => None,
        };
        Ok(Some(TreeTask {
            id: head.task.clone(),
            parent_id: head.parent.clone(),
            depth: *depth,
            agent_id: head.agent.clone(),
            context_id: head.context.clone(),
            key,
            state: task.status.state,
            created_at: head.created.clone(),
            updated_at: task.status.timestamp.clone(),
            tokens,
            cost_usd,
            reason: metadata::text(&task, REASON).map(str::to_owned),
            asked: line(&asked, LINE),
            question: question(&task),
            hidden: *hidden,
        }))
    }
}

/// Open question of a task.
fn question(task: &Task) -> Option<TreeQuestion> {
    let Question { id, kind, .. } =
        Question::of(task.metadata.as_ref()).filter(|_| task.status.state.is_interrupted())?;
    let said = task.status.message.as_ref().map(|message| joined_text(&message.parts));
    Some(TreeQuestion { id, kind, text: line(&said.unwrap_or_default(), LINE) })
}

/// Depth-first order of nodes with these parents: each node follows its parent and precedes its
/// parent's next child.
fn in_order(parents: impl ExactSizeIterator<Item = Option<usize>>) -> Vec<usize> {
    let mut children = vec![Vec::new(); parents.len()];
    let mut left = Vec::new();
    for (place, parent) in parents.enumerate() {
        match parent.and_then(|parent| children.get_mut(parent)) {
            Some(children) => children.push(place),
            None => left.push(place),
        }
    }
    let mut order = Vec::with_capacity(children.len());
    while let Some(place) = left.pop() {
        order.push(place);
        if let Some(below) = children.get(place) {
            left.extend(below.iter().rev());
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::in_order;

    #[test]
    fn tree_is_listed_depth_first() {
        //            0
        //     1      2      3
        //   4   5           6
        let parents = [None, Some(0), Some(0), Some(0), Some(1), Some(1), Some(3)];
        assert_eq!(in_order(parents.into_iter()), [0, 1, 4, 5, 2, 3, 6]);
        assert_eq!(in_order([None].into_iter()), [0]);
    }
}
