//! Events for the contract tests.

use a2a_hub_protocol::{
    event::{ArtifactUpdate, Created, StatusUpdate, TaskEvent},
    id::{AgentId, ArtifactId, ContextId, PushConfigId, TaskId},
    message::{Message, Metadata, Part, Role},
    push::{PushConfig, PushForm},
    task::{Artifact, Task, TaskState, TaskStatus},
};
use std::sync::Arc;

/// Timestamp that many milliseconds into the test year.
pub fn at(ms: u64) -> String {
    format!("2026-01-01T00:00:{:02}.{:03}Z", ms / 1000, ms % 1000)
}

/// Creation of a task in that conversation, by the agent `echo`.
pub fn created(task: &TaskId, context: &str) -> Arc<TaskEvent> {
    let task = Task {
        id: task.clone(),
        context_id: ContextId::new(context),
        status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: at(0) },
        artifacts: Vec::new(),
        history: vec![Message::text(Role::User, format!("do {task}"))],
        metadata: None,
    };
    Arc::new(TaskEvent::Created(Box::new(Created::new(agent("echo"), task))))
}

/// Change to this state at this time, with the agent's message.
pub fn status(state: TaskState, ms: u64, text: Option<&str>) -> Arc<TaskEvent> {
    let message = text.map(|text| Message::text(Role::Agent, text));
    let status = TaskStatus { state, message, timestamp: at(ms) };
    Arc::new(TaskEvent::Status(StatusUpdate { status, metadata: None }))
}

/// Chunk of the artifact `answer`.
pub fn chunk(text: &str) -> Arc<TaskEvent> {
    let artifact = Artifact::new(ArtifactId::new("answer"), vec![Part::text(text)]);
    Arc::new(TaskEvent::Artifact(ArtifactUpdate { artifact, append: true, last_chunk: false }))
}

/// Message of the client with a working directory.
pub(super) fn said_in(directory: &str) -> Arc<TaskEvent> {
    let facts = Metadata::from_iter([("workingDirectory".to_owned(), directory.into())]);
    let said = Message::text(Role::User, "go on");
    Arc::new(TaskEvent::Input(Message { metadata: Some(facts), ..said }))
}

/// Id of the agent of that name.
pub fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

pub(super) fn working() -> Arc<TaskEvent> {
    status(TaskState::Working, 1, None)
}

/// Push config of a task, with this id.
pub(super) fn push(task: &TaskId, id: &str) -> PushConfig {
    PushConfig {
        id: PushConfigId::new(id),
        task: task.clone(),
        url: format!("https://example.com/{id}"),
        token: None,
        authentication: None,
        form: PushForm::V1,
    }
}
