//! Tasks that the index is to follow, and its state.

use crate::{SearchIndexState, sqlite::db::readers::Readers};
use a2a_hub_protocol::id::TaskId;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{collections::HashSet, mem, sync::Arc, time::Duration};

/// Limit of the tasks in the queue; beyond it, all tasks are compared.
const MAX_QUEUED: usize = 50_000;

/// Time for which changes are collected, so that a burst of them is written together.
const GATHER: Duration = Duration::from_millis(50);

/// Queue between the store and the indexer.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Queue {
    state: Mutex<IndexQueueState>,
    wake: Condvar,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct IndexQueueState {
    changed: HashSet<TaskId>,
    /// Number of tasks that the indexer has taken and not written yet.
    in_work: u64,
    /// True if any task may have changed.
    needs_comparison: bool,
    is_suspect: bool,
    is_ended: bool,
    failure: Option<String>,
    readers: Option<Arc<Readers>>,
}

/// Next work of the indexer.
pub(super) enum IndexWork {
    /// Changed tasks.
    Tasks(Vec<TaskId>),
    /// Comparison of all tasks with the index.
    Compare,
    /// The index may be damaged, and is to be opened again.
    Reopen,
    /// The store is closed.
    End,
}

impl Queue {
    /// Has the index follow tasks that changed or were deleted.
    pub(in crate::sqlite) fn add(&self, tasks: impl IntoIterator<Item = TaskId>) {
        let mut state = self.state.lock();
        state.changed.extend(tasks);
        if state.changed.len() > MAX_QUEUED {
            state.changed = HashSet::new();
            state.needs_comparison = true;
        }
        self.wake.notify_one();
    }

    /// Has the index checked.
    pub(super) fn suspect(&self) {
        self.state.lock().is_suspect = true;
        self.wake.notify_one();
    }

    /// Ends the indexer.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.is_ended = true;
        state.readers = None;
        self.wake.notify_one();
        self.ended.notify_one();
    }

    pub(super) fn is_ended(&self) -> bool {
        self.state.lock().is_ended
    }

    /// Readers of the index; none while it cannot be read.
    pub(super) fn readers(&self) -> Option<Arc<Readers>> {
        self.state.lock().readers.clone()
    }

    pub(super) fn state(&self) -> SearchIndexState {
        let state = self.state.lock();
        let unknown = u64::from(state.needs_comparison || state.readers.is_none());
        let known = (state.changed.len() as u64).saturating_add(state.in_work);
        SearchIndexState { pending: known.max(unknown), failure: state.failure.clone() }
    }

    /// The index was opened; all tasks are compared with it.
    pub(super) fn opened(&self, readers: Readers) {
        let mut state = self.state.lock();
        (state.needs_comparison, state.is_suspect, state.in_work) = (true, false, 0);
        state.readers = (!state.is_ended).then(|| Arc::new(readers));
    }

    /// Sets the number of tasks that the indexer has taken and not written yet.
    pub(super) fn set_in_work(&self, tasks: u64) {
        self.state.lock().in_work = tasks;
    }

    /// A write has succeeded.
    pub(super) fn wrote(&self) {
        let mut state = self.state.lock();
        if state.failure.take().is_some() {
            tracing::info!("the index for searches is written again");
        }
    }

    /// The index failed. A damaged one is not read any more. Waits for `pause`, or until the end.
    pub(super) fn failed(&self, why: &str, is_damaged: bool, pause: Duration) {
        let mut state = self.state.lock();
        if state.failure.as_deref() != Some(why) {
            tracing::warn!(why, "the index for searches cannot be written");
        }
        state.failure = Some(why.to_owned());
        if is_damaged {
            state.readers = None;
        }
        self.wait_until_end(&mut state, pause);
    }

    /// Waits for `pause`, or until the end.
    pub(super) fn rest(&self, pause: Duration) {
        self.wait_until_end(&mut self.state.lock(), pause);
    }

    /// Waits for `pause`, or until the end; changes do not shorten it.
    fn wait_until_end(&self, state: &mut MutexGuard<'_, IndexQueueState>, pause: Duration) {
        while !state.is_ended && !self.ended.wait_for(state, pause).timed_out() {}
    }

    /// Waits for the next work.
    pub(super) fn next(&self, at_once: usize) -> IndexWork {
        let mut state = self.state.lock();
        state.in_work = 0;
        loop {
            if state.is_ended {
                return IndexWork::End;
            }
            if mem::take(&mut state.is_suspect) {
                return IndexWork::Reopen;
            }
            if state.needs_comparison {
                return IndexWork::Compare;
            }
            if !state.changed.is_empty() {
                break;
            }
            self.wake.wait(&mut state);
        }
        if state.changed.len() < at_once {
            self.wait_until_end(&mut state, GATHER);
        }
        let mut taken: Vec<_> = state.changed.iter().take(at_once).cloned().collect();
        // Of one millisecond, the first to be written counts as the oldest.
        taken.sort_unstable();
        for task in &taken {
            state.changed.remove(task);
        }
        state.in_work = taken.len() as u64;
        IndexWork::Tasks(taken)
    }

    /// All tasks were compared.
    pub(super) fn compared(&self) {
        self.state.lock().needs_comparison = false;
    }

    /// Begins a comparison: tasks that change from now on are in the queue again.
    pub(super) fn begin_comparison(&self) {
        let mut state = self.state.lock();
        state.changed = HashSet::new();
    }
}
