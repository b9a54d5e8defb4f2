//! Health and circuit breaker of an agent.

use schemars::JsonSchema;
use serde::Serialize;

/// The health of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// The agent can work.
    Healthy,
    /// The agent can work, but not fully.
    Degraded,
    /// The agent cannot work.
    Unhealthy,
    /// The agent was not asked yet.
    Unknown,
}

/// Operating data of an agent in the extended card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Operated {
    /// Result of the last health check.
    pub status: HealthStatus,
    /// Timeout of a task in milliseconds.
    pub task_timeout_ms: u64,
    /// Maximum number of running tasks.
    pub max_running: usize,
    /// Maximum number of queued tasks; further ones are refused.
    pub max_queued: usize,
}

/// The last health check of an agent, and what it found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentHealth {
    /// The agent's health.
    pub status: HealthStatus,
    /// When the agent was asked: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_check: Option<String>,
    /// How long the agent's answer took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The version of the program behind the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What is wrong with the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// What else the agent says of itself, such as which version of its program it was tested with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The command that mends what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl AgentHealth {
    /// Health of an agent that has not been checked.
    pub fn unknown() -> Self {
        Self {
            status: HealthStatus::Unknown,
            last_check: None,
            latency_ms: None,
            version: None,
            error_message: None,
            detail: None,
            fix: None,
        }
    }
}

/// The circuit breaker of an agent: whether tasks reach the agent, judged by how its last ones and its health checks
/// went.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentBreaker {
    /// The state of the breaker.
    pub state: BreakerState,
    /// When the next task is let through, unless a good health check comes before: RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    /// What went wrong the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl AgentBreaker {
    /// A closed breaker, which lets tasks pass.
    pub fn closed() -> Self {
        Self { state: BreakerState::Closed, retry_at: None, cause: None }
    }
}

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerState {
    /// Every task reaches the agent.
    Closed,
    /// No task reaches the agent, which failed again and again.
    Open,
    /// One task was let through, to see how it fares.
    HalfOpen,
}
