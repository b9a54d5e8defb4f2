//! Content of a tenant's topics and cursors, in memory.

use crate::StorageError;
use a2a_hub_topics::{CursorName, TopicMessage, TopicName, TopicRules};
use std::collections::{BTreeMap, VecDeque};

/// Topics and cursors of a tenant.
#[derive(Debug, Default)]
pub(super) struct TopicsOfTenant {
    pub(super) position: u64,
    /// Greatest position of a message of a topic that does not exist any more.
    pub(super) forgotten: u64,
    pub(super) topics: BTreeMap<TopicName, MemoryTopic>,
    /// By name and owner.
    pub(super) cursors: BTreeMap<(CursorName, String), MemoryCursor>,
}

#[derive(Debug, Default)]
pub(super) struct MemoryTopic {
    pub(super) sequence: u64,
    pub(super) position: u64,
    pub(super) bytes: u64,
    /// Number and position of the latest dropped message.
    pub(super) dropped: (u64, u64),
    /// Messages with their times, oldest first.
    pub(super) messages: VecDeque<(u64, TopicMessage)>,
    pub(super) latest_ms: u64,
}

#[derive(Debug)]
pub(super) struct MemoryCursor {
    pub(super) pattern: String,
    pub(super) position: u64,
    pub(super) used_ms: u64,
}

impl MemoryTopic {
    pub(super) fn drop_oldest(&mut self) {
        if let Some((_, oldest)) = self.messages.pop_front() {
            self.bytes -= oldest.body.bytes() as u64;
            self.dropped = (oldest.sequence, oldest.position);
        }
    }

    pub(super) fn expire(&mut self, before_ms: u64) {
        while self.messages.front().is_some_and(|(at_ms, _)| *at_ms < before_ms) {
            self.drop_oldest();
        }
    }
}

impl TopicsOfTenant {
    /// Makes place for another topic.
    pub(super) fn require_place(&mut self, rules: &TopicRules) -> Result<(), StorageError> {
        let is_full = |topics: &BTreeMap<_, _>| topics.len() as u64 >= rules.max_topics;
        if is_full(&self.topics) {
            let empty = self.topics.values().filter(|topic| topic.messages.is_empty());
            let forgotten = empty.map(|topic| topic.dropped.1).max().unwrap_or_default();
            self.forgotten = self.forgotten.max(forgotten);
            self.topics.retain(|_, topic| !topic.messages.is_empty());
        }
        if is_full(&self.topics) {
            return Err(StorageError::TooManyTopics(rules.max_topics));
        }
        Ok(())
    }
}
