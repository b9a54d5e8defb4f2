//! Log span of a task: every log line within it names the task, its agent, and its workflow unless
//! that is the task's own.

use a2a_hub_core::task::trace_context::Trace;
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    task::Task,
};
use a2a_hub_store::Head;
use tracing::Span;

/// Span of a task's actor and of all work for the task. Enabled at every log level.
pub fn of_task(task: &Task, agent: &AgentId) -> Span {
    let trace = Trace::for_task(&task.id, task.metadata.as_ref());
    new_span(&task.id, agent, Some(&trace.workflow))
}

/// Span of a task, from its summary.
pub fn of_head(head: &Head) -> Span {
    new_span(&head.task, &head.agent, head.workflow.as_deref())
}

fn new_span(task: &TaskId, agent: &AgentId, workflow: Option<&str>) -> Span {
    let workflow = workflow.filter(|workflow| *workflow != task.as_str());
    tracing::error_span!("task", %task, %agent, workflow)
}
