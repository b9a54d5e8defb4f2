//! Events: what happens to a task, as the task's log keeps it and its listeners hear it (A2A 1.0, section 4.2).

use crate::model::{
    client::ClientCapabilities,
    id::{AgentId, ContextId, TaskId, TenantId},
    message::{Message, Metadata},
    parent::Parent,
    task::{Artifact, Task, TaskStatus},
};
use serde::{Deserialize, Serialize};

/// An event of a task. The task's log begins with [`TaskEvent::Created`] and holds each event once, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TaskEvent {
    /// The task was accepted.
    Created(Box<Created>),
    /// The task moved to another state, or its agent said something about the one it is in.
    Status(StatusUpdate),
    /// The agent made a piece of an artifact.
    Artifact(ArtifactUpdate),
    /// Another message of the task's conversation: the client sent it, or, by its role, the agent said it at the end of a run
    /// that was not the last.
    Input(Message),
    /// The agent answered with a message and no task result: the task is over.
    Reply(Message),
}

/// The beginning of a task: who asked for what, and of whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// The agent that is to do it.
    pub agent: AgentId,
    /// The task as it stood then, with the client's message as its history.
    pub task: Task,
    /// How long the task may take, in milliseconds, if its client said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What the client can do with an answer. Logs call it by an older name.
    #[serde(rename = "terms", default, skip_serializing_if = "ClientCapabilities::is_empty")]
    pub client: ClientCapabilities,
    /// What the request that began it is known by, should it be made again. Hubs before this one did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Where it stands among the tasks that agents gave one another; none if a client gave it. A hub that knows no such tasks
    /// takes it for a client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// What the random numbers of its agent are made of, if the agent is run again after a restart of its hub and must come to the same;
    /// none for all other agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whose task it is. A hub that knows no tenants takes it for one of the default tenant, under the name that its store gave to the
    /// conversation.
    #[serde(default, skip_serializing_if = "TenantId::is_default")]
    pub tenant: TenantId,
}

impl Created {
    /// A task of `agent`, of which nothing else is known; of the default tenant.
    pub fn of(agent: AgentId, task: Task) -> Self {
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

/// A new status of a task: the `TaskStatusUpdateEvent` of A2A 1.0 (section 4.2.1), without whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusUpdate {
    /// Where the task stands now.
    pub status: TaskStatus,
    /// Facts to be merged into the task's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// A piece of an artifact: the `TaskArtifactUpdateEvent` of A2A 1.0 (section 4.2.2), without whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUpdate {
    /// The artifact, as far as this piece has it.
    pub artifact: Artifact,
    /// Whether the parts are added to the artifact of that id, rather than replacing it.
    #[serde(default)]
    pub append: bool,
    /// Whether the artifact is now complete.
    #[serde(default)]
    pub last_chunk: bool,
}

/// An event with its sequence number in the task's log: what a listener hears, and can go on after.
#[derive(Clone, Debug, PartialEq)]
pub struct SequencedEvent {
    /// The task that the event is of.
    pub task: TaskId,
    /// The conversation (context) that the task belongs to.
    pub context: ContextId,
    /// The sequence number: the event's place in the task's log, counted from 1.
    pub seq: u64,
    /// What happened to the task.
    pub event: TaskEvent,
}

/// What a server tells its client of a task: an item of a stream (A2A 1.0, section 3.2.3), or the answer to a message.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamResponse {
    /// The task as it stands.
    Task(Box<Task>),
    /// The agent's answer, instead of a task.
    Message(Message),
    /// A new status of a task.
    Status {
        /// The task that it is about.
        task: TaskId,
        /// The conversation (context) that the task belongs to.
        context: ContextId,
        /// The status that the task has from now on.
        update: StatusUpdate,
    },
    /// A piece of an artifact.
    Artifact {
        /// The task whose agent made it.
        task: TaskId,
        /// The conversation (context) that the task belongs to.
        context: ContextId,
        /// The piece of the artifact.
        update: ArtifactUpdate,
    },
}

impl StreamResponse {
    /// What is told of an event; nothing of what the client itself said.
    pub fn of(sequenced: SequencedEvent) -> Option<Self> {
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

    /// What a client can do was called its terms when the first logs were written.
    #[test]
    fn a_log_says_what_the_client_can_do_as_it_always_did() {
        let task = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED", "timestamp": ""}});
        let stored = json!({"created": {"agent": "echo", "task": task, "terms": {"outputModes": ["image/*"]}}});
        let event: TaskEvent = serde_json::from_value(stored.clone()).unwrap();
        let TaskEvent::Created(created) = &event else { panic!("{event:?}") };
        assert_eq!(created.client.output_modes, ["image/*"]);
        assert_eq!(json!(event), stored);
    }
}
