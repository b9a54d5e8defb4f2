//! Events of the whole hub, sent by `hub/events`: agents, plug-ins, health, task states,
//! questions, settings and storage.

use crate::model::{
    id::{AgentId, ContextId, QuestionId, TaskId, TenantId},
    operation::{AgentBreaker, AgentHealth, ConflictWith},
    task::TaskState,
};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// Event of the hub.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HubEvent {
    /// Sequence number since the hub's start. It grows with each event of the hub, including events
    /// that the listener may not see. Changes of tasks that are read together have the same.
    pub seq: u64,
    /// Position of the event in the order of all changes of tasks, over restarts. Sent as `after`,
    /// it has the stream resume here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Time of the event: RFC 3339 in UTC.
    pub timestamp: String,
    /// Kind of the event, given by `type`, with its data.
    #[serde(flatten)]
    pub what: HubEventKind,
}

/// Kind of an event of the hub, given by `type`, with its data.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum HubEventKind {
    /// The subscription is active; `seq` is that of the event before.
    Subscribed,
    /// An agent joined the hub.
    AgentJoined {
        /// Id of the agent.
        agent_id: AgentId,
        /// Source of the agent: `built-in`, `acp`, `native`, the file's name of a plug-in, or a
        /// remote agent's URL.
        source: String,
    },
    /// A new version of an agent replaced the old one; running tasks end on the old version.
    AgentReplaced {
        /// Id of the agent.
        agent_id: AgentId,
        /// Source of the agent: `built-in`, `acp`, `native`, the file's name of a plug-in, or a
        /// remote agent's URL.
        source: String,
    },
    /// An agent left the hub; its tasks continue to their end.
    AgentLeft {
        /// Id of the agent.
        agent_id: AgentId,
    },
    /// A file in the plugins folder cannot become an agent.
    PluginRejected {
        /// Name of the file.
        file: String,
        /// Reason for the rejection, and the remedy.
        error: String,
    },
    /// A component that differs from the granted one waits in the plugins folder for the operator's
    /// approval; the granted one keeps serving, if the hub has a copy of it.
    PluginHeldBack {
        /// Id of the plug-in's agent.
        agent_id: AgentId,
        /// Name of the file.
        file: String,
        /// SHA-256 digest of the waiting component, in hex.
        sha256: String,
        /// Differences between the capabilities that the waiting and the granted component request,
        /// one per element: added (`+`) or removed (`-`) requests, or a changed description (`~`).
        changes: Vec<String>,
    },
    /// The grant of a plug-in changed; calls of running tasks that it no longer allows fail with
    /// `denied`.
    PluginGrantChanged {
        /// Id of the plug-in's agent.
        agent_id: AgentId,
    },
    /// The health of an agent changed.
    AgentHealth {
        /// Id of the agent.
        agent_id: AgentId,
        /// Current health of the agent.
        health: AgentHealth,
    },
    /// The circuit breaker of an agent changed, so that tasks reach the agent again or no longer.
    AgentBreaker {
        /// Id of the agent.
        agent_id: AgentId,
        /// Current circuit breaker of the agent.
        breaker: AgentBreaker,
    },
    /// A task was accepted.
    TaskCreated {
        /// Id of the task.
        task_id: TaskId,
        /// Conversation of the task.
        context_id: ContextId,
        /// Agent of the task.
        agent_id: AgentId,
    },
    /// The state of a task changed.
    TaskState {
        /// Id of the task.
        task_id: TaskId,
        /// Conversation of the task.
        context_id: ContextId,
        /// Agent of the task.
        agent_id: AgentId,
        /// New state of the task, such as `input-required`.
        #[serde(serialize_with = "by_name")]
        #[schemars(with = "String")]
        state: TaskState,
    },
    /// The open questions of a task changed without a change of its state: one more waits for its
    /// turn, or one was set aside.
    QuestionsChanged {
        /// Id of the task.
        task_id: TaskId,
        /// Conversation of the task.
        context_id: ContextId,
        /// Agent of the task.
        agent_id: AgentId,
    },
    /// A notice arrived, or some were marked as read: `hub/notices/list` has them.
    NoticesChanged {
        /// Tenant of the notices; only its listeners get the event.
        #[serde(skip)]
        tenant: TenantId,
    },
    /// An open question is close to its deadline, at which it counts as denied. Sent once for each
    /// deadline, for the task that asks, and not for those that relay its question.
    QuestionExpiring {
        /// Id of the question.
        #[schemars(with = "String")]
        question_id: QuestionId,
        /// Id of the task that asks.
        task_id: TaskId,
        /// Conversation of the task.
        context_id: ContextId,
        /// Agent of the task.
        agent_id: AgentId,
        /// Deadline: RFC 3339 in UTC.
        expires_at: String,
    },
    /// Git cannot merge the changes of a task in a worktree, whose run ended, with those of another
    /// task.
    WorktreeConflict {
        /// Id of the task whose run ended.
        task_id: TaskId,
        /// Conversation of the task.
        context_id: ContextId,
        /// The other task, and the files.
        #[serde(rename = "with")]
        conflict: ConflictWith,
    },
    /// The configuration was reloaded.
    ConfigReloaded {
        /// Changed settings that are effective now.
        changed: Vec<String>,
        /// Changed settings that become effective after a restart of the hub.
        needs_restart: Vec<String>,
    },
    /// The store cannot be written, so no task can start or continue.
    StorageFailing {
        /// Error of the store.
        error: String,
        /// Remedy, for people.
        fix: String,
    },
    /// The store can be written again.
    StorageRecovered {
        /// Start of the failure: RFC 3339 in UTC.
        failing_since: String,
    },
}

impl HubEventKind {
    /// True for a change of a task that the log of changes lists.
    pub fn is_task_change(&self) -> bool {
        matches!(self, Self::TaskCreated { .. } | Self::TaskState { .. })
    }

    /// Tasks that the event names; none for an event about agents or the hub.
    pub fn tasks(&self) -> impl Iterator<Item = &TaskId> {
        let mut other = None;
        if let Self::WorktreeConflict { conflict, .. } = self {
            other = Some(&conflict.task_id);
        }
        self.task().map(|(task, _)| task).into_iter().chain(other)
    }

    /// Tenant of the event's task; `None` for an event that every tenant may see.
    pub fn tenant(&self) -> Option<&TenantId> {
        if let Self::NoticesChanged { tenant } = self {
            return Some(tenant);
        }
        self.task().map(|(_, context)| context.tenant())
    }

    /// Task that the event is about, with its conversation.
    fn task(&self) -> Option<(&TaskId, &ContextId)> {
        match self {
            Self::TaskCreated { task_id, context_id, .. }
            | Self::TaskState { task_id, context_id, .. }
            | Self::QuestionsChanged { task_id, context_id, .. }
            | Self::QuestionExpiring { task_id, context_id, .. }
            | Self::WorktreeConflict { task_id, context_id, .. } => Some((task_id, context_id)),
            Self::NoticesChanged { .. }
            | Self::Subscribed
            | Self::AgentJoined { .. }
            | Self::AgentReplaced { .. }
            | Self::AgentLeft { .. }
            | Self::PluginRejected { .. }
            | Self::PluginHeldBack { .. }
            | Self::PluginGrantChanged { .. }
            | Self::AgentHealth { .. }
            | Self::AgentBreaker { .. }
            | Self::ConfigReloaded { .. }
            | Self::StorageFailing { .. }
            | Self::StorageRecovered { .. } => None,
        }
    }
}

/// Serializes a state by its name in the hub's dialect.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn by_name<S: Serializer>(state: &TaskState, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(state.name())
}

/// Reason for the end of a stream of hub events. To continue, the client subscribes again, and
/// reads missed changes with `hub/status`, `hub/agents/list` and `tasks/get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamEnd {
    /// The listener fell too far behind, and unread events were dropped.
    TooSlow,
    /// The hub is stopping.
    HubStopped,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hub_event_wire_form() {
        let event = |seq, what| HubEvent {
            seq,
            cursor: None,
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            what,
        };
        let agent_id = AgentId::parse("echo").unwrap();
        let told = [
            event(7, HubEventKind::Subscribed),
            event(
                8,
                HubEventKind::AgentJoined {
                    agent_id: agent_id.clone(),
                    source: "built-in".to_owned(),
                },
            ),
            event(
                9,
                HubEventKind::AgentBreaker {
                    agent_id: agent_id.clone(),
                    breaker: AgentBreaker::closed(),
                },
            ),
            event(
                10,
                HubEventKind::TaskState {
                    task_id: TaskId::new("t"),
                    context_id: ContextId::new("c"),
                    agent_id: agent_id.clone(),
                    state: TaskState::InputRequired,
                },
            ),
            event(10, HubEventKind::NoticesChanged { tenant: TenantId::parse("acme").unwrap() }),
            event(
                11,
                HubEventKind::StorageFailing {
                    error: "database or disk is full".to_owned(),
                    fix: "make room".to_owned(),
                },
            ),
            event(
                12,
                HubEventKind::StorageRecovered {
                    failing_since: "2026-01-01T00:00:00.000Z".to_owned(),
                },
            ),
            event(
                13,
                HubEventKind::QuestionExpiring {
                    question_id: QuestionId::new("q"),
                    task_id: TaskId::new("t"),
                    context_id: ContextId::new("c"),
                    agent_id,
                    expires_at: "2026-01-01T01:00:00.000Z".to_owned(),
                },
            ),
        ];
        let lines = told.map(|event| serde_json::to_string(&event).unwrap()).join("\n");
        insta::assert_snapshot!(lines, @r#"
        {"seq":7,"timestamp":"2026-01-01T00:00:00.000Z","type":"subscribed"}
        {"seq":8,"timestamp":"2026-01-01T00:00:00.000Z","type":"agent-joined","agentId":"echo","source":"built-in"}
        {"seq":9,"timestamp":"2026-01-01T00:00:00.000Z","type":"agent-breaker","agentId":"echo","breaker":{"state":"closed"}}
        {"seq":10,"timestamp":"2026-01-01T00:00:00.000Z","type":"task-state","taskId":"t","contextId":"c","agentId":"echo","state":"input-required"}
        {"seq":10,"timestamp":"2026-01-01T00:00:00.000Z","type":"notices-changed"}
        {"seq":11,"timestamp":"2026-01-01T00:00:00.000Z","type":"storage-failing","error":"database or disk is full","fix":"make room"}
        {"seq":12,"timestamp":"2026-01-01T00:00:00.000Z","type":"storage-recovered","failingSince":"2026-01-01T00:00:00.000Z"}
        {"seq":13,"timestamp":"2026-01-01T00:00:00.000Z","type":"question-expiring","questionId":"q","taskId":"t","contextId":"c","agentId":"echo","expiresAt":"2026-01-01T01:00:00.000Z"}
        "#);
    }
}
