//! Operational answers of the hub: ping, status, storage condition and reloaded settings.

use super::{
    health::{AgentBreaker, HealthStatus},
    requirements::AgentGroup,
};
use crate::model::id::AgentId;
use schemars::JsonSchema;
use serde::Serialize;

/// The hub answers, whatever else may be wrong with it: the answer to `hub/ping`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pong {
    /// The hub's version.
    pub version: String,
}

/// Number of streams and their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenStreams {
    /// Number of open streams.
    pub open: usize,
    /// Maximum number of open streams.
    pub most: usize,
}

/// What came of reading the configuration again: the answer to `hub/reload`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reloaded {
    /// The settings that changed and count from now on, such as `agents.echo.timeout_ms`.
    pub changed: Vec<String>,
    /// The settings that changed and count once the hub is started again; until then they are as they were.
    pub needs_restart: Vec<String>,
    /// The agents that the new settings leave without a place, and why.
    pub left_out: Vec<LeftOut>,
}

/// An agent that cannot work as new settings would have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The agent's id on this hub.
    pub agent_id: AgentId,
    /// Why the agent has no place, and how to mend that.
    pub error: String,
}

/// Whether the hub can store what happens. What it cannot store it does not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum StorageCondition {
    /// It can.
    Ok,
    /// It cannot: tasks that were at work fail, with reason `storage`, as soon as that can be stored. It is tried again and
    /// again, and works once the cause is gone.
    Failing {
        /// Since when: RFC 3339 in UTC.
        since: String,
        /// What went wrong the last time.
        error: String,
        /// How to mend it.
        fix: String,
    },
}

impl StorageCondition {
    /// True if the store cannot be written.
    pub fn is_failing(&self) -> bool {
        matches!(self, Self::Failing { .. })
    }
}

/// The state of the hub: the answer to `hub/status` of the Local Hub specification.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubStatus {
    /// The hub's version.
    pub version: String,
    /// How long the hub has been up, in milliseconds.
    pub uptime: u64,
    /// The hub's agents.
    pub agents: Vec<AgentBrief>,
    /// Groups of agents that do the same work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<AgentGroup>,
    /// How many tasks are not over.
    pub active_tasks: u64,
    /// How many of them wait for their client, for an answer or a login.
    pub waiting_tasks: u64,
    /// How many tasks the hub remembers.
    pub total_tasks: u64,
    /// Whether the hub can store what happens.
    pub storage: StorageCondition,
    /// What whoever looks after the hub should know of how it was started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether the hub is going down, and takes no new tasks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopping: bool,
    /// How many agents there are.
    pub total: usize,
    /// How many agents can work.
    pub healthy: usize,
    /// How many agents can work, but not fully.
    pub degraded: usize,
    /// How many agents cannot work.
    pub unhealthy: usize,
    /// How many agents were not asked yet.
    pub unknown: usize,
    /// Components that are being compiled for longer than a moment; each joins when that is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compiling_plugins: Vec<CompilingPlugin>,
    /// Components in the plugins folder that are not agents, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected_plugins: Vec<RejectedPlugin>,
}

/// An agent in one line of the hub's status.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentBrief {
    /// The agent's id on this hub.
    pub id: AgentId,
    /// The agent's name for people.
    pub name: String,
    /// The agent's health.
    pub status: HealthStatus,
    /// The agent's circuit breaker: whether tasks reach it.
    pub breaker: AgentBreaker,
    /// How many of the agent's tasks run or wait for their turn.
    pub load: usize,
    /// How long the agent's first word took lately, on average, in milliseconds; none if it said none yet.
    #[serde(rename = "latencyMs", skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// How many of the agent's programs live between its tasks, for the next of them.
    #[serde(skip_serializing_if = "super::tree::is_zero")]
    pub kept: usize,
}

/// A component that is being compiled, which takes long once.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CompilingPlugin {
    /// The file's name.
    pub file: String,
    /// The file's size in bytes.
    pub bytes: u64,
    /// When the hub began: RFC 3339 in UTC.
    pub since: String,
}

/// A file in the plugins folder that did not become an agent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RejectedPlugin {
    /// The file's name.
    pub file: String,
    /// What is wrong with the file, and how to mend it.
    pub error: String,
}
