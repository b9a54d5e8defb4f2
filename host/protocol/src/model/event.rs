//! What happens to a task, as its log keeps it and its listeners hear it (A2A 1.0, section 4.2).

use crate::model::{
    id::{AgentId, ContextId, TaskId},
    message::{Message, Metadata},
    task::{Artifact, Task, TaskStatus},
    terms::Terms,
};
use serde::{Deserialize, Serialize};

/// One thing that happened to a task. A task's log begins with [`TaskEvent::Created`] and holds each once, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TaskEvent {
    /// It was accepted.
    Created(Box<Created>),
    /// It moved to another state, or its agent said something about the one it is in.
    Status(StatusUpdate),
    /// The agent made a piece of something.
    Artifact(ArtifactUpdate),
    /// The client said more.
    Input(Message),
    /// The agent answered with a message and no task result: the task is over.
    Reply(Message),
}

/// How a task began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// Who is to do it.
    pub agent: AgentId,
    /// The task as it stood then, with the client's message as its history.
    pub task: Task,
    /// How long it may take, in milliseconds, if its client said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// On what terms its client asked.
    #[serde(default, skip_serializing_if = "Terms::is_empty")]
    pub terms: Terms,
}

/// A task's new status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusUpdate {
    /// Where it stands now.
    pub status: TaskStatus,
    /// Facts to be merged into the task's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// A piece of an artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUpdate {
    /// The piece.
    pub artifact: Artifact,
    /// Whether its parts are added to the artifact of that name, rather than replacing it.
    #[serde(default)]
    pub append: bool,
    /// Whether the artifact is now complete.
    #[serde(default)]
    pub last_chunk: bool,
}

/// A task event together with its place: what a listener hears.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The task it happened to.
    pub task: TaskId,
    /// The task's conversation.
    pub context: ContextId,
    /// Its place in the task's log, counted from 1.
    pub seq: u64,
    /// What happened.
    pub event: TaskEvent,
}

/// What a server tells its client of a task: an item of a stream, or the answer to a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// The task as it stands.
    Task(Box<Task>),
    /// The agent's answer, instead of a task.
    Message(Message),
    /// A new status.
    Status {
        /// Whose.
        task: TaskId,
        /// The task's conversation.
        context: ContextId,
        /// The status.
        update: StatusUpdate,
    },
    /// A piece of an artifact.
    Artifact {
        /// Of which task.
        task: TaskId,
        /// The task's conversation.
        context: ContextId,
        /// The piece.
        update: ArtifactUpdate,
    },
}

impl Told {
    /// What is told of an event; nothing of what the client itself said.
    pub fn of(recorded: Recorded) -> Option<Self> {
        let Recorded { task, context, event, .. } = recorded;
        match event {
            TaskEvent::Created(created) => Some(Self::Task(Box::new(created.task))),
            TaskEvent::Status(update) => Some(Self::Status { task, context, update }),
            TaskEvent::Artifact(update) => Some(Self::Artifact { task, context, update }),
            TaskEvent::Reply(message) => Some(Self::Message(message)),
            TaskEvent::Input(_) => None,
        }
    }
}
