//! Operational answers of the hub: ping, status, storage condition and reloaded settings.

use super::{
    health::{AgentBreaker, HealthStatus},
    requirements::AgentGroup,
};
use crate::model::id::AgentId;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Answer to `hub/ping`, which works even if other parts of the hub fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pong {
    /// Version of the hub.
    pub version: String,
    /// Progress of the start, while the hub starts; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting: Option<HubStart>,
}

/// Progress of the start of a hub, which answers `hub/ping` and `hub/status` only until its agents
/// have joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HubStart {
    /// Number of agents that are known to join so far.
    pub agents: usize,
    /// Number of these whose components are compiled.
    pub ready: usize,
    /// Agents whose components are being compiled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compiling: Vec<AgentId>,
}

impl fmt::Display for HubStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} agents compiled", self.ready, self.agents)
    }
}

/// Number of streams and their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenStreams {
    /// Number of open streams.
    pub open: usize,
    /// Maximum number of open streams.
    pub max: usize,
}

/// Result of reloading the configuration: the answer to `hub/reload`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reloaded {
    /// Changed settings that are effective now, such as `agents.echo.timeout_ms`.
    pub changed: Vec<String>,
    /// Changed settings that become effective after a restart; until then the old values apply.
    pub needs_restart: Vec<String>,
    /// Agents that cannot run under the new settings, with reasons.
    pub left_out: Vec<LeftOut>,
}

/// Agent that cannot run under the new settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// Id of the agent on this hub.
    pub agent_id: AgentId,
    /// Reason why the agent cannot run, and the remedy.
    pub error: String,
}

/// Condition of the store. The hub does nothing that it cannot store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum StorageCondition {
    /// The store can be written.
    Ok,
    /// The store cannot be written: the hub retries until the cause is gone, and then fails the
    /// tasks that were at work with reason `storage`.
    Failing {
        /// Start of the failure: RFC 3339 in UTC.
        since: String,
        /// Latest error of the store.
        error: String,
        /// Remedy, for people.
        fix: String,
    },
}

impl StorageCondition {
    /// True if the store cannot be written.
    pub fn is_failing(&self) -> bool {
        matches!(self, Self::Failing { .. })
    }
}

/// State of the hub: the answer to `hub/status` of the Local Hub specification.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubStatus {
    /// Version of the hub.
    pub version: String,
    /// Time since the start of the hub, in milliseconds.
    pub uptime: u64,
    /// Agents of the hub.
    pub agents: Vec<AgentBrief>,
    /// Groups of agents that do the same work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<AgentGroup>,
    /// Number of tasks that have not ended.
    pub active_tasks: u64,
    /// Number of active tasks that wait for an answer or a login of their client.
    pub waiting_tasks: u64,
    /// Number of open questions whose deadlines are near.
    pub expiring_questions: u64,
    /// Number of stored tasks.
    pub total_tasks: u64,
    /// Condition of the store.
    pub storage: StorageCondition,
    /// Warnings for the operator, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Last moment at which the TLS certificate is valid: RFC 3339 in UTC; absent without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_expires_at: Option<String>,
    /// Progress of the start, while the hub starts, when all other members are empty; absent
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting: Option<HubStart>,
    /// True while the hub stops, when it accepts no new tasks; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopping: bool,
    /// Number of agents.
    pub total: usize,
    /// Number of healthy agents, which can work.
    pub healthy: usize,
    /// Number of degraded agents, which can work with restrictions.
    pub degraded: usize,
    /// Number of unhealthy agents, which cannot work.
    pub unhealthy: usize,
    /// Number of agents that have not been checked yet.
    pub unknown: usize,
    /// Components whose compilation takes a while; each one joins when it is compiled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compiling_plugins: Vec<CompilingPlugin>,
    /// Components in the plugins folder that cannot become agents, with reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected_plugins: Vec<RejectedPlugin>,
}

impl HubStatus {
    /// Status of a hub of this version that is starting.
    pub fn starting(version: &str, start: HubStart) -> Self {
        Self {
            version: version.to_owned(),
            uptime: 0,
            agents: Vec::new(),
            groups: Vec::new(),
            active_tasks: 0,
            waiting_tasks: 0,
            expiring_questions: 0,
            total_tasks: 0,
            storage: StorageCondition::Ok,
            warnings: Vec::new(),
            certificate_expires_at: None,
            starting: Some(start),
            stopping: false,
            total: 0,
            healthy: 0,
            degraded: 0,
            unhealthy: 0,
            unknown: 0,
            compiling_plugins: Vec::new(),
            rejected_plugins: Vec::new(),
        }
    }
}

/// Summary of an agent in the hub's status.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentBrief {
    /// Id of the agent on this hub.
    pub id: AgentId,
    /// Name of the agent, for people.
    pub name: String,
    /// Health of the agent.
    pub status: HealthStatus,
    /// Problem that the last health check found, for people; absent if it found none.
    #[serde(rename = "errorMessage", skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Command that solves the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Circuit breaker of the agent, which decides if tasks reach the agent.
    pub breaker: AgentBreaker,
    /// Number of the agent's running and queued tasks.
    pub load: usize,
    /// Recent average time to the agent's first output, in milliseconds; absent before its first
    /// output.
    #[serde(rename = "latencyMs", skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Number of idle programs that are kept for the agent's next tasks; absent if zero.
    #[serde(skip_serializing_if = "super::tree::is_zero")]
    pub kept: usize,
    /// True if lists for people leave the agent out; absent if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
}

/// Component that is being compiled for the first time, which takes long.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CompilingPlugin {
    /// Name of the file.
    pub file: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Start of the compilation: RFC 3339 in UTC.
    pub since: String,
}

/// File in the plugins folder that cannot become an agent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RejectedPlugin {
    /// Name of the file.
    pub file: String,
    /// Reason for the rejection, and the remedy.
    pub error: String,
}

/// Deregistered agent: the answer to `hub/agents/deregister`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deregistered {
    /// Id of the agent.
    pub agent_id: AgentId,
    /// Source of the agent: `built-in`, `acp`, `native`, the file's name of a plug-in, or a remote
    /// agent's URL.
    pub source: String,
    /// True if the agent returns with the next start of the hub, or earlier with
    /// `hub/agents/reload`.
    pub returns_on_restart: bool,
}
