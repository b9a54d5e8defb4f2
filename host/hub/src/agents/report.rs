//! What an agent says of its health, and what is made of it.

use crate::clock;
use a2a_hub_core::{plain_text::line, span::Span};
use a2a_hub_protocol::operation::{AgentHealth, HealthStatus};
use a2a_hub_runtime::{Failure, Report};
use std::time::Duration;

/// Characters of why an agent could not say how it is: it stands in a line of a list.
const MAX_WHY: usize = 400;

/// What a stranger has others do to mend it is a stranger's word, and no advice of the hub's.
pub(super) fn as_its_own_words(health: &mut AgentHealth) {
    health.fix = health
        .fix
        .take()
        .map(|fix| format!("the plugin, which was granted nothing, says: \"{fix}\""));
}

pub(super) fn judge(
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
