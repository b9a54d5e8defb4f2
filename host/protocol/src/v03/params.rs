//! Parameters of A2A 0.3's methods (A2A 0.3, section 7), which the Local Hub uses as well.
//! `rpc.discover` publishes their JSON schemas.

use crate::{
    codec::limits,
    expected::plain,
    model::{
        client::ClientCapabilities,
        error::A2aError,
        id::{ContextId, MessageId, PushConfigId, TaskId},
        message::{Content, Message, Metadata, Part, Role, base64_bytes},
        operation::{Operation, SendMessage, Wait},
    },
    v03::push::{self, OfferedConfig},
};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageSend {
    /// Message to send; its `metadata` selects the agent (`targetAgent`) and directory
    /// (`workingDirectory`).
    message: OfferedMessage,
    /// Options of the request.
    #[serde(default)]
    configuration: Option<Configuration>,
    /// Metadata of the request; it supplies members that the message's own metadata lacks.
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Configuration {
    /// Number of the task's latest messages to include; all by default.
    history_length: Option<usize>,
    /// False to return at once; true by default, which waits until the task ends or asks something.
    blocking: Option<bool>,
    /// Time limit of the task in milliseconds, at least 1; the agent's own limit by default and at
    /// most.
    timeout_ms: Option<u64>,
    /// Receiver of the task's notifications.
    push_notification_config: Option<OfferedConfig>,
    /// Media types that the client accepts; any type, if absent or empty.
    accepted_output_modes: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GetTask {
    /// Id of the task.
    id: String,
    /// Number of the task's latest messages to include; all by default.
    history_length: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CancelTask {
    /// Id of the task.
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resubscribe {
    /// Id of the task.
    id: String,
    /// Sequence number of the last received event; the stream begins after it, or with the current
    /// task if absent.
    after_seq: Option<u64>,
    /// Id of the last received server-sent event; it takes precedence over `afterSeq`.
    last_event_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetPush {
    /// Id of the task.
    task_id: String,
    /// Receiver of the task's notifications.
    push_notification_config: OfferedConfig,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GetPush {
    /// Id of the task.
    id: String,
    /// Id of a configuration of the task; the first one by default.
    push_notification_config_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListPushes {
    /// Id of the task.
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeletePush {
    /// Id of the task.
    id: String,
    /// Id of a configuration of the task.
    push_notification_config_id: String,
}

/// Reads the parameters of `tasks/get`.
pub(crate) fn get_task(params: Value) -> Result<Operation, A2aError> {
    let GetTask { id, history_length } = read(params)?;
    Ok(Operation::GetTask { id: task_id("id", id)?, history_length })
}

/// Reads the parameters of `tasks/cancel`.
pub(crate) fn cancel_task(params: Value) -> Result<Operation, A2aError> {
    let CancelTask { id } = read(params)?;
    Ok(Operation::CancelTask { id: task_id("id", id)? })
}

/// Reads the parameters of `message/send`. Without `blocking`, the request waits for the end of the
/// task.
pub(crate) fn send_message(params: Value) -> Result<SendMessage, A2aError> {
    let MessageSend { message, configuration, metadata } = read(params)?;
    let configuration = configuration.unwrap_or_default();
    if configuration.timeout_ms == Some(0) {
        return Err(A2aError::invalid("configuration.timeoutMs", "must be at least 1"));
    }
    let push = configuration.push_notification_config.map(push::read);
    if let Some(push) = &push {
        push.check("configuration.pushNotificationConfig")?;
    }
    let send = SendMessage::new(message.accept("message")?, metadata.as_ref())?;
    // According to the specification's examples, a client that does not set `blocking` receives the
    // final task.
    let wait = if configuration.blocking == Some(false) { Wait::No } else { send.wait };
    let (history_length, timeout_ms) = (configuration.history_length, configuration.timeout_ms);
    let output_modes = configuration.accepted_output_modes.unwrap_or_default();
    let client = ClientCapabilities { output_modes, ..send.client };
    Ok(SendMessage { history_length, timeout_ms, push, wait, client, ..send })
}

/// Reads the parameters of `tasks/resubscribe`.
pub(crate) fn resubscribe(params: Value) -> Result<Operation, A2aError> {
    let Resubscribe { id, after_seq, last_event_id } = read(params)?;
    let last_seq = last_event_id.map(|heard| {
        let why = "must be the id of an event of this task, which is its number";
        heard.parse().map_err(|_| A2aError::invalid("lastEventId", why))
    });
    Ok(Operation::Resubscribe {
        id: task_id("id", id)?,
        after: last_seq.transpose()?.or(after_seq),
    })
}

/// Reads the parameters of `tasks/pushNotificationConfig/set`.
pub(crate) fn set_push(params: Value) -> Result<Operation, A2aError> {
    let SetPush { task_id: id, push_notification_config } = read(params)?;
    let push = push::read(push_notification_config);
    push.check("pushNotificationConfig")?;
    Ok(Operation::SetPushConfig { task: task_id("taskId", id)?, push })
}

/// Reads the parameters of `tasks/pushNotificationConfig/get`.
pub(crate) fn get_push(params: Value) -> Result<Operation, A2aError> {
    let GetPush { id, push_notification_config_id: config } = read(params)?;
    let config = some(config).map(PushConfigId::new);
    Ok(Operation::GetPushConfig { task: task_id("id", id)?, id: config })
}

/// Reads the parameters of `tasks/pushNotificationConfig/list`.
pub(crate) fn list_pushes(params: Value) -> Result<Operation, A2aError> {
    let ListPushes { id } = read(params)?;
    Ok(Operation::ListPushConfigs { task: task_id("id", id)? })
}

/// Reads the parameters of `tasks/pushNotificationConfig/delete`.
pub(crate) fn delete_push(params: Value) -> Result<Operation, A2aError> {
    let DeletePush { id, push_notification_config_id: config } = read(params)?;
    Ok(Operation::DeletePushConfig { task: task_id("id", id)?, id: PushConfigId::new(config) })
}

/// Validates the id of a task; `field` is its path, for the error.
pub(crate) fn task_id(field: &str, id: String) -> Result<TaskId, A2aError> {
    if id.is_empty() {
        Err(A2aError::invalid(field, "must not be empty"))
    } else {
        Ok(TaskId::new(id))
    }
}

/// Deserializes parameters; an error names the path of the invalid member.
pub(crate) fn read<T: DeserializeOwned>(params: Value) -> Result<T, A2aError> {
    // Tracking the path doubles the cost, so only failed input is read again with it.
    if let Ok(read) = T::deserialize(&params) {
        return Ok(read);
    }
    serde_path_to_error::deserialize(params).map_err(|why| {
        let path = why.path().to_string();
        let field = if path == "." { "params".to_owned() } else { path };
        A2aError::invalid(&field, plain(&why.into_inner().to_string()))
    })
}

/// Message of A2A 0.3 as a client sends it, before validation.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedMessage {
    kind: Option<String>,
    message_id: String,
    role: OfferedRole,
    parts: Vec<OfferedPart>,
    context_id: Option<String>,
    task_id: Option<String>,
    metadata: Option<Metadata>,
    extensions: Option<Vec<String>>,
    reference_task_ids: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OfferedRole {
    User,
    Agent,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum OfferedPart {
    Text { text: String, metadata: Option<Metadata> },
    File { file: OfferedFile, metadata: Option<Metadata> },
    Data { data: Value, metadata: Option<Metadata> },
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OfferedFile {
    name: Option<String>,
    mime_type: Option<String>,
    bytes: Option<String>,
    uri: Option<String>,
}

impl OfferedMessage {
    /// Validates the message and converts it to the model; `at` is its path, for the errors.
    pub fn accept(self, at: &str) -> Result<Message, A2aError> {
        let field = |name: &str| format!("{at}.{name}");
        if self.kind.as_deref().is_some_and(|kind| kind != "message") {
            return Err(A2aError::invalid(&field("kind"), "must be \"message\""));
        }
        let referenced = self.reference_task_ids.into_iter();
        let parts = self.parts.into_iter().enumerate();
        let parts = parts.map(|(n, offered)| part(offered, &field(&format!("parts[{n}]"))));
        let message = Message {
            message_id: MessageId::new(self.message_id),
            context_id: some(self.context_id).map(ContextId::new),
            task_id: some(self.task_id).map(TaskId::new),
            role: match self.role {
                OfferedRole::User => Role::User,
                OfferedRole::Agent => Role::Agent,
            },
            parts: parts.collect::<Result<_, _>>()?,
            metadata: self.metadata,
            extensions: self.extensions.unwrap_or_default(),
            reference_task_ids: referenced.flatten().map(TaskId::new).collect(),
        };
        limits::check_message(&message, at)?;
        Ok(message)
    }
}

/// Optional text; some clients write an absent one as an empty one.
fn some(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn part(offered: OfferedPart, at: &str) -> Result<Part, A2aError> {
    Ok(match offered {
        OfferedPart::Text { text, metadata } => Part::of_old(Content::Text(text), metadata),
        OfferedPart::Data { data, metadata } => Part::of_old(Content::Data(data), metadata),
        OfferedPart::File { file, metadata } => {
            let content = match (file.bytes, file.uri) {
                (Some(bytes), None) => {
                    Content::Raw(base64_bytes::decode(&bytes).map_err(|why| {
                        A2aError::invalid(
                            &format!("{at}.file.bytes"),
                            format!("is not base64: {why}"),
                        )
                    })?)
                }
                (None, Some(uri)) => Content::Url(uri),
                (Some(_), Some(_)) | (None, None) => {
                    let why = "must have either `bytes` or `uri`";
                    return Err(A2aError::invalid(&format!("{at}.file"), why));
                }
            };
            Part { content, filename: file.name, media_type: file.mime_type, metadata }
        }
    })
}
