//! Messages of topics, and their limits.

use crate::topics::TopicName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum size of a message's text, or of its data as JSON, in bytes.
pub const MAX_BODY: usize = 256 << 10;

/// Content of a message.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TopicBody {
    /// Text.
    Text(String),
    /// JSON.
    Data(Value),
}

/// Error of a message's content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicBodyError {
    /// The message has neither text nor data, or both.
    #[error("a message has either `text` or `data`; give one of them")]
    NotOne,
    /// The content is too large.
    #[error(
        "the message has {0} bytes, and {MAX_BODY} at most are allowed; publish the path of a file, or the id of a task, \
         in place of large content"
    )]
    TooLarge(usize),
}

impl TopicBody {
    /// Content of one of the two kinds.
    ///
    /// # Errors
    ///
    /// See [`TopicBodyError`].
    pub fn new(text: Option<String>, data: Option<Value>) -> Result<Self, TopicBodyError> {
        let body = match (text, data) {
            (Some(text), None) => Self::Text(text),
            (None, Some(data)) => Self::Data(data),
            (Some(_), Some(_)) | (None, None) => return Err(TopicBodyError::NotOne),
        };
        let bytes = body.bytes();
        if bytes > MAX_BODY { Err(TopicBodyError::TooLarge(bytes)) } else { Ok(body) }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Data(data) => data.to_string().len(),
        }
    }
}

/// Origin of a message, as the hub knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicSource {
    /// Caller that published it, such as `operator`, `agent:codex` or `client:acme`.
    pub publisher: String,
    /// Task of the agent that published it; absent for other callers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Triggers that led to that task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// Permissions of that task: no run that a trigger starts after the message has more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
}

/// Message of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicMessage {
    /// Topic.
    pub topic: TopicName,
    /// Number in its topic, from 1 on without gaps.
    pub sequence: u64,
    /// Position among all messages of the tenant: the cursor of a subscriber who has read it.
    pub position: u64,
    /// Time (RFC 3339, in UTC).
    pub time: String,
    /// Origin.
    #[serde(flatten)]
    pub source: TopicSource,
    /// Content.
    #[serde(flatten)]
    pub body: TopicBody,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn message_round_trips_as_plain_json() {
        let source = TopicSource {
            publisher: "agent:codex".to_owned(),
            task_id: Some("t".to_owned()),
            triggers: vec!["review".to_owned()],
            permissions: Some("ask".to_owned()),
        };
        let text = TopicMessage {
            topic: TopicName::parse("a/b").unwrap(),
            sequence: 2,
            position: 9,
            time: "T".to_owned(),
            source,
            body: TopicBody::Text("\u{1b}[2J".to_owned()),
        };
        let source = TopicSource { publisher: "operator".to_owned(), ..TopicSource::default() };
        let data =
            TopicMessage { source, body: TopicBody::Data(json!({ "n": [1] })), ..text.clone() };
        assert_eq!(
            json!([text, data]),
            json!([
                { "topic": "a/b", "sequence": 2, "position": 9, "time": "T", "publisher": "agent:codex",
                  "taskId": "t", "triggers": ["review"], "permissions": "ask", "text": "\u{1b}[2J" },
                { "topic": "a/b", "sequence": 2, "position": 9, "time": "T", "publisher": "operator",
                  "data": { "n": [1] } },
            ])
        );
        for message in [text, data] {
            assert_eq!(serde_json::from_value::<TopicMessage>(json!(message)).unwrap(), message);
        }
    }

    #[test]
    fn body_is_one_of_two_and_bounded() {
        let large = "x".repeat(MAX_BODY + 1);
        assert_eq!(TopicBody::new(None, None), Err(TopicBodyError::NotOne));
        assert_eq!(
            TopicBody::new(Some(String::new()), Some(Value::Null)),
            Err(TopicBodyError::NotOne)
        );
        assert_eq!(
            TopicBody::new(Some(large.clone()), None),
            Err(TopicBodyError::TooLarge(MAX_BODY + 1))
        );
        assert_eq!(
            TopicBody::new(None, Some(json!(large))),
            Err(TopicBodyError::TooLarge(MAX_BODY + 3))
        );
        assert!(TopicBody::new(Some("x".repeat(MAX_BODY)), None).is_ok());
        assert_eq!(TopicBody::new(None, Some(Value::Null)), Ok(TopicBody::Data(Value::Null)));
    }
}
