//! Reads a tree of tasks from the logs. The tree is searched level by level, so that a truncated
//! tree keeps the tasks near its root, and returned in depth-first order.

use crate::conversations::task_tree::{FoundTask, in_order};
use crate::{error::HubError, tasks::Tasks};
use a2a_hub_core::{
    access_control::Principal,
    identity::{PersonName, TaskAgent, TaskFacts},
    task::metadata,
};
use a2a_hub_protocol::{
    id::{TaskId, TenantId},
    operation::{TaskTree, TreeQuery, TreeTask},
};
use a2a_hub_store::{Head, HeadFilter, StorageError};

/// Most levels of a tree above a task.
const MAX_LEVELS: usize = 100;

impl Tasks {
    /// Unfinished tasks of a tenant that this identity began, without their descendants, the newest
    /// first.
    pub(crate) async fn unfinished_of(
        &self,
        identity: &str,
        tenant: TenantId,
    ) -> Result<Vec<TaskId>, StorageError> {
        let tenant = Some(tenant);
        let unfinished = HeadFilter { live_only: true, tenant, ..HeadFilter::default() };
        let mut found = Vec::new();
        for head in self.storage.heads(unfinished).await? {
            if head.parent.is_some() {
                continue;
            }
            let senders = self.storage.askers(&head.task).await?;
            if senders.first().is_some_and(|(_, by)| by.identity() == identity) {
                found.push(head.task);
            }
        }
        Ok(found)
    }

    /// Facts about a task by which the keys of a person cover it; those of no task for an unknown
    /// one. With `skills`, those that the first messages name as well.
    pub(crate) async fn facts(
        &self,
        task: &TaskId,
        person: &PersonName,
        skills: bool,
    ) -> Result<TaskFacts, StorageError> {
        let (mut facts, mut at) = (TaskFacts::default(), task.clone());
        for _ in 0..MAX_LEVELS {
            let Some(head) = self.storage.head(&at).await? else { break };
            let skill = if skills { self.first_skill(&at).await? } else { None };
            facts.agents.push(TaskAgent { agent: head.agent, skill });
            let Some(parent) = head.parent else {
                let initiator = self.storage.askers(&at).await?.into_iter().next();
                facts.is_initiator = matches!(
                    initiator,
                    Some((_, Principal::Person { name, .. })) if name == *person
                );
                break;
            };
            at = parent;
        }
        Ok(facts)
    }

    /// Skill that the first message of a task names.
    async fn first_skill(&self, task: &TaskId) -> Result<Option<String>, StorageError> {
        let begun = self.storage.beginning(task).await?;
        Ok(begun.and_then(|begun| metadata::first_skill(&begun.task)))
    }

    /// Returns the requested task and its descendants, within the query's depth and limit.
    pub async fn tree(&self, query: &TreeQuery) -> Result<TaskTree, HubError> {
        let found = self.found(self.head(&query.id).await?, query).await?;
        let cut = found.iter().any(|found| found.hidden > 0);
        let mut tasks = Vec::with_capacity(found.len());
        for index in in_order(found.iter().map(|found| found.parent)) {
            if let Some(found) = found.get(index) {
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
            let filter = HeadFilter { parent: Some(head.task.clone()), ..HeadFilter::default() };
            let children = self.storage.heads(filter).await?;
            let capacity = if depth <= query.depth { query.limit - found.len() } else { 0 };
            if let Some(parent) = found.get_mut(at) {
                parent.hidden = children.len().saturating_sub(capacity);
            }
            // The store returns the newest first.
            let oldest = children.into_iter().rev().take(capacity);
            found.extend(oldest.map(|head| FoundTask { head, depth, parent: Some(at), hidden: 0 }));
            at += 1;
        }
        Ok(found)
    }

    /// Describes one task; none if it was deleted in the meantime.
    async fn drawn(&self, found: &FoundTask) -> Result<Option<TreeTask>, StorageError> {
        let head = &found.head;
        let Some(stored) = self.storage.task(&head.task).await? else { return Ok(None) };
        let key = match &head.parent {
            Some(_) => self.key_of(&head.task).await?,
            None => None,
        };
        Ok(Some(found.described(&stored.task, key)))
    }
}
