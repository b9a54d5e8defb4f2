//! Full-text search of tasks, and their usage.
//!
//! Both read `search.db`, which one thread derives from the logs after the appends. It needs no
//! durability: whatever is missing, damaged or behind is read from the logs again. The database of
//! the hub decides which tasks exist, so that a deletion counts at once.

mod facets;
mod file;
mod indexer;
mod queue;
mod stored;
mod task_reader;
#[cfg(test)]
mod tests;
mod usage_query;
pub(in crate::sqlite) mod usage_totals;

pub(in crate::sqlite) use file::remove;

use super::{
    SqliteStorage,
    db::{error::unavailable, failure::SqliteFailure, readers::Readers, schema::integer},
    log::events,
};
use crate::{
    FoundPage, FoundTask, Head, SearchIndexState, StorageError, TaskSearch, UsageStore, search,
};
use a2a_hub_core::search::SearchTerms;
use a2a_hub_protocol::{
    event::TaskEvent,
    id::TaskId,
    operation::{SearchQuery, UsageQuery, UsageReport},
};
use queue::Queue;
use std::{collections::HashMap, io, path::Path, sync::Arc, thread};
use stored::Origin;

/// Tasks that one page of a search examines: some milliseconds. A filter that few tasks match
/// leaves the rest to the next page.
const MAX_EXAMINED: usize = 2_000;

/// Tasks that a search examines together, after the first ones.
const TOGETHER: usize = 500;

/// The index, with the thread that writes it.
#[derive(Debug)]
pub(in crate::sqlite) struct SearchIndex {
    queue: Arc<Queue>,
    /// Taken when the index is dropped, which ends the thread.
    thread: Option<thread::JoinHandle<()>>,
}

impl SearchIndex {
    /// Starts the index of the store whose database is `hub`.
    pub(in crate::sqlite) fn start(dir: &Path, hub: &Path) -> Result<Self, StorageError> {
        let queue = Arc::new(Queue::default());
        let (of_thread, file, hub) = (Arc::clone(&queue), file::path(dir), hub.to_owned());
        let thread = thread::Builder::new()
            .name("search-indexer".into())
            .spawn(move || indexer::run(&of_thread, &file, &hub))
            .map_err(|why: io::Error| unavailable(format!("start the indexer: {why}")))?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Has the index follow a task that changed or was deleted.
    pub(in crate::sqlite) fn follow(&self, tasks: impl IntoIterator<Item = TaskId>) {
        self.queue.add(tasks);
    }

    fn readers(&self) -> Result<Arc<Readers>, StorageError> {
        self.queue.readers().ok_or_else(|| {
            let failure = self.queue.state().failure;
            let why = failure.unwrap_or_else(|| "try again in a moment".to_owned());
            unavailable(format!("the index for searches is not there yet: {why}"))
        })
    }

    /// Origins of those tasks that the index knows; none if it cannot be read.
    pub(in crate::sqlite) async fn origins(&self, tasks: Vec<TaskId>) -> HashMap<TaskId, Origin> {
        let Ok(readers) = self.readers() else { return HashMap::new() };
        let found = readers.read(move |db| Ok(stored::origins(db, &tasks)?)).await;
        found.unwrap_or_default()
    }
}

impl Drop for SearchIndex {
    fn drop(&mut self) {
        self.queue.end();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the search indexer had panicked");
        }
    }
}

/// True if events may change a task's texts or usage so much that the index should follow now. The
/// pieces of an answer wait for the task's next question or end.
pub(in crate::sqlite) fn concerns(events: &[Arc<TaskEvent>]) -> bool {
    events.iter().any(|event| match event.as_ref() {
        TaskEvent::Created(_) | TaskEvent::Input(_) | TaskEvent::Reply(_) => true,
        TaskEvent::Status(update) => {
            let state = update.status.state;
            state.is_final() || state.is_interrupted()
        }
        TaskEvent::Artifact(_) => false,
    })
}

#[async_trait::async_trait]
impl TaskSearch for SqliteStorage {
    async fn search_tasks(
        &self,
        terms: &SearchTerms,
        query: &SearchQuery,
    ) -> Result<FoundPage, StorageError> {
        let index = self.search.readers()?;
        let matching: Arc<str> = facets::match_expression(terms, query).into();
        let mut before = query.after.map_or(i64::MAX, integer);
        let (mut examined, mut together) = (0, query.limit.saturating_add(1).min(TOGETHER));
        let mut found = Vec::new();
        let more = loop {
            let (of_batch, below) = (Arc::clone(&matching), before);
            let read =
                move |db: &_| stored::judged(stored::candidates(db, &of_batch, below, together));
            let candidates = self.noted(index.read(read).await)?;
            let is_last = candidates.len() < together;
            examined += candidates.len();
            let read = move |db: &_| {
                let heads = candidates
                    .into_iter()
                    .map(|candidate| Ok((events::head(db, &candidate.task)?, candidate)));
                heads.collect::<Result<Vec<_>, SqliteFailure>>()
            };
            let heads = self.readers.read(read).await?;
            let mut rest = heads.into_iter();
            for (head, candidate) in rest.by_ref() {
                before = candidate.number;
                let admitted =
                    head.filter(|head| search::admits(query, head, &candidate.origin.person));
                found.extend(admitted.map(|head| (candidate.number, head)));
                if found.len() == query.limit {
                    break;
                }
            }
            if found.len() == query.limit {
                break rest.next().is_some() || !is_last;
            }
            if is_last || examined >= MAX_EXAMINED {
                break !is_last;
            }
            together = TOGETHER;
        };
        let numbers: Vec<_> = found.iter().map(|(number, _)| *number).collect();
        let read = move |db: &_| stored::judged(stored::excerpts(db, &matching, &numbers));
        let excerpts = self.noted(index.read(read).await)?;
        let tasks = found.into_iter().zip(excerpts);
        let tasks: Vec<_> = tasks
            .map(|((_, head), excerpt): ((i64, Head), String)| FoundTask { head, excerpt })
            .collect();
        Ok(FoundPage { tasks, next: more.then_some(before.unsigned_abs()) })
    }

    fn search_index(&self) -> SearchIndexState {
        self.search.queue.state()
    }
}

impl SqliteStorage {
    /// Passes a result of the index on; damage has the index checked.
    fn noted<T>(&self, read: Result<T, StorageError>) -> Result<T, StorageError> {
        read.map_err(|why| match why {
            StorageError::Corrupt { subject, why } => {
                self.search.queue.suspect();
                unavailable(format!(
                    "read {subject}: {why}; it is made anew, try again in a moment"
                ))
            }
            why => why,
        })
    }
}

#[async_trait::async_trait]
impl UsageStore for SqliteStorage {
    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StorageError> {
        let since = crate::usage::since_day(query);
        let read = move |db: &_| stored::judged(stored::usage(db, since.as_deref()));
        // Without the index, the logs are read, as far as they are few.
        let known = match self.search.readers() {
            Ok(index) => self.noted(index.read(read).await).unwrap_or_default(),
            Err(_) => HashMap::new(),
        };
        let query = query.clone();
        self.readers.read(move |db| usage_query::report(db, &query, known)).await
    }
}
