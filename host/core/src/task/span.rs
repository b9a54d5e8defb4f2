//! Finished task as a span of a trace (OpenTelemetry): the exported data, without any content of
//! the conversation.

use crate::task::{
    metadata::{self, REASON},
    trace_context::Trace,
};
use a2a_hub_protocol::{
    id::{AgentId, ContextId, TaskId},
    message::Metadata,
    task::{Task, TaskState},
};
use std::time::Duration;

/// Span of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSpan {
    /// Position in a trace.
    pub trace: Trace,
    /// Task of the span.
    pub task: TaskId,
    /// Context of the task.
    pub context: ContextId,
    /// Agent of the task.
    pub agent: AgentId,
    /// Time of the task's creation, since the Unix epoch.
    pub began: Duration,
    /// Time of the task's end: RFC 3339 in UTC.
    pub ended: String,
    /// Final state.
    pub state: TaskState,
    /// Machine-readable reason of a failure.
    pub reason: Option<String>,
    /// Tokens that its model read, as its agent reports them.
    pub input_tokens: Option<u64>,
    /// Tokens that its model wrote.
    pub output_tokens: Option<u64>,
    /// Cost in dollars.
    pub cost_usd: Option<f64>,
}

impl TaskSpan {
    /// Span of an agent's task; `None` while the task is running, or if its trace is not sampled.
    pub fn for_task(agent: &AgentId, task: &Task) -> Option<Self> {
        let facts = task.metadata.as_ref();
        let trace = Trace::for_task(&task.id, facts);
        if !task.status.state.is_final() || !trace.is_sampled() {
            return None;
        }
        let cost = facts.and_then(|facts| facts.get("cost_usd")?.as_f64());
        Some(Self {
            trace,
            task: task.id.clone(),
            context: task.context_id.clone(),
            agent: agent.clone(),
            began: created_at(&task.id)?,
            ended: task.status.timestamp.clone(),
            state: task.status.state,
            reason: metadata::text(task, REASON).map(str::to_owned),
            input_tokens: tokens(facts, "input_tokens"),
            output_tokens: tokens(facts, "output_tokens"),
            cost_usd: cost.filter(|cost| cost.is_finite() && *cost >= 0.0),
        })
    }

    /// True if the task failed or was rejected.
    pub fn is_error(&self) -> bool {
        matches!(self.state, TaskState::Failed | TaskState::Rejected)
    }
}

fn tokens(facts: Option<&Metadata>, name: &str) -> Option<u64> {
    facts?.get("usage")?.get(name)?.as_u64()
}

/// Creation time of a task from its id, a UUID of version 7 (RFC 9562, section 5.7).
fn created_at(task: &TaskId) -> Option<Duration> {
    let digits: String = task.as_str().chars().filter(|it| *it != '-').collect();
    let is_uuid = digits.len() == 32 && digits.as_bytes().get(12) == Some(&b'7');
    let millis = u64::from_str_radix(digits.get(..12).filter(|_| is_uuid)?, 16).ok()?;
    Some(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::task::TaskStatus;
    use serde_json::{Value, json};

    fn task(state: TaskState, facts: &Value) -> Task {
        Task {
            id: TaskId::new("0199aaaa-0001-7000-8000-00000000000f"),
            context_id: ContextId::new("c"),
            status: TaskStatus { state, message: None, timestamp: "T".to_owned() },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: facts.as_object().cloned(),
        }
    }

    fn span(state: TaskState, facts: &Value) -> Option<TaskSpan> {
        TaskSpan::for_task(&AgentId::parse("echo").unwrap(), &task(state, facts))
    }

    #[test]
    fn finished_task_is_span_with_usage() {
        let facts = json!({ "usage": { "input_tokens": 7, "output_tokens": 3 }, "cost_usd": 0.5, "reason": "timeout" });
        let told = span(TaskState::Failed, &facts).unwrap();
        assert_eq!(told.began, Duration::from_millis(0x0199_aaaa_0001));
        assert_eq!((told.input_tokens, told.output_tokens), (Some(7), Some(3)));
        assert_eq!((told.cost_usd, told.reason.as_deref()), (Some(0.5), Some("timeout")));
        assert!(told.is_error() && told.trace == Trace::begun(&told.task));
        let plain = span(TaskState::Completed, &json!({ "usage": 1, "cost_usd": -1 })).unwrap();
        assert_eq!((plain.input_tokens, plain.cost_usd, plain.is_error()), (None, None, false));
    }

    #[test]
    fn running_or_unsampled_task_has_no_span() {
        for state in TaskState::ALL {
            assert_eq!(span(state, &json!({})).is_some(), state.is_final(), "{}", state.name());
        }
        let unwanted =
            json!({ "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00" });
        assert_eq!(span(TaskState::Completed, &unwanted), None);
    }

    #[test]
    fn creation_time_is_read_from_task_id() {
        assert!(
            created_at(&TaskId::fresh()).is_some_and(|at| at > Duration::from_hours(24 * 365 * 50))
        );
        for other in
            ["t", "0199aaaa-0001-4000-8000-00000000000f", "zzzzzzzz-0001-7000-8000-00000000000f"]
        {
            assert_eq!(created_at(&TaskId::new(other)), None, "{other}");
        }
    }
}
