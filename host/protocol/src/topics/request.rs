//! Requests for topics: their parameters, and their answers.

use crate::topics::{TopicBody, TopicBodyError, TopicMessage, TopicName, TopicPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most messages of one answer.
pub const MAX_READ: u64 = 1_000;

/// Default number of messages of one answer.
const DEFAULT_READ: u64 = 100;

/// Longest wait for a message, in milliseconds; a client that waits longer asks again.
pub const MAX_WAIT_MS: u64 = 30_000;

/// Maximum length of a cursor's name.
const MAX_CURSOR: usize = 64;

/// Request for topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicRequest {
    /// Stores a message, and delivers it to subscribers.
    Publish {
        /// Topic, which begins to exist with its first message.
        topic: TopicName,
        /// Content.
        body: TopicBody,
    },
    /// Returns messages after a position, and waits for one if none is stored.
    Read(ReadParams),
    /// Lists topics and named cursors.
    List,
    /// Deletes a topic with its messages, or a named cursor. For administrators only.
    Delete(Deleted),
}

impl TopicRequest {
    /// Name of the operation, for metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Publish { .. } => "publish_to_topic",
            Self::Read(_) => "read_topics",
            Self::List => "list_topics",
            Self::Delete(_) => "delete_topic",
        }
    }
}

/// Parameters of `hub/topics/publish`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PublishParams {
    /// Topic, such as `builds/main/failed`; it begins to exist with its first message.
    topic: TopicName,
    /// Text of the message, at most 256 KiB; or `data`.
    text: Option<String>,
    /// JSON of the message, at most 256 KiB; or `text`.
    #[serde(default, deserialize_with = "present")]
    data: Option<Value>,
}

/// Reads `null` as a value that is present.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl TryFrom<PublishParams> for TopicRequest {
    type Error = TopicBodyError;

    fn try_from(params: PublishParams) -> Result<Self, TopicBodyError> {
        let PublishParams { topic, text, data } = params;
        Ok(Self::Publish { topic, body: TopicBody::new(text, data)? })
    }
}

/// Begin of a subscriber without a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TopicStart {
    /// Only messages that are published from now on.
    #[default]
    New,
    /// All stored messages.
    Stored,
}

/// Name of a cursor: 1 to 64 ASCII letters, digits and `-_.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CursorName(String);

impl CursorName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CursorName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if text.is_empty() || text.len() > MAX_CURSOR || !text.bytes().all(is_word) {
            return Err(format!(
                "a cursor's name has 1 to {MAX_CURSOR} letters, digits and `-_.`, such as `deploy-bot`"
            ));
        }
        Ok(Self(text))
    }
}

impl From<CursorName> for String {
    fn from(name: CursorName) -> Self {
        name.0
    }
}

/// Parameters of `hub/topics/read`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    /// Pattern of the topics: `+` stands for one level, a last `#` for all below.
    pub pattern: TopicPattern,
    /// Position after which messages are returned: `next` of the latest answer. With a `cursor`,
    /// it confirms the messages up to there.
    pub after: Option<u64>,
    /// Name of a cursor that the hub stores for this caller: messages that were not confirmed
    /// are returned again.
    pub cursor: Option<CursorName>,
    /// Begin without a position: `new` (the default) for messages from now on, or `stored`.
    #[serde(default)]
    pub start: TopicStart,
    /// Most messages to return, from 1 to 1,000; 100 by default.
    pub limit: Option<u64>,
    /// Longest wait for a message in milliseconds, at most 30,000; 0 by default.
    #[serde(default)]
    pub wait_ms: u64,
}

impl ReadParams {
    /// All messages of a pattern after a position.
    pub fn after(pattern: TopicPattern, after: u64) -> Self {
        let (cursor, start, limit) = (None, TopicStart::New, None);
        Self { pattern, after: Some(after), cursor, start, limit, wait_ms: 0 }
    }

    /// Number of messages to return.
    pub fn limit(&self) -> usize {
        let limit = self.limit.unwrap_or(DEFAULT_READ).clamp(1, MAX_READ);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// Parameters of `hub/topics/delete`: exactly one of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct DeleteParams {
    /// Topic.
    topic: Option<TopicName>,
    /// Name of a cursor, of whichever caller.
    cursor: Option<CursorName>,
}

impl TryFrom<DeleteParams> for TopicRequest {
    type Error = &'static str;

    fn try_from(params: DeleteParams) -> Result<Self, &'static str> {
        match params {
            DeleteParams { topic: Some(topic), cursor: None } => {
                Ok(Self::Delete(Deleted::Topic(topic)))
            }
            DeleteParams { topic: None, cursor: Some(cursor) } => {
                Ok(Self::Delete(Deleted::Cursor(cursor)))
            }
            DeleteParams { topic: Some(_), cursor: Some(_) }
            | DeleteParams { topic: None, cursor: None } => {
                Err("name either a `topic` or a `cursor`")
            }
        }
    }
}

/// Deleted thing: the answer to `hub/topics/delete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Deleted {
    /// Topic, with its messages.
    Topic(TopicName),
    /// All cursors of this name.
    Cursor(CursorName),
}

/// Stored message: the answer to `hub/topics/publish`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishedMessage {
    /// Topic.
    pub topic: TopicName,
    /// Number in its topic.
    pub sequence: u64,
    /// Position among all messages of the tenant.
    pub position: u64,
}

/// Messages that retention dropped before the subscriber read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicGap {
    /// Topic; absent for topics that do not exist any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<TopicName>,
    /// Number of the latest message that was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<u64>,
}

/// Messages: the answer to `hub/topics/read`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicPage {
    /// Messages, oldest first; those of a topic are in the order of their numbers.
    pub messages: Vec<TopicMessage>,
    /// Position for `after` of the next request.
    pub next: u64,
    /// Messages that were dropped unread: the subscriber was too slow, or away for too long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<TopicGap>,
}

impl TopicPage {
    /// True if a subscriber learns nothing from it.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.gaps.is_empty()
    }
}

/// Topic: an element of the answer to `hub/topics/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicInfo {
    /// Name.
    pub topic: TopicName,
    /// Caller that began it, such as `operator` or `agent:codex`: it counts in the share of that
    /// caller. Topics of older hubs are the operator's.
    pub owner: String,
    /// Number of stored messages.
    pub messages: u64,
    /// Size of their contents in bytes.
    pub bytes: u64,
    /// Number of the latest message.
    pub sequence: u64,
    /// Number of the latest message that retention dropped; 0 if it dropped none.
    pub dropped: u64,
    /// Time of the latest message (RFC 3339, in UTC).
    pub latest: String,
}

/// Named cursor: an element of the answer to `hub/topics/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CursorInfo {
    /// Name.
    pub cursor: CursorName,
    /// Caller that it belongs to, such as `operator` or `agent:codex`.
    pub owner: String,
    /// Pattern of its latest request.
    pub pattern: String,
    /// Position of the latest confirmed message.
    pub position: u64,
    /// Number of messages of the tenant after it, of whichever topic.
    pub behind: u64,
    /// Time of its latest request (RFC 3339, in UTC).
    pub used: String,
}

/// Topics and cursors: the answer to `hub/topics/list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicList {
    /// Topics, by name.
    pub topics: Vec<TopicInfo>,
    /// Named cursors, by name.
    pub cursors: Vec<CursorInfo>,
}

/// Answer to a [`TopicRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TopicAnswer {
    /// A message was stored.
    Published(PublishedMessage),
    /// Messages.
    Page(TopicPage),
    /// Topics and cursors.
    List(TopicList),
    /// A topic or a cursor was deleted.
    Deleted(Deleted),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    fn publish(params: Value) -> Result<TopicRequest, String> {
        let params: PublishParams = from_value(params).map_err(|why| why.to_string())?;
        params.try_into().map_err(|why: TopicBodyError| why.to_string())
    }

    #[test]
    fn wrong_parameters_are_refused() {
        for (params, why) in [
            (json!({ "topic": "a" }), "either `text` or `data`"),
            (json!({ "topic": "a", "text": "x", "data": null }), "either `text` or `data`"),
            (json!({ "topic": "a/#", "text": "x" }), "`#` is a wildcard"),
            (json!({ "topic": ["a"], "text": "x" }), "invalid type"),
            (json!([]), "invalid length"),
        ] {
            let refused = publish(params.clone()).unwrap_err();
            assert!(refused.contains(why), "{params}: {refused}");
        }
        assert!(publish(json!({ "topic": "a", "data": null })).is_ok());
        for cursor in ["", "a b", "../x", &"x".repeat(65)] {
            let read = from_value::<ReadParams>(json!({ "pattern": "a", "cursor": cursor }));
            assert!(read.unwrap_err().to_string().contains("a cursor's name has"), "{cursor}");
        }
        let read =
            |limit: Value| from_value::<ReadParams>(json!({ "pattern": "#", "limit": limit }));
        let limits = [json!(null), json!(0), json!(7), json!(u64::MAX)];
        assert_eq!(limits.map(|limit| read(limit).unwrap().limit()), [100, 1, 7, 1_000]);
        assert!(read(json!(-1)).is_err());
        let delete = |params| TopicRequest::try_from(from_value::<DeleteParams>(params).unwrap());
        assert!(delete(json!({})).is_err());
        assert!(delete(json!({ "topic": "a", "cursor": "b" })).is_err());
        assert!(delete(json!({ "cursor": "b" })).is_ok());
    }
}
