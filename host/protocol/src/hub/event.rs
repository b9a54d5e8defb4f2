//! Events of the whole hub, sent by `hub/events`: agents, plug-ins, health, task states, settings
//! and storage.

use crate::model::{
    id::{AgentId, ContextId, TaskId, TenantId},
    operation::{AgentBreaker, AgentHealth},
    task::TaskState,
};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// An event of the hub.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HubEvent {
    /// The event's place among all since the hub started: one more than the one before.
    pub seq: u64,
    /// When the event happened: RFC 3339 in UTC.
    pub timestamp: String,
    /// What happened, by its `type`.
    #[serde(flatten)]
    pub what: Happened,
}

/// What happened in the hub, by its `type`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Happened {
    /// You listen: whatever happens from now on is told. `seq` is that of the event before.
    Subscribed,
    /// An agent joined.
    AgentJoined {
        /// The agent.
        agent_id: AgentId,
        /// Where the agent came from: `built-in` or the file's name.
        source: String,
    },
    /// An agent took the place of an older one of its name; its running tasks end on the old version.
    AgentReplaced {
        /// The agent.
        agent_id: AgentId,
        /// Where the agent came from: `built-in` or the file's name.
        source: String,
    },
    /// An agent left; its tasks go on to their end.
    AgentLeft {
        /// The agent.
        agent_id: AgentId,
    },
    /// A file in the plugins folder cannot join.
    PluginRejected {
        /// The file's name.
        file: String,
        /// What is wrong with the file, and how to mend it.
        error: String,
    },
    /// A component in the plugins folder waits for the operator, for it is another one than was granted; the one that was granted
    /// serves on.
    PluginHeldBack {
        /// The agent whose file it is.
        agent_id: AgentId,
        /// The file's name.
        file: String,
        /// The SHA-256 digest of the component that waits, in hex.
        sha256: String,
        /// What it asks for that the granted one does not, and the other way round: a line each, beginning with `+`, `-` or `~`.
        changes: Vec<String>,
    },
    /// What is granted to a plug-in changed. Calls of running tasks that are not allowed any more end as `denied`.
    PluginGrantChanged {
        /// The agent that the plug-in is.
        agent_id: AgentId,
    },
    /// An agent is better or worse than it was.
    AgentHealth {
        /// The agent.
        agent_id: AgentId,
        /// The agent's health by now.
        health: AgentHealth,
    },
    /// Tasks reach an agent again, or no longer.
    AgentBreaker {
        /// The agent.
        agent_id: AgentId,
        /// The agent's circuit breaker by now.
        breaker: AgentBreaker,
    },
    /// A task was accepted.
    TaskCreated {
        /// The task.
        task_id: TaskId,
        /// The task's conversation.
        context_id: ContextId,
        /// The agent that is to do it.
        agent_id: AgentId,
    },
    /// A task moved to another state.
    TaskState {
        /// The task.
        task_id: TaskId,
        /// The task's conversation.
        context_id: ContextId,
        /// The agent that does it.
        agent_id: AgentId,
        /// The state that the task is in now, such as `input-required`.
        #[serde(serialize_with = "by_name")]
        #[schemars(with = "String")]
        state: TaskState,
    },
    /// The configuration was read again.
    ConfigReloaded {
        /// The settings that changed and count from now on.
        changed: Vec<String>,
        /// The settings that changed and count once the hub is started again.
        needs_restart: Vec<String>,
    },
    /// The hub cannot store anything, so that no task can begin or go on.
    StorageFailing {
        /// What went wrong.
        error: String,
        /// How to mend it.
        fix: String,
    },
    /// It can again.
    StorageRecovered {
        /// Since when it could not: RFC 3339 in UTC.
        failing_since: String,
    },
}

impl Happened {
    /// Tenant of the event's task; `None` for an event that every tenant may see.
    pub fn tenant(&self) -> Option<&TenantId> {
        match self {
            Self::TaskCreated { context_id, .. } | Self::TaskState { context_id, .. } => {
                Some(context_id.tenant())
            }
            Self::Subscribed
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

/// Why a stream of the hub's events came to its end. Whoever still wants to hear asks anew, and for what it missed
/// looks at `hub/status`, `hub/agents/list` and `tasks/get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamEnd {
    /// The listener took so long that events it had not heard were let go.
    TooSlow,
    /// The hub is about to stop.
    HubStopped,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hub_event_wire_form() {
        let event =
            |seq, what| HubEvent { seq, timestamp: "2026-01-01T00:00:00.000Z".to_owned(), what };
        let agent_id = AgentId::parse("echo").unwrap();
        let told = [
            event(7, Happened::Subscribed),
            event(
                8,
                Happened::AgentJoined { agent_id: agent_id.clone(), source: "built-in".to_owned() },
            ),
            event(
                9,
                Happened::AgentBreaker {
                    agent_id: agent_id.clone(),
                    breaker: AgentBreaker::closed(),
                },
            ),
            event(
                10,
                Happened::TaskState {
                    task_id: TaskId::new("t"),
                    context_id: ContextId::new("c"),
                    agent_id,
                    state: TaskState::InputRequired,
                },
            ),
            event(
                11,
                Happened::StorageFailing {
                    error: "database or disk is full".to_owned(),
                    fix: "make room".to_owned(),
                },
            ),
            event(
                12,
                Happened::StorageRecovered { failing_since: "2026-01-01T00:00:00.000Z".to_owned() },
            ),
        ];
        let lines = told.map(|event| serde_json::to_string(&event).unwrap()).join("\n");
        insta::assert_snapshot!(lines, @r#"
        {"seq":7,"timestamp":"2026-01-01T00:00:00.000Z","type":"subscribed"}
        {"seq":8,"timestamp":"2026-01-01T00:00:00.000Z","type":"agent-joined","agentId":"echo","source":"built-in"}
        {"seq":9,"timestamp":"2026-01-01T00:00:00.000Z","type":"agent-breaker","agentId":"echo","breaker":{"state":"closed"}}
        {"seq":10,"timestamp":"2026-01-01T00:00:00.000Z","type":"task-state","taskId":"t","contextId":"c","agentId":"echo","state":"input-required"}
        {"seq":11,"timestamp":"2026-01-01T00:00:00.000Z","type":"storage-failing","error":"database or disk is full","fix":"make room"}
        {"seq":12,"timestamp":"2026-01-01T00:00:00.000Z","type":"storage-recovered","failingSince":"2026-01-01T00:00:00.000Z"}
        "#);
    }
}
