//! One version of official A2A on one binding, which say together how nouns are spelled: 1.0 has ProtoJSON everywhere,
//! 0.3 its own JSON over JSON-RPC and the ProtoJSON of an older package elsewhere.

use crate::{
    card::{Endpoints, extended},
    codec::spelled::{Answered, Form},
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

/// A version of official A2A on a protocol binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wire {
    /// The version of A2A.
    pub version: Version,
    /// The protocol binding: 0.3 spells nouns in another way on each.
    pub binding: Binding,
}

impl Wire {
    /// The wire of a card's interface, if it is known here.
    pub fn of(interface: &Interface) -> Option<Self> {
        let binding = interface.binding()?;
        let version = match (binding, interface.version.as_str()) {
            (_, "1.0") => Version::V1,
            // 0.2 says over JSON-RPC the same things with the same words.
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

    /// What a JSON-RPC request for the method `name` asks for.
    pub(super) fn operation(self, name: &str, params: Value) -> Result<Operation, A2aError> {
        match self.version {
            Version::V1 => v1::operation(name, params),
            Version::V03 => v03::methods::operation(name, params),
        }
    }

    /// What the call of a method asks for over REST or gRPC.
    pub(super) fn read_call(self, method: Method, params: Value) -> Result<Operation, A2aError> {
        match self.version {
            Version::V1 => v1::read(method, params),
            Version::V03 => v03::proto::operation(method, params),
        }
    }

    /// The call over REST or gRPC that asks for this; none if the version has no such operation.
    pub(super) fn write_call(self, operation: &Operation) -> Option<(Method, Value)> {
        match self.version {
            Version::V1 => v1::write_request(operation),
            Version::V03 => v03::proto::write_request(operation),
        }
    }

    /// Writes an answer; `sent` tells whether it is to a message, which both 1.0 and ProtoJSON say by name. None if A2A
    /// has no such answer, and for a card without the endpoints that it would name.
    pub fn write_answer(
        self,
        answer: &Answer,
        sent: bool,
        endpoints: Option<&Endpoints>,
    ) -> Option<Value> {
        let is_proto = !matches!(self.form(), Form::V03);
        #[expect(clippy::wildcard_enum_match_arm, reason = "all others are the hub's own")]
        Some(match answer {
            Answer::Task(task) if sent => self.form().value(&Answered("task", task.as_ref())),
            Answer::Task(task) => self.form().value(task.as_ref()),
            Answer::Message(message) => self.form().value(&Answered("message", message)),
            Answer::TaskPage { tasks, artifacts, size, total, next } => {
                v1::write_tasks(tasks, *artifacts, *size, *total, next.as_ref())
            }
            Answer::PushConfig(config) => self.write_push_config(config),
            // ProtoJSON leaves a list out that is empty.
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

    /// Writes what a listener hears of an event; nothing of a client's own words.
    pub fn write_event(self, sequenced: &SequencedEvent) -> Option<Value> {
        Form::tells(&sequenced.event).then(|| self.form().value(sequenced))
    }

    /// Reads a task, as a client is answered.
    pub fn read_task(self, value: Value) -> Result<Task, A2aError> {
        match self.form() {
            Form::V1 => v1::read_task(value),
            Form::V03 => v03::json::read_task(value),
            Form::V03Proto => v03::proto::read_task(value),
        }
    }

    /// Reads what a client is told: an item of a stream, or the answer to a message.
    pub fn read_stream_response(self, value: Value) -> Result<StreamResponse, A2aError> {
        match self.form() {
            Form::V1 => v1::read_stream_response(value),
            Form::V03 => v03::json::read_stream_response(value),
            Form::V03Proto => v03::proto::read_stream_response(value),
        }
    }

    /// Says for which tenant a client asked, where 1.0 says it: of what it has told the hub itself.
    pub fn echo_tenant(self, answer: &mut Value, tenant: Option<&str>) {
        let (Version::V1, Some(tenant)) = (self.version, tenant) else { return };
        let configs = answer.get_mut("configs").and_then(Value::as_array_mut);
        if let Some(configs) = configs {
            configs.iter_mut().for_each(|config| member::set(config, "tenant", tenant));
        } else if answer.get("taskId").is_some() {
            member::set(answer, "tenant", tenant);
        }
    }

    /// Writes the extended card, for that is the one which clients ask for by a method.
    fn write_card(self, of: &CardOf, endpoints: &Endpoints) -> Value {
        let mut card = match self.version {
            Version::V1 => of.card.v1(endpoints),
            Version::V03 => of.card.hybrid(endpoints),
        };
        if (self.version, self.binding) == (Version::V03, Binding::Grpc) {
            // In 0.3's own JSON this is a list of another shape.
            let requirements = member::take(&mut card, "securityRequirements");
            member::set(&mut card, "security", requirements);
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
