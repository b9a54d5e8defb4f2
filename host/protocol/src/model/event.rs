//! Task events, as stored in a task's log and sent to subscribers (A2A 1.0, section 4.2).

use crate::model::{
    client::ClientCapabilities,
    id::{AgentId, ContextId, TaskId, TenantId},
    message::{Message, Metadata},
    parent::Parent,
    task::{Artifact, Task, TaskStatus},
};
use serde::{Deserialize, Serialize};

/// An event of a task. A task's log begins with [`TaskEvent::Created`] and holds each event once,
/// in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TaskEvent {
    /// The hub accepted the task.
    Created(Box<Created>),
    /// The task changed its state, or its agent sent a message about the current state.
    Status(StatusUpdate),
    /// The agent produced a chunk of an artifact.
    Artifact(ArtifactUpdate),
    /// Another message of the conversation. Its role tells the sender: the client, or the agent at
    /// the end of a run that was not the last one.
    Input(Message),
    /// The agent replied with a message instead of a task result; the task has ended.
    Reply(Message),
}

/// First event of a task: the agent, the request and its caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// Agent that executes the task.
    pub agent: AgentId,
    /// Initial task, with the client's message as its history.
    pub task: Task,
    /// Timeout of the task in milliseconds, if the client set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Capabilities of the client. The log uses an older name, `terms`.
    #[serde(rename = "terms", default, skip_serializing_if = "ClientCapabilities::is_empty")]
    pub client: ClientCapabilities,
    /// Idempotency key: the request that created the task, as text. Logs of older versions have
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Position in the tree of delegated tasks; `None` for a task that a client created. Versions
    /// without delegation ignore it and treat the task as a client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Seed of the agent's random numbers, for an agent that is replayed after a restart and must
    /// repeat its results; `None` for all other agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Tenant that owns the task. Versions without tenants ignore it and treat the task as one of
    /// the default tenant, under the context name that the store assigned.
    #[serde(default, skip_serializing_if = "TenantId::is_default")]
    pub tenant: TenantId,
}

impl Created {
    /// Creates the first event of a task of `agent` in the default tenant, with all other fields
    /// empty.
    pub fn new(agent: AgentId, task: Task) -> Self {
        Self {
            agent,
            task,
            timeout_ms: None,
            client: ClientCapabilities::default(),
            request: None,
            parent: None,
            seed: None,
            tenant: TenantId::default(),
        }
    }
}

/// New status of a task: the `TaskStatusUpdateEvent` of A2A 1.0 (section 4.2.1) without its ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusUpdate {
    /// New status of the task.
    pub status: TaskStatus,
    /// Metadata to merge into the task's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// Chunk of an artifact: the `TaskArtifactUpdateEvent` of A2A 1.0 (section 4.2.2) without its ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUpdate {
    /// Artifact with the parts of this chunk.
    pub artifact: Artifact,
    /// True if the parts are appended to the artifact of that id; otherwise they replace it.
    #[serde(default)]
    pub append: bool,
    /// True if the artifact is complete.
    #[serde(default)]
    pub last_chunk: bool,
}

/// An event with its sequence number, after which a subscriber can resume.
#[derive(Clone, Debug, PartialEq)]
pub struct SequencedEvent {
    /// Task of the event.
    pub task: TaskId,
    /// Conversation (context) of the task.
    pub context: ContextId,
    /// Sequence number of the event in the task's log, counted from 1.
    pub seq: u64,
    /// The event.
    pub event: TaskEvent,
}

/// An item of a stream (A2A 1.0, section 3.2.3), or the response to a message.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamResponse {
    /// Snapshot of the task.
    Task(Box<Task>),
    /// Message of the agent, in place of a task.
    Message(Message),
    /// New status of a task.
    Status {
        /// Task of the status.
        task: TaskId,
        /// Conversation (context) of the task.
        context: ContextId,
        /// New status of the task.
        update: StatusUpdate,
    },
    /// Chunk of an artifact.
    Artifact {
        /// Task of the artifact.
        task: TaskId,
        /// Conversation (context) of the task.
        context: ContextId,
        /// The chunk.
        update: ArtifactUpdate,
    },
}

impl StreamResponse {
    /// Converts an event to a stream item; `None` for a message of the conversation, which is not
    /// streamed.
    pub fn from_event(sequenced: SequencedEvent) -> Option<Self> {
        let SequencedEvent { task, context, event, .. } = sequenced;
        match event {
            TaskEvent::Created(created) => Some(Self::Task(Box::new(created.task))),
            TaskEvent::Status(update) => Some(Self::Status { task, context, update }),
            TaskEvent::Artifact(update) => Some(Self::Artifact { task, context, update }),
            TaskEvent::Reply(message) => Some(Self::Message(message)),
            TaskEvent::Input(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The first logs called client capabilities `terms`.
    #[test]
    fn client_capabilities_are_stored_as_terms() {
        let task = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED", "timestamp": ""}});
        let stored = json!({"created": {"agent": "echo", "task": task, "terms": {"outputModes": ["image/*"]}}});
        let event: TaskEvent = serde_json::from_value(stored.clone()).unwrap();
        let TaskEvent::Created(created) = &event else { panic!("{event:?}") };
        assert_eq!(created.client.output_modes, ["image/*"]);
        assert_eq!(json!(event), stored);
    }
}
