//! Health of an agent, as its own check reports it.

use a2a_hub_protocol::operation::HealthStatus;

/// Health report of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthReport {
    /// Health status.
    pub status: HealthStatus,
    /// Version of the program behind it.
    pub version: Option<String>,
    /// Result of the check, for people; none if nothing is notable.
    pub detail: Option<String>,
    /// Command that fixes it.
    pub fix: Option<String>,
}
