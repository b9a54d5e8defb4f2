//! The wire form of A2A 0.3, which the hub's own dialect shares: read into today's model, and written from it.

use crate::{
    codec::{
        limits,
        members::{object, some_list},
    },
    model::{
        error::A2aError,
        event::{ArtifactUpdate, Recorded, StatusUpdate, TaskEvent},
        id::{ContextId, MessageId, TaskId},
        message::{Content, Message, Metadata, Part, Role, base64_bytes},
        operation::ListedTask,
        task::{Artifact, Task, TaskStatus},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A message as a client offers it, not yet looked at.
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
    #[serde(default)]
    extensions: Vec<String>,
    #[serde(default)]
    reference_task_ids: Vec<String>,
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

/// Reads a message; `at` is where it stands, for the errors.
pub fn message(offered: OfferedMessage, at: &str) -> Result<Message, A2aError> {
    let field = |name: &str| format!("{at}.{name}");
    if offered.kind.as_deref().is_some_and(|kind| kind != "message") {
        return Err(A2aError::invalid(&field("kind"), "must be \"message\""));
    }
    let parts = offered.parts.into_iter().enumerate();
    let parts = parts.map(|(n, offered)| part(offered, &field(&format!("parts[{n}]"))));
    let message = Message {
        message_id: MessageId::new(offered.message_id),
        context_id: offered.context_id.map(ContextId::new),
        task_id: offered.task_id.map(TaskId::new),
        role: match offered.role {
            OfferedRole::User => Role::User,
            OfferedRole::Agent => Role::Agent,
        },
        parts: parts.collect::<Result<_, _>>()?,
        metadata: offered.metadata,
        extensions: offered.extensions,
        reference_task_ids: offered.reference_task_ids.into_iter().map(TaskId::new).collect(),
    };
    limits::check_message(&message, at)?;
    Ok(message)
}

fn part(offered: OfferedPart, at: &str) -> Result<Part, A2aError> {
    Ok(match offered {
        OfferedPart::Text { text, metadata } => Part { metadata, ..Part::text(text) },
        OfferedPart::Data { data, metadata } => Part { metadata, ..Part::data(data) },
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

fn list<T>(items: &[T], write: impl Fn(&T) -> Value) -> Value {
    items.iter().map(write).collect()
}

/// A task, with its latest `history_length` messages, or all of them.
pub fn write_task(task: &Task, history_length: Option<usize>) -> Value {
    let shown = history_length.unwrap_or(usize::MAX).min(task.history.len());
    object([
        ("kind", json!("task")),
        ("id", json!(task.id)),
        ("contextId", json!(task.context_id)),
        ("status", write_status(&task.status, &task.id, &task.context_id)),
        ("history", list(&task.history[task.history.len() - shown..], write_message)),
        ("artifacts", list(&task.artifacts, write_artifact)),
        ("metadata", json!(task.metadata)),
    ])
}

/// A task in a list, with its agent, and with or without what that made.
pub fn write_listed(ListedTask { agent, task }: &ListedTask, artifacts: bool) -> Value {
    let mut written = write_task(task, None);
    if let Value::Object(written) = &mut written {
        written.insert("agentId".to_owned(), json!(agent));
        if !artifacts {
            written.remove("artifacts");
        }
    }
    written
}

fn write_status(status: &TaskStatus, task: &TaskId, context: &ContextId) -> Value {
    let message = status.message.as_ref().map(|message| {
        let mut message = message.clone();
        message.task_id.get_or_insert_with(|| task.clone());
        message.context_id.get_or_insert_with(|| context.clone());
        write_message(&message)
    });
    object([
        ("state", json!(status.state.name())),
        ("message", json!(message)),
        ("timestamp", json!(status.timestamp)),
    ])
}

/// A message.
pub fn write_message(message: &Message) -> Value {
    object([
        ("kind", json!("message")),
        ("messageId", json!(message.message_id)),
        (
            "role",
            json!(match message.role {
                Role::User => "user",
                Role::Agent => "agent",
            }),
        ),
        ("parts", list(&message.parts, write_part)),
        ("taskId", json!(message.task_id)),
        ("contextId", json!(message.context_id)),
        ("metadata", json!(message.metadata)),
        ("extensions", some_list(&message.extensions, |uri| json!(uri))),
        ("referenceTaskIds", some_list(&message.reference_task_ids, |id| json!(id))),
    ])
}

fn write_part(part: &Part) -> Value {
    let file = |bytes: Value, uri: Value| {
        object([
            ("name", json!(part.filename)),
            ("mimeType", json!(part.media_type)),
            ("bytes", bytes),
            ("uri", uri),
        ])
    };
    let (kind, member, content) = match &part.content {
        Content::Text(text) => ("text", "text", json!(text)),
        // A 0.3 data part holds an object; another value stands in one.
        Content::Data(data) if data.is_object() => ("data", "data", data.clone()),
        Content::Data(data) => ("data", "data", json!({ "value": data })),
        Content::Raw(bytes) => {
            ("file", "file", file(json!(base64_bytes::encode(bytes)), Value::Null))
        }
        Content::Url(uri) => ("file", "file", file(Value::Null, json!(uri))),
    };
    object([("kind", json!(kind)), (member, content), ("metadata", json!(part.metadata))])
}

fn write_artifact(artifact: &Artifact) -> Value {
    object([
        ("artifactId", json!(artifact.artifact_id)),
        // The Local Hub specification requires a name; A2A does not.
        ("name", json!(artifact.name.as_deref().unwrap_or(artifact.artifact_id.as_str()))),
        ("description", json!(artifact.description)),
        ("parts", list(&artifact.parts, write_part)),
        ("metadata", json!(artifact.metadata)),
        ("extensions", some_list(&artifact.extensions, |uri| json!(uri))),
    ])
}

/// What a listener hears of an event; nothing of a client's own words.
pub fn write_event(recorded: &Recorded) -> Option<Value> {
    let Recorded { task, context, event, .. } = recorded;
    Some(match event {
        TaskEvent::Created(created) => write_task(&created.task, None),
        TaskEvent::Status(StatusUpdate { status, metadata }) => object([
            ("kind", json!("status-update")),
            ("taskId", json!(task)),
            ("contextId", json!(context)),
            ("status", write_status(status, task, context)),
            ("final", json!(status.state.is_final() || status.state.is_interrupted())),
            ("metadata", json!(metadata)),
        ]),
        TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk }) => object([
            ("kind", json!("artifact-update")),
            ("taskId", json!(task)),
            ("contextId", json!(context)),
            ("artifact", write_artifact(artifact)),
            ("append", json!(append)),
            ("lastChunk", json!(last_chunk)),
        ]),
        TaskEvent::Reply(message) => write_message(message),
        TaskEvent::Input(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_part() -> impl Strategy<Value = Part> {
        let content = prop_oneof![
            ".*".prop_map(Content::Text),
            any::<Vec<u8>>().prop_map(Content::Raw),
            "[a-z]+:[a-z/]+".prop_map(Content::Url),
            any::<i64>().prop_map(|n| Content::Data(json!({ "n": n }))),
        ];
        (content, any::<Option<String>>()).prop_map(|(content, filename)| {
            let file = matches!(content, Content::Raw(_) | Content::Url(_));
            Part { filename: filename.filter(|_| file), ..Part::new(content) }
        })
    }

    proptest! {
        #[test]
        fn writing_then_reading_is_the_identity(parts in proptest::collection::vec(any_part(), 1..5)) {
            let said = Message::new(Role::User, parts);
            let offered = serde_json::from_value(write_message(&said)).unwrap();
            prop_assert_eq!(message(offered, "message").unwrap(), said);
        }
    }

    #[test]
    fn a_task_looks_as_the_specification_shows_it() {
        let task = Task {
            id: TaskId::new("task-456"),
            context_id: ContextId::new("ctx-789"),
            status: TaskStatus {
                state: crate::model::task::TaskState::Completed,
                message: Some(Message {
                    message_id: MessageId::new("resp-123"),
                    ..Message::text(Role::Agent, "def hello():\n    print('Hello, World!')")
                }),
                timestamp: "2025-01-01T00:00:00.000Z".into(),
            },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        };
        let specified = json!({
            "kind": "task", "id": "task-456", "contextId": "ctx-789",
            "status": {
                "state": "completed",
                "message": {
                    "kind": "message", "messageId": "resp-123", "role": "agent",
                    "parts": [{"kind": "text", "text": "def hello():\n    print('Hello, World!')"}],
                    "taskId": "task-456", "contextId": "ctx-789"
                },
                "timestamp": "2025-01-01T00:00:00.000Z"
            },
            "history": [], "artifacts": []
        });
        assert_eq!(write_task(&task, None), specified);
    }
}
