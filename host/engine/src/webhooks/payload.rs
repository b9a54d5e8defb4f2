//! Body of a notification, in the A2A version that the client chose.

use a2a_hub_protocol::{
    event::{SequencedEvent, TaskEvent},
    task::Task,
    v1, v03,
};
use bytes::Bytes;

/// One notification.
pub struct Payload {
    /// Task id and the number of its last event; the same if it is sent again.
    pub id: String,
    /// Number of the last event in it.
    pub seq: u64,
    /// `Content-Type` header.
    pub media_type: &'static str,
    /// Body: JSON in the form that the client chose.
    pub body: Bytes,
}

/// Encodes an event in A2A 1.0; none for a client's own messages.
pub fn of_event(sequenced: &SequencedEvent) -> Option<Payload> {
    let SequencedEvent { task, seq, .. } = sequenced;
    let body = v1::write_event(sequenced)?.to_string().into();
    Some(Payload {
        id: format!("{task}-{seq}"),
        seq: *seq,
        media_type: "application/a2a+json",
        body,
    })
}

/// True if an event is sent in 0.3, where every notification contains the whole task: status
/// changes are, artifact chunks are not, as the next status includes them.
pub fn moves(event: &TaskEvent) -> bool {
    match event {
        TaskEvent::Created(_) | TaskEvent::Status(_) | TaskEvent::Reply(_) => true,
        TaskEvent::Artifact(_) | TaskEvent::Input(_) => false,
    }
}

/// Encodes a task in A2A 0.3, as of event `seq`.
pub fn of_task(task: &Task, seq: u64) -> Payload {
    let id = format!("{}-{seq}", task.id);
    let body = v03::json::write_task(task).to_string().into();
    Payload { id, seq, media_type: "application/json", body }
}
