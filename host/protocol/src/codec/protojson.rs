//! Reader for the model's objects in ProtoJSON (A2A 1.0, section 5.5), in the forms of 1.0 and of
//! the package `a2a.v1`, which clients of 0.3 use over REST and gRPC. [`spelled`](super::spelled)
//! writes them.

use crate::{
    codec::{
        foreign,
        json_path::{JsonPath, PartReader},
        members::Members,
        spelled::Form,
    },
    model::{
        error::A2aError,
        event::{ArtifactUpdate, StatusUpdate, StreamResponse},
        id::{ArtifactId, ContextId, MessageId, TaskId},
        message::{Content, Message, Part, Role, base64_bytes},
        task::{Artifact, Task, TaskState, TaskStatus},
    },
};
use serde_json::{Value, json};

/// A package of protobuf messages, which determines the form of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proto {
    /// Package `lf.a2a.v1` of A2A 1.0.
    V1,
    /// Package `a2a.v1` of A2A 0.3.
    V03,
}

/// States in the order of their protobuf numbers.
const STATES: [TaskState; 9] = [
    TaskState::Unknown,
    TaskState::Submitted,
    TaskState::Working,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Canceled,
    TaskState::InputRequired,
    TaskState::Rejected,
    TaskState::AuthRequired,
];

impl Proto {
    /// Name of the list of a message's parts.
    fn parts(self) -> &'static str {
        match self {
            Self::V1 => "parts",
            Self::V03 => "content",
        }
    }

    /// JSON form of the package.
    fn form(self) -> Form {
        match self {
            Self::V1 => Form::V1,
            Self::V03 => Form::V03Proto,
        }
    }

    /// Name of a state in the package.
    pub(crate) fn state_name(self, state: TaskState) -> &'static str {
        self.form().state_name(state)
    }

    /// Reads a message without checking that a client may send it.
    pub(crate) fn read_message(
        self,
        value: Value,
        at: impl Into<JsonPath>,
    ) -> Result<Message, A2aError> {
        let at = at.into();
        if let Some(message) = foreign::message_of_text(&value, &at) {
            return Ok(message);
        }
        let mut of = Members::new(value, at)?;
        let role = of.need_or("role", "ROLE_AGENT")?;
        Ok(Message {
            message_id: MessageId::new(of.need_id("messageId")?),
            context_id: of.some_text("contextId")?.map(ContextId::new),
            task_id: of.some_text("taskId")?.map(TaskId::new),
            role: match read_role(&role).or_else(|| of.foreign_role(&role)) {
                Some(role) => role,
                None => of.unknown_role(&role, "must be ROLE_USER or ROLE_AGENT, or its number")?,
            },
            parts: of.list(self.parts(), |part, at| self.read_part(part, at))?,
            metadata: of.metadata("metadata")?,
            extensions: of.texts("extensions")?,
            reference_task_ids: of
                .texts("referenceTaskIds")?
                .into_iter()
                .map(TaskId::new)
                .collect(),
        })
    }

    fn read_part(self, value: Value, at: JsonPath) -> Result<Part, A2aError> {
        let reader: PartReader = match self {
            Self::V1 => Self::part_of_v1,
            Self::V03 => Self::part_of_v03,
        };
        foreign::part(reader, value, at)
    }

    pub(crate) fn part_of_v1(value: Value, at: JsonPath) -> Result<Part, A2aError> {
        let path = at.clone();
        let mut of = Members::new(value, at)?;
        Ok(Part {
            content: read_content(&mut of, &path)?,
            filename: of.some_text("filename")?,
            media_type: of.some_text("mediaType")?,
            metadata: of.metadata("metadata")?,
        })
    }

    pub(crate) fn part_of_v03(value: Value, at: JsonPath) -> Result<Part, A2aError> {
        let path = at.clone();
        read_old_part(&mut Members::new(value, at)?, &path)
    }

    fn read_artifact(self, value: Value, at: JsonPath) -> Result<Artifact, A2aError> {
        let mut of = Members::new(value, at)?;
        Ok(Artifact {
            artifact_id: ArtifactId::new(of.need_or_text("artifactId", "artifact")?),
            name: of.some_text("name")?,
            description: of.some_text("description")?,
            parts: of.list("parts", |part, at| self.read_part(part, at))?,
            metadata: of.metadata("metadata")?,
            extensions: of.texts("extensions")?,
        })
    }

    fn read_status(self, value: Value, at: JsonPath) -> Result<TaskStatus, A2aError> {
        let mut of = Members::new(value, at)?;
        let state = of.need_or("state", "TASK_STATE_UNSPECIFIED")?;
        // The package of 0.3 calls it `update`, its JSON `message`.
        let (name, message) = match of.take("message") {
            Some(message) => ("message", Some(message)),
            None => ("update", of.take("update")),
        };
        let at = of.at(name);
        Ok(TaskStatus {
            state: match Self::read_state(&state).or_else(|| of.foreign_state(&state)) {
                Some(state) => state,
                None => of.unknown_state(&state, &self.states())?,
            },
            message: of.part_of(message.map(|message| self.read_message(message, at)))?,
            timestamp: of.text("timestamp")?.unwrap_or_default(),
        })
    }

    /// Reads a state from its name or number.
    pub(crate) fn read_state(value: &Value) -> Option<TaskState> {
        match value {
            Value::String(name) => {
                let is_its = |state: &TaskState| {
                    [Self::V1, Self::V03].iter().any(|proto| proto.state_name(*state) == name)
                };
                STATES.into_iter().find(is_its)
            }
            Value::Number(_) => {
                let number = usize::try_from(value.as_u64()?).ok()?;
                STATES.get(number).copied()
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Error message for an invalid state.
    pub(crate) fn states(self) -> String {
        let names: Vec<_> = STATES[1..].iter().map(|state| self.state_name(*state)).collect();
        let names = names.join(", ");
        format!("must be the name or number of a state: {names}")
    }

    /// Reads a task in ProtoJSON; `at` is its path, for errors.
    pub(crate) fn read_task(self, value: Value, at: impl Into<JsonPath>) -> Result<Task, A2aError> {
        let mut of = Members::new(value, at)?;
        let status = of.need_or("status", json!({}))?;
        Ok(Task {
            id: TaskId::new(of.need_text("id")?),
            context_id: ContextId::new(of.text("contextId")?.unwrap_or_default()),
            status: self.read_status(status, of.at("status"))?,
            artifacts: of.list("artifacts", |artifact, at| self.read_artifact(artifact, at))?,
            history: of.list("history", |message, at| self.read_message(message, at))?,
            metadata: of.metadata("metadata")?,
        })
    }

    /// Reads a `StreamResponse`, or a `SendMessageResponse`, which is a subset of it.
    pub(crate) fn read_stream_response(
        self,
        value: Value,
        at: impl Into<JsonPath>,
    ) -> Result<StreamResponse, A2aError> {
        let mut of = Members::new(value, at)?;
        if let Some(task) = of.take("task") {
            return Ok(StreamResponse::Task(Box::new(self.read_task(task, of.at("task"))?)));
        }
        for name in ["message", "msg"] {
            if let Some(message) = of.take(name) {
                return Ok(StreamResponse::Message(self.read_message(message, of.at(name))?));
            }
        }
        if let Some(mut update) = of.members("statusUpdate")? {
            let (task, context) = whose(&mut update)?;
            let status = update.need_or("status", json!({}))?;
            let status = self.read_status(status, update.at("status"))?;
            let update = StatusUpdate { status, metadata: update.metadata("metadata")? };
            return Ok(StreamResponse::Status { task, context, update });
        }
        if let Some(mut update) = of.members("artifactUpdate")? {
            let (task, context) = whose(&mut update)?;
            let artifact = update.need("artifact")?;
            let artifact = self.read_artifact(artifact, update.at("artifact"))?;
            let (append, last_chunk) = (update.flag("append")?, update.flag("lastChunk")?);
            let update = ArtifactUpdate { artifact, append, last_chunk };
            return Ok(StreamResponse::Artifact { task, context, update });
        }
        let why = "must have one of `task`, `message`, `statusUpdate` and `artifactUpdate`";
        Err(A2aError::invalid("result", why))
    }
}

/// Reads the task and conversation of an update.
fn whose(update: &mut Members) -> Result<(TaskId, ContextId), A2aError> {
    let task = TaskId::new(update.need_or_text("taskId", "")?);
    Ok((task, ContextId::new(update.text("contextId")?.unwrap_or_default())))
}

fn read_role(value: &Value) -> Option<Role> {
    match (value.as_str(), value.as_u64()) {
        (Some("ROLE_USER"), _) | (_, Some(1)) => Some(Role::User),
        (Some("ROLE_AGENT"), _) | (_, Some(2)) => Some(Role::Agent),
        _ => None,
    }
}

/// Reads the content of a 1.0 part, which has exactly one kind.
fn read_content(of: &mut Members, at: &str) -> Result<Content, A2aError> {
    let one = || A2aError::invalid(at, "must have exactly one of `text`, `raw`, `url` and `data`");
    let (text, raw) = (of.text("text")?, of.text("raw")?);
    let (url, data) = (of.text("url")?, of.raw("data"));
    match (text, raw, url, data) {
        (Some(text), None, None, None | Some(Value::Null)) => Ok(Content::Text(text)),
        (None, Some(raw), None, None | Some(Value::Null)) => {
            Ok(Content::Raw(bytes(&raw, &of.at("raw"))?))
        }
        (None, None, Some(url), None | Some(Value::Null)) => Ok(Content::Url(url)),
        (None, None, None, Some(data)) => Ok(Content::Data(data)),
        _ => Err(one()),
    }
}

fn bytes(text: &str, at: &str) -> Result<Vec<u8>, A2aError> {
    base64_bytes::decode(text).map_err(|why| A2aError::invalid(at, format!("is not base64: {why}")))
}

/// Reads a part of the 0.3 package, in which files and data are nested objects.
fn read_old_part(of: &mut Members, at: &str) -> Result<Part, A2aError> {
    let (text, file, data) = (of.text("text")?, of.members("file")?, of.members("data")?);
    let metadata = of.metadata("metadata")?;
    match (text, file, data) {
        (Some(text), None, None) => Ok(Part::of_old(Content::Text(text), metadata)),
        (None, None, Some(mut data)) => {
            let data = data.raw("data").unwrap_or(Value::Null);
            Ok(Part::of_old(Content::Data(data), metadata))
        }
        (None, Some(mut file), None) => {
            let content = match (file.text("fileWithBytes")?, file.text("fileWithUri")?) {
                (Some(text), None) => Content::Raw(bytes(&text, &file.at("fileWithBytes"))?),
                (None, Some(uri)) => Content::Url(uri),
                (Some(_), Some(_)) | (None, None) => {
                    let why = "must have exactly one of `fileWithBytes` and `fileWithUri`";
                    return Err(A2aError::invalid(&format!("{at}.file"), why));
                }
            };
            let filename = file.some_text("name")?;
            Ok(Part { content, filename, media_type: file.some_text("mimeType")?, metadata })
        }
        _ => Err(A2aError::invalid(at, "must have exactly one of `text`, `file` and `data`")),
    }
}

#[cfg(test)]
pub(crate) mod tests;
