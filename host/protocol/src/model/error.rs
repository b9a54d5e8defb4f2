//! Errors that clients receive: one type, and one table that maps its kinds to codes, statuses and
//! reasons (A2A 1.0, sections 3.3.2 and 5.4).

use super::id::MAX_ID;
use crate::member;
use serde_json::{Value, json};

/// Refusal of an operation, independent of dialect and binding.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct A2aError {
    /// Kind of the refusal, which determines codes and statuses.
    pub kind: ErrorKind,
    /// Cause and remedy, for people.
    pub message: String,
    /// Details for machines: the invalid field, the limit, the existing alternatives.
    pub details: Option<Value>,
}

/// Kinds of refusal: those of JSON-RPC and A2A, and the hub's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is not JSON.
    Parse,
    /// The request is JSON, but not a JSON-RPC 2.0 request.
    InvalidRequest,
    /// Unknown method.
    MethodNotFound,
    /// A parameter is missing, has the wrong type or is out of range.
    InvalidParams,
    /// Internal error of the hub.
    Internal,
    /// The task does not exist, or the caller may not see it.
    TaskNotFound,
    /// The task is in a final state and cannot be cancelled.
    TaskNotCancelable,
    /// The agent does not exist.
    AgentNotFound,
    /// The agent cannot accept the task now.
    AgentUnavailable,
    /// The operation exists, but is not supported here.
    UnsupportedOperation,
    /// The caller is not authenticated.
    Authentication,
    /// The caller is authenticated, and may not do this. The hub's dialect has one code for both.
    PermissionDenied,
    /// The operation exceeded its timeout.
    Timeout,
    /// The conversation does not exist.
    ContextNotFound,
    /// The agent does not support push notifications.
    PushNotSupported,
    /// The agent does not accept a media type.
    ContentTypeNotSupported,
    /// The agent sent an invalid response.
    InvalidAgentResponse,
    /// No extended card exists besides the public one.
    ExtendedCardNotConfigured,
    /// The agent requires an extension that the client did not activate.
    ExtensionRequired,
    /// The hub does not support this version of A2A.
    VersionNotSupported,
    /// The task has another generation than the message names.
    GenerationMismatch,
}

/// Codes of a refusal for each of A2A's bindings (A2A 1.0.1, section 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes {
    /// Code of the JSON-RPC error object.
    pub code: i32,
    /// gRPC code, by its name in `google.rpc.Code`.
    pub status: &'static str,
    /// HTTP status for REST.
    pub http: u16,
}

/// `domain` of the reasons that A2A defines.
const A2A: &str = "a2a-protocol.org";

/// `domain` of the hub's own reasons.
const HUB: &str = "a2a-hub";

/// Row of the table of kinds.
struct KindRow {
    hub_code: i32,
    reason: &'static str,
    domain: &'static str,
    official: Codes,
}

impl ErrorKind {
    /// All kinds, in the order of their hub codes.
    pub const ALL: [Self; 21] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::AgentNotFound,
        Self::AgentUnavailable,
        Self::UnsupportedOperation,
        Self::Authentication,
        Self::PermissionDenied,
        Self::Timeout,
        Self::ContextNotFound,
        Self::PushNotSupported,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionRequired,
        Self::VersionNotSupported,
        Self::GenerationMismatch,
    ];

    /// The table of all kinds: hub code; reason and its domain; official JSON-RPC code, gRPC status
    /// and HTTP status. For kinds that only the hub defines, the official columns hold generic
    /// codes of JSON-RPC, gRPC and HTTP.
    #[rustfmt::skip]
    fn row(self) -> KindRow {
        let (hub_code, reason, domain, code, status, http) = match self {
            Self::Parse                     => (-32700, "PARSE_ERROR",                        A2A, -32700, "INVALID_ARGUMENT",    400),
            Self::InvalidRequest            => (-32600, "INVALID_REQUEST",                    A2A, -32600, "INVALID_ARGUMENT",    400),
            Self::MethodNotFound            => (-32601, "METHOD_NOT_FOUND",                   A2A, -32601, "UNIMPLEMENTED",       404),
            Self::InvalidParams             => (-32602, "INVALID_PARAMS",                     A2A, -32602, "INVALID_ARGUMENT",    400),
            Self::Internal                  => (-32603, "INTERNAL_ERROR",                     A2A, -32603, "INTERNAL",            500),
            Self::TaskNotFound              => (-32001, "TASK_NOT_FOUND",                     A2A, -32001, "NOT_FOUND",           404),
            Self::TaskNotCancelable         => (-32002, "TASK_NOT_CANCELABLE",                A2A, -32002, "FAILED_PRECONDITION", 400),
            Self::AgentNotFound             => (-32003, "AGENT_NOT_FOUND",                    HUB, -32602, "NOT_FOUND",           404),
            Self::AgentUnavailable          => (-32004, "AGENT_UNAVAILABLE",                  HUB, -32603, "UNAVAILABLE",         503),
            Self::UnsupportedOperation      => (-32005, "UNSUPPORTED_OPERATION",              A2A, -32004, "FAILED_PRECONDITION", 400),
            Self::Authentication            => (-32006, "AUTHENTICATION_ERROR",               HUB, -32600, "UNAUTHENTICATED",     401),
            Self::PermissionDenied          => (-32006, "PERMISSION_DENIED",                  HUB, -32600, "PERMISSION_DENIED",   403),
            Self::Timeout                   => (-32007, "TIMEOUT_ERROR",                      HUB, -32603, "DEADLINE_EXCEEDED",   504),
            Self::ContextNotFound           => (-32008, "CONTEXT_NOT_FOUND",                  HUB, -32602, "NOT_FOUND",           404),
            Self::PushNotSupported          => (-32009, "PUSH_NOTIFICATION_NOT_SUPPORTED",    A2A, -32003, "FAILED_PRECONDITION", 400),
            Self::ContentTypeNotSupported   => (-32010, "CONTENT_TYPE_NOT_SUPPORTED",         A2A, -32005, "INVALID_ARGUMENT",    400),
            Self::InvalidAgentResponse      => (-32011, "INVALID_AGENT_RESPONSE",             A2A, -32006, "INTERNAL",            500),
            Self::ExtendedCardNotConfigured => (-32012, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", A2A, -32007, "FAILED_PRECONDITION", 400),
            Self::ExtensionRequired         => (-32013, "EXTENSION_SUPPORT_REQUIRED",         A2A, -32008, "FAILED_PRECONDITION", 400),
            Self::VersionNotSupported       => (-32014, "VERSION_NOT_SUPPORTED",              A2A, -32009, "FAILED_PRECONDITION", 400),
            Self::GenerationMismatch        => (-32015, "TASK_GENERATION_MISMATCH",           A2A, -32010, "ABORTED",             409),
        };
        KindRow { hub_code, reason, domain, official: Codes { code, status, http } }
    }

    /// JSON-RPC code of the kind in the hub's dialect.
    pub fn hub_code(self) -> i32 {
        self.row().hub_code
    }

    /// Reason of the kind: a stable identifier for machines.
    pub fn reason(self) -> &'static str {
        self.row().reason
    }

    /// Official A2A codes of the kind.
    pub fn official(self) -> Codes {
        self.row().official
    }

    /// Kind of an official server's error, from its reason if known, otherwise from its JSON-RPC
    /// code.
    pub fn from_official(code: i64, reason: Option<&str>) -> Option<Self> {
        // Several kinds share a code; the first one is the kind that A2A defines for it.
        reason
            .and_then(Self::from_reason)
            .or_else(|| Self::ALL.into_iter().find(|kind| i64::from(kind.official().code) == code))
    }

    fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == reason)
    }

    /// Kind of an error class name of the official Python server of 0.3, such as
    /// `TaskNotFoundError`: the reason in another spelling.
    pub(crate) fn from_class(class: &str) -> Option<Self> {
        let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
        let class = plain(class);
        let name = class.strip_suffix("error")?;
        Self::ALL.into_iter().find(|kind| {
            let reason = plain(kind.reason());
            reason.strip_suffix("error").unwrap_or(&reason) == name
        })
    }

    /// Kind for an HTTP status without an error body (A2A 0.3 defines no REST errors).
    fn from_http(status: u16) -> Self {
        match status {
            400 => Self::InvalidRequest,
            401 => Self::Authentication,
            403 => Self::PermissionDenied,
            // Among resources with a path, only tasks are created and deleted at run time.
            404 => Self::TaskNotFound,
            405 => Self::MethodNotFound,
            409 => Self::TaskNotCancelable,
            415 => Self::ContentTypeNotSupported,
            422 => Self::InvalidParams,
            429 | 503 => Self::AgentUnavailable,
            501 => Self::UnsupportedOperation,
            502 => Self::InvalidAgentResponse,
            504 => Self::Timeout,
            _ => Self::Internal,
        }
    }

    /// Kind for the name of a `google.rpc.Code` without a known reason.
    pub(crate) fn from_status(name: &str) -> Self {
        match name {
            "INVALID_ARGUMENT" | "OUT_OF_RANGE" => Self::InvalidParams,
            "NOT_FOUND" => Self::TaskNotFound,
            "UNAUTHENTICATED" => Self::Authentication,
            "PERMISSION_DENIED" => Self::PermissionDenied,
            "FAILED_PRECONDITION" | "UNIMPLEMENTED" => Self::UnsupportedOperation,
            "UNAVAILABLE" | "RESOURCE_EXHAUSTED" | "CANCELLED" => Self::AgentUnavailable,
            "DEADLINE_EXCEEDED" => Self::Timeout,
            _ => Self::Internal,
        }
    }
}

impl A2aError {
    /// Creates a refusal without details.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: None }
    }

    /// Creates a refusal for an invalid parameter; `field` is its path, such as `message.parts[0]`.
    pub fn invalid(field: &str, why: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::InvalidParams, format!("`{field}`: {why}"))
            .with(json!({ "field": field }))
    }

    /// Creates a refusal for an internal error of the hub. The cause, such as a panic's text, may
    /// hold paths and secrets, so it goes to the hub's log and never to a client.
    pub fn internal() -> Self {
        Self::new(ErrorKind::Internal, "internal error; see the hub's log")
    }

    /// Creates a refusal for an unknown task.
    pub fn no_task(id: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::TaskNotFound, format!("no task is called `{}`", quoted(id)))
    }

    /// Creates a refusal for an unknown context.
    pub fn no_context(id: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::ContextNotFound, format!("no context is called `{}`", quoted(id)))
    }

    /// Adds details for machines.
    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// JSON-RPC error object in the hub's dialect; `data` always holds the reason.
    pub fn to_hub_json(&self) -> Value {
        json!({ "code": self.kind.hub_code(), "message": self.message, "data": self.data() })
    }

    fn data(&self) -> Value {
        let mut data = json!({ "reason": self.kind.reason() });
        if let (Value::Object(data), Some(Value::Object(details))) = (&mut data, &self.details) {
            data.extend(details.clone());
        }
        data
    }

    /// JSON-RPC error object of A2A 0.3: the official code, and the hub's `data`, which 0.3 leaves
    /// to the server.
    pub fn to_v03_json(&self) -> Value {
        json!({ "code": self.kind.official().code, "message": self.message, "data": self.data() })
    }

    /// JSON-RPC error object of A2A 1.0.
    pub fn to_v1_json(&self) -> Value {
        let code = self.kind.official().code;
        json!({ "code": code, "message": self.message, "data": self.official_details() })
    }

    /// Body of a REST error response: a `google.rpc.Status`.
    pub fn to_rest_json(&self) -> Value {
        let Codes { status, http, .. } = self.kind.official();
        json!({ "error": {
            "code": http,
            "status": status,
            "message": self.message,
            "details": self.official_details(),
        } })
    }

    /// Body of a REST error response for a 0.3 client: a `google.rpc.Status` merged with a JSON-RPC
    /// error object, which the JavaScript client reads.
    pub fn to_v03_rest_json(&self) -> Value {
        let mut written = self.to_v03_json();
        member::set(&mut written, "error", member::take(&mut self.to_rest_json(), "error"));
        written
    }

    /// Details for machines: `google.rpc.ErrorInfo`, and `BadRequest` if a field is invalid (A2A
    /// 1.0, sections 9.5 and 11.6).
    pub fn official_details(&self) -> Value {
        let known = self.details.as_ref().and_then(Value::as_object);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let facts: serde_json::Map<_, _> = known
            .into_iter()
            .flatten()
            .map(|(name, fact)| (name.clone(), json!(text(fact))))
            .collect();
        let mut details = vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.kind.reason(),
            "domain": self.kind.row().domain,
            "metadata": facts,
        })];
        if let (ErrorKind::InvalidParams, Some(field)) = (self.kind, facts.get("field")) {
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{ "field": field, "description": self.message }],
            }));
        }
        Value::Array(details)
    }

    /// Reads a JSON-RPC error object of an official server of 1.0 or 0.3; `None` if `error` is not
    /// one.
    pub fn read_official(error: &Value) -> Option<Self> {
        let code = error.get("code")?.as_i64()?;
        let data = error.get("data");
        let kind =
            ErrorKind::from_official(code, data.and_then(reason)).unwrap_or(ErrorKind::Internal);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        Some(Self { kind, message: message.to_owned(), details: data.cloned() })
    }

    /// Reads the JSON-RPC error of any server: also a code as text, and a bare message, which is an
    /// internal error. `None` if it says nothing.
    pub fn read_foreign(error: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // A number with a fraction of zero, as JavaScript and Lua may write it, is whole.
        let code = error.get("code").map(text);
        let code = code.and_then(|code| code.trim().trim_end_matches(".0").parse::<i64>().ok());
        let message = error.get("message").filter(|message| !message.is_null()).map(text);
        let message = message.or_else(|| error.as_str().map(str::to_owned)).unwrap_or_default();
        if code.is_none() && message.is_empty() {
            return None;
        }
        let details = error.get("data").cloned();
        let known =
            code.and_then(|code| ErrorKind::from_official(code, details.as_ref().and_then(reason)));
        Some(Self { kind: known.unwrap_or(ErrorKind::Internal), message, details })
    }

    /// Reads an official server's REST error, or an error in its stream.
    ///
    /// Accepts the `google.rpc.Status` of 1.0, and both forms of 0.3 servers: a JSON-RPC error
    /// object, and a bare `message`. Returns `None` for any other body.
    pub fn read_rest(http: u16, body: &Value) -> Option<Self> {
        let Some(status) = body.get("error").filter(|error| error.is_object()) else {
            let bare = || {
                // A gateway's 502 to 504 has a `message` too, but the agent's server did not write
                // it.
                let message =
                    body.get("message").filter(|_| !matches!(http, 502..=504))?.as_str()?;
                Some(Self::new(ErrorKind::from_http(http), message))
            };
            return Self::read_official(body).or_else(bare);
        };
        let details = status.get("details");
        let kind = details.and_then(reason).and_then(ErrorKind::from_reason);
        let kind = kind.unwrap_or_else(|| match status.get("status").and_then(Value::as_str) {
            Some(name) => ErrorKind::from_status(name),
            None => ErrorKind::from_http(http),
        });
        let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
        Some(Self { kind, message: message.to_owned(), details: details.cloned() })
    }
}

/// Reason in the details of a refusal: in `google.rpc.ErrorInfo`, which is an element of a list in
/// 1.0, or an object.
pub(crate) fn reason(details: &Value) -> Option<&str> {
    let named = |info: &'_ Value| info.get("reason").is_some_and(Value::is_string);
    let info = match details.as_array() {
        Some(all) => all.iter().find(|info| named(info))?,
        None => details,
    };
    info.get("reason")?.as_str()
}

/// An id for an error message: the client may have sent one of any length.
fn quoted(id: impl std::fmt::Display) -> String {
    let mut id = id.to_string();
    if id.len() > MAX_ID {
        id.truncate(id.floor_char_boundary(MAX_ID));
        id.push('…');
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_and_reasons_are_distinct() {
        let codes: HashSet<_> = ErrorKind::ALL.map(ErrorKind::hub_code).into();
        let reasons: HashSet<_> = ErrorKind::ALL.map(ErrorKind::reason).into();
        // Refusals for lack of an identity and of a right share the code of the dialect.
        assert_eq!((codes.len() + 1, reasons.len()), (ErrorKind::ALL.len(), ErrorKind::ALL.len()));
        for kind in ErrorKind::ALL {
            let read = |json: Value| A2aError::read_official(&json).map(|error| error.kind);
            let error = A2aError::new(kind, "no");
            assert_eq!(read(error.to_v1_json()), Some(kind));
            assert_eq!(read(error.to_v03_json()), Some(kind));
            let http = kind.official().http;
            let read = |json: Value| A2aError::read_rest(http, &json).map(|error| error.kind);
            assert_eq!(read(error.to_rest_json()), Some(kind));
            assert_eq!(read(error.to_v03_rest_json()), Some(kind));
        }
    }

    /// Codes of A2A 1.0.1, section 5.4, and of the hub's own kinds.
    #[test]
    fn official_codes_match_specification_table() {
        let line = |kind: ErrorKind| {
            let Codes { code, status, http } = kind.official();
            format!("{} {code} {status} {http}", kind.reason())
        };
        insta::assert_snapshot!(ErrorKind::ALL.map(line).join("\n"), @"
        PARSE_ERROR -32700 INVALID_ARGUMENT 400
        INVALID_REQUEST -32600 INVALID_ARGUMENT 400
        METHOD_NOT_FOUND -32601 UNIMPLEMENTED 404
        INVALID_PARAMS -32602 INVALID_ARGUMENT 400
        INTERNAL_ERROR -32603 INTERNAL 500
        TASK_NOT_FOUND -32001 NOT_FOUND 404
        TASK_NOT_CANCELABLE -32002 FAILED_PRECONDITION 400
        AGENT_NOT_FOUND -32602 NOT_FOUND 404
        AGENT_UNAVAILABLE -32603 UNAVAILABLE 503
        UNSUPPORTED_OPERATION -32004 FAILED_PRECONDITION 400
        AUTHENTICATION_ERROR -32600 UNAUTHENTICATED 401
        PERMISSION_DENIED -32600 PERMISSION_DENIED 403
        TIMEOUT_ERROR -32603 DEADLINE_EXCEEDED 504
        CONTEXT_NOT_FOUND -32602 NOT_FOUND 404
        PUSH_NOTIFICATION_NOT_SUPPORTED -32003 FAILED_PRECONDITION 400
        CONTENT_TYPE_NOT_SUPPORTED -32005 INVALID_ARGUMENT 400
        INVALID_AGENT_RESPONSE -32006 INTERNAL 500
        EXTENDED_AGENT_CARD_NOT_CONFIGURED -32007 FAILED_PRECONDITION 400
        EXTENSION_SUPPORT_REQUIRED -32008 FAILED_PRECONDITION 400
        VERSION_NOT_SUPPORTED -32009 FAILED_PRECONDITION 400
        TASK_GENERATION_MISMATCH -32010 ABORTED 409
        ");
        let by_code = |code| ErrorKind::from_official(code, None);
        assert_eq!(by_code(-32602), Some(ErrorKind::InvalidParams));
        assert_eq!(by_code(-32603), Some(ErrorKind::Internal));
        assert_eq!(by_code(-32600), Some(ErrorKind::InvalidRequest));
        assert_eq!(by_code(1), None);
    }

    #[test]
    fn official_details_name_the_field() {
        let error = A2aError::invalid("message.parts", "must not be empty");
        insta::assert_snapshot!(error.to_v1_json(), @r#"{"code":-32602,"data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{"field":"message.parts"},"reason":"INVALID_PARAMS"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"`message.parts`: must not be empty","field":"message.parts"}]}],"message":"`message.parts`: must not be empty"}"#);
        insta::assert_snapshot!(A2aError::no_task("t").to_rest_json(), @r#"{"error":{"code":404,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{},"reason":"TASK_NOT_FOUND"}],"message":"no task is called `t`","status":"NOT_FOUND"}}"#);
        insta::assert_snapshot!(A2aError::no_task("t").to_v03_rest_json(), @r#"{"code":-32001,"data":{"reason":"TASK_NOT_FOUND"},"error":{"code":404,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","metadata":{},"reason":"TASK_NOT_FOUND"}],"message":"no task is called `t`","status":"NOT_FOUND"},"message":"no task is called `t`"}"#);
    }

    #[test]
    fn rest_error_of_either_version_is_read() {
        let read = |http: u16, body: Value| match A2aError::read_rest(http, &body) {
            Some(why) => format!("{:?}: {why}", why.kind),
            None => "none".to_owned(),
        };
        let info = |reason: &str| json!([{ "fieldViolations": [] }, { "reason": reason }]);
        let told = [
            read(400, json!({"error": {"message": "m", "details": info("TASK_NOT_CANCELABLE")}})),
            read(
                404,
                json!({"error": {"message": "m", "status": "UNAVAILABLE", "details": info("X")}}),
            ),
            read(501, json!({"error": {"message": "m"}})),
            read(409, json!({"code": -32002, "message": "javascript"})),
            read(404, json!({"message": "python"})),
            read(503, json!({"message": "a proxy"})),
            read(200, json!({"message": {"messageId": "m"}})),
            read(404, json!({"detail": "Not Found"})),
        ];
        insta::assert_snapshot!(told.join("\n"), @"
        TaskNotCancelable: m
        AgentUnavailable: m
        UnsupportedOperation: m
        TaskNotCancelable: javascript
        TaskNotFound: python
        none
        none
        none
        ");
        let class = |name: &str| ErrorKind::from_class(name);
        assert_eq!(class("TaskNotFoundError"), Some(ErrorKind::TaskNotFound));
        assert_eq!(class("InternalError"), Some(ErrorKind::Internal));
        assert_eq!((class("TaskNotFound"), class("ValueError")), (None, None));
    }

    #[test]
    fn hub_error_data_holds_details_and_reason() {
        let wire = A2aError::invalid("message.parts", "must not be empty").to_hub_json();
        insta::assert_snapshot!(wire, @r#"{"code":-32602,"data":{"field":"message.parts","reason":"INVALID_PARAMS"},"message":"`message.parts`: must not be empty"}"#);
    }
}
