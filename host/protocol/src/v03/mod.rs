//! A2A 0.3 as its official clients speak it over JSON-RPC. Its nouns are those of [`json`]; here is what is asked for,
//! and what a client reads.

pub mod json;
pub mod proto;
pub mod push;

use crate::{
    codec::members::{Members, object, some_list},
    hub::methods,
    model::{
        error::{A2aError, ErrorKind},
        event::{ArtifactUpdate, StatusUpdate, Told},
        id::{ArtifactId, ContextId, MessageId, TaskId},
        message::{Content, Message, Part, Role, base64_bytes},
        operation::{Operation, SendMessage, Wait},
        task::{Artifact, Task, TaskState, TaskStatus},
    },
};

use serde_json::{Value, json};
use std::time::Duration;

/// How long a client waits for the end of a task that does not say whether it wants to. The specification leaves it open:
/// some expect the end, which most tasks reach in that time, and some a task that they can look after.
pub const UNSAID_WAIT: Duration = Duration::from_secs(1);

/// The method that shows the card which is for those who have shown who they are.
const EXTENDED_CARD: &str = "agent/getAuthenticatedExtendedCard";

/// The methods, in the order of the specification.
pub const METHODS: [&str; 10] = [
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    EXTENDED_CARD,
];

/// What the method called `name` asks for with these parameters.
pub fn operation(name: &str, params: Value) -> Result<Operation, A2aError> {
    if name == EXTENDED_CARD {
        return Ok(Operation::GetCard { agent: None });
    }
    if !METHODS.contains(&name) {
        let why = format!("no method is called `{name}`; there are {}", METHODS.join(", "));
        let refusal = A2aError::new(ErrorKind::MethodNotFound, why);
        return Err(refusal.with(json!({ "methods": METHODS })));
    }
    let said = params.get("configuration").and_then(|how| how.get("blocking"));
    let unsaid = said.is_none_or(Value::is_null);
    // The Local Hub took its methods from here: what they take is the same.
    let mut operation = methods::operation(name, params)?;
    if let (Operation::SendMessage(send), true) = (&mut operation, unsaid) {
        send.wait = Wait::AtMost(UNSAID_WAIT);
    }
    Ok(operation)
}

/// The method and the parameters that ask for this; none if A2A 0.3 has no such operation.
pub fn write_request(operation: &Operation) -> Option<(&'static str, Value)> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are the hub's own")]
    Some(match operation {
        Operation::SendMessage(send) => ("message/send", write_send(send)),
        Operation::StreamMessage(send) => ("message/stream", write_send(send)),
        Operation::GetTask { id, history_length } => {
            let params = object([("id", json!(id)), ("historyLength", json!(history_length))]);
            ("tasks/get", params)
        }
        Operation::CancelTask { id } => ("tasks/cancel", json!({ "id": id })),
        Operation::Resubscribe { id, .. } => ("tasks/resubscribe", json!({ "id": id })),
        Operation::SetPushConfig { task, push } => {
            let config = push::write_offered(push);
            let params = json!({ "taskId": task, "pushNotificationConfig": config });
            ("tasks/pushNotificationConfig/set", params)
        }
        Operation::GetPushConfig { task, id } => {
            let params = object([("id", json!(task)), ("pushNotificationConfigId", json!(id))]);
            ("tasks/pushNotificationConfig/get", params)
        }
        Operation::ListPushConfigs { task } => {
            ("tasks/pushNotificationConfig/list", json!({ "id": task }))
        }
        Operation::DeletePushConfig { task, id } => {
            let params = json!({ "id": task, "pushNotificationConfigId": id });
            ("tasks/pushNotificationConfig/delete", params)
        }
        Operation::GetCard { .. } => (EXTENDED_CARD, Value::Null),
        _ => return None,
    })
}

fn write_send(send: &SendMessage) -> Value {
    let configuration = object([
        ("historyLength", json!(send.history_length)),
        ("blocking", json!(send.wait != Wait::No)),
        ("acceptedOutputModes", some_list(&send.terms.output_modes, |media| json!(media))),
        ("pushNotificationConfig", json!(send.push.as_ref().map(push::write_offered))),
    ]);
    json!({ "message": json::write_message(&send.message), "configuration": configuration })
}

/// What a server tells: an item of a stream, or the answer to a message. They are told apart by their `kind`.
pub fn read_told(value: Value) -> Result<Told, A2aError> {
    match value.get("kind").and_then(Value::as_str) {
        Some("task") => Ok(Told::Task(Box::new(read_task(value)?))),
        Some("message") => Ok(Told::Message(read_message(value)?)),
        Some("status-update") => {
            let mut of = Members::of(value, "")?;
            let (task, context) = (TaskId::new(of.need_text("taskId")?), read_context(&mut of)?);
            let status = of.need("status")?;
            let status = status_at(status, of.at("status"))?;
            let update = StatusUpdate { status, metadata: of.facts("metadata")? };
            Ok(Told::Status { task, context, update })
        }
        Some("artifact-update") => {
            let mut of = Members::of(value, "")?;
            let (task, context) = (TaskId::new(of.need_text("taskId")?), read_context(&mut of)?);
            let artifact = of.need("artifact")?;
            let artifact = artifact_at(artifact, of.at("artifact"))?;
            let (append, last_chunk) = (of.flag("append")?, of.flag("lastChunk")?);
            let update = ArtifactUpdate { artifact, append, last_chunk };
            Ok(Told::Artifact { task, context, update })
        }
        Some(_) | None => {
            let why = "must be `task`, `message`, `status-update` or `artifact-update`";
            Err(A2aError::invalid("kind", why))
        }
    }
}

/// A task.
pub fn read_task(value: Value) -> Result<Task, A2aError> {
    let mut of = Members::of(value, "task")?;
    let status = of.need("status")?;
    Ok(Task {
        id: TaskId::new(of.need_text("id")?),
        context_id: read_context(&mut of)?,
        status: status_at(status, of.at("status"))?,
        artifacts: of.list("artifacts", artifact_at)?,
        history: of.list("history", message_at)?,
        metadata: of.facts("metadata")?,
    })
}

/// A message; whether a client may say it is not looked at.
pub fn read_message(value: Value) -> Result<Message, A2aError> {
    message_at(value, "message".to_owned())
}

fn read_context(of: &mut Members) -> Result<ContextId, A2aError> {
    Ok(ContextId::new(of.text("contextId")?.unwrap_or_default()))
}

fn status_at(value: Value, at: String) -> Result<TaskStatus, A2aError> {
    let mut of = Members::of(value, at)?;
    let state = of.need_text("state")?;
    let at = of.at("message");
    Ok(TaskStatus {
        state: TaskState::from_name(&state)
            .ok_or_else(|| of.refuse("state", format!("no task is ever `{state}`")))?,
        message: of.take("message").map(|said| message_at(said, at)).transpose()?,
        timestamp: of.text("timestamp")?.unwrap_or_default(),
    })
}

fn message_at(value: Value, at: String) -> Result<Message, A2aError> {
    let mut of = Members::of(value, at)?;
    let role = of.need_text("role")?;
    Ok(Message {
        message_id: MessageId::new(of.need_text("messageId")?),
        context_id: of.some_text("contextId")?.map(ContextId::new),
        task_id: of.some_text("taskId")?.map(TaskId::new),
        role: match role.as_str() {
            "user" => Role::User,
            "agent" => Role::Agent,
            _ => return Err(of.refuse("role", "must be `user` or `agent`")),
        },
        parts: of.list("parts", part_at)?,
        metadata: of.facts("metadata")?,
        extensions: of.texts("extensions")?,
        reference_task_ids: of.texts("referenceTaskIds")?.into_iter().map(TaskId::new).collect(),
    })
}

fn artifact_at(value: Value, at: String) -> Result<Artifact, A2aError> {
    let mut of = Members::of(value, at)?;
    Ok(Artifact {
        artifact_id: ArtifactId::new(of.need_text("artifactId")?),
        name: of.some_text("name")?,
        description: of.some_text("description")?,
        parts: of.list("parts", part_at)?,
        metadata: of.facts("metadata")?,
        extensions: of.texts("extensions")?,
    })
}

fn part_at(value: Value, at: String) -> Result<Part, A2aError> {
    let mut of = Members::of(value, at)?;
    let metadata = of.facts("metadata")?;
    match of.need_text("kind")?.as_str() {
        "text" => {
            let text = of.text("text")?.ok_or_else(|| of.refuse("text", "is missing"))?;
            Ok(Part { metadata, ..Part::text(text) })
        }
        "data" => Ok(Part { metadata, ..Part::data(of.need("data")?) }),
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
    use crate::codec::protojson;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_again(recorded in protojson::tests::any_event()) {
            let read = read_told(json::write_event(&recorded).unwrap()).unwrap();
            let mut told = Told::of(recorded.clone()).unwrap();
            // What 0.3 wants to be said, though the model leaves it open: whose a status's message is, and a name.
            let name = |artifact: &mut Artifact| {
                artifact.name.get_or_insert_with(|| artifact.artifact_id.to_string());
            };
            let address = |status: &mut TaskStatus| if let Some(said) = &mut status.message {
                said.task_id.get_or_insert_with(|| recorded.task.clone());
                said.context_id.get_or_insert_with(|| recorded.context.clone());
            };
            match &mut told {
                Told::Task(task) => {
                    address(&mut task.status);
                    task.artifacts.iter_mut().for_each(name);
                }
                Told::Status { update, .. } => address(&mut update.status),
                Told::Artifact { update, .. } => name(&mut update.artifact),
                Told::Message(_) => {}
            }
            prop_assert_eq!(read, told);
        }
    }

    #[test]
    fn who_does_not_say_waits_a_little() {
        let wait = |configuration: Value| {
            let message =
                json!({"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]});
            let params = json!({ "message": message, "configuration": configuration });
            let Ok(Operation::SendMessage(send)) = operation("message/send", params) else {
                panic!("not a message")
            };
            send.wait
        };
        assert_eq!(wait(Value::Null), Wait::AtMost(UNSAID_WAIT));
        assert_eq!(wait(json!({"blocking": null})), Wait::AtMost(UNSAID_WAIT));
        assert_eq!(wait(json!({"blocking": true})), Wait::ToTheEnd);
        assert_eq!(wait(json!({"blocking": false})), Wait::No);
    }

    #[test]
    fn only_official_methods_are_known() {
        let unknown = operation("hub/status", json!({})).unwrap_err();
        assert_eq!(unknown.kind, ErrorKind::MethodNotFound);
        for method in METHODS {
            let known = operation(method, json!([]));
            assert!(known.is_ok() || known.unwrap_err().kind == ErrorKind::InvalidParams);
        }
    }
}
