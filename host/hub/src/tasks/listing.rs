//! The tasks that match, as lists and pages.

use super::{Tasks, log_span};
use a2a_hub_core::trace::Trace;
use a2a_hub_protocol::{
    budget::Budget,
    event::{Created, TaskEvent},
    id::TaskId,
    operation::{ListedTask, TaskPageQuery, TaskPlace, TaskQuery},
    task::Task,
};
use a2a_hub_runtime::port::delegate::ChildTask;
use a2a_hub_store::{Head, HeadFilter, HeadPage, Request, StorageError, StoredTask};
use tracing::Span;

/// How many of the latest tasks are looked at for requests that may be made again: more would make a start slow.
const REQUESTS: usize = 5_000;

impl Tasks {
    /// The requests that began tasks since then, oldest first; of the latest few thousand.
    pub async fn requests(&self, since: &str) -> Result<Vec<Request>, StorageError> {
        self.storage.requests(since, REQUESTS).await
    }

    /// What a task began with; none if it was forgotten.
    pub(super) async fn beginning(
        &self,
        task: &TaskId,
    ) -> Result<Option<Box<Created>>, StorageError> {
        let first = self.storage.events(task, 0, 1).await?.pop();
        Ok(first.and_then(|first| match first.event {
            TaskEvent::Created(created) => Some(created),
            TaskEvent::Status(_)
            | TaskEvent::Artifact(_)
            | TaskEvent::Input(_)
            | TaskEvent::Reply(_) => None,
        }))
    }

    /// What its parent calls this child.
    pub(super) async fn key_of(&self, task: &TaskId) -> Result<Option<String>, StorageError> {
        let begun = self.beginning(task).await?;
        Ok(begun.and_then(|begun| begun.parent?.key))
    }

    /// What its parent allowed with the call to follow from this child.
    pub(super) async fn budget_of(&self, task: &TaskId) -> Result<Budget, StorageError> {
        let begun = self.beginning(task).await?;
        Ok(begun.and_then(|begun| begun.parent).map(|parent| parent.budget).unwrap_or_default())
    }

    /// The children of a task, oldest first.
    pub async fn children(&self, task: &TaskId) -> Result<Vec<ChildTask>, StorageError> {
        let its = HeadFilter { parent: Some(task.clone()), ..HeadFilter::default() };
        let mut children = Vec::new();
        for head in self.storage.heads(its).await?.into_iter().rev() {
            let key = self.key_of(&head.task).await?;
            children.push(ChildTask { task: head.task, agent: head.agent, key, state: head.state });
        }
        Ok(children)
    }

    /// The span of the log for what is done about a task beside its actor; none if the task is not known, or cannot be read now.
    pub async fn log_span(&self, task: &TaskId) -> Span {
        let head = self.storage.head(task).await.ok().flatten();
        head.as_ref().map_or_else(Span::none, log_span::of_head)
    }

    /// The place of a task in a trace; none if the task was forgotten.
    pub async fn trace(&self, task: &TaskId) -> Result<Option<Trace>, StorageError> {
        let begun = self.beginning(task).await?;
        Ok(begun.map(|begun| Trace::of(task, begun.task.metadata.as_ref())))
    }

    /// The tasks that match, newest first.
    pub async fn list(&self, query: TaskQuery) -> Result<Vec<ListedTask>, StorageError> {
        let TaskQuery { id_prefix, agent, since, context, tenant, directory, workflow, .. } = query;
        let (state, page) = (query.state, query.page);
        let (history_length, include_artifacts) = (query.history_length, query.include_artifacts);
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
        for head in self.storage.heads(filter).await? {
            tasks.extend(self.shown(&head, history_length, include_artifacts).await?);
        }
        Ok(tasks)
    }

    /// A page of the tasks that match, with how many there are in all, and the place after which the next page begins.
    pub async fn page(
        &self,
        query: TaskPageQuery,
    ) -> Result<(Vec<Task>, u64, Option<TaskPlace>), StorageError> {
        // One more than is shown, to know whether there is a next page.
        let one_more = TaskPageQuery { size: query.size + 1, ..query.clone() };
        let HeadPage { mut heads, total } = self.storage.page(&one_more).await?;
        let more = heads.len() > query.size;
        heads.truncate(query.size);
        let last = heads.last().filter(|_| more);
        let next =
            last.map(|head| TaskPlace { updated: head.updated.clone(), id: head.task.clone() });
        let mut tasks = Vec::new();
        for head in heads {
            let shown = self.shown(&head, query.history_length, query.include_artifacts).await?;
            tasks.extend(shown.map(|listed| listed.task));
        }
        Ok((tasks, total, next))
    }

    /// A task with as much of it as is to be shown; none if it was forgotten meanwhile.
    async fn shown(
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
        Ok(Some(ListedTask { agent, task }))
    }
}
