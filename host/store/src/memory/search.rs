//! Search for tasks and their usage, in memory: reads each log.

use super::{MemoryLog, MemoryStorage, Stored, usage_entry::MemoryUsage};
use crate::{
    FoundPage, SearchIndexState, StorageError, TaskSearch, UsageStore, search_filter,
    usage::{self, TaskOrigin},
};
use a2a_hub_core::{
    search::{IndexedText, SearchTerms},
    usage::UsageGroups,
};
use a2a_hub_protocol::{
    id::TaskId,
    operation::{SearchQuery, UsageQuery, UsageReport},
};
use std::{collections::BTreeSet, iter};

impl Stored {
    /// Root of a task's tree, if all its ancestors are stored.
    fn root<'a>(&'a self, log: &'a MemoryLog) -> Option<&'a MemoryLog> {
        let parent_of = |log: &&'a MemoryLog| self.logs.get(log.head.parent.as_ref()?);
        iter::successors(Some(log), parent_of).last().filter(|root| root.head.parent.is_none())
    }

    /// Origin of a task; of one with deleted ancestors, as it was before.
    fn origin(&self, log: &MemoryLog) -> TaskOrigin {
        let Some(root) = self.root(log) else {
            return self.origins.get(&log.head.task).cloned().unwrap_or_default();
        };
        let person = root.begun_by().map(|by| by.identity()).unwrap_or_default();
        TaskOrigin { person, flow: root.head.agent.to_string() }
    }

    /// Origins of the tasks in the trees of `roots`.
    pub(super) fn origins_in_trees(&self, roots: &BTreeSet<&TaskId>) -> Vec<(TaskId, TaskOrigin)> {
        let is_inside =
            |log: &&MemoryLog| self.root(log).is_some_and(|root| roots.contains(&root.head.task));
        let inside = self.logs.values().filter(is_inside);
        inside.map(|log| (log.head.task.clone(), self.origin(log))).collect()
    }

    /// Usage of a task; none if it is unknown.
    pub(super) fn usage_of(&self, task: &TaskId) -> Option<MemoryUsage> {
        let log = self.logs.get(task)?;
        let mut meter = usage::meter();
        log.events.iter().for_each(|event| meter.add(event));
        Some(MemoryUsage {
            agent: log.head.agent.clone(),
            tenant: log.head.context.tenant().clone(),
            origin: self.origin(log),
            entries: meter.entries(),
        })
    }
}

#[async_trait::async_trait]
impl TaskSearch for MemoryStorage {
    async fn search_tasks(
        &self,
        terms: &SearchTerms,
        query: &SearchQuery,
    ) -> Result<FoundPage, StorageError> {
        let inner = self.lock();
        let mut page = FoundPage::default();
        // The cursor is the number of tasks that the pages before have examined.
        let skipped = query.after.map_or(0, |after| usize::try_from(after).unwrap_or(usize::MAX));
        for (number, log) in (1..).zip(inner.logs.values().rev()).skip(skipped) {
            if !search_filter::admits(query, &log.head, &inner.origin(log).person) {
                continue;
            }
            let text = IndexedText::of_task(&log.fold()?.task);
            if let Some(excerpt) = terms.find_in(&text) {
                if page.tasks.len() == query.limit {
                    page.next = Some(number - 1);
                    break;
                }
                page.tasks.push(search_filter::hit(log.head.clone(), excerpt));
            }
        }
        Ok(page)
    }

    fn search_index(&self) -> SearchIndexState {
        SearchIndexState::default()
    }
}

#[async_trait::async_trait]
impl UsageStore for MemoryStorage {
    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StorageError> {
        let inner = self.lock();
        let mut groups = UsageGroups::new(query.by, usage::since_day(query));
        let is_wanted = |of: &MemoryUsage| query.tenant.as_ref().is_none_or(|it| *it == of.tenant);
        for of in inner.deleted_usage.iter().filter(|of| is_wanted(of)) {
            of.add_to(&mut groups, None);
        }
        for task in inner.logs.keys() {
            if let Some(of) = inner.usage_of(task).filter(is_wanted) {
                of.add_to(&mut groups, Some(task));
            }
        }
        Ok(groups.report(query.limit, 0))
    }
}
