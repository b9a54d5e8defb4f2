//! Messages and their parts (A2A 1.0, sections 4.1.4 to 4.1.6).

use crate::model::id::{ContextId, MessageId, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Custom metadata as a JSON object.
pub type Metadata = Map<String, Value>;

/// Members of a 0.3 part's metadata that A2A 1.0 has in the part itself.
const FILENAME: &str = "filename";
const MEDIA_TYPE: &str = "mediaType";

/// Maximum nesting depth of custom JSON in a message. Storage adds a few levels, and the JSON
/// reader stops at 128.
pub const MAX_DEPTH: usize = 64;

/// Maximum number of parts in a message, and in a chunk of an artifact.
pub const MAX_PARTS: usize = 256;

/// True if `value` is nested no deeper than [`MAX_DEPTH`].
pub fn is_shallow(value: &Value) -> bool {
    fn within(value: &Value, levels: usize) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
            Value::Array(items) => levels > 0 && items.iter().all(|item| within(item, levels - 1)),
            Value::Object(members) => {
                levels > 0 && members.values().all(|member| within(member, levels - 1))
            }
        }
    }
    within(value, MAX_DEPTH)
}

/// Sender of a message (A2A 1.0, section 4.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// The client (`ROLE_USER`).
    #[serde(rename = "ROLE_USER")]
    User,
    /// The agent (`ROLE_AGENT`).
    #[serde(rename = "ROLE_AGENT")]
    Agent,
}

/// A message of a conversation (A2A 1.0, section 4.1.4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Id of the message, chosen by its sender.
    pub message_id: MessageId,
    /// Conversation of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<ContextId>,
    /// Task of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Sender of the message.
    pub role: Role,
    /// Content of the message; at least one part.
    pub parts: Vec<Part>,
    /// Custom metadata of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// URIs of the extensions that contributed to the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Other tasks that the message refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_task_ids: Vec<TaskId>,
}

impl Message {
    /// Creates a message of one text part, with a fresh id.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![Part::text(text)])
    }

    /// Creates a message of these parts, with a fresh id.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self {
            message_id: MessageId::fresh(),
            context_id: None,
            task_id: None,
            role,
            parts,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// Concatenates all text parts of the message.
    pub fn joined_text(&self) -> String {
        joined_text(&self.parts)
    }
}

/// Concatenates all text in `parts`.
pub fn joined_text(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| match &part.content {
            Content::Text(text) => Some(text.as_str()),
            Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
        })
        .collect()
}

/// Part of a message or an artifact (A2A 1.0, section 4.1.6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Content of the part.
    #[serde(flatten)]
    pub content: Content,
    /// File name of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Media type of the content (RFC 6838), such as `text/markdown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Custom metadata of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl Part {
    /// Creates a part of `content` without further members.
    pub fn new(content: Content) -> Self {
        Self { content, filename: None, media_type: None, metadata: None }
    }

    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Text(text.into()))
    }

    /// Creates a part of structured data.
    pub fn data(data: Value) -> Self {
        Self::new(Content::Data(data))
    }

    /// Metadata in A2A 0.3, whose text and data have no file name and no media type: both are
    /// members of the metadata there.
    pub(crate) fn old_metadata(&self) -> Option<Cow<'_, Metadata>> {
        let metadata = self.metadata.as_ref().map(Cow::Borrowed);
        let named = [(FILENAME, &self.filename), (MEDIA_TYPE, &self.media_type)];
        named.into_iter().fold(metadata, |all, (name, value)| {
            let Some(value) = value else { return all };
            let mut all = all.unwrap_or_default();
            all.to_mut().insert(name.to_owned(), value.as_str().into());
            Some(all)
        })
    }

    /// Creates a text or data part from A2A 0.3, with the metadata that [`Self::old_metadata`]
    /// returns.
    pub(crate) fn of_old(content: Content, metadata: Option<Metadata>) -> Self {
        let mut part = Self { metadata, ..Self::new(content) };
        let mut taken = |name: &str| {
            let facts = part.metadata.as_mut()?;
            let text = facts.get(name)?.as_str()?.to_owned();
            facts.remove(name);
            Some(text)
        };
        (part.filename, part.media_type) = (taken(FILENAME), taken(MEDIA_TYPE));
        let is_named = part.filename.is_some() || part.media_type.is_some();
        part.metadata.take_if(|facts| is_named && facts.is_empty());
        part
    }
}

/// Content of a part: exactly one of these kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Content {
    /// Text; plain unless the media type says otherwise.
    Text(String),
    /// Bytes, base64 on the wire.
    #[serde(with = "base64_bytes")]
    Raw(Vec<u8>),
    /// URL of the content.
    Url(String),
    /// Structured data: any JSON value.
    Data(Value),
}

/// Bytes as base64 text: written in the standard alphabet; read in the standard or URL-safe
/// alphabet, with or without padding (ProtoJSON).
pub(crate) mod base64_bytes {
    use base64::{
        Engine as _,
        alphabet::{STANDARD, URL_SAFE},
        engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    };
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

    pub(crate) fn encode(bytes: &[u8]) -> String {
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }

    pub(crate) fn decode(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
        let url_safe = text.bytes().any(|b| b == b'-' || b == b'_');
        GeneralPurpose::new(if url_safe { &URL_SAFE } else { &STANDARD }, LENIENT).decode(text)
    }

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        decode(&text).map_err(|why| D::Error::custom(format!("`raw` is not base64: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn part_content_round_trips_by_member() {
        let parts = [
            (Part::text("hi"), json!({"text": "hi"})),
            (Part::new(Content::Raw(vec![255, 254])), json!({"raw": "//4="})),
            (Part::new(Content::Url("file:///x".into())), json!({"url": "file:///x"})),
            (Part::data(json!({"n": 1})), json!({"data": {"n": 1}})),
        ];
        for (part, wire) in parts {
            assert_eq!(serde_json::to_value(&part).unwrap(), wire);
            assert_eq!(serde_json::from_value::<Part>(wire).unwrap(), part);
        }
    }

    #[test]
    fn deeper_nesting_than_limit_is_detected() {
        let nested = |levels| (0..levels).fold(Value::Null, |inner, _| json!([inner]));
        assert!(is_shallow(&nested(MAX_DEPTH)));
        assert!(!is_shallow(&nested(MAX_DEPTH + 1)));
    }

    #[test]
    fn base64_is_decoded_in_either_alphabet() {
        for text in ["//4=", "//4", "__4=", "__4"] {
            assert_eq!(base64_bytes::decode(text).unwrap(), [255, 254], "{text}");
        }
    }
}
