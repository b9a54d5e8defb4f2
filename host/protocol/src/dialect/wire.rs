//! Version and binding of official A2A, which together determine the JSON form: 1.0 uses ProtoJSON
//! on all bindings, 0.3 its own JSON over JSON-RPC and an older package's ProtoJSON over REST and
//! gRPC.

use super::foreign;
use crate::{
    card::{Endpoints, extended},
    codec::{
        json_path::Tolerant,
        spelled::{Form, Wrapped},
    },
    member,
    model::{
        error::A2aError,
        event::{SequencedEvent, StreamResponse},
        interface::{Binding, Interface, Version},
        method::Method,
        operation::{Answer, CardOf, Operation},
        push::PushConfig,
        task::Task,
    },
    v1, v03,
};
use serde_json::{Value, json};

/// A version of official A2A over a protocol binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wire {
    /// Version of A2A.
    pub version: Version,
    /// Protocol binding; 0.3 has a different form for each.
    pub binding: Binding,
}

impl Wire {
    /// Wire of a card's interface; `None` if the hub does not support it.
    pub fn from_interface(interface: &Interface) -> Option<Self> {
        let binding = interface.binding()?;
        let version = match (binding, interface.version.as_str()) {
            (_, "1.0") => Version::V1,
            // Over JSON-RPC, 0.2 has the same requests and answers as 0.3.
            (_, "0.3") | (Binding::JsonRpc, "0.2") => Version::V03,
            _ => return None,
        };
        Some(Self { version, binding })
    }

    pub(super) fn form(self) -> Form {
        match (self.version, self.binding) {
            (Version::V1, _) => Form::V1,
            (Version::V03, Binding::JsonRpc) => Form::V03,
            (Version::V03, Binding::Rest | Binding::Grpc) => Form::V03Proto,
        }
    }

    /// Reads the parameters of the JSON-RPC method `name`.
    pub(super) fn operation(self, name: &str, params: Value) -> Result<Operation, A2aError> {
        match self.version {
            Version::V1 => v1::operation(name, params),
            Version::V03 => v03::methods::operation(name, params),
        }
    }

    /// Reads the parameters of a REST or gRPC method.
    pub(super) fn read_call(self, method: Method, params: Value) -> Result<Operation, A2aError> {
        match self.version {
            Version::V1 => v1::read(method, params),
            Version::V03 => v03::proto::operation(method, params),
        }
    }

    /// REST or gRPC method and parameters of an operation; `None` if the version lacks the
    /// operation.
    pub(super) fn write_call(self, operation: &Operation) -> Option<(Method, Value)> {
        match self.version {
            Version::V1 => v1::write_request(operation),
            Version::V03 => v03::proto::write_request(operation),
        }
    }

    /// Writes an answer; `sent` marks the response to a message, which 1.0 and ProtoJSON wrap by
    /// type. Returns `None` if A2A lacks the answer, and for a card without endpoints.
    pub fn write_answer(
        self,
        answer: &Answer,
        sent: bool,
        endpoints: Option<&Endpoints>,
    ) -> Option<Value> {
        let is_proto = !matches!(self.form(), Form::V03);
        #[expect(clippy::wildcard_enum_match_arm, reason = "all others are the hub's own")]
        Some(match answer {
            Answer::Task(task) if sent => self.form().value(&Wrapped("task", task.as_ref())),
            Answer::Task(task) => self.form().value(task.as_ref()),
            Answer::Message(message) => self.form().value(&Wrapped("message", message)),
            Answer::TaskPage { tasks, artifacts, size, total, next } => {
                v1::write_tasks(tasks, *artifacts, *size, *total, next.as_ref())
            }
            Answer::PushConfig(config) => self.write_push_config(config),
            // ProtoJSON omits an empty list.
            Answer::PushConfigs(configs) if is_proto && configs.is_empty() => json!({}),
            Answer::PushConfigs(configs) => {
                let configs: Value =
                    configs.iter().map(|config| self.write_push_config(config)).collect();
                if is_proto { json!({ "configs": configs }) } else { configs }
            }
            Answer::PushConfigDeleted => Value::Null,
            Answer::Card(of) => self.write_card(of, endpoints?),
            _ => return None,
        })
    }

    /// Writes an event as a stream item; `None` for a client's own message.
    pub fn write_event(self, sequenced: &SequencedEvent) -> Option<Value> {
        Form::tells(&sequenced.event).then(|| self.form().value(sequenced))
    }

    /// Reads a task from a server's response, as far as it can be read.
    pub fn read_task(self, value: Value) -> Result<Tolerant<Task>, A2aError> {
        foreign::read_task(self.form(), value)
    }

    /// Reads a stream item, or the response to a message, as far as it can be read.
    pub fn read_stream_response(self, value: Value) -> Result<Tolerant<StreamResponse>, A2aError> {
        foreign::read_stream_response(self.form(), value)
    }

    /// Adds the requested tenant to the push configurations of a 1.0 answer.
    pub fn echo_tenant(self, answer: &mut Value, tenant: Option<&str>) {
        let (Version::V1, Some(tenant)) = (self.version, tenant) else { return };
        let configs = answer.get_mut("configs").and_then(Value::as_array_mut);
        if let Some(configs) = configs {
            configs.iter_mut().for_each(|config| member::set(config, "tenant", tenant));
        } else if answer.get("taskId").is_some() {
            member::set(answer, "tenant", tenant);
        }
    }

    /// Writes the extended card, which is the one that methods return.
    fn write_card(self, of: &CardOf, endpoints: &Endpoints) -> Value {
        let mut card = match self.version {
            Version::V1 => of.card.v1(endpoints),
            Version::V03 => of.card.hybrid(endpoints),
        };
        if (self.version, self.binding) == (Version::V03, Binding::Grpc) {
            // The JSON of 0.3 uses this member name for a list of another shape.
            let requirements = member::take(&mut card, "securityRequirements");
            member::set(&mut card, "security", requirements);
            for skill in card.get_mut("skills").and_then(Value::as_array_mut).into_iter().flatten()
            {
                let requirements = member::take(skill, "securityRequirements");
                if !requirements.is_null() {
                    member::set(skill, "security", requirements);
                }
            }
        }
        extended::extend(&mut card, of);
        card
    }

    fn write_push_config(self, config: &PushConfig) -> Value {
        match self.form() {
            Form::V1 => v1::write_push_config(config),
            Form::V03 => v03::push::write(config),
            Form::V03Proto => v03::proto::write_push_config(config),
        }
    }
}
