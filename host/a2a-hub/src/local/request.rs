//! JSON-RPC 2.0 requests as values or as text.

use a2a_hub_protocol::{
    dialect::Dialect,
    error::{A2aError, ErrorKind},
    id::{MAX_ID, TaskId},
    message::{Message, Role},
    operation::{Operation, SendMessage},
};
use serde_json::{Map, Value, json};

/// A request, as a value or as text.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A JSON object.
    Value(Value),
    /// Text of a JSON object.
    Text(String),
}

impl From<Value> for Request {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl From<&str> for Request {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Request {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A parsed request.
#[derive(Debug, PartialEq)]
pub(super) struct ParsedCall {
    /// Id of the request; `None` for a notification.
    pub id: Option<Value>,
    pub method: String,
    pub params: Value,
}

/// Parses a request. An error comes with the request's id, as far as it has one.
pub(super) fn read(request: Request) -> Result<ParsedCall, (Value, A2aError)> {
    let value = match request {
        Request::Value(value) => value,
        Request::Text(text) => serde_json::from_str(&text).map_err(|why| {
            let why = format!("the request is no JSON: {why}");
            (Value::Null, A2aError::new(ErrorKind::Parse, why))
        })?,
    };
    let Value::Object(mut members) = value else {
        let why = "a request is an object; a batch is none here: call once for each";
        return Err((Value::Null, A2aError::new(ErrorKind::InvalidRequest, why)));
    };
    let id = members.remove("id");
    let wrong = |why: &str| {
        let id = id.clone().unwrap_or_default();
        Err((id, A2aError::new(ErrorKind::InvalidRequest, why)))
    };
    if members.get("jsonrpc") != Some(&json!("2.0")) {
        return wrong("`jsonrpc` must be \"2.0\"");
    }
    if id.as_ref().is_some_and(|id| !(id.is_string() || id.is_number() || id.is_null())) {
        let why = A2aError::new(ErrorKind::InvalidRequest, "`id` must be a string or a number");
        return Err((Value::Null, why));
    }
    let Some(Value::String(method)) = members.remove("method") else {
        return wrong("`method` must be a string");
    };
    match members.remove("params").unwrap_or_else(|| json!({})) {
        params @ Value::Object(_) => Ok(ParsedCall { id, method, params }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            wrong("`params` must be an object")
        }
    }
}

/// Validates the id that a caller chose for its task.
pub(super) fn parse_task_id(id: String) -> Result<TaskId, A2aError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    // The id may become the name of a directory.
    if (1..=MAX_ID).contains(&id.len()) && !id.starts_with('.') && id.bytes().all(is_plain) {
        return Ok(TaskId::new(id));
    }
    let why = format!(
        "must be 1 to {MAX_ID} letters, digits, `_`, `-` and `.`, and not begin with a `.`"
    );
    Err(A2aError::invalid("params.task_id", why))
}

/// Parses the parameters of `tasks/send`: `message`, a string or a message of A2A, optionally the
/// caller's `task_id`, and otherwise those of `message/send`.
pub(super) fn send_task(params: Value) -> Result<(Option<TaskId>, SendMessage), A2aError> {
    let Value::Object(mut params) = params else {
        return Err(A2aError::invalid("params", "must be an object"));
    };
    let task_id = match params.remove("task_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(parse_task_id(id)?),
        Some(_) => return Err(A2aError::invalid("params.task_id", "must be a string")),
    };
    match params.remove("message") {
        // Without further parameters, nothing remains to be parsed.
        Some(Value::String(text)) if params.is_empty() => {
            Ok((task_id, SendMessage::new(Message::text(Role::User, text), None)?))
        }
        Some(Value::String(text)) => {
            let message = json!({
                "kind": "message", "role": "user", "messageId": a2a_hub_protocol::id::MessageId::fresh(),
                "parts": [{ "kind": "text", "text": text }],
            });
            Ok((task_id, read_send(params, message)?))
        }
        Some(message @ Value::Object(_)) => Ok((task_id, read_send(params, message)?)),
        Some(_) | None => {
            Err(A2aError::invalid("params.message", "must be a string, or a message of A2A"))
        }
    }
}

fn read_send(mut params: Map<String, Value>, message: Value) -> Result<SendMessage, A2aError> {
    params.insert("message".to_owned(), message);
    let Operation::SendMessage(send) =
        Dialect::Hub.operation("message/send", Value::Object(params))?
    else {
        return Err(A2aError::new(ErrorKind::Internal, "`message/send` is read as something else"));
    };
    Ok(*send)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_parsed_from_value_or_text() {
        let value = json!({ "jsonrpc": "2.0", "method": "tasks/send", "params": { "task_id": "t" }, "id": 1 });
        let read_value = read(value.clone().into()).unwrap();
        assert_eq!(read(value.to_string().into()).unwrap(), read_value);
        assert_eq!((read_value.id, read_value.method.as_str()), (Some(json!(1)), "tasks/send"));
        let said = |request: Request| {
            let (id, why) = read(request).unwrap_err();
            format!("{id} {}: {why}", why.kind.hub_code())
        };
        insta::assert_snapshot!([
            said("{".into()),
            said(json!([]).into()),
            said(json!({ "id": 7 }).into()),
            said(json!({ "jsonrpc": "2.0", "id": {} }).into()),
            said(json!({ "jsonrpc": "2.0", "id": "a", "method": 1 }).into()),
            said(json!({ "jsonrpc": "2.0", "id": "a", "method": "x", "params": [] }).into()),
        ].join("\n"), @r#"
        null -32700: the request is no JSON: EOF while parsing an object at line 1 column 1
        null -32600: a request is an object; a batch is none here: call once for each
        7 -32600: `jsonrpc` must be "2.0"
        null -32600: `id` must be a string or a number
        "a" -32600: `method` must be a string
        "a" -32600: `params` must be an object
        "#);
    }

    #[test]
    fn message_is_string_or_a2a_message() {
        let (id, send) =
            send_task(json!({ "task_id": "task_123", "message": "Please process this data." }))
                .unwrap();
        assert_eq!(
            (id.unwrap().as_str(), send.message.joined_text().as_str()),
            ("task_123", "Please process this data.")
        );
        let message = json!({ "kind": "message", "role": "user", "messageId": "m", "parts": [{ "kind": "data", "data": { "n": 1 } }] });
        let (id, send) =
            send_task(json!({ "message": message, "metadata": { "targetAgent": "echo" } }))
                .unwrap();
        assert_eq!((id, send.agent.unwrap().as_str(), send.message.parts.len()), (None, "echo", 1));
        for wrong in [
            json!({}),
            json!({ "message": 1 }),
            json!({ "message": "x", "task_id": 1 }),
            json!({ "message": "x", "task_id": "" }),
            json!({ "message": "x", "task_id": "../x" }),
        ] {
            assert_eq!(send_task(wrong).unwrap_err().kind, ErrorKind::InvalidParams);
        }
    }
}
