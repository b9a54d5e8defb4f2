//! JSON of A2A 0.3, which the hub's dialect shares: the writer for servers, and the reader for
//! clients. `params` reads the requests of clients.

use crate::{
    codec::{foreign, json_path::JsonPath, members::Members, spelled::Form},
    model::{
        error::A2aError,
        event::{ArtifactUpdate, SequencedEvent, StatusUpdate, StreamResponse},
        id::{ArtifactId, ContextId, MessageId, TaskId},
        message::{Content, Message, Part, Role, base64_bytes},
        task::{Artifact, Task, TaskState, TaskStatus},
    },
};
use serde_json::{Value, json};

/// Writes a task in the JSON of 0.3.
pub fn write_task(task: &Task) -> Value {
    Form::V03.value(task)
}

/// Writes an artifact in the JSON of 0.3.
pub fn write_artifact(artifact: &Artifact) -> Value {
    Form::V03.value(artifact)
}

/// Writes a message in the JSON of 0.3.
pub fn write_message(message: &Message) -> Value {
    Form::V03.value(message)
}

/// Writes an event as a stream item; `None` for a client's own message.
pub fn write_event(sequenced: &SequencedEvent) -> Option<Value> {
    Form::tells(&sequenced.event).then(|| Form::V03.value(sequenced))
}

/// Reads a stream item or the response to a message. The member `kind` determines the type.
pub fn read_stream_response(value: Value) -> Result<StreamResponse, A2aError> {
    stream_response_at(value, JsonPath::default())
}

/// Reads a stream item at this path.
pub(crate) fn stream_response_at(value: Value, at: JsonPath) -> Result<StreamResponse, A2aError> {
    match value.get("kind").and_then(Value::as_str) {
        Some("task") => Ok(StreamResponse::Task(Box::new(task_at(value, at.member("task"))?))),
        Some("message") => Ok(StreamResponse::Message(message_at(value, at.member("message"))?)),
        Some("status-update") => {
            let mut of = Members::new(value, at)?;
            let (task, context) =
                (TaskId::new(of.need_or_text("taskId", "")?), read_context(&mut of)?);
            let status = of.need_or("status", json!({}))?;
            let status = status_at(status, of.at("status"))?;
            let update = StatusUpdate { status, metadata: of.metadata("metadata")? };
            Ok(StreamResponse::Status { task, context, update })
        }
        Some("artifact-update") => {
            let mut of = Members::new(value, at)?;
            let (task, context) =
                (TaskId::new(of.need_or_text("taskId", "")?), read_context(&mut of)?);
            let artifact = of.need("artifact")?;
            let artifact = artifact_at(artifact, of.at("artifact"))?;
            let (append, last_chunk) = (of.flag("append")?, of.flag("lastChunk")?);
            let update = ArtifactUpdate { artifact, append, last_chunk };
            Ok(StreamResponse::Artifact { task, context, update })
        }
        Some(_) | None => {
            let why = "must be `task`, `message`, `status-update` or `artifact-update`";
            Err(A2aError::invalid("kind", why))
        }
    }
}

/// Reads a task in the JSON of 0.3; an error names the invalid member.
pub fn read_task(value: Value) -> Result<Task, A2aError> {
    task_at(value, JsonPath::from("task"))
}

/// Reads a task at this path.
pub(crate) fn task_at(value: Value, at: JsonPath) -> Result<Task, A2aError> {
    let mut of = Members::new(value, at)?;
    let status = of.need_or("status", json!({}))?;
    Ok(Task {
        id: TaskId::new(of.need_text("id")?),
        context_id: read_context(&mut of)?,
        status: status_at(status, of.at("status"))?,
        artifacts: of.list("artifacts", artifact_at)?,
        history: of.list("history", message_at)?,
        metadata: of.metadata("metadata")?,
    })
}

/// Reads a message without checking that a client may send it.
pub fn read_message(value: Value) -> Result<Message, A2aError> {
    message_at(value, JsonPath::from("message"))
}

fn read_context(of: &mut Members) -> Result<ContextId, A2aError> {
    Ok(ContextId::new(of.text("contextId")?.unwrap_or_default()))
}

fn status_at(value: Value, at: JsonPath) -> Result<TaskStatus, A2aError> {
    let mut of = Members::new(value, at)?;
    let state = of.need_or_text("state", "unknown")?;
    let (at, message) = (of.at("message"), of.take("message"));
    Ok(TaskStatus {
        state: match TaskState::from_name(&state).or_else(|| of.foreign_state(&json!(state))) {
            Some(state) => state,
            None => of.unknown_state(&json!(state), &format!("no task is ever `{state}`"))?,
        },
        message: of.part_of(message.map(|message| message_at(message, at)))?,
        timestamp: of.text("timestamp")?.unwrap_or_default(),
    })
}

fn message_at(value: Value, at: JsonPath) -> Result<Message, A2aError> {
    if let Some(message) = foreign::message_of_text(&value, &at) {
        return Ok(message);
    }
    let mut of = Members::new(value, at)?;
    let role = of.need_or_text("role", "agent")?;
    Ok(Message {
        message_id: MessageId::new(of.need_id("messageId")?),
        context_id: of.some_text("contextId")?.map(ContextId::new),
        task_id: of.some_text("taskId")?.map(TaskId::new),
        role: match role.as_str() {
            "user" => Role::User,
            "agent" => Role::Agent,
            _ => match of.foreign_role(&json!(role)) {
                Some(role) => role,
                None => of.unknown_role(&json!(role), "must be `user` or `agent`")?,
            },
        },
        parts: of.list("parts", |part, at| foreign::part(part_at, part, at))?,
        metadata: of.metadata("metadata")?,
        extensions: of.texts("extensions")?,
        reference_task_ids: of.texts("referenceTaskIds")?.into_iter().map(TaskId::new).collect(),
    })
}

fn artifact_at(value: Value, at: JsonPath) -> Result<Artifact, A2aError> {
    let mut of = Members::new(value, at)?;
    Ok(Artifact {
        artifact_id: ArtifactId::new(of.need_or_text("artifactId", "artifact")?),
        name: of.some_text("name")?,
        description: of.some_text("description")?,
        parts: of.list("parts", |part, at| foreign::part(part_at, part, at))?,
        metadata: of.metadata("metadata")?,
        extensions: of.texts("extensions")?,
    })
}

pub(crate) fn part_at(value: Value, at: JsonPath) -> Result<Part, A2aError> {
    let mut of = Members::new(value, at)?;
    let metadata = of.metadata("metadata")?;
    match of.need_text("kind")?.as_str() {
        "text" => {
            let text = of.text("text")?.ok_or_else(|| of.refuse("text", "is missing"))?;
            Ok(Part::of_old(Content::Text(text), metadata))
        }
        "data" => Ok(Part::of_old(Content::Data(of.need("data")?), metadata)),
        "file" => {
            let file = of.members("file")?;
            let mut file = file.ok_or_else(|| of.refuse("file", "is missing"))?;
            let content = match (file.text("bytes")?, file.text("uri")?) {
                (Some(bytes), None) => {
                    let bytes = base64_bytes::decode(&bytes);
                    let wrong = |why| file.refuse("bytes", format!("is not base64: {why}"));
                    Content::Raw(bytes.map_err(wrong)?)
                }
                (None, Some(uri)) => Content::Url(uri),
                (Some(_), Some(_)) | (None, None) => {
                    return Err(of.refuse("file", "must have either `bytes` or `uri`"));
                }
            };
            let filename = file.some_text("name")?;
            Ok(Part { content, filename, media_type: file.some_text("mimeType")?, metadata })
        }
        _ => Err(of.refuse("kind", "must be `text`, `file` or `data`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{codec::protojson, v03::params::OfferedMessage};
    use proptest::prelude::*;
    use serde_json::json;

    fn any_part() -> impl Strategy<Value = Part> {
        let content = prop_oneof![
            ".*".prop_map(Content::Text),
            any::<Vec<u8>>().prop_map(Content::Raw),
            "[a-z]+:[a-z/]+".prop_map(Content::Url),
            any::<i64>().prop_map(|n| Content::Data(json!({ "n": n }))),
        ];
        (content, any::<Option<String>>())
            .prop_map(|(content, filename)| Part { filename, ..Part::new(content) })
    }

    proptest! {
        #[test]
        fn written_message_reads_back_unchanged(parts in proptest::collection::vec(any_part(), 1..5)) {
            let said = Message::new(Role::User, parts);
            let offered: OfferedMessage = serde_json::from_value(write_message(&said)).unwrap();
            prop_assert_eq!(offered.accept("message").unwrap(), said);
        }
    }

    #[test]
    fn task_matches_specification_example() {
        let task = Task {
            id: TaskId::new("task-456"),
            context_id: ContextId::new("ctx-789"),
            status: TaskStatus {
                state: TaskState::Completed,
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
        assert_eq!(write_task(&task), specified);
    }

    proptest! {
        #[test]
        fn written_event_reads_back_as_sent(sequenced in protojson::tests::any_event()) {
            let read = read_stream_response(write_event(&sequenced).unwrap()).unwrap();
            let mut told = StreamResponse::from_event(sequenced.clone()).unwrap();
            // 0.3 requires what the model leaves optional: ids in the status's message, and an
            // artifact's name.
            let name = |artifact: &mut Artifact| {
                artifact.name.get_or_insert_with(|| artifact.artifact_id.to_string());
            };
            let address = |status: &mut TaskStatus| if let Some(said) = &mut status.message {
                said.task_id.get_or_insert_with(|| sequenced.task.clone());
                said.context_id.get_or_insert_with(|| sequenced.context.clone());
            };
            match &mut told {
                StreamResponse::Task(task) => {
                    address(&mut task.status);
                    task.artifacts.iter_mut().for_each(name);
                }
                StreamResponse::Status { update, .. } => address(&mut update.status),
                StreamResponse::Artifact { update, .. } => name(&mut update.artifact),
                StreamResponse::Message(_) => {}
            }
            prop_assert_eq!(read, told);
        }
    }
}
