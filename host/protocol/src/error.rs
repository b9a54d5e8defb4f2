//! Every way to be refused: one type, and the tables that turn it into codes, statuses and reasons.

use serde_json::{Value, json};

/// Why an operation was refused, in terms any client understands.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct A2aError {
    /// What kind of refusal it is.
    pub kind: ErrorKind,
    /// What was wrong and how to do it right, for people.
    pub message: String,
    /// More for machines: the field at fault, the limit, what exists instead.
    pub details: Option<Value>,
}

/// The kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Not JSON.
    Parse,
    /// JSON, but not a JSON-RPC 2.0 request.
    InvalidRequest,
    /// No such method.
    MethodNotFound,
    /// A parameter is missing, of the wrong type or out of range.
    InvalidParams,
    /// A fault of the hub.
    Internal,
    /// No such task, or none the caller may see.
    TaskNotFound,
    /// The task is over.
    TaskNotCancelable,
    /// No such agent.
    AgentNotFound,
    /// The agent cannot take it now.
    AgentUnavailable,
    /// It exists, but cannot be done here.
    UnsupportedOperation,
    /// The caller did not show who it is, or may not do this.
    Authentication,
    /// It took longer than it was given.
    Timeout,
    /// No such context.
    ContextNotFound,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
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
    ];

    /// Its JSON-RPC code in the hub's own dialect.
    pub fn hub_code(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::AgentNotFound => -32003,
            Self::AgentUnavailable => -32004,
            Self::UnsupportedOperation => -32005,
            Self::Authentication => -32006,
            Self::Timeout => -32007,
            Self::ContextNotFound => -32008,
        }
    }

    /// The kind that [`ErrorKind::hub_code`] numbers `code`.
    pub fn from_hub_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| i64::from(kind.hub_code()) == code)
    }

    /// A stable word for machines.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Parse => "PARSE_ERROR",
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::MethodNotFound => "METHOD_NOT_FOUND",
            Self::InvalidParams => "INVALID_PARAMS",
            Self::Internal => "INTERNAL_ERROR",
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::AgentNotFound => "AGENT_NOT_FOUND",
            Self::AgentUnavailable => "AGENT_UNAVAILABLE",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::Authentication => "AUTHENTICATION_ERROR",
            Self::Timeout => "TIMEOUT_ERROR",
            Self::ContextNotFound => "CONTEXT_NOT_FOUND",
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

    /// No task is called `id`.
    pub fn no_task(id: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::TaskNotFound, format!("no task is called `{id}`"))
    }

    /// No context is called `id`.
    pub fn no_context(id: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::ContextNotFound, format!("no context is called `{id}`"))
    }

    /// The same, with details for machines.
    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The JSON-RPC error object in the hub's dialect: the reason always stands in `data`.
    pub fn to_hub_json(&self) -> Value {
        let mut data = json!({ "reason": self.kind.reason() });
        if let (Value::Object(data), Some(Value::Object(details))) = (&mut data, &self.details) {
            data.extend(details.clone());
        }
        json!({ "code": self.kind.hub_code(), "message": self.message, "data": data })
    }
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
            assert_eq!(ErrorKind::from_hub_code(kind.hub_code().into()), Some(kind));
        }
    }

    #[test]
    fn details_join_the_reason() {
        let wire = A2aError::invalid("message.parts", "must not be empty").to_hub_json();
        insta::assert_snapshot!(wire, @r#"{"code":-32602,"data":{"field":"message.parts","reason":"INVALID_PARAMS"},"message":"`message.parts`: must not be empty"}"#);
    }
}
