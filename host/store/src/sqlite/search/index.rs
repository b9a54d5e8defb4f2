//! The index, as the store uses it.

use super::{file, indexer, queue::Queue, stored};
use crate::{
    SearchIndexState, StorageError,
    sqlite::db::{error::unavailable, readers::Readers},
    usage::TaskOrigin,
};
use a2a_hub_protocol::{event::TaskEvent, id::TaskId};
use std::{collections::HashMap, io, path::Path, sync::Arc, thread};

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

    /// Queue of the tasks that the index is to follow.
    pub(in crate::sqlite) fn queue(&self) -> Arc<Queue> {
        Arc::clone(&self.queue)
    }

    /// Has the index follow tasks that changed.
    pub(in crate::sqlite) fn follow(&self, tasks: impl IntoIterator<Item = TaskId>) {
        self.queue.add(tasks);
    }

    /// Readers of the index.
    pub(in crate::sqlite) fn readers(&self) -> Result<Arc<Readers>, StorageError> {
        self.queue.readers().ok_or_else(|| {
            let failure = self.state().failure;
            let why = failure.unwrap_or_else(|| "try again in a moment".to_owned());
            unavailable(format!("the index for searches is not there yet: {why}"))
        })
    }

    /// State of the index.
    pub(in crate::sqlite) fn state(&self) -> SearchIndexState {
        self.queue.state()
    }

    /// Passes the result of a read on; damage has the index checked.
    pub(in crate::sqlite) fn checked<T>(
        &self,
        read: Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        read.map_err(|why| {
            let StorageError::Corrupt { subject, why } = why else { return why };
            self.queue.suspect();
            unavailable(format!("read {subject}: {why}; it is made anew, try again in a moment"))
        })
    }

    /// Origins of those tasks that the index knows; none if it cannot be read.
    pub(in crate::sqlite) async fn origins(
        &self,
        tasks: Vec<TaskId>,
    ) -> HashMap<TaskId, TaskOrigin> {
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
