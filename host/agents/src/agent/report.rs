//! What an agent says of its health, and what is made of it.

use a2a_hub_clock as clock;
use a2a_hub_core::{plain_text::line, span::Span};
use a2a_hub_protocol::{
    id::AgentId,
    operation::{AgentHealth, HealthStatus},
};
use a2a_hub_runtime::{Failure, Report};
use std::time::Duration;

/// An agent that did not say in time how it is.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "ask `{agent}` how it is: no answer within {}; its log, or `a2a-hub doctor`, may tell why",
    Span(*within)
)]
pub struct Late {
    /// The agent that was asked.
    pub agent: AgentId,
    /// How long it had.
    pub within: Duration,
    /// What it is taken for.
    pub health: Box<AgentHealth>,
}

/// An agent that has said that it cannot work, and what mends that.
#[derive(Clone, Debug, PartialEq)]
pub struct NotWorking {
    /// The agent that was asked.
    pub agent: AgentId,
    /// Its word on it.
    pub health: Box<AgentHealth>,
}

/// Characters of why an agent could not say how it is: it stands in a line of a list.
const MAX_WHY: usize = 400;

/// What a stranger has others do to mend it is a stranger's word, and no advice of the hub's.
pub(crate) fn as_its_own_words(health: &mut AgentHealth) {
    health.fix = health
        .fix
        .take()
        .map(|fix| format!("the plugin, which was granted nothing, says: \"{fix}\""));
}

pub(crate) fn judge(
    report: Result<Report, Failure>,
    took: Duration,
    deadline: Duration,
) -> AgentHealth {
    let report = report.unwrap_or_else(|why| Report {
        // One that could not be asked is not to blame.
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

    /// That it was tested with another version is told, and is no fault.
    #[test]
    fn what_an_agent_adds_to_its_health_is_told() {
        let report = |status| Report {
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

    /// One that is slow is there: to install it would mend nothing.
    #[test]
    fn an_agent_that_does_not_answer_in_time_is_asked_again() {
        let late = judge(Err(Failure::Timeout), HEALTH_DEADLINE, HEALTH_DEADLINE);
        assert_eq!(late.status, HealthStatus::Unhealthy);
        let said = late.error_message.unwrap_or_default();
        assert_eq!(said, "it did not say within 1 min how it is");
        assert!(late.fix.is_some_and(|fix| fix.contains("agents --health")));
    }
}
