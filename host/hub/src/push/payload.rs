//! What a receiver is told, in the form of the version in which it was asked for.

use a2a_hub_protocol::{
    event::{SequencedEvent, TaskEvent},
    task::Task,
    v1, v03,
};
use bytes::Bytes;

/// What is sent at once.
pub(super) struct Payload {
    /// The task's name and the number of its last event in it: the same when it is sent again.
    pub(super) id: String,
    /// The number of the last event in it.
    pub(super) seq: u64,
    /// The `Content-Type` that it is posted with.
    pub(super) media_type: &'static str,
    /// The body, JSON in the form that the client chose.
    pub(super) body: Bytes,
}

/// An event as A2A 1.0 tells it; nothing of a client's own words.
pub(super) fn of_event(sequenced: &SequencedEvent) -> Option<Payload> {
    let SequencedEvent { task, seq, .. } = sequenced;
    let body = v1::write_event(sequenced)?.to_string().into();
    Some(Payload {
        id: format!("{task}-{seq}"),
        seq: *seq,
        media_type: "application/a2a+json",
        body,
    })
}

/// Whether an event is worth telling in 0.3, where each is told as the whole task: one that moves it. A task a piece of
/// an artifact would be told again and again; the next status has all of it.
pub(super) fn moves(event: &TaskEvent) -> bool {
    match event {
        TaskEvent::Created(_) | TaskEvent::Status(_) | TaskEvent::Reply(_) => true,
        TaskEvent::Artifact(_) | TaskEvent::Input(_) => false,
    }
}

/// A task as A2A 0.3 tells it, after event `seq`.
pub(super) fn of_task(task: &Task, seq: u64) -> Payload {
    let id = format!("{}-{seq}", task.id);
    let body = v03::json::write_task(task).to_string().into();
    Payload { id, seq, media_type: "application/json", body }
}
