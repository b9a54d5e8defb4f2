//! How a client spells what it asks, and is answered: one choice, made where a request comes in. Below, [`jsonrpc`],
//! [`rest`] and [`grpc`] read requests to a server in any dialect, and write those of a client.

mod finished;
pub mod grpc;
mod heard;
pub mod jsonrpc;
pub mod rest;
mod wire;

pub use finished::FinishedTask;
pub use heard::HeardEvent;
pub use wire::Wire;

use crate::{
    codec::spelled::{Answered, Form},
    hub,
    model::{
        error::A2aError,
        event::SequencedEvent,
        interface::{Binding, Version},
        method::Method,
        operation::{Answer, Operation},
    },
};
use serde_json::Value;

/// A dialect: how a client spells what it asks, and is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The Local Hub specification's.
    Hub,
    /// That of official A2A, in one version on one binding.
    Official(Wire),
}

impl Dialect {
    /// The dialect of a JSON-RPC request for the method `name`, where requests are `otherwise` spelled so. The methods of
    /// 1.0 are called as nothing else is.
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

    /// What a JSON-RPC request for the method `name` asks for.
    pub fn operation(self, name: &str, params: Value) -> Result<Operation, A2aError> {
        match self {
            Self::Hub => hub::methods::operation(name, params),
            Self::Official(wire) => wire.operation(name, params),
        }
    }

    /// Writes a refusal as the error object of a JSON-RPC response.
    pub fn write_error(self, error: &A2aError) -> Value {
        match self {
            Self::Hub => error.to_hub_json(),
            Self::Official(Wire { version: Version::V1, .. }) => error.to_v1_json(),
            Self::Official(Wire { version: Version::V03, .. }) => error.to_v03_json(),
        }
    }

    /// Writes a refusal as REST tells it, in a body or in a stream.
    pub fn write_rest_error(self, error: &A2aError) -> Value {
        match self {
            Self::Official(Wire { version: Version::V03, .. }) => error.to_v03_rest_json(),
            Self::Hub | Self::Official(Wire { version: Version::V1, .. }) => error.to_rest_json(),
        }
    }

    /// How it spells nouns.
    fn form(self) -> Form {
        match self {
            Self::Hub => Form::V03,
            Self::Official(wire) => wire.form(),
        }
    }

    /// The text of an answer that is a task or a message, ready to be sent; none of all others. `sent` tells whether it is to a
    /// message, which both 1.0 and ProtoJSON say by name.
    pub fn answer_text(self, answer: &Answer, sent: bool) -> Option<Vec<u8>> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "all others are written as values")]
        match answer {
            Answer::Task(task) if sent => Some(self.form().text(&Answered("task", task.as_ref()))),
            Answer::Task(task) => Some(self.form().text(task.as_ref())),
            Answer::Message(message) => Some(self.form().text(&Answered("message", message))),
            _ => None,
        }
    }

    /// Writes what a listener hears of an event; nothing of a client's own words.
    pub fn write_event(self, sequenced: &SequencedEvent) -> Option<Value> {
        Form::tells(&sequenced.event).then(|| self.form().value(sequenced))
    }
}

#[cfg(test)]
mod tests;
