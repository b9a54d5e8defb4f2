//! Content of a tenant's topics and cursors, in memory.

use crate::{StorageError, topics::publisher_beyond};
use a2a_hub_core::scheduling::{
    resources::SharedResource,
    shares::{Holder, UsedUnits},
};
use a2a_hub_protocol::topics::{CursorName, RetentionLimit, TopicMessage, TopicName, TopicRules};
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
    /// Identity of the caller that began it.
    pub(super) owner: String,
    pub(super) sequence: u64,
    pub(super) position: u64,
    pub(super) bytes: u64,
    /// Owners, with the numbers and bytes of their messages.
    publishers: Vec<(String, u64, u64)>,
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
    /// Creates an empty topic that `owner` began.
    pub(super) fn begun_by(owner: String) -> Self {
        Self { owner, ..Self::default() }
    }

    pub(super) fn store(&mut self, at_ms: u64, message: TopicMessage) {
        let (owner, bytes) = (&message.source.publisher, message.body.bytes() as u64);
        self.bytes += bytes;
        match self.publishers.iter_mut().find(|(known, ..)| known == owner) {
            Some((_, messages, total)) => (*messages, *total) = (*messages + 1, *total + bytes),
            None => self.publishers.push((owner.clone(), 1, bytes)),
        }
        self.messages.push_back((at_ms, message));
    }

    /// Drops a message of a full topic; the latest one stays.
    pub(super) fn evict_message(&mut self, limit: RetentionLimit) {
        let beyond = publisher_beyond(limit, &self.publishers);
        let older = self.messages.len().saturating_sub(1);
        let older = self.messages.iter().take(older);
        let is_beyond = |publisher: &str| beyond.is_some_and(|owner| owner == publisher);
        let index =
            older.map(|(_, message)| message).position(|it| is_beyond(&it.source.publisher));
        self.remove(index.unwrap_or_default());
    }

    fn remove(&mut self, index: usize) {
        let Some((_, removed)) = self.messages.remove(index) else { return };
        let bytes = removed.body.bytes() as u64;
        self.bytes -= bytes;
        let owner = &removed.source.publisher;
        if let Some((_, messages, total)) =
            self.publishers.iter_mut().find(|(known, ..)| known == owner)
        {
            (*messages, *total) = (*messages - 1, *total - bytes);
        }
        self.publishers.retain(|(_, messages, _)| *messages > 0);
        let (sequence, position) = self.dropped;
        self.dropped = (sequence.max(removed.sequence), position.max(removed.position));
    }

    pub(super) fn expire(&mut self, before_ms: u64) {
        while self.messages.front().is_some_and(|(at_ms, _)| *at_ms < before_ms) {
            self.remove(0);
        }
    }
}

impl TopicsOfTenant {
    /// Makes room for another topic of this owner, or refuses it.
    pub(super) fn require_topic_capacity(
        &mut self,
        owner: &str,
        rules: &TopicRules,
    ) -> Result<(), StorageError> {
        let holder = Holder::of_identity(owner);
        let limit = |topics: &BTreeMap<_, MemoryTopic>| {
            let owners = topics.values().map(|topic| (topic.owner.as_str(), 1));
            let usage = UsedUnits::sum(&holder, owners);
            SharedResource::Topics.require_share(rules.max_topics, &holder, usage)
        };
        if limit(&self.topics).is_err() {
            let empty = self.topics.values().filter(|topic| topic.messages.is_empty());
            let forgotten = empty.map(|topic| topic.dropped.1).max().unwrap_or_default();
            self.forgotten = self.forgotten.max(forgotten);
            self.topics.retain(|_, topic| !topic.messages.is_empty());
        }
        Ok(limit(&self.topics)?)
    }

    /// Checks that this owner may have another cursor.
    pub(super) fn require_cursor(&self, owner: &str) -> Result<(), StorageError> {
        let holder = Holder::of_identity(owner);
        let owners = self.cursors.keys().map(|(_, owner)| (owner.as_str(), 1));
        let usage = UsedUnits::sum(&holder, owners);
        let (resource, max_units) =
            (SharedResource::Cursors, SharedResource::Cursors.default_total());
        Ok(resource.require_share(max_units, &holder, usage)?)
    }
}
