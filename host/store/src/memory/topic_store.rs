//! Topics, their messages and cursors, in memory: the store's side.

use super::{
    MemoryStorage,
    topics::{MemoryCursor, MemoryTopic},
};
use crate::{
    StorageError, TopicStore,
    topics::{CursorUse, NewTopicMessage, TopicQuery, shown_owner},
};
use a2a_hub_clock as clock;
use a2a_hub_protocol::id::TenantId;
use a2a_hub_protocol::topics::{
    CursorInfo, CursorName, PublishedMessage, TopicGap, TopicInfo, TopicList, TopicMessage,
    TopicName, TopicPage, TopicRules, TopicStart,
};

#[async_trait::async_trait]
impl TopicStore for MemoryStorage {
    async fn publish_message(
        &self,
        tenant: &TenantId,
        message: NewTopicMessage,
        rules: TopicRules,
    ) -> Result<PublishedMessage, StorageError> {
        let before_ms = rules.expired_before(message.at_ms);
        let NewTopicMessage { topic: name, source, body, at_ms } = message;
        let mut inner = self.to_write()?;
        let all = inner.topics.values_mut().flat_map(|tenant| tenant.topics.values_mut());
        all.for_each(|topic| topic.expire(before_ms));
        let of_tenant = inner.topics.entry(tenant.clone()).or_default();
        if !of_tenant.topics.contains_key(&name) {
            of_tenant.require_topic_capacity(&source.publisher, &rules)?;
        }
        of_tenant.position += 1;
        let position = of_tenant.position;
        let owner = source.publisher.clone();
        let new = || MemoryTopic::begun_by(owner);
        let topic = of_tenant.topics.entry(name.clone()).or_insert_with(new);
        topic.sequence += 1;
        (topic.position, topic.latest_ms) = (position, at_ms);
        let (sequence, time) = (topic.sequence, clock::at_ms(at_ms).unwrap_or_default());
        let stored = TopicMessage { topic: name.clone(), sequence, position, time, source, body };
        topic.store(at_ms, stored);
        for _ in 0..TopicRules::MAX_DROPPED {
            let messages = topic.messages.len() as u64;
            if !rules.exceeds(messages, topic.bytes) {
                break;
            }
            topic.evict_message(rules.shared_by(messages));
        }
        Ok(PublishedMessage { topic: name, sequence, position })
    }

    async fn read_topics(
        &self,
        tenant: &TenantId,
        query: TopicQuery,
    ) -> Result<TopicPage, StorageError> {
        let inner = self.lock();
        let Some(of_tenant) = inner.topics.get(tenant) else { return Ok(TopicPage::default()) };
        let after = query.after.min(of_tenant.position);
        let matching: Vec<_> =
            of_tenant.topics.iter().filter(|(name, _)| query.pattern.matches(name)).collect();
        let all = matching.iter().flat_map(|(_, topic)| &topic.messages);
        let mut found: Vec<_> =
            all.map(|(_, message)| message).filter(|it| it.position > after).collect();
        found.sort_unstable_by_key(|message| message.position);
        let mut is_cut = found.len() >= query.limit;
        found.truncate(query.limit);
        let mut page = TopicPage { next: of_tenant.position, ..TopicPage::default() };
        let mut bytes = 0;
        for message in found {
            let size = message.body.bytes();
            if !page.messages.is_empty() && bytes + size > query.max_bytes {
                is_cut = true;
                break;
            }
            bytes += size;
            page.messages.push(message.clone());
        }
        if let (true, Some(last)) = (is_cut, page.messages.last()) {
            page.next = last.position;
        }
        let is_news = |position: u64| position > after && position <= page.next;
        for (name, topic) in matching {
            let (through, position) = topic.dropped;
            if is_news(position) {
                page.gaps.push(TopicGap { topic: Some(name.clone()), through: Some(through) });
            }
        }
        if is_news(of_tenant.forgotten) {
            page.gaps.push(TopicGap { topic: None, through: None });
        }
        Ok(page)
    }

    async fn topic_position(&self, tenant: &TenantId) -> Result<u64, StorageError> {
        Ok(self.lock().topics.get(tenant).map_or(0, |of_tenant| of_tenant.position))
    }

    async fn list_topics(&self, tenant: &TenantId) -> Result<TopicList, StorageError> {
        let inner = self.lock();
        let Some(of_tenant) = inner.topics.get(tenant) else { return Ok(TopicList::default()) };
        let topics = of_tenant.topics.iter().map(|(name, topic)| TopicInfo {
            topic: name.clone(),
            owner: shown_owner(&topic.owner),
            messages: topic.messages.len() as u64,
            bytes: topic.bytes,
            sequence: topic.sequence,
            dropped: topic.dropped.0,
            latest: clock::at_ms(topic.latest_ms).unwrap_or_default(),
        });
        let cursors = of_tenant.cursors.iter().map(|((name, owner), cursor)| CursorInfo {
            cursor: name.clone(),
            owner: owner.clone(),
            pattern: cursor.pattern.clone(),
            position: cursor.position,
            behind: of_tenant.position - cursor.position,
            used: clock::at_ms(cursor.used_ms).unwrap_or_default(),
        });
        Ok(TopicList { topics: topics.collect(), cursors: cursors.collect() })
    }

    async fn delete_topic(
        &self,
        tenant: &TenantId,
        topic: &TopicName,
    ) -> Result<bool, StorageError> {
        let mut inner = self.to_write()?;
        let Some(of_tenant) = inner.topics.get_mut(tenant) else { return Ok(false) };
        let removed = of_tenant.topics.remove(topic);
        let latest = removed.as_ref().map_or(0, |topic| topic.position);
        of_tenant.forgotten = of_tenant.forgotten.max(latest);
        Ok(removed.is_some())
    }

    async fn use_cursor(&self, tenant: &TenantId, cursor: CursorUse) -> Result<u64, StorageError> {
        let CursorUse { owner, name, pattern, after, start, at_ms: used_ms } = cursor;
        let mut inner = self.to_write()?;
        let of_tenant = inner.topics.entry(tenant.clone()).or_default();
        let confirmed = after.map(|after| after.min(of_tenant.position));
        let key = (name, owner);
        let position = match (of_tenant.cursors.get(&key), confirmed) {
            (Some(known), confirmed) => known.position.max(confirmed.unwrap_or(0)),
            (None, confirmed) => {
                of_tenant.require_cursor(&key.1)?;
                confirmed.unwrap_or(match start {
                    TopicStart::New => of_tenant.position,
                    TopicStart::Stored => 0,
                })
            }
        };
        let pattern = pattern.to_string();
        of_tenant.cursors.insert(key, MemoryCursor { pattern, position, used_ms });
        Ok(position)
    }

    async fn delete_cursors(
        &self,
        tenant: &TenantId,
        name: &CursorName,
    ) -> Result<bool, StorageError> {
        let mut inner = self.to_write()?;
        let Some(of_tenant) = inner.topics.get_mut(tenant) else { return Ok(false) };
        let before = of_tenant.cursors.len();
        of_tenant.cursors.retain(|(known, _), _| known != name);
        Ok(of_tenant.cursors.len() < before)
    }

    async fn expire_messages(&self, before_ms: u64) -> Result<(), StorageError> {
        let mut inner = self.to_write()?;
        let all = inner.topics.values_mut().flat_map(|tenant| tenant.topics.values_mut());
        all.for_each(|topic| topic.expire(before_ms));
        Ok(())
    }
}
