//! Table of the changes of all tasks in memory.

use crate::{Head, MAX_CHANGES, Moves, TaskChange};
use a2a_hub_clock as clock;
use a2a_hub_protocol::{event::TaskEvent, id::TaskId, task::TaskState};
use std::{collections::VecDeque, sync::Arc};

/// Changes of a store in memory.
#[derive(Debug)]
pub(super) struct MemoryChanges {
    pub(super) history: String,
    pub(super) latest: u64,
    pub(super) changes: VecDeque<TaskChange>,
}

impl Default for MemoryChanges {
    fn default() -> Self {
        Self { history: TaskId::fresh().as_str().to_owned(), latest: 0, changes: VecDeque::new() }
    }
}

impl MemoryChanges {
    /// Adds the change of an append that led to `head`.
    pub(super) fn add(
        &mut self,
        head: &Head,
        before: Option<TaskState>,
        events: &[Arc<TaskEvent>],
    ) {
        if events.is_empty() {
            return;
        }
        self.latest += 1;
        self.changes.push_back(TaskChange {
            number: self.latest,
            task: head.task.clone(),
            context: head.context.clone(),
            agent: head.agent.clone(),
            seq: head.seq,
            at_ms: clock::now_ms(),
            moves: Moves::of(before, events),
        });
        if self.changes.len() as u64 > MAX_CHANGES {
            self.changes.pop_front();
        }
    }
}
