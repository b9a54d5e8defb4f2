//! How a client spells what it asks, and is answered: one choice, made where a request comes in.

use crate::{
    card::official::Reach,
    hub,
    model::{
        error::A2aError,
        event::{Recorded, Told},
        operation::{Answer, Operation},
        task::Task,
    },
    v1, v03,
};
use serde_json::{Value, json};

/// How a client spells things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// As the Local Hub specification does.
    Hub,
    /// As official clients of A2A do.
    Official(Version),
}

/// A version of A2A, and where it matters how it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1.0, on any binding.
    V1,
    /// 0.3 over JSON-RPC.
    V03,
    /// 0.3 over REST and gRPC.
    V03Rest,
}

/// The versions that are spoken, as a client names one.
pub const VERSIONS: [&str; 2] = ["1.0", "0.3"];

impl Dialect {
    /// The dialect of a JSON-RPC request for the method `name`, where requests are `otherwise` spelled so. The methods of
    /// 1.0 are called as nothing else is.
    pub fn of_method(name: &str, otherwise: Self) -> Self {
        if v1::Method::named(name).is_some() {
            Self::Official(Version::V1)
        } else if otherwise != Self::Hub && name.contains('/') {
            Self::Official(Version::V03)
        } else {
            otherwise
        }
    }

    /// What a JSON-RPC request for the method `name` asks for.
    pub fn operation(self, name: &str, params: Value) -> Result<Operation, A2aError> {
        match self {
            Self::Hub => hub::methods::operation(name, params),
            Self::Official(Version::V1) => v1::operation(name, params),
            Self::Official(Version::V03 | Version::V03Rest) => v03::operation(name, params),
        }
    }

    /// A refusal as the error object of a JSON-RPC response.
    pub fn write_error(self, error: &A2aError) -> Value {
        match self {
            Self::Hub => error.to_hub_json(),
            Self::Official(Version::V1) => error.to_v1_json(),
            Self::Official(Version::V03 | Version::V03Rest) => error.to_v03_json(),
        }
    }

    /// A refusal as REST tells it, in a body or in a stream.
    pub fn write_rest_error(self, error: &A2aError) -> Value {
        match self {
            Self::Official(Version::V03 | Version::V03Rest) => error.to_v03_rest_json(),
            Self::Hub | Self::Official(Version::V1) => error.to_rest_json(),
        }
    }

    /// What a listener hears of an event; nothing of a client's own words.
    pub fn write_event(self, recorded: &Recorded) -> Option<Value> {
        match self {
            Self::Hub | Self::Official(Version::V03) => v03::json::write_event(recorded),
            Self::Official(Version::V1) => v1::write_event(recorded),
            Self::Official(Version::V03Rest) => v03::proto::write_event(recorded),
        }
    }
}

impl Version {
    /// An answer; `sent` tells whether it is to a message, which both 1.0 and REST say by name. None if A2A has no such
    /// answer.
    pub fn write_answer(self, answer: &Answer, sent: bool, reach: &Reach) -> Option<Value> {
        Some(match (answer, self) {
            (Answer::Task(task), Self::V03) => v03::json::write_task(task, None),
            (Answer::Task(task), Self::V1 | Self::V03Rest) => {
                let task = match self {
                    Self::V03Rest => v03::proto::write_task(task),
                    Self::V1 | Self::V03 => v1::write_task(task),
                };
                if sent { json!({ "task": task }) } else { task }
            }
            (Answer::Message(message), Self::V03) => v03::json::write_message(message),
            (Answer::Message(message), Self::V1) => {
                json!({ "message": v1::write_message(message) })
            }
            (Answer::Message(message), Self::V03Rest) => {
                json!({ "message": v03::proto::write_message(message) })
            }
            (Answer::TaskPage { tasks, artifacts, size, total, next }, _) => {
                v1::write_tasks(tasks, *artifacts, *size, *total, next.as_ref())
            }
            (Answer::PushConfig(config), _) => self.write_push_config(config),
            (Answer::PushConfigs(configs), Self::V03) => {
                configs.iter().map(v03::push::write).collect()
            }
            // ProtoJSON leaves a list out that is empty.
            (Answer::PushConfigs(configs), Self::V1 | Self::V03Rest) if configs.is_empty() => {
                json!({})
            }
            (Answer::PushConfigs(configs), Self::V1 | Self::V03Rest) => {
                let configs = configs.iter().map(|config| self.write_push_config(config));
                json!({ "configs": configs.collect::<Value>() })
            }
            (Answer::PushConfigDeleted, _) => Value::Null,
            (Answer::Card(of), Self::V1) => of.card.v1(reach),
            (Answer::Card(of), Self::V03 | Self::V03Rest) => of.card.hybrid(reach),
            _ => return None,
        })
    }

    /// A task, as a client is answered.
    pub fn read_task(self, value: Value) -> Result<Task, A2aError> {
        match self {
            Self::V1 => v1::read_task(value),
            Self::V03 => v03::read_task(value),
            Self::V03Rest => v03::proto::read_task(value),
        }
    }

    /// What a client is told: an item of a stream, or the answer to a message.
    pub fn read_told(self, value: Value) -> Result<Told, A2aError> {
        match self {
            Self::V1 => v1::read_told(value),
            Self::V03 => v03::read_told(value),
            Self::V03Rest => v03::proto::read_told(value),
        }
    }

    /// Says for which tenant a client asked, where 1.0 says it: of what it has told the hub itself.
    pub fn echo_tenant(self, answer: &mut Value, tenant: Option<&str>) {
        let (Self::V1, Some(tenant)) = (self, tenant) else { return };
        let configs = answer.get_mut("configs").and_then(Value::as_array_mut);
        if let Some(configs) = configs {
            configs.iter_mut().for_each(|config| config["tenant"] = json!(tenant));
        } else if answer.get("taskId").is_some() {
            answer["tenant"] = json!(tenant);
        }
    }

    fn write_push_config(self, config: &crate::model::push::PushConfig) -> Value {
        match self {
            Self::V1 => v1::write_push_config(config),
            Self::V03 => v03::push::write(config),
            Self::V03Rest => v03::proto::write_push_config(config),
        }
    }
}

/// Whether a version that a client names is spoken; to name none is to leave it to the method.
pub fn check_version(named: Option<&str>) -> Result<(), A2aError> {
    let Some(named) = named.map(str::trim).filter(|named| !named.is_empty()) else { return Ok(()) };
    // A patch changes nothing on the wire (A2A 1.0, section 3.6).
    let minor = named.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    if VERSIONS.contains(&minor.as_str()) {
        return Ok(());
    }
    let why = format!("A2A {named} is not spoken here; there are {}", VERSIONS.join(" and "));
    let refusal = A2aError::new(crate::model::error::ErrorKind::VersionNotSupported, why);
    Err(refusal.with(json!({ "supported": VERSIONS.join(", ") })))
}

#[cfg(test)]
mod tests;
