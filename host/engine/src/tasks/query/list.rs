//! Queries of tasks, as lists and pages.

use crate::observability::log_span;
use crate::tasks::{
    Tasks,
    query::visible::{CHUNK, VisibleTasks},
};
use a2a_hub_core::{
    task::{metadata, open_questions, trace_context::Trace},
    text::plain_text::line,
};
use a2a_hub_protocol::{
    budget::Budget,
    id::TaskId,
    message::{Message, Part},
    operation::{ListedTask, TaskCursor, TaskPageQuery, TaskQuery, TaskSummary},
};
use a2a_hub_runtime::port::delegate::ChildTask;
use a2a_hub_store::{BegunRequest, Head, HeadFilter, HeadPage, StorageError, StoredTask};
use std::collections::BTreeSet;
use tracing::Span;

/// Longest status message of a summary, in characters.
const MAX_STATUS: usize = 200;

/// Number of the latest tasks that are searched for repeatable requests; more would slow down a
/// start.
const REQUESTS: usize = 5_000;

impl Tasks {
    /// Requests that began tasks since then, oldest first; only of the latest few thousand tasks.
    pub async fn requests(&self, since: &str) -> Result<Vec<BegunRequest>, StorageError> {
        self.storage.requests(since, REQUESTS).await
    }

    /// Key under which the parent knows this child.
    pub(in crate::tasks) async fn key_of(
        &self,
        task: &TaskId,
    ) -> Result<Option<String>, StorageError> {
        let begun = self.storage.beginning(task).await?;
        Ok(begun.and_then(|begun| begun.parent?.key))
    }

    /// Budget that the parent's call set for this child.
    pub(in crate::tasks) async fn budget_of(&self, task: &TaskId) -> Result<Budget, StorageError> {
        let begun = self.storage.beginning(task).await?;
        Ok(begun.and_then(|begun| begun.parent).map(|parent| parent.budget).unwrap_or_default())
    }

    /// Children of a task, oldest first.
    pub async fn children(&self, task: &TaskId) -> Result<Vec<ChildTask>, StorageError> {
        let its = HeadFilter { parent: Some(task.clone()), ..HeadFilter::default() };
        let mut children = Vec::new();
        for head in self.storage.heads(its).await?.into_iter().rev() {
            let key = self.key_of(&head.task).await?;
            children.push(ChildTask { task: head.task, agent: head.agent, key, state: head.state });
        }
        Ok(children)
    }

    /// Log span for work on a task outside its actor; none if the task is unknown, or cannot be
    /// read now.
    pub async fn log_span(&self, task: &TaskId) -> Span {
        let head = self.storage.head(task).await.ok().flatten();
        head.as_ref().map_or_else(Span::none, log_span::of_head)
    }

    /// Trace context of a task; none if the task was deleted.
    pub async fn trace(&self, task: &TaskId) -> Result<Option<Trace>, StorageError> {
        let begun = self.storage.beginning(task).await?;
        Ok(begun.map(|begun| Trace::for_task(task, begun.task.metadata.as_ref())))
    }

    /// Tasks that match, newest first; with `visible`, only those that the person sees.
    pub(crate) async fn list(
        &self,
        query: TaskQuery,
        visible: Option<&VisibleTasks>,
    ) -> Result<Vec<ListedTask>, StorageError> {
        let TaskQuery { id_prefix, agent, since, context, tenant, directory, workflow, .. } = query;
        let (state, page) = (query.state, query.page);
        let is_summary = query.is_summary;
        let history_length = query.history_length.filter(|_| !is_summary);
        let include_artifacts = query.include_artifacts && !is_summary;
        let (limit, offset, live_only) = (page.limit, page.offset, false);
        let filter = HeadFilter {
            id_prefix,
            agent,
            since,
            context,
            tenant,
            directory,
            workflow,
            state,
            live_only,
            limit,
            offset,
            ..HeadFilter::default()
        };
        let mut tasks = Vec::new();
        for head in self.visible_heads(filter, visible).await? {
            let listed = self.listed_task(&head, history_length, include_artifacts).await?;
            tasks.extend(if is_summary { listed.map(summarized) } else { listed });
        }
        Ok(tasks)
    }

    /// Summaries that match, newest first; with `visible`, only those that the person sees.
    async fn visible_heads(
        &self,
        filter: HeadFilter,
        visible: Option<&VisibleTasks>,
    ) -> Result<Vec<Head>, StorageError> {
        let Some(visible) = visible else { return self.storage.heads(filter).await };
        let HeadFilter { limit, offset: mut skipped, .. } = filter;
        let (mut found, mut known, mut offset) = (Vec::new(), BTreeSet::new(), 0);
        loop {
            let chunk = HeadFilter { limit: CHUNK, offset, ..filter.clone() };
            let chunk = self.storage.heads(chunk).await?;
            let is_last = chunk.len() < CHUNK;
            offset += chunk.len();
            for head in chunk {
                // A task that changes meanwhile moves the others.
                if !known.insert(head.task.clone()) || !visible.sees(&head.task).await? {
                    continue;
                }
                if skipped > 0 {
                    skipped -= 1;
                } else if found.len() < limit {
                    found.push(head);
                }
            }
            if is_last || found.len() >= limit {
                return Ok(found);
            }
        }
    }

    /// Page of summaries of tasks that the person sees, and the number of all of these.
    async fn visible_page(
        &self,
        query: &TaskPageQuery,
        visible: &VisibleTasks,
    ) -> Result<HeadPage, StorageError> {
        let (mut total, mut heads) = (0, Vec::new());
        // The number covers the tasks before the cursor as well.
        let begins = [query.after.clone(), None];
        let passes = if query.after.is_some() { &begins[..] } else { &begins[1..] };
        for begin in passes {
            let (is_page, mut after) = (*begin == query.after, begin.clone());
            total = 0;
            loop {
                let chunk = TaskPageQuery { size: CHUNK, after, ..query.clone() };
                let chunk = self.storage.page(&chunk).await?.heads;
                let is_last = chunk.len() < CHUNK;
                after = chunk.last().map(|head| TaskCursor {
                    updated: head.updated.clone(),
                    id: head.task.clone(),
                });
                for head in visible.retain(chunk, |head| &head.task).await? {
                    total += 1;
                    if is_page && heads.len() < query.size {
                        heads.push(head);
                    }
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(HeadPage { heads, total })
    }

    /// Page of the tasks that match, their total number, and the cursor of the next page; with
    /// `visible`, of those that the person sees.
    pub(crate) async fn page(
        &self,
        query: TaskPageQuery,
        visible: Option<&VisibleTasks>,
    ) -> Result<(Vec<ListedTask>, u64, Option<TaskCursor>), StorageError> {
        // Reads one more than the page shows, to know whether a next page exists.
        let one_more = TaskPageQuery { size: query.size + 1, ..query.clone() };
        let HeadPage { mut heads, total } = match visible {
            Some(visible) => self.visible_page(&one_more, visible).await?,
            None => self.storage.page(&one_more).await?,
        };
        let more = heads.len() > query.size;
        heads.truncate(query.size);
        let last = heads.last().filter(|_| more);
        let next =
            last.map(|head| TaskCursor { updated: head.updated.clone(), id: head.task.clone() });
        let mut tasks = Vec::new();
        for head in heads {
            let shown =
                self.listed_task(&head, query.history_length, query.include_artifacts).await?;
            tasks.extend(shown);
        }
        Ok((tasks, total, next))
    }

    /// Task with the requested parts only; none if it was deleted in the meantime.
    async fn listed_task(
        &self,
        head: &Head,
        history_length: Option<usize>,
        artifacts: bool,
    ) -> Result<Option<ListedTask>, StorageError> {
        let Some(StoredTask { agent, mut task, .. }) = self.storage.task(&head.task).await? else {
            return Ok(None);
        };
        if !artifacts {
            task.artifacts.clear();
        }
        if let Some(length) = history_length {
            task.keep_latest(length);
        }
        Ok(Some(ListedTask { agent, task, summary: None }))
    }
}

/// Cuts a task to what a table shows.
fn summarized(listed: ListedTask) -> ListedTask {
    let ListedTask { agent, mut task, .. } = listed;
    let working_directory = metadata::working_directory(&task);
    let summary = TaskSummary { request: open_questions::request(&task), working_directory };
    task.history.clear();
    task.status.message = task.status.message.map(|message| Message {
        parts: vec![Part::text(line(&message.joined_text(), MAX_STATUS))],
        metadata: None,
        ..message
    });
    ListedTask { agent, task, summary: Some(summary) }
}
