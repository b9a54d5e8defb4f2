//! When an agent is asked how it is.

use a2a_hub_protocol::operation::{AgentHealth, HealthStatus};
use std::time::Duration;

/// Whether a task for the agent would only fail: it has said that it cannot work and what mends that. One that could not be
/// asked, or does not know why, may work all the same.
pub fn is_known_not_to_work(health: &AgentHealth) -> bool {
    health.status == HealthStatus::Unhealthy && health.fix.is_some()
}

/// How long until the next check: `interval`, give or take a tenth as `chance` has it, so that agents that joined
/// together are not asked together for ever.
pub fn pause(interval: Duration, chance: u64) -> Duration {
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
        assert!(!of(HealthStatus::Unhealthy, None), "it was not asked, or did not answer in time");
        for status in [HealthStatus::Healthy, HealthStatus::Degraded, HealthStatus::Unknown] {
            assert!(!of(status, Some("x login")), "{status:?}");
        }
    }

    #[test]
    fn stays_within_a_tenth() {
        let of = |chance| pause(Duration::from_secs(30), chance).as_secs();
        assert_eq!([of(0), of(u64::MAX / 2), of(u64::MAX)], [27, 29, 33]);
    }
}
