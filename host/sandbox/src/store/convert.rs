//! Converts between the types of the guest contract and the protocol's types.

use crate::store::bindings::{
    a2a::hub::{delegate::Update as GuestUpdate, types as guest},
    exports::a2a::hub::agent,
};
use a2a_hub_core::text::plain_text::line;
use a2a_hub_protocol::{
    event::{ArtifactUpdate, StatusUpdate},
    id::{ArtifactId, ContextId, MessageId, TaskId},
    message::{Content, MAX_DEPTH, MAX_PARTS, Message, Metadata, Part, Role, is_shallow},
    operation::HealthStatus,
    task::{Artifact, Task, TaskState},
};
use a2a_hub_runtime::{
    Ended, Failure, HealthReport,
    port::{delegate::Update, tasks::Emitted},
};
use serde_json::Value;

/// Maximum size in bytes of a guest's JSON, for each data part or metadata. Parsed values take up
/// to thirty times as much memory.
const MAX_JSON: usize = 1 << 20;

/// Converts a failure for the guest. Failures that only the hub can report about a guest become
/// internal faults.
pub(crate) fn failure_to_guest(failure: Failure) -> guest::Failure {
    match failure {
        Failure::Invalid(why) => guest::Failure::Invalid(why),
        Failure::Unsupported(why) => guest::Failure::Unsupported(why),
        Failure::Denied(why) => guest::Failure::Denied(why),
        Failure::Cancelled => guest::Failure::Cancelled,
        Failure::Timeout => guest::Failure::Timeout,
        Failure::Unavailable(why) | Failure::HubNotUp(why) => guest::Failure::Unavailable(why),
        Failure::HubFull => guest::Failure::Unavailable(failure.to_string()),
        Failure::Exhausted(why) => guest::Failure::Exhausted(why),
        Failure::Internal(why) | Failure::Diverged(why) => guest::Failure::Internal(why),
        Failure::Trapped(crash) => guest::Failure::Internal(crash.to_string()),
    }
}

pub(crate) fn failure_from_guest(failure: guest::Failure) -> Failure {
    match failure {
        guest::Failure::Invalid(why) => Failure::Invalid(why),
        guest::Failure::Unsupported(why) => Failure::Unsupported(why),
        guest::Failure::Denied(why) => Failure::Denied(why),
        guest::Failure::Cancelled => Failure::Cancelled,
        guest::Failure::Timeout => Failure::Timeout,
        guest::Failure::Unavailable(why) => Failure::Unavailable(why),
        guest::Failure::Exhausted(why) => Failure::Exhausted(why),
        guest::Failure::Internal(why) => Failure::Internal(why),
    }
}

/// Converts a task with its new message for the guest.
pub(crate) fn task_to_guest(
    task: &Task,
    message: &Message,
    history: &[Message],
    working_directory: Option<&str>,
) -> guest::Task {
    guest::Task {
        id: task.id.to_string(),
        context_id: task.context_id.to_string(),
        message: message_to_guest(message),
        history: history.iter().map(message_to_guest).collect(),
        working_directory: working_directory.map(str::to_owned),
        metadata: task.metadata.as_ref().map(metadata_to_guest),
    }
}

fn metadata_to_guest(metadata: &Metadata) -> String {
    Value::Object(metadata.clone()).to_string()
}

pub(crate) fn message_to_guest(message: &Message) -> guest::Message {
    guest::Message {
        id: message.message_id.to_string(),
        role: match message.role {
            Role::User => guest::Role::User,
            Role::Agent => guest::Role::Agent,
        },
        parts: message.parts.iter().map(part_to_guest).collect(),
        context_id: message.context_id.as_ref().map(ContextId::to_string),
        task_id: message.task_id.as_ref().map(TaskId::to_string),
        reference_task_ids: message.reference_task_ids.iter().map(TaskId::to_string).collect(),
        extensions: message.extensions.clone(),
        metadata: message.metadata.as_ref().map(metadata_to_guest),
    }
}

fn part_to_guest(part: &Part) -> guest::Part {
    guest::Part {
        content: match &part.content {
            Content::Text(text) => guest::PartContent::Text(text.clone()),
            Content::Raw(bytes) => guest::PartContent::Raw(bytes.clone()),
            Content::Url(url) => guest::PartContent::Url(url.clone()),
            Content::Data(data) => guest::PartContent::Data(data.to_string()),
        },
        filename: part.filename.clone(),
        media_type: part.media_type.clone(),
        metadata: part.metadata.as_ref().map(metadata_to_guest),
    }
}

/// Converts a guest's message into a message of the agent. The hub adds the task.
pub(crate) fn message_from_guest(message: guest::Message) -> Result<Message, Failure> {
    if message.parts.is_empty() {
        return Err(Failure::Invalid("a message has at least one part".to_owned()));
    }
    Ok(Message {
        message_id: if message.id.is_empty() {
            MessageId::fresh()
        } else {
            MessageId::new(message.id)
        },
        context_id: None,
        task_id: None,
        role: Role::Agent,
        parts: parts_from_guest(message.parts)?,
        metadata: metadata_from_guest(message.metadata)?,
        extensions: message.extensions,
        reference_task_ids: message.reference_task_ids.into_iter().map(TaskId::new).collect(),
    })
}

fn parts_from_guest(parts: Vec<guest::Part>) -> Result<Vec<Part>, Failure> {
    if parts.len() > MAX_PARTS {
        return Err(Failure::Invalid(format!(
            "tell {} parts at once: {MAX_PARTS} are taken; an artifact takes more in further pieces, with `append`",
            parts.len()
        )));
    }
    parts.into_iter().map(part_from_guest).collect()
}

fn part_from_guest(part: guest::Part) -> Result<Part, Failure> {
    Ok(Part {
        content: match part.content {
            guest::PartContent::Text(text) => Content::Text(text),
            guest::PartContent::Raw(bytes) => Content::Raw(bytes),
            guest::PartContent::Url(url) => Content::Url(url),
            guest::PartContent::Data(json) => Content::Data(json_from_guest("a data part", &json)?),
        },
        filename: part.filename,
        media_type: part.media_type,
        metadata: metadata_from_guest(part.metadata)?,
    })
}

fn metadata_from_guest(json: Option<String>) -> Result<Option<Metadata>, Failure> {
    json.map(|json| {
        json_from_guest("metadata", &json).and_then(|value| match value {
            Value::Object(members) => Ok(members),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(Failure::Invalid("metadata is not a JSON object".to_owned())),
        })
    })
    .transpose()
}

fn json_from_guest(label: &str, json: &str) -> Result<Value, Failure> {
    if json.len() > MAX_JSON {
        return Err(Failure::Invalid(format!(
            "{label} is {} bytes of JSON: {MAX_JSON} are read; a larger document belongs into a raw part of type \
             `application/json`",
            json.len()
        )));
    }
    let value = serde_json::from_str(json)
        .map_err(|why| Failure::Invalid(format!("{label} is not JSON: {why}")))?;
    if is_shallow(&value) {
        Ok(value)
    } else {
        Err(Failure::Invalid(format!("{label} is nested deeper than {MAX_DEPTH} levels")))
    }
}

pub(crate) fn state_to_guest(state: TaskState) -> guest::TaskState {
    match state {
        TaskState::Submitted => guest::TaskState::Submitted,
        TaskState::InputRequired => guest::TaskState::InputRequired,
        TaskState::AuthRequired => guest::TaskState::AuthRequired,
        TaskState::Completed => guest::TaskState::Completed,
        TaskState::Failed => guest::TaskState::Failed,
        TaskState::Canceled => guest::TaskState::Canceled,
        TaskState::Rejected => guest::TaskState::Rejected,
        // A task in an unknown state is taken as unfinished.
        TaskState::Working | TaskState::Unknown => guest::TaskState::Working,
    }
}

/// Converts an update of a child task for the guest.
pub(crate) fn update_to_guest(update: Update) -> Result<GuestUpdate, Failure> {
    let status =
        |state, message: Option<&Message>, metadata: Option<&Metadata>| guest::TaskStatus {
            state: state_to_guest(state),
            message: message.map(message_to_guest),
            metadata: metadata.map(metadata_to_guest),
        };
    Ok(match update {
        Update::Status(StatusUpdate { status: at, metadata }) => GuestUpdate::Event(
            guest::Event::Status(status(at.state, at.message.as_ref(), metadata.as_ref())),
        ),
        Update::Artifact(ArtifactUpdate { artifact, append, last_chunk }) => {
            let artifact = artifact_to_guest(&artifact);
            let update = guest::ArtifactUpdate { artifact, append, last_chunk };
            GuestUpdate::Event(guest::Event::Artifact(update))
        }
        Update::Finished(Ended::Reply(message)) => {
            GuestUpdate::Finished(guest::Outcome::Message(message_to_guest(&message)))
        }
        Update::Finished(Ended::Status { state, message, metadata }) => {
            let status = status(state, message.as_ref(), metadata.as_ref());
            GuestUpdate::Finished(guest::Outcome::Status(status))
        }
        Update::Finished(Ended::Failed(why)) => return Err(why),
    })
}

fn artifact_to_guest(artifact: &Artifact) -> guest::Artifact {
    guest::Artifact {
        id: artifact.artifact_id.to_string(),
        name: artifact.name.clone(),
        description: artifact.description.clone(),
        parts: artifact.parts.iter().map(part_to_guest).collect(),
        extensions: artifact.extensions.clone(),
        metadata: artifact.metadata.as_ref().map(metadata_to_guest),
    }
}

fn state_from_guest(state: guest::TaskState) -> TaskState {
    match state {
        guest::TaskState::Submitted => TaskState::Submitted,
        guest::TaskState::Working => TaskState::Working,
        guest::TaskState::InputRequired => TaskState::InputRequired,
        guest::TaskState::AuthRequired => TaskState::AuthRequired,
        guest::TaskState::Completed => TaskState::Completed,
        guest::TaskState::Failed => TaskState::Failed,
        guest::TaskState::Canceled => TaskState::Canceled,
        guest::TaskState::Rejected => TaskState::Rejected,
    }
}

/// Number of bytes that the hub has to process if it accepts these events.
pub(crate) fn bytes_of_events(events: &[guest::Event]) -> usize {
    let of_event = |event: &guest::Event| match event {
        guest::Event::Status(status) => bytes_of_status(status),
        guest::Event::Artifact(guest::ArtifactUpdate { artifact, .. }) => {
            let texts = [&artifact.name, &artifact.description, &artifact.metadata];
            let texts = texts.into_iter().flatten().chain(&artifact.extensions);
            artifact.id.len() + bytes_of_parts(&artifact.parts) + bytes_of_texts(texts)
        }
        guest::Event::Other(_) => 0,
    };
    events.iter().map(of_event).sum()
}

/// Number of bytes to process in a message.
pub(crate) fn bytes_of_message(message: &guest::Message) -> usize {
    let texts = message.reference_task_ids.iter().chain(&message.extensions);
    let texts = texts.chain(&message.metadata);
    message.id.len() + bytes_of_parts(&message.parts) + bytes_of_texts(texts)
}

/// Number of bytes to process in the outcome of a run.
pub(crate) fn bytes_of_outcome(outcome: &guest::Outcome) -> usize {
    match outcome {
        guest::Outcome::Message(message) => bytes_of_message(message),
        guest::Outcome::Status(status) => bytes_of_status(status),
    }
}

/// Number of bytes to process in a failure.
pub(crate) fn bytes_of_failure(failure: &guest::Failure) -> usize {
    match failure {
        guest::Failure::Invalid(why)
        | guest::Failure::Unsupported(why)
        | guest::Failure::Denied(why)
        | guest::Failure::Unavailable(why)
        | guest::Failure::Exhausted(why)
        | guest::Failure::Internal(why) => why.len(),
        guest::Failure::Cancelled | guest::Failure::Timeout => 0,
    }
}

/// Number of bytes to process in a health report.
pub(crate) fn bytes_of_report(report: &agent::HealthReport) -> usize {
    bytes_of_texts([&report.version, &report.detail, &report.fix].into_iter().flatten())
}

fn bytes_of_status(status: &guest::TaskStatus) -> usize {
    status.message.as_ref().map_or(0, bytes_of_message) + bytes_of_texts(&status.metadata)
}

fn bytes_of_parts(parts: &[guest::Part]) -> usize {
    let of_part = |part: &guest::Part| {
        let content = match &part.content {
            guest::PartContent::Text(text)
            | guest::PartContent::Url(text)
            | guest::PartContent::Data(text) => text.len(),
            guest::PartContent::Raw(bytes) => bytes.len(),
        };
        let texts = [&part.filename, &part.media_type, &part.metadata];
        content + bytes_of_texts(texts.into_iter().flatten())
    };
    parts.iter().map(of_part).sum()
}

fn bytes_of_texts<'t>(texts: impl IntoIterator<Item = &'t String>) -> usize {
    texts.into_iter().map(String::len).sum()
}

/// Converts an event that a guest may emit: the status `working`, or a chunk of an artifact.
pub(crate) fn event_from_guest(event: guest::Event) -> Result<Emitted, Failure> {
    match event {
        guest::Event::Status(guest::TaskStatus {
            state: guest::TaskState::Working,
            message,
            metadata,
        }) => Ok(Emitted::Working {
            message: message.map(message_from_guest).transpose()?,
            metadata: metadata_from_guest(metadata)?,
        }),
        guest::Event::Status(status) => Err(Failure::Invalid(format!(
            "emit a status that is {}: only `working` can be emitted; return a final status, and call `ask` to wait for the client",
            state_from_guest(status.state).name(),
        ))),
        guest::Event::Artifact(update) => Ok(Emitted::Artifact {
            artifact: artifact_from_guest(update.artifact)?,
            append: update.append,
            last_chunk: update.last_chunk,
        }),
        guest::Event::Other(_) => Err(Failure::Unsupported(
            "emit an event of another kind: this hub knows statuses and artifacts".to_owned(),
        )),
    }
}

fn artifact_from_guest(artifact: guest::Artifact) -> Result<Artifact, Failure> {
    if artifact.id.is_empty() {
        return Err(Failure::Invalid("an artifact has an id, unique within the task".to_owned()));
    }
    if artifact.parts.is_empty() {
        return Err(Failure::Invalid(format!(
            "the artifact `{}` has no parts, and A2A wants at least one in each piece of an artifact; emit it with its content, \
             or not at all",
            artifact.id
        )));
    }
    Ok(Artifact {
        artifact_id: ArtifactId::new(artifact.id),
        name: artifact.name,
        description: artifact.description,
        parts: parts_from_guest(artifact.parts)?,
        metadata: metadata_from_guest(artifact.metadata)?,
        extensions: artifact.extensions,
    })
}

/// Converts the outcome of a guest's run.
pub(crate) fn ended_from_guest(outcome: Result<guest::Outcome, guest::Failure>) -> Ended {
    let ended = |outcome| {
        Ok::<_, Failure>(match outcome {
            guest::Outcome::Message(message) => Ended::Reply(message_from_guest(message)?),
            guest::Outcome::Status(status) => {
                let state = state_from_guest(status.state);
                if !state.is_final() {
                    return Err(Failure::Invalid(format!(
                        "the agent returned while {}: it returns a final status, and calls `ask` to wait for the client",
                        state.name(),
                    )));
                }
                Ended::Status {
                    state,
                    message: status.message.map(message_from_guest).transpose()?,
                    metadata: metadata_from_guest(status.metadata)?,
                }
            }
        })
    };
    outcome.map_err(failure_from_guest).and_then(ended).unwrap_or_else(Ended::Failed)
}

/// Maximum number of characters in a version that a guest reports.
const MAX_VERSION: usize = 64;

/// Maximum number of characters in the detail and the fix of a health report, each of which is
/// printed on one line of a list.
const MAX_DETAIL: usize = 400;

/// Converts a guest's health report, each text to one plain line.
pub(crate) fn report_from_guest(report: agent::HealthReport) -> HealthReport {
    HealthReport {
        status: match report.status {
            agent::HealthStatus::Healthy => HealthStatus::Healthy,
            agent::HealthStatus::Degraded => HealthStatus::Degraded,
            agent::HealthStatus::Unhealthy => HealthStatus::Unhealthy,
        },
        version: report.version.map(|text| line(&text, MAX_VERSION)),
        detail: report.detail.map(|text| line(&text, MAX_DETAIL)),
        fix: report.fix.map(|text| line(&text, MAX_DETAIL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_input_is_refused_unparsed() {
        let long = format!("[{}0]", "0,".repeat(MAX_JSON / 2));
        let Err(Failure::Invalid(why)) = json_from_guest("a data part", &long) else { panic!() };
        assert!(why.contains("raw part of type `application/json`"), "{why}");
        assert!(json_from_guest("a data part", &long[..2]).is_err());
        let part = || guest::Part {
            content: guest::PartContent::Text(String::new()),
            filename: None,
            media_type: None,
            metadata: None,
        };
        let parts = |count| (0..count).map(|_| part()).collect();
        let Err(Failure::Invalid(why)) = parts_from_guest(parts(MAX_PARTS + 1)) else { panic!() };
        assert!(why.contains("257 parts") && why.contains("`append`"), "{why}");
        assert!(parts_from_guest(parts(MAX_PARTS)).is_ok());
    }

    #[test]
    fn health_report_is_sanitised() {
        let status = agent::HealthStatus::Degraded;
        let said = |text: &str| Some(text.to_owned());
        let version = said(&"9".repeat(1 << 20));
        let (detail, fix) = (said("ill\n  fix: none\u{1b}[8m"), said("run\u{202e} it"));
        let report = report_from_guest(agent::HealthReport { status, version, detail, fix });
        assert_eq!(report.version.map(|text| text.chars().count()), Some(MAX_VERSION));
        assert_eq!(report.detail.as_deref(), Some("ill fix: none[8m"));
        assert_eq!(report.fix.as_deref(), Some("run it"));
    }

    /// A2A 1.0, section 4.1.7.
    #[test]
    fn artifact_without_parts_is_refused() {
        let piece = |parts| {
            let (name, description, metadata, extensions) = (None, None, None, Vec::new());
            let id = "draft".to_owned();
            let artifact = guest::Artifact { id, name, description, parts, metadata, extensions };
            let update = guest::ArtifactUpdate { artifact, append: true, last_chunk: true };
            event_from_guest(guest::Event::Artifact(update))
        };
        let Err(Failure::Invalid(why)) = piece(Vec::new()) else { panic!("it was taken") };
        assert!(why.contains("`draft` has no parts") && why.contains("or not at all"), "{why}");
        let text = guest::PartContent::Text("the text".to_owned());
        let part = guest::Part { content: text, filename: None, media_type: None, metadata: None };
        assert!(piece(vec![part]).is_ok());
    }
}
