//! Topics: their messages and named cursors. The rules are those of `a2a_hub_protocol::topics`.

use crate::StorageError;
use a2a_hub_core::{
    access_control::Principal,
    scheduling::{resources::SharedResource, shares::Holder},
};
use a2a_hub_protocol::id::TenantId;
use a2a_hub_protocol::topics::{
    CursorName, PublishedMessage, RetentionLimit, TopicBody, TopicList, TopicName, TopicPage,
    TopicPattern, TopicRules, TopicSource, TopicStart,
};

/// Message that is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopicMessage {
    /// Topic.
    pub topic: TopicName,
    /// Origin.
    pub source: TopicSource,
    /// Content.
    pub body: TopicBody,
    /// Time in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Query for messages of topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicQuery {
    /// Pattern of the topics.
    pub pattern: TopicPattern,
    /// Position after which messages are returned.
    pub after: u64,
    /// Most messages.
    pub limit: usize,
    /// Size of the contents after which no further message is returned, in bytes.
    pub max_bytes: usize,
}

/// Request of the owner of a named cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorUse {
    /// Caller that the cursor belongs to.
    pub owner: String,
    /// Name.
    pub name: CursorName,
    /// Pattern that the caller reads.
    pub pattern: TopicPattern,
    /// Position up to which the caller has read; none if it confirms nothing.
    pub after: Option<u64>,
    /// Begin of a new cursor without a position.
    pub start: TopicStart,
    /// Time in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Owner whose oldest message makes room in a full topic: one with more than a share of the limit.
/// `publishers` are owners with the numbers and bytes of their messages. None if nobody has more;
/// then the oldest message of all makes room.
pub(crate) fn publisher_beyond(
    limit: RetentionLimit,
    publishers: &[(String, u64, u64)],
) -> Option<&str> {
    let (shares, is_by_number) = match limit {
        RetentionLimit::Messages(max) => (SharedResource::TopicMessages.shares(max), true),
        RetentionLimit::Bytes(max) => (SharedResource::TopicBytes.shares(max), false),
    };
    let units = publishers.iter().map(|(owner, messages, bytes)| {
        (Holder::of_identity(owner), if is_by_number { *messages } else { *bytes })
    });
    let beyond = shares.beyond(units)?;
    // Only the operator has more than one identity, and is never beyond a limit.
    let mut owners = publishers.iter().map(|(owner, ..)| owner.as_str());
    owners.find(|owner| Holder::of_identity(owner) == beyond)
}

/// Owner of a topic for lists: the operator, if an older hub stored none.
pub(crate) fn shown_owner(stored: &str) -> String {
    if stored.is_empty() { Principal::Operator.identity() } else { stored.to_owned() }
}

/// Messages of topics. Each tenant has its topics, positions and cursors.
#[async_trait::async_trait]
pub trait TopicStore: Send + Sync {
    /// Stores a message durably as the next of its topic, and drops old ones beyond the rules, at
    /// most [`TopicRules::MAX_DROPPED`]: the oldest of the publisher with more than a share, or
    /// else the oldest of all. A new topic belongs to the publisher of its first message, and may
    /// take the place of one that has no messages left.
    async fn publish_message(
        &self,
        tenant: &TenantId,
        message: NewTopicMessage,
        rules: TopicRules,
    ) -> Result<PublishedMessage, StorageError>;

    /// Messages that match, as of one moment. A position that is not reached yet counts as the
    /// latest one.
    async fn read_topics(
        &self,
        tenant: &TenantId,
        query: TopicQuery,
    ) -> Result<TopicPage, StorageError>;

    /// Position of the latest message of a tenant; 0 before the first one.
    async fn topic_position(&self, tenant: &TenantId) -> Result<u64, StorageError>;

    /// Topics and named cursors of a tenant, by name.
    async fn list_topics(&self, tenant: &TenantId) -> Result<TopicList, StorageError>;

    /// Deletes a topic with its messages; returns false if it does not exist.
    async fn delete_topic(
        &self,
        tenant: &TenantId,
        topic: &TopicName,
    ) -> Result<bool, StorageError>;

    /// Creates a cursor, or moves it forward to the confirmed position; returns its position. Each
    /// owner has a share of the tenant's cursors ([`SharedResource::Cursors`]).
    async fn use_cursor(&self, tenant: &TenantId, cursor: CursorUse) -> Result<u64, StorageError>;

    /// Deletes all cursors of a name; returns false if none exists.
    async fn delete_cursors(
        &self,
        tenant: &TenantId,
        name: &CursorName,
    ) -> Result<bool, StorageError>;

    /// Drops the oldest messages of all tenants that are older than this time in milliseconds
    /// since the Unix epoch.
    async fn expire_messages(&self, before_ms: u64) -> Result<(), StorageError>;
}
