//! Errors as clients meet them: one type, and one table that turns its kinds into codes, statuses and reasons (A2A 1.0,
//! sections 3.3.2 and 5.4).

use crate::member;
use serde_json::{Value, json};

/// The refusal of an operation, in terms that any client understands.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct A2aError {
    /// The kind of refusal, which decides codes and statuses.
    pub kind: ErrorKind,
    /// What was wrong and how to do it right, for people.
    pub message: String,
    /// More for machines: the field at fault, the limit, what exists instead.
    pub details: Option<Value>,
}

/// A kind of refusal: those of JSON-RPC and A2A, and the hub's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// What was sent is not JSON.
    Parse,
    /// What was sent is JSON, but not a JSON-RPC 2.0 request.
    InvalidRequest,
    /// No method has that name.
    MethodNotFound,
    /// A parameter is missing, of the wrong type or out of range.
    InvalidParams,
    /// A fault of the hub.
    Internal,
    /// No task has that id, or none that the caller may see.
    TaskNotFound,
    /// The task is over, and cannot be cancelled.
    TaskNotCancelable,
    /// No agent has that id.
    AgentNotFound,
    /// The agent cannot take the task now.
    AgentUnavailable,
    /// The operation exists, but cannot be done here.
    UnsupportedOperation,
    /// The caller did not show who it is, or may not do this.
    Authentication,
    /// The operation took longer than it was given.
    Timeout,
    /// No conversation has that id.
    ContextNotFound,
    /// The agent sends no push notifications.
    PushNotSupported,
    /// A media type that is not taken.
    ContentTypeNotSupported,
    /// An agent answered what makes no sense.
    InvalidAgentResponse,
    /// There is no card but the public one.
    ExtendedCardNotConfigured,
    /// The agent asks for an extension that the client did not activate.
    ExtensionRequired,
    /// A version of A2A that is not spoken here.
    VersionNotSupported,
}

/// The codes of a kind of refusal over each of A2A's bindings (A2A 1.0.1, section 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes {
    /// The code of a JSON-RPC error object.
    pub code: i32,
    /// The gRPC code, by its name in `google.rpc.Code`.
    pub status: &'static str,
    /// The HTTP status of REST.
    pub http: u16,
}

/// The domain of the reasons that A2A knows.
const A2A: &str = "a2a-protocol.org";

/// The domain of the hub's own reasons.
const HUB: &str = "a2a-hub";

/// A row of the table of kinds.
struct Row {
    hub_code: i32,
    reason: &'static str,
    domain: &'static str,
    official: Codes,
}

impl ErrorKind {
    /// Every kind of error, in the order of their numbers.
    pub const ALL: [Self; 19] = [
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
        Self::Timeout,
        Self::ContextNotFound,
        Self::PushNotSupported,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionRequired,
        Self::VersionNotSupported,
    ];

    /// The one table of them all: the hub's own code; the reason, and whose word it is; official A2A's code, gRPC status
    /// and HTTP status. What only this hub knows is told there in the words of JSON-RPC, gRPC and HTTP themselves.
    #[rustfmt::skip]
    fn row(self) -> Row {
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
            Self::Timeout                   => (-32007, "TIMEOUT_ERROR",                      HUB, -32603, "DEADLINE_EXCEEDED",   504),
            Self::ContextNotFound           => (-32008, "CONTEXT_NOT_FOUND",                  HUB, -32602, "NOT_FOUND",           404),
            Self::PushNotSupported          => (-32009, "PUSH_NOTIFICATION_NOT_SUPPORTED",    A2A, -32003, "FAILED_PRECONDITION", 400),
            Self::ContentTypeNotSupported   => (-32010, "CONTENT_TYPE_NOT_SUPPORTED",         A2A, -32005, "INVALID_ARGUMENT",    400),
            Self::InvalidAgentResponse      => (-32011, "INVALID_AGENT_RESPONSE",             A2A, -32006, "INTERNAL",            500),
            Self::ExtendedCardNotConfigured => (-32012, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", A2A, -32007, "FAILED_PRECONDITION", 400),
            Self::ExtensionRequired         => (-32013, "EXTENSION_SUPPORT_REQUIRED",         A2A, -32008, "FAILED_PRECONDITION", 400),
            Self::VersionNotSupported       => (-32014, "VERSION_NOT_SUPPORTED",              A2A, -32009, "FAILED_PRECONDITION", 400),
        };
        Row { hub_code, reason, domain, official: Codes { code, status, http } }
    }

    /// The JSON-RPC code of the kind in the hub's own dialect.
    pub fn hub_code(self) -> i32 {
        self.row().hub_code
    }

    /// The reason: a stable word for machines.
    pub fn reason(self) -> &'static str {
        self.row().reason
    }

    /// The codes of the kind in official A2A.
    pub fn official(self) -> Codes {
        self.row().official
    }

    /// The kind that an official server means by a JSON-RPC code and, if it gave one, a reason.
    pub fn from_official(code: i64, reason: Option<&str>) -> Option<Self> {
        // The first of its code is A2A's own meaning of it.
        reason
            .and_then(Self::from_reason)
            .or_else(|| Self::ALL.into_iter().find(|kind| i64::from(kind.official().code) == code))
    }

    fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == reason)
    }

    /// The kind that the official server of 0.3 in Python means by the class of an error, such as `TaskNotFoundError`:
    /// the reason in another spelling.
    pub(crate) fn from_class(class: &str) -> Option<Self> {
        let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
        let class = plain(class);
        let name = class.strip_suffix("error")?;
        Self::ALL.into_iter().find(|kind| {
            let reason = plain(kind.reason());
            reason.strip_suffix("error").unwrap_or(&reason) == name
        })
    }

    /// The kind that an HTTP status alone tells (A2A 0.3, where REST had no errors of its own).
    fn from_http(status: u16) -> Self {
        match status {
            400 => Self::InvalidRequest,
            401 | 403 => Self::Authentication,
            // Of what has a path, only tasks come and go.
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

    /// The kind that the name of a `google.rpc.Code` alone tells.
    pub(crate) fn from_status(name: &str) -> Self {
        match name {
            "INVALID_ARGUMENT" | "OUT_OF_RANGE" => Self::InvalidParams,
            "NOT_FOUND" => Self::TaskNotFound,
            "UNAUTHENTICATED" | "PERMISSION_DENIED" => Self::Authentication,
            "FAILED_PRECONDITION" | "UNIMPLEMENTED" => Self::UnsupportedOperation,
            "UNAVAILABLE" | "RESOURCE_EXHAUSTED" | "CANCELLED" => Self::AgentUnavailable,
            "DEADLINE_EXCEEDED" => Self::Timeout,
            _ => Self::Internal,
        }
    }
}

impl A2aError {
    /// A refusal of this kind, told in these words.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: None }
    }

    /// A parameter that is missing, of the wrong type or out of range; `field` is its path, such as `message.parts[0]`.
    pub fn invalid(field: &str, why: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::InvalidParams, format!("`{field}`: {why}"))
            .with(json!({ "field": field }))
    }

    /// The hub's own code failed. A panic's text may hold paths and secrets: it is in the hub's log, and no client is shown it.
    pub fn internal() -> Self {
        Self::new(ErrorKind::Internal, "internal error; see the hub's log")
    }

    /// No task is called `id`.
    pub fn no_task(id: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::TaskNotFound, format!("no task is called `{id}`"))
    }

    /// No context is called `id`.
    pub fn no_context(id: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::ContextNotFound, format!("no context is called `{id}`"))
    }

    /// The same refusal with details for machines.
    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The JSON-RPC error object in the hub's dialect: the reason always stands in `data`.
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

    /// The JSON-RPC error object of A2A 0.3: the official code, and our `data`, for there it is free.
    pub fn to_v03_json(&self) -> Value {
        json!({ "code": self.kind.official().code, "message": self.message, "data": self.data() })
    }

    /// The JSON-RPC error object of A2A 1.0.
    pub fn to_v1_json(&self) -> Value {
        let code = self.kind.official().code;
        json!({ "code": code, "message": self.message, "data": self.official_details() })
    }

    /// The body of an HTTP response, a `google.rpc.Status`: how REST tells a refusal.
    pub fn to_rest_json(&self) -> Value {
        let Codes { status, http, .. } = self.kind.official();
        json!({ "error": {
            "code": http,
            "status": status,
            "message": self.message,
            "details": self.official_details(),
        } })
    }

    /// The body of an HTTP response for a client of 0.3: beside the `google.rpc.Status`, where the JavaScript client
    /// looks for it, the error of JSON-RPC.
    pub fn to_v03_rest_json(&self) -> Value {
        let mut written = self.to_v03_json();
        member::set(&mut written, "error", member::take(&mut self.to_rest_json(), "error"));
        written
    }

    /// What went wrong for machines: `google.rpc.ErrorInfo`, and `BadRequest` if a field is at fault (A2A 1.0, section
    /// 9.5 and 11.6).
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

    /// The refusal in an error object of JSON-RPC as an official server writes it, of either version; `None` if it is
    /// none.
    pub fn read_official(error: &Value) -> Option<Self> {
        let code = error.get("code")?.as_i64()?;
        let data = error.get("data");
        let kind =
            ErrorKind::from_official(code, data.and_then(reason)).unwrap_or(ErrorKind::Internal);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        Some(Self { kind, message: message.to_owned(), details: data.cloned() })
    }

    /// The refusal in an answer of REST with this HTTP status, or in its stream, as an official server writes it: the
    /// `google.rpc.Status` of 1.0, or what servers of 0.3 have: the error of JSON-RPC, or a bare `message`. `None` if it
    /// is none of them.
    pub fn read_rest(http: u16, body: &Value) -> Option<Self> {
        let Some(status) = body.get("error").filter(|error| error.is_object()) else {
            let bare = || {
                // A proxy says so as well, of a server that is not there.
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

/// The reason in the details of a refusal: in `google.rpc.ErrorInfo`, which 1.0 has in a list, or in an object.
pub(crate) fn reason(details: &Value) -> Option<&str> {
    let named = |info: &'_ Value| info.get("reason").is_some_and(Value::is_string);
    let info = match details.as_array() {
        Some(all) => all.iter().find(|info| named(info))?,
        None => details,
    };
    info.get("reason")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_and_reasons_are_distinct() {
        let codes: HashSet<_> = ErrorKind::ALL.map(ErrorKind::hub_code).into();
        let reasons: HashSet<_> = ErrorKind::ALL.map(ErrorKind::reason).into();
        assert_eq!((codes.len(), reasons.len()), (ErrorKind::ALL.len(), ErrorKind::ALL.len()));
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

    /// Section 5.4 of A2A 1.0.1, and what is this hub's own.
    #[test]
    fn official_codes() {
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
        TIMEOUT_ERROR -32603 DEADLINE_EXCEEDED 504
        CONTEXT_NOT_FOUND -32602 NOT_FOUND 404
        PUSH_NOTIFICATION_NOT_SUPPORTED -32003 FAILED_PRECONDITION 400
        CONTENT_TYPE_NOT_SUPPORTED -32005 INVALID_ARGUMENT 400
        INVALID_AGENT_RESPONSE -32006 INTERNAL 500
        EXTENDED_AGENT_CARD_NOT_CONFIGURED -32007 FAILED_PRECONDITION 400
        EXTENSION_SUPPORT_REQUIRED -32008 FAILED_PRECONDITION 400
        VERSION_NOT_SUPPORTED -32009 FAILED_PRECONDITION 400
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
    fn a_refusal_over_rest_comes_in_the_form_of_either_version() {
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
    fn details_join_the_reason() {
        let wire = A2aError::invalid("message.parts", "must not be empty").to_hub_json();
        insta::assert_snapshot!(wire, @r#"{"code":-32602,"data":{"field":"message.parts","reason":"INVALID_PARAMS"},"message":"`message.parts`: must not be empty"}"#);
    }
}
