//! The methods of the hub's dialect: one table, from which requests are read and `rpc.discover` is written.

mod pushes;

use crate::{
    compat::{
        self, OfferedMessage,
        push::{self, OfferedConfig},
    },
    error::{A2aError, ErrorKind},
    hub_event::HubEvent,
    id::{AgentId, ContextId, MAX_ID, TaskId},
    message::{Metadata, base64_bytes},
    operation::{
        AgentHealth, AgentInfo, Component, ContextInfo, Deregistered, HubStatus, Operation, Page,
        SendMessage, TaskQuery, Wait,
    },
    push::Delivery,
    task::TaskState,
    terms::Terms,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A method: how it is called, what it takes and gives.
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Parameters to call it with, as JSON.
    pub example: &'static str,
    /// Whether it answers with a stream: each of its items is then a result.
    pub streams: bool,
    /// Whether it changes the hub itself: for administrators only.
    pub admin: bool,
    pub(super) params: fn(&mut SchemaGenerator) -> Schema,
    pub(super) result: fn(&mut SchemaGenerator) -> Schema,
    read: fn(Value) -> Result<Operation, A2aError>,
}

/// How many tasks or conversations are listed, unless the client says otherwise.
const DEFAULT_LISTED: usize = 20;

/// How many messages of a conversation are shown, unless the client says otherwise.
const DEFAULT_MESSAGES: usize = 100;

/// How many of anything are listed at most: more would hold up the client's next answer.
const MAX_LISTED: usize = 1_000;

/// What most methods have in common.
const PLAIN: Method = Method {
    name: "",
    summary: "",
    example: "{}",
    streams: false,
    admin: false,
    params: NoParams::json_schema,
    result: super::discover::task,
    read: |_| Err(A2aError::new(ErrorKind::MethodNotFound, "a method without a name")),
};

/// Every method of the hub's dialect.
pub static METHODS: &[Method] = &[
    Method {
        name: "hub/status",
        summary: "Tell how the hub is",
        result: SchemaGenerator::subschema_for::<HubStatus>,
        read: |_| Ok(Operation::Status),
        ..PLAIN
    },
    Method {
        name: "hub/events",
        summary: "Tell everything that happens, as it happens",
        streams: true,
        result: SchemaGenerator::subschema_for::<HubEvent>,
        read: |_| Ok(Operation::WatchHub),
        ..PLAIN
    },
    Method {
        name: "hub/agents/list",
        summary: "List the agents",
        example: r#"{"includeHealth": true}"#,
        params: ListAgents::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<AgentInfo>>,
        read: |params| {
            let ListAgents { include_health } = read(params)?;
            Ok(Operation::ListAgents { include_health })
        },
        ..PLAIN
    },
    Method {
        name: "hub/agents/get",
        summary: "Show an agent",
        example: r#"{"agentId": "claude-code"}"#,
        params: OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentInfo>,
        read: |params| Ok(Operation::GetAgent { id: one_agent(params)? }),
        ..PLAIN
    },
    Method {
        name: "hub/agents/health",
        summary: "Ask an agent how it is, now",
        example: r#"{"agentId": "claude-code"}"#,
        params: OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentHealth>,
        read: |params| Ok(Operation::CheckAgent { id: one_agent(params)? }),
        ..PLAIN
    },
    Method {
        name: "hub/agents/register",
        summary: "Take in an agent, for good: its component is copied into the plugins folder",
        example: r#"{"agentId": "parrot", "path": "/home/me/parrot.wasm"}"#,
        admin: true,
        params: RegisterAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentInfo>,
        read: register_agent,
        ..PLAIN
    },
    Method {
        name: "hub/agents/deregister",
        summary: "Let an agent go: its tasks go on to their end, its file leaves the plugins folder; one that came \
                  with the hub is gone until a restart",
        example: r#"{"agentId": "parrot"}"#,
        admin: true,
        params: OneAgent::json_schema,
        result: SchemaGenerator::subschema_for::<Deregistered>,
        read: |params| Ok(Operation::DeregisterAgent { id: one_agent(params)? }),
        ..PLAIN
    },
    Method {
        name: "hub/agents/reload",
        summary: "Read an agent's component again, or the card of one that is elsewhere; if that fails, the agent stays as \
                  it was",
        example: r#"{"agentId": "parrot"}"#,
        admin: true,
        params: ReloadAgent::json_schema,
        result: SchemaGenerator::subschema_for::<AgentInfo>,
        read: |params| {
            let ReloadAgent { agent_id: id, accept } = read(params)?;
            Ok(Operation::ReloadAgent { id, accept })
        },
        ..PLAIN
    },
    Method {
        name: "hub/tasks/list",
        summary: "List tasks, newest first",
        example: r#"{"contextId": "optional-context-id", "state": "completed", "limit": 20, "offset": 0}"#,
        params: ListTasks::json_schema,
        result: super::discover::tasks,
        read: |params| list_tasks(read(params)?),
        ..PLAIN
    },
    Method {
        name: "hub/contexts/list",
        summary: "List conversations, the latest first",
        example: r#"{"limit": 10}"#,
        params: ListContexts::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<ContextInfo>>,
        read: |params| {
            let ListContexts { limit, offset } = read(params)?;
            Ok(Operation::ListContexts(page(limit, offset)?))
        },
        ..PLAIN
    },
    Method {
        name: "hub/contexts/get",
        summary: "Show a conversation and what was said in it",
        example: r#"{"contextId": "ctx-789"}"#,
        params: GetContext::json_schema,
        result: SchemaGenerator::subschema_for::<ContextInfo>,
        read: get_context,
        ..PLAIN
    },
    Method {
        name: "hub/contexts/delete",
        summary: "Forget a conversation with its tasks; refused while one of them is alive",
        example: r#"{"contextId": "ctx-789"}"#,
        admin: true,
        params: DeleteContext::json_schema,
        result: SchemaGenerator::subschema_for::<Value>,
        read: |params| {
            let DeleteContext { context_id: id } = read(params)?;
            Ok(Operation::DeleteContext { id: context_id(id)? })
        },
        ..PLAIN
    },
    Method {
        name: "hub/deliveries/list",
        summary: "List push notifications that are on their way, or were given up",
        example: r#"{"dead": true}"#,
        params: pushes::ListDeliveries::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<Delivery>>,
        read: pushes::deliveries,
        ..PLAIN
    },
    Method {
        name: "hub/deliveries/retry",
        summary: "Retry a task's notifications that failed or were given up",
        example: r#"{"taskId": "task-456"}"#,
        params: pushes::RetryDeliveries::json_schema,
        result: SchemaGenerator::subschema_for::<Vec<Delivery>>,
        read: pushes::retry,
        ..PLAIN
    },
    Method {
        name: "message/send",
        summary: "Have an agent work on a message, and wait for the end",
        example: r#"{"message": {"kind": "message", "messageId": "msg-123", "role": "user",
            "parts": [{"kind": "text", "text": "Write a hello world function in Python"}],
            "metadata": {"targetAgent": "claude-code"}}, "configuration": {"historyLength": 10}}"#,
        params: MessageSend::json_schema,
        result: super::discover::task_or_message,
        read: |params| Ok(Operation::SendMessage(send_message(params)?)),
        ..PLAIN
    },
    Method {
        name: "message/stream",
        summary: "The same, hearing what happens as it happens",
        example: r#"{"message": {"kind": "message", "messageId": "msg-124", "role": "user",
            "parts": [{"kind": "text", "text": "Explain it"}], "metadata": {"targetAgent": "claude-code"}}}"#,
        streams: true,
        params: MessageSend::json_schema,
        result: super::discover::task_event,
        read: |params| Ok(Operation::StreamMessage(send_message(params)?)),
        ..PLAIN
    },
    Method {
        name: "tasks/get",
        summary: "Show a task",
        example: r#"{"id": "task-456", "historyLength": 10}"#,
        params: GetTask::json_schema,
        read: |params| {
            let GetTask { id, history_length } = read(params)?;
            Ok(Operation::GetTask { id: task_id(id)?, history_length })
        },
        ..PLAIN
    },
    Method {
        name: "tasks/cancel",
        summary: "Stop a task",
        example: r#"{"id": "task-456"}"#,
        params: CancelTask::json_schema,
        read: |params| {
            let CancelTask { id } = read(params)?;
            Ok(Operation::CancelTask { id: task_id(id)? })
        },
        ..PLAIN
    },
    Method {
        name: "tasks/resubscribe",
        summary: "Hear what happens to a task: as it stands and from now on, or all that came after an event",
        example: r#"{"id": "task-456"}"#,
        streams: true,
        params: Resubscribe::json_schema,
        result: super::discover::task_event,
        read: |params| resubscribe(read(params)?),
        ..PLAIN
    },
    Method {
        name: "tasks/pushNotificationConfig/set",
        summary: "Have a task's notifications sent to a URL",
        example: r#"{"taskId": "task-456", "pushNotificationConfig": {"url": "https://example.com/news", "token": "t"}}"#,
        params: pushes::SetPush::json_schema,
        result: super::discover::push_config,
        read: pushes::set,
        ..PLAIN
    },
    Method {
        name: "tasks/pushNotificationConfig/get",
        summary: "Show where a task's notifications are sent",
        example: r#"{"id": "task-456", "pushNotificationConfigId": "config-1"}"#,
        params: pushes::GetPush::json_schema,
        result: super::discover::push_config,
        read: pushes::get,
        ..PLAIN
    },
    Method {
        name: "tasks/pushNotificationConfig/list",
        summary: "List where a task's notifications are sent",
        example: r#"{"id": "task-456"}"#,
        params: pushes::ListPushes::json_schema,
        result: super::discover::push_configs,
        read: pushes::list,
        ..PLAIN
    },
    Method {
        name: "tasks/pushNotificationConfig/delete",
        summary: "Stop sending a task's notifications there",
        example: r#"{"id": "task-456", "pushNotificationConfigId": "config-1"}"#,
        params: pushes::DeletePush::json_schema,
        result: super::discover::nothing,
        read: pushes::delete,
        ..PLAIN
    },
    Method {
        name: "rpc.discover",
        summary: "Describe this interface, as an OpenRPC document",
        result: SchemaGenerator::subschema_for::<Value>,
        read: |_| Ok(Operation::Discover),
        ..PLAIN
    },
];

/// What `method` with `params` asks for.
pub fn operation(method: &str, params: Value) -> Result<Operation, A2aError> {
    match METHODS.iter().find(|known| known.name == method) {
        Some(known) => (known.read)(params),
        None => {
            let names: Vec<_> = METHODS.iter().map(|known| known.name).collect();
            let why = format!("no method is called `{method}`; `rpc.discover` lists them");
            Err(A2aError::new(ErrorKind::MethodNotFound, why).with(json!({ "methods": names })))
        }
    }
}

#[derive(JsonSchema)]
struct NoParams {}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListAgents {
    /// Whether to ask each how it is.
    #[serde(default)]
    include_health: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OneAgent {
    /// Its name on this hub.
    agent_id: AgentId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReloadAgent {
    /// Its name on this hub.
    agent_id: AgentId,
    /// For one that is elsewhere: the SHA-256 digest, in hex, of its new card, which is approved by this.
    accept: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RegisterAgent {
    /// What it is to be called; no other agent may be called so.
    agent_id: AgentId,
    /// Its component's file on the hub's machine, as an absolute path.
    path: Option<PathBuf>,
    /// The component itself in base64, instead of a path.
    component: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GetTask {
    /// The task's name.
    id: String,
    /// How many of its latest messages to show; all of them if left out.
    history_length: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct CancelTask {
    /// The task's name.
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Resubscribe {
    /// The task's name.
    id: String,
    /// Only what comes after the event of this number.
    after_seq: Option<u64>,
    /// The same, as the id that a server-sent event carries.
    last_event_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListTasks {
    /// Only those of this conversation.
    context_id: Option<String>,
    /// Only those in this state.
    state: Option<String>,
    /// How many at most: 20 unless said, 1,000 at most.
    limit: Option<usize>,
    /// Leaving out so many of the newest.
    offset: Option<usize>,
    /// How many of each task's latest messages to show; all of them if left out.
    history_length: Option<usize>,
    /// Whether to show what the agents made.
    #[serde(default)]
    include_artifacts: bool,
}

#[derive(Deserialize, JsonSchema)]
struct ListContexts {
    /// How many at most: 20 unless said, 1,000 at most.
    limit: Option<usize>,
    /// Leaving out so many of the latest.
    offset: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GetContext {
    /// The conversation's name.
    context_id: String,
    /// How many of its latest messages to show: 100 unless said, 1,000 at most.
    history_length: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeleteContext {
    /// The conversation's name.
    context_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MessageSend {
    /// What to say; `metadata.targetAgent` names who is to hear it, `metadata.workingDirectory` where to work, `metadata.question`
    /// which question of the task `taskId` it answers.
    message: OfferedMessage,
    /// How to treat it.
    #[serde(default)]
    configuration: Option<Configuration>,
    /// What the message's own metadata leaves out.
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    /// How many of the task's latest messages to show; all of them if left out.
    history_length: Option<usize>,
    /// Whether to wait for the end, as the hub does unless told otherwise.
    blocking: Option<bool>,
    /// How long the task may take, in milliseconds.
    timeout_ms: Option<u64>,
    /// Where the task's notifications are to be sent.
    push_notification_config: Option<OfferedConfig>,
    /// Media types that the client takes; any, if left out or empty.
    accepted_output_modes: Option<Vec<String>>,
}

fn one_agent(params: Value) -> Result<AgentId, A2aError> {
    read(params).map(|OneAgent { agent_id }| agent_id)
}

fn register_agent(params: Value) -> Result<Operation, A2aError> {
    let RegisterAgent { agent_id: id, path, component } = read(params)?;
    let component =
        match (path, component) {
            (Some(path), None) if path.is_absolute() => Component::File(path),
            (Some(_), None) => {
                let why = "must be absolute: the hub does not know where you are";
                return Err(A2aError::invalid("path", why));
            }
            (None, Some(text)) => {
                let bytes = base64_bytes::decode(&text);
                Component::Bytes(bytes.map_err(|why| {
                    A2aError::invalid("component", format!("is not base64: {why}"))
                })?)
            }
            (Some(_), Some(_)) | (None, None) => {
                return Err(A2aError::invalid("path", "give either `path` or `component`"));
            }
        };
    Ok(Operation::RegisterAgent { id, component })
}

fn resubscribe(params: Resubscribe) -> Result<Operation, A2aError> {
    let Resubscribe { id, after_seq, last_event_id } = params;
    let heard = last_event_id.map(|heard| {
        let why = "must be the id of an event of this task, which is its number";
        heard.parse().map_err(|_| A2aError::invalid("lastEventId", why))
    });
    Ok(Operation::Resubscribe { id: task_id(id)?, after: heard.transpose()?.or(after_seq) })
}

fn list_tasks(params: ListTasks) -> Result<Operation, A2aError> {
    let ListTasks { context_id, state, limit, offset, history_length, include_artifacts } = params;
    let known = |name: String| {
        let states = TaskState::ALL.map(TaskState::name).join(", ");
        let why = format!("no task is ever `{name}`; there are {states}");
        TaskState::from_name(&name).ok_or_else(|| A2aError::invalid("state", why))
    };
    Ok(Operation::ListTasks(TaskQuery {
        context: context_id.map(self::context_id).transpose()?,
        state: state.map(known).transpose()?,
        page: page(limit, offset)?,
        history_length,
        include_artifacts,
    }))
}

fn page(limit: Option<usize>, offset: Option<usize>) -> Result<Page, A2aError> {
    let limit = within("limit", limit.unwrap_or(DEFAULT_LISTED), 1, MAX_LISTED)?;
    Ok(Page { limit, offset: offset.unwrap_or(0) })
}

fn within(field: &str, number: usize, least: usize, most: usize) -> Result<usize, A2aError> {
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(A2aError::invalid(field, format!("must be {least} to {most}")))
    }
}

fn get_context(params: Value) -> Result<Operation, A2aError> {
    let GetContext { context_id: id, history_length } = read(params)?;
    let shown = history_length.unwrap_or(DEFAULT_MESSAGES);
    let history_length = within("historyLength", shown, 0, MAX_LISTED)?;
    Ok(Operation::GetContext { id: context_id(id)?, history_length })
}

fn send_message(params: Value) -> Result<SendMessage, A2aError> {
    let MessageSend { message, configuration, metadata } = read(params)?;
    let how = configuration.unwrap_or_default();
    if how.timeout_ms == Some(0) {
        return Err(A2aError::invalid("configuration.timeoutMs", "must be at least 1"));
    }
    let push = how.push_notification_config.map(push::read);
    if let Some(push) = &push {
        push.check("configuration.pushNotificationConfig")?;
    }
    let send = SendMessage::new(compat::message(message, "message")?, metadata.as_ref())?;
    // The specification shows that a client which does not say hears of the end.
    let wait = if how.blocking == Some(false) { Wait::No } else { send.wait };
    let (history_length, timeout_ms) = (how.history_length, how.timeout_ms);
    let output_modes = how.accepted_output_modes.unwrap_or_default();
    let terms = Terms { output_modes, ..send.terms };
    Ok(SendMessage { history_length, timeout_ms, push, wait, terms, ..send })
}

fn task_id(id: String) -> Result<TaskId, A2aError> {
    named("id", id)
}

fn named(field: &str, id: String) -> Result<TaskId, A2aError> {
    if id.is_empty() {
        Err(A2aError::invalid(field, "must not be empty"))
    } else {
        Ok(TaskId::new(id))
    }
}

fn context_id(id: String) -> Result<ContextId, A2aError> {
    if id.is_empty() || id.len() > MAX_ID {
        let why = format!("must be 1 to {MAX_ID} bytes long");
        Err(A2aError::invalid("contextId", why))
    } else {
        Ok(ContextId::new(id))
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, A2aError> {
    serde_path_to_error::deserialize(params).map_err(|why| {
        let path = why.path().to_string();
        let field = if path == "." { "params".to_owned() } else { path };
        A2aError::invalid(&field, why.into_inner())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_method_is_there_once_and_reads_its_example() {
        let names: HashSet<_> = METHODS.iter().map(|method| method.name).collect();
        assert_eq!(names.len(), METHODS.len());
        for method in METHODS {
            let example = serde_json::from_str(method.example).unwrap();
            let operation = operation(method.name, example).unwrap();
            assert_eq!(operation.streams(), method.streams, "{}", method.name);
        }
    }

    #[test]
    fn an_agent_comes_from_one_place() {
        let register = |params: Value| operation("hub/agents/register", params);
        let bytes = register(json!({"agentId": "a", "component": "AGFzbQ=="})).unwrap();
        let component = Component::Bytes(b"\0asm".to_vec());
        assert_eq!(bytes, Operation::RegisterAgent { id: AgentId::parse("a").unwrap(), component });
        let refused = [
            json!({"agentId": "../a", "path": "/a.wasm"}),
            json!({"agentId": "a"}),
            json!({"agentId": "a", "path": "/a.wasm", "component": "AGFzbQ=="}),
            json!({"agentId": "a", "path": "a.wasm"}),
            json!({"agentId": "a", "component": "?"}),
        ]
        .map(|params| register(params).unwrap_err().to_string());
        insta::assert_snapshot!(refused.join("\n"), @r"
        `agentId`: `../a` cannot name an agent: use 1 to 63 lower-case letters, digits and hyphens, beginning with a letter
        `path`: give either `path` or `component`
        `path`: give either `path` or `component`
        `path`: must be absolute: the hub does not know where you are
        `component`: is not base64: Invalid symbol 63, offset 0.
        ");
    }
}
