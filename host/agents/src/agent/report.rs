//! Health reports of agents, and the health that the hub derives from them.

use a2a_hub_clock as clock;
use a2a_hub_core::text::{duration::Span, plain_text::line};
use a2a_hub_protocol::{
    id::AgentId,
    operation::{AgentHealth, HealthStatus},
};
use a2a_hub_runtime::{Failure, HealthReport};
use std::time::Duration;

/// A health check that got no answer in time.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "ask `{agent}` how it is: no answer within {}; its log, or `a2a-hub doctor`, may tell why",
    Span(*within)
)]
pub struct Late {
    /// Agent that was checked.
    pub agent: AgentId,
    /// Deadline of the check.
    pub within: Duration,
    /// Health that the hub assumes meanwhile.
    pub health: Box<AgentHealth>,
}

/// An agent that reports that it cannot work, with the remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct NotWorking {
    /// Agent that was checked.
    pub agent: AgentId,
    /// Health that the agent reports.
    pub health: Box<AgentHealth>,
}

/// Longest reason for a failed health check, in characters: it is one line of a list.
const MAX_WHY: usize = 400;

/// Marks the `fix` of an agent without a grant as a quotation, because it is not the hub's advice.
pub(crate) fn mark_as_quotation(health: &mut AgentHealth) {
    health.fix = health
        .fix
        .take()
        .map(|fix| format!("the plugin, which was granted nothing, says: \"{fix}\""));
}

pub(crate) fn judge(
    report: Result<HealthReport, Failure>,
    took: Duration,
    deadline: Duration,
) -> AgentHealth {
    let report = report.unwrap_or_else(|why| HealthReport {
        // A full hub is not the agent's fault.
        status: if why == Failure::HubFull {
            HealthStatus::Unknown
        } else {
            HealthStatus::Unhealthy
        },
        version: None,
        detail: Some(if why == Failure::Timeout {
            format!("it did not say within {} how it is", Span(deadline))
        } else {
            line(&why.to_string(), MAX_WHY)
        }),
        fix: (why == Failure::Timeout).then(|| {
            "ask again with `a2a-hub agents --health`: a first start takes long on a cold machine".to_owned()
        }),
    });
    let is_healthy = report.status == HealthStatus::Healthy;
    let (detail, error_message) =
        if is_healthy { (report.detail, None) } else { (None, report.detail) };
    AgentHealth {
        status: report.status,
        last_check: Some(clock::now()),
        latency_ms: Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        version: report.version,
        error_message,
        detail,
        fix: report.fix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTH_DEADLINE: Duration = Duration::from_secs(60);

    /// Another tested version is shown as a detail and is no error.
    #[test]
    fn detail_is_error_only_when_unhealthy() {
        let report = |status| HealthReport {
            status,
            version: Some("2".to_owned()),
            detail: Some("tested with 1".to_owned()),
            fix: None,
        };
        let told = |status| judge(Ok(report(status)), Duration::ZERO, HEALTH_DEADLINE);
        let (well, ill) = (told(HealthStatus::Healthy), told(HealthStatus::Degraded));
        assert_eq!((well.detail.as_deref(), well.error_message), (Some("tested with 1"), None));
        assert_eq!((ill.detail, ill.error_message.as_deref()), (None, Some("tested with 1")));
    }

    /// A slow agent is installed: advice to install it would not help.
    #[test]
    fn late_health_check_suggests_retry() {
        let late = judge(Err(Failure::Timeout), HEALTH_DEADLINE, HEALTH_DEADLINE);
        assert_eq!(late.status, HealthStatus::Unhealthy);
        let said = late.error_message.unwrap_or_default();
        assert_eq!(said, "it did not say within 1 min how it is");
        assert!(late.fix.is_some_and(|fix| fix.contains("agents --health")));
    }
}
