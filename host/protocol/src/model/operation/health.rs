//! Health and circuit breaker of an agent.

use schemars::JsonSchema;
use serde::Serialize;

/// Health of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// The agent can work.
    Healthy,
    /// The agent can work, with restrictions.
    Degraded,
    /// The agent cannot work.
    Unhealthy,
    /// The agent has not been checked yet.
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

/// Result of an agent's latest health check.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentHealth {
    /// Health of the agent.
    pub status: HealthStatus,
    /// Time of the check: RFC 3339 in UTC; absent before the first check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_check: Option<String>,
    /// Response time of the agent in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Version of the program behind the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Problem of the agent, for people; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Further information from the agent, such as the version of its program that it was tested
    /// with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Command that solves the problem.
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

/// Circuit breaker of an agent. It decides if tasks reach the agent, from the results of the latest
/// tasks and health checks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentBreaker {
    /// State of the breaker.
    pub state: BreakerState,
    /// Earliest time of the next trial task, unless a successful health check closes the breaker
    /// before: RFC 3339 in UTC; absent while the breaker is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    /// Latest failure, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl AgentBreaker {
    /// A closed breaker, which lets tasks pass.
    pub fn closed() -> Self {
        Self { state: BreakerState::Closed, retry_at: None, cause: None }
    }
}

/// State of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BreakerState {
    /// All tasks reach the agent.
    Closed,
    /// No task reaches the agent, because it failed repeatedly.
    Open,
    /// One trial task reaches the agent; its result closes or opens the breaker.
    HalfOpen,
}
