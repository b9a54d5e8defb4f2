//! Limits on the size of a request, so that validation stays cheap, and a JSON parser that refuses
//! ambiguous input.

use crate::{
    foreign,
    model::{
        error::{A2aError, ErrorKind},
        id::{ContextId, MAX_ID, TaskId},
        message::{MAX_DEPTH, MAX_PARTS, Message, is_shallow},
    },
};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value, json};
use std::fmt;

/// Maximum length in bytes of a content string, a part's `text` or `bytes`. A prompt may contain a
/// whole text file.
pub const MAX_CONTENT: usize = 4 << 20;

/// Maximum length in bytes of any other string and of a member's name.
pub const MAX_STRING: usize = 256 << 10;

/// Maximum number of members of an object, mainly for metadata.
pub const MAX_MEMBERS: usize = 512;

/// Maximum number of requests in a batch.
pub const MAX_BATCH: usize = 100;

/// Names of the members whose strings are content.
const CONTENT: [&str; 5] = ["text", "bytes", "raw", "fileWithBytes", "file_with_bytes"];

/// Parses JSON and refuses duplicate names in an object. Parsers differ in which duplicate they
/// use, so a filter in front of the hub might check a different request than the hub executes. A
/// byte order mark at the beginning is ignored (RFC 8259, section 8.1).
pub fn read(text: &[u8]) -> Result<Value, A2aError> {
    let text = foreign::without_mark(text);
    match serde_json::from_slice::<Unambiguous>(text) {
        Ok(Unambiguous(value)) => Ok(value),
        Err(why) if why.is_data() => Err(A2aError::new(ErrorKind::InvalidRequest, why.to_string())),
        Err(why) => Err(A2aError::new(ErrorKind::Parse, format!("the request is not JSON: {why}"))),
    }
}

/// Refuses a request with excessive nesting, an overlong string, or an object with too many
/// members. The error names the path.
pub fn check(request: &Map<String, Value>) -> Result<(), A2aError> {
    if !request.values().all(is_shallow) {
        let why = format!("the request is nested deeper than {MAX_DEPTH} levels");
        return Err(A2aError::new(ErrorKind::InvalidRequest, why));
    }
    members(request).map_err(|Excess { path, limit, why }| {
        let field: String = path.into_iter().rev().collect();
        let field = field.strip_prefix('.').unwrap_or(&field);
        A2aError::new(ErrorKind::InvalidRequest, format!("`{field}`: {why}"))
            .with(json!({ "field": field, "limit": limit }))
    })
}

/// Refuses a message that a client may not send; `at` is the path of the message, for the errors.
pub fn check_message(message: &Message, at: &str) -> Result<(), A2aError> {
    let refuse = |name: &str, why: String| Err(A2aError::invalid(&format!("{at}.{name}"), why));
    match message.parts.len() {
        0 => return refuse("parts", "must hold at least one part".to_owned()),
        1..=MAX_PARTS => {}
        _ => return refuse("parts", format!("must hold at most {MAX_PARTS} parts")),
    }
    for (name, id) in [
        ("messageId", Some(message.message_id.as_str())),
        ("contextId", message.context_id.as_ref().map(ContextId::as_str)),
        ("taskId", message.task_id.as_ref().map(TaskId::as_str)),
    ] {
        if id.is_some_and(|id| id.is_empty() || id.len() > MAX_ID) {
            return refuse(name, format!("must be 1 to {MAX_ID} bytes long"));
        }
        if id.is_some_and(|id| id.chars().any(char::is_control)) {
            return refuse(name, "must hold no control characters".to_owned());
        }
    }
    Ok(())
}

/// An exceeded limit with its path. The innermost path segment comes first.
struct Excess {
    path: Vec<String>,
    limit: usize,
    why: String,
}

impl Excess {
    fn new(limit: usize, why: String) -> Self {
        Self { path: Vec::new(), limit, why }
    }

    fn within(mut self, segment: String) -> Self {
        self.path.push(segment);
        self
    }
}

fn members(object: &Map<String, Value>) -> Result<(), Excess> {
    if object.len() > MAX_MEMBERS {
        let why = format!("has {} members; at most {MAX_MEMBERS} are read", object.len());
        return Err(Excess::new(MAX_MEMBERS, why));
    }
    for (name, value) in object {
        if name.len() > MAX_STRING {
            let why = format!("a member's name is longer than {MAX_STRING} bytes");
            return Err(Excess::new(MAX_STRING, why));
        }
        let is_content = CONTENT.contains(&name.as_str());
        let max = if is_content { MAX_CONTENT } else { MAX_STRING };
        within(value, max).map_err(|why| why.within(format!(".{name}")))?;
    }
    Ok(())
}

fn within(value: &Value, max: usize) -> Result<(), Excess> {
    match value {
        Value::String(text) if text.len() > max => {
            Err(Excess::new(max, format!("is {} bytes long; at most {max} are read", text.len())))
        }
        Value::Array(items) => items.iter().enumerate().try_for_each(|(n, item)| {
            within(item, MAX_STRING).map_err(|why| why.within(format!("[{n}]")))
        }),
        Value::Object(object) => members(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// JSON without duplicate names in any object.
struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LimitedReader).map(Self)
    }
}

struct LimitedReader;

impl<'de> Visitor<'de> for LimitedReader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Unambiguous(item)) = from.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            if members.contains_key(&name) {
                // Bounds the length of the error.
                let name: String = name.chars().take(64).collect();
                let why = format!("an object of the request has two members called `{name}`");
                return Err(A::Error::custom(why));
            }
            let Unambiguous(value) = from.next_value()?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::Role;
    use proptest::prelude::*;

    fn checked(params: &Value) -> String {
        let Value::Object(request) = json!({ "params": params }) else { unreachable!() };
        check(&request).map_or_else(|why| why.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn exceeded_limit_names_its_path() {
        let long = |length: usize| "x".repeat(length);
        let many: Map<_, _> = (0..=MAX_MEMBERS).map(|n| (format!("k{n}"), json!(n))).collect();
        let cases = [
            json!({"message": {"parts": [{"text": long(MAX_CONTENT)}]}}),
            json!({"message": {"parts": [{"text": long(MAX_CONTENT + 1)}]}}),
            json!({"message": {"parts": [{"file": {"bytes": long(MAX_CONTENT + 1)}}]}}),
            json!({"message": {"metadata": {"a": [1, long(MAX_STRING)]}}}),
            json!({"message": {"metadata": {"a": [1, long(MAX_STRING + 1)]}}}),
            json!({"message": {"metadata": many}}),
            json!({ long(MAX_STRING + 1): 1 }),
        ];
        insta::assert_snapshot!(cases.each_ref().map(checked).join("\n"), @"
        fine
        `params.message.parts[0].text`: is 4194305 bytes long; at most 4194304 are read
        `params.message.parts[0].file.bytes`: is 4194305 bytes long; at most 4194304 are read
        fine
        `params.message.metadata.a[1]`: is 262145 bytes long; at most 262144 are read
        `params.message.metadata`: has 513 members; at most 512 are read
        `params`: a member's name is longer than 262144 bytes
        ");
    }

    /// Control characters would reach logs, tables for people and prompts.
    #[test]
    fn id_with_control_characters_is_refused() {
        let mut message = Message::text(Role::User, "hi");
        check_message(&message, "message").unwrap();
        message.context_id = Some(ContextId::new("a\u{1b}[2J"));
        let refused = check_message(&message, "message").unwrap_err().to_string();
        assert!(
            refused.contains("`message.contextId`: must hold no control characters"),
            "{refused}"
        );
    }

    #[test]
    fn duplicate_member_names_are_refused() {
        let refused = |text: &str| read(text.as_bytes()).unwrap_err();
        let twice = refused(r#"{"a": [{"b": 1, "c": 2, "b": 3}]}"#);
        assert_eq!(twice.kind, ErrorKind::InvalidRequest);
        insta::assert_snapshot!(twice, @"an object of the request has two members called `b` at line 1 column 27");
        assert_eq!(refused(r#"{"a": 1"#).kind, ErrorKind::Parse);
        // An escaped name equals its plain form.
        assert_eq!(refused(r#"{"a": 1, "\u0061": 2}"#).kind, ErrorKind::InvalidRequest);
    }

    #[test]
    fn byte_order_mark_is_ignored() {
        assert_eq!(read(b"\xef\xbb\xbf{}").unwrap(), json!({}));
        assert_eq!(read(b"{}\xef\xbb\xbf").unwrap_err().kind, ErrorKind::Parse);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 8, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                proptest::collection::btree_map(".*", inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_without_duplicates_parses_unchanged(value in any_json()) {
            let text = value.to_string();
            prop_assert_eq!(read(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
        }
    }
}
