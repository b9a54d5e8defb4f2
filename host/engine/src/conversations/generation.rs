//! Generation of a task, an extension after a draft of A2A 1.1 (a2aproject/A2A#1810, ADR-002): the
//! number of the last event in the task's log. Clients see missed events, wait for the next one,
//! and send a message only if nothing has happened since they last looked.

use a2a_hub_protocol::{
    client::ClientCapabilities,
    error::{A2aError, ErrorKind},
    event::{SequencedEvent, TaskEvent},
    id::TaskId,
    message::{Message, Metadata, Role},
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};

/// URI of the extension, and member of metadata with what it adds.
pub const EXTENSION: &str = "urn:a2a-hub:generation:v1";

/// Member of a message with the generation that the task must have.
const IF_MATCH: &str = "ifGenerationMatch";

/// Maximum number of entries of a timeline; the oldest are left out.
const MAX_ENTRIES: usize = 100;

/// Generation that the task must have for this message, if the message names one.
pub fn expected(message: &Message) -> Result<Option<u64>, A2aError> {
    let extension = message.metadata.as_ref().and_then(|facts| facts.get(EXTENSION));
    let Some(expected) = extension.and_then(|extension| extension.get(IF_MATCH)) else {
        return Ok(None);
    };
    let text = expected.as_str().and_then(|text| text.parse().ok());
    // Over gRPC, each number is a double.
    let integer = expected.as_f64().filter(|it| it.fract() == 0.0 && (0.0..=9e15).contains(it));
    let integer = integer.and_then(|whole| format!("{whole:.0}").parse().ok());
    let number: Option<u64> = expected.as_u64().or(text).or(integer);
    number.map(Some).ok_or_else(|| {
        let field = format!("message.metadata.{EXTENSION}.{IF_MATCH}");
        A2aError::invalid(&field, "must be a whole number, such as 3")
    })
}

/// Refuses a message of a client that activated the extension, if the task has another generation
/// than the message names.
pub fn require(
    task: &TaskId,
    current: u64,
    message: &Message,
    client: &ClientCapabilities,
) -> Result<(), A2aError> {
    if !client.extensions.iter().any(|uri| uri == EXTENSION) {
        return Ok(());
    }
    match expected(message)? {
        Some(expected) if expected != current => {
            let why = format!(
                "task `{task}` has the generation {current}, and the message is for {expected}; \
                 read the task, and send the message again if it still fits"
            );
            let facts = json!({ "taskId": task, "generation": current });
            Err(A2aError::new(ErrorKind::GenerationMismatch, why).with(facts))
        }
        Some(_) | None => Ok(()),
    }
}

/// Adds what the extension says to metadata.
pub fn note(metadata: &mut Option<Metadata>, value: Value) {
    metadata.get_or_insert_default().insert(EXTENSION.to_owned(), value);
}

/// The event with its generation: in the metadata of the task, the status or the artifact.
pub fn of_event(event: &SequencedEvent) -> SequencedEvent {
    let mut event = event.clone();
    let value = json!({ "generation": event.seq });
    match &mut event.event {
        TaskEvent::Created(created) => note(&mut created.task.metadata, value),
        TaskEvent::Status(update) => note(&mut update.metadata, value),
        TaskEvent::Artifact(update) => note(&mut update.artifact.metadata, value),
        TaskEvent::Input(message) | TaskEvent::Reply(message) => note(&mut message.metadata, value),
    }
    event
}

/// Order of a task's messages, statuses and artifacts.
#[derive(Debug, Default)]
pub struct TaskTimeline {
    entries: VecDeque<Value>,
    /// First and last generation of each artifact.
    artifacts: BTreeMap<String, (u64, u64)>,
}

impl TaskTimeline {
    /// Adds the next event of the task's log.
    pub fn add(&mut self, event: &SequencedEvent) {
        let seq = event.seq;
        match &event.event {
            TaskEvent::Created(created) => {
                for message in &created.task.history {
                    self.add_message(seq, message);
                }
            }
            TaskEvent::Status(update) => {
                let status = json!(update.status);
                self.push(json!({ "generation": seq, "role": "ROLE_AGENT", "status": status }));
            }
            TaskEvent::Artifact(update) => {
                let id = update.artifact.artifact_id.to_string();
                self.artifacts.entry(id).or_insert((seq, seq)).1 = seq;
            }
            TaskEvent::Input(message) | TaskEvent::Reply(message) => self.add_message(seq, message),
        }
    }

    fn add_message(&mut self, seq: u64, message: &Message) {
        let role = match message.role {
            Role::User => "ROLE_USER",
            Role::Agent => "ROLE_AGENT",
        };
        self.push(json!({ "generation": seq, "role": role, "message": json!(message) }));
    }

    fn push(&mut self, entry: Value) {
        if self.entries.len() >= MAX_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// Metadata of a task: its generation, its timeline, and the generations of its artifacts.
    pub fn to_json(&self, generation: u64) -> Value {
        let of = |(id, (start, end)): (&String, &(u64, u64))| json!({ "artifactId": id, "startGeneration": start, "endGeneration": end });
        let artifacts: Vec<_> = self.artifacts.iter().map(of).collect();
        json!({ "generation": generation, "timeline": self.entries, "artifacts": artifacts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        event::{ArtifactUpdate, StatusUpdate},
        id::{ArtifactId, ContextId},
        message::Part,
        task::{Artifact, TaskState, TaskStatus},
    };

    fn message(own: Value) -> Message {
        let mut message = Message::text(Role::User, "go on");
        note(&mut message.metadata, own);
        message
    }

    fn client(extensions: &[&str]) -> ClientCapabilities {
        let extensions = extensions.iter().map(|&uri| uri.to_owned()).collect();
        ClientCapabilities { extensions, ..ClientCapabilities::default() }
    }

    #[test]
    fn message_counts_for_named_generation_only() {
        let task = TaskId::new("t");
        let refused = |own: Value, extensions: &[&str]| {
            let refused = require(&task, 3, &message(own), &client(extensions)).err();
            refused.map(|why| why.kind)
        };
        let mismatch = Some(ErrorKind::GenerationMismatch);
        for (own, kind) in [
            (json!({ "ifGenerationMatch": 3 }), None),
            (json!({ "ifGenerationMatch": "3" }), None),
            (json!({ "ifGenerationMatch": 3.0 }), None),
            (json!({ "ifGenerationMatch": 2 }), mismatch),
            (json!({ "ifGenerationMatch": "4" }), mismatch),
            (json!({ "ifGenerationMatch": 3.5 }), Some(ErrorKind::InvalidParams)),
            (json!({ "ifGenerationMatch": -1 }), Some(ErrorKind::InvalidParams)),
            (json!({ "ifGenerationMatch": 1e300 }), Some(ErrorKind::InvalidParams)),
            (json!({ "ifGenerationMatch": null }), Some(ErrorKind::InvalidParams)),
            (json!({}), None),
            (json!("odd"), None),
        ] {
            assert_eq!(refused(own.clone(), &[EXTENSION]), kind, "{own}");
            assert_eq!(refused(own.clone(), &["urn:other"]), None, "{own}");
        }
        assert_eq!(
            require(&task, 3, &Message::text(Role::User, "x"), &client(&[EXTENSION])),
            Ok(())
        );
    }

    fn event(seq: u64, event: TaskEvent) -> SequencedEvent {
        let (task, context) = (TaskId::new("t"), ContextId::new("c"));
        SequencedEvent { task, context, seq, event }
    }

    fn status(text: &str) -> TaskEvent {
        let message = Some(Message::text(Role::Agent, text));
        let status = TaskStatus { state: TaskState::Working, message, timestamp: String::new() };
        TaskEvent::Status(StatusUpdate { status, metadata: None })
    }

    fn artifact(id: &str) -> TaskEvent {
        let artifact = Artifact::new(ArtifactId::new(id), vec![Part::text("x")]);
        TaskEvent::Artifact(ArtifactUpdate { artifact, append: true, last_chunk: false })
    }

    #[test]
    fn timeline_orders_messages_and_artifacts() {
        let mut timeline = TaskTimeline::default();
        timeline.add(&event(2, status("reads")));
        timeline.add(&event(3, artifact("a")));
        timeline.add(&event(4, TaskEvent::Input(Message::text(Role::User, "faster"))));
        timeline.add(&event(5, artifact("a")));
        let told = timeline.to_json(5);
        let roles = told["timeline"].as_array().unwrap().iter();
        let roles: Vec<_> =
            roles.map(|entry| (entry["generation"].clone(), entry["role"].clone())).collect();
        assert_eq!(roles, [(json!(2), json!("ROLE_AGENT")), (json!(4), json!("ROLE_USER"))]);
        let artifacts = json!([{ "artifactId": "a", "startGeneration": 3, "endGeneration": 5 }]);
        assert_eq!((&told["artifacts"], &told["generation"]), (&artifacts, &json!(5)));
    }

    #[test]
    fn long_timeline_keeps_latest_entries() {
        let mut timeline = TaskTimeline::default();
        for seq in 1..=500 {
            timeline.add(&event(seq, status("works")));
        }
        let told = timeline.to_json(500);
        let entries = told["timeline"].as_array().unwrap();
        assert_eq!(entries.len(), MAX_ENTRIES);
        assert_eq!(entries.last().unwrap()["generation"], 500);
    }

    #[test]
    fn each_event_carries_its_generation() {
        let said = |event: TaskEvent| match of_event(&self::event(7, event)).event {
            TaskEvent::Status(update) => update.metadata,
            TaskEvent::Artifact(update) => update.artifact.metadata,
            TaskEvent::Created(_) | TaskEvent::Input(_) | TaskEvent::Reply(_) => None,
        };
        for event in [status("works"), artifact("a")] {
            assert_eq!(said(event).unwrap()[EXTENSION], json!({ "generation": 7 }));
        }
    }
}
