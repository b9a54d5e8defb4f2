//! Dialects: the wire forms of requests and answers. [`jsonrpc`], [`rest`] and [`grpc`] decode
//! requests on the server side and encode them on the client side, in any dialect.

mod encoded_event;
mod finished;
mod foreign;
pub mod grpc;
pub mod jsonrpc;
pub mod rest;
mod wire;

pub use encoded_event::EncodedEvent;
pub use finished::FinishedTask;
pub use wire::Wire;

/// Answer of a remote agent, as far as it was read.
pub use crate::codec::json_path::Tolerant;

use crate::{
    codec::spelled::{Form, Wrapped},
    hub,
    model::{
        error::A2aError,
        event::SequencedEvent,
        interface::{Binding, Version},
        method::Method,
        operation::{Answer, Operation},
    },
};
use serde_json::{Map, Value};

/// Wire form of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Dialect of the Local Hub specification.
    Hub,
    /// Official A2A in one version over one binding.
    Official(Wire),
}

impl Dialect {
    /// Dialect of a JSON-RPC request for the method `name`, with `otherwise` as the default. The
    /// method names of 1.0 are unique.
    pub fn of_method(name: &str, otherwise: Self) -> Self {
        let official = |version| Self::Official(Wire { version, binding: Binding::JsonRpc });
        if Method::named(name).is_some() {
            official(Version::V1)
        } else if otherwise != Self::Hub && name.contains('/') {
            official(Version::V03)
        } else {
            otherwise
        }
    }

    /// Reads the parameters of the JSON-RPC method `name`.
    pub fn operation(self, name: &str, params: Value) -> Result<Operation, A2aError> {
        match self {
            Self::Hub => hub::methods::operation(name, params),
            Self::Official(wire) => wire.operation(name, params),
        }
    }

    /// Reads the tenant and the operation from the members of the parameters of the method `name`.
    pub(crate) fn call(
        self,
        name: &str,
        params: Result<Map<String, Value>, A2aError>,
    ) -> (Option<String>, Result<Operation, A2aError>) {
        let tenant = params.as_ref().ok().and_then(|params| params.get("tenant")?.as_str());
        let tenant = tenant.map(str::to_owned);
        (tenant, params.and_then(|params| self.operation(name, Value::Object(params))))
    }

    /// Writes a refusal as a JSON-RPC error object.
    pub fn write_error(self, error: &A2aError) -> Value {
        match self {
            Self::Hub => error.to_hub_json(),
            Self::Official(Wire { version: Version::V1, .. }) => error.to_v1_json(),
            Self::Official(Wire { version: Version::V03, .. }) => error.to_v03_json(),
        }
    }

    /// Writes a refusal as a REST error, for a body or a stream.
    pub fn write_rest_error(self, error: &A2aError) -> Value {
        match self {
            Self::Official(Wire { version: Version::V03, .. }) => error.to_v03_rest_json(),
            Self::Hub | Self::Official(Wire { version: Version::V1, .. }) => error.to_rest_json(),
        }
    }

    /// JSON form of objects in this dialect.
    fn form(self) -> Form {
        match self {
            Self::Hub => Form::V03,
            Self::Official(wire) => wire.form(),
        }
    }

    /// Text of an answer that is a task or a message; `None` for all others. `sent` marks the
    /// response to a message, which 1.0 and ProtoJSON wrap by type.
    pub fn answer_text(self, answer: &Answer, sent: bool) -> Option<Vec<u8>> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "all others are written as values")]
        match answer {
            Answer::Task(task) if sent => Some(self.form().text(&Wrapped("task", task.as_ref()))),
            Answer::Task(task) => Some(self.form().text(task.as_ref())),
            Answer::Message(message) => Some(self.form().text(&Wrapped("message", message))),
            _ => None,
        }
    }

    /// Writes an event as a stream item; `None` for a client's own message.
    pub fn write_event(self, sequenced: &SequencedEvent) -> Option<Value> {
        Form::tells(&sequenced.event).then(|| self.form().value(sequenced))
    }
}

#[cfg(test)]
mod tests;
