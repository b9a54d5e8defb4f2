//! When an agent is asked how it is.

use a2a_hub_protocol::operation::{AgentHealth, HealthStatus};
use std::time::Duration;

/// What an agent says is to be done where its program did not answer in time: it is asked again.
const ASK_AGAIN: &str = "a2a-hub agents --health";

/// Whether a task for the agent would only fail: it has said that it cannot work and what mends that. One that could not be
/// asked, does not know why, or was too slow may work all the same.
pub fn is_known_not_to_work(health: &AgentHealth) -> bool {
    let mends = |fix: &String| !fix.starts_with(ASK_AGAIN);
    health.status == HealthStatus::Unhealthy && health.fix.as_ref().is_some_and(mends)
}

/// How long until the next check: `interval`, give or take a tenth as `chance` has it, so that agents that joined
/// together are not asked together for ever (jitter).
pub fn with_jitter(interval: Duration, chance: u64) -> Duration {
    let tenth = interval / 10;
    // 32 bits of chance are plenty.
    let share = (chance >> 32) as f64 / f64::from(u32::MAX);
    interval - tenth + (2 * tenth).mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_known_not_to_work_if_it_says_what_mends_it() {
        let of = |status, fix: Option<&str>| {
            let fix = fix.map(str::to_owned);
            is_known_not_to_work(&AgentHealth { status, fix, ..AgentHealth::unknown() })
        };
        assert!(of(HealthStatus::Unhealthy, Some("npm install -g x")));
        assert!(!of(HealthStatus::Unhealthy, None), "it was not asked, or does not know why");
        let slow = "a2a-hub agents --health, which asks again: a first start takes long";
        assert!(!of(HealthStatus::Unhealthy, Some(slow)));
        for status in [HealthStatus::Healthy, HealthStatus::Degraded, HealthStatus::Unknown] {
            assert!(!of(status, Some("x login")), "{status:?}");
        }
    }

    #[test]
    fn stays_within_a_tenth() {
        let of = |chance| with_jitter(Duration::from_secs(30), chance).as_secs();
        assert_eq!([of(0), of(u64::MAX / 2), of(u64::MAX)], [27, 29, 33]);
    }
}
