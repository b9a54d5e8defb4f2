//! Health checks of agents: their jitter, and the use of their results.

use a2a_hub_protocol::operation::{AgentHealth, HealthStatus};
use std::time::Duration;

/// Prefix of the fix that an agent suggests if its program did not answer in time: another check.
const ASK_AGAIN: &str = "a2a-hub agents --health";

/// True if a task would certainly fail: the agent reported that it cannot work, with a fix. An
/// agent that could not be checked, gives no reason, or was too slow may work nevertheless.
pub fn is_known_not_to_work(health: &AgentHealth) -> bool {
    let mends = |fix: &String| !fix.starts_with(ASK_AGAIN);
    health.status == HealthStatus::Unhealthy && health.fix.as_ref().is_some_and(mends)
}

/// Time until the next check: `interval` plus or minus a tenth, by the random `chance`, so that
/// agents that joined together are not checked together for ever (jitter).
pub fn with_jitter(interval: Duration, chance: u64) -> Duration {
    let tenth = interval / 10;
    // 32 random bits are sufficient.
    let share = (chance >> 32) as f64 / f64::from(u32::MAX);
    interval - tenth + (2 * tenth).mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unhealthy_agent_with_fix_is_known_broken() {
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
    fn jitter_stays_within_a_tenth() {
        let of = |chance| with_jitter(Duration::from_secs(30), chance).as_secs();
        assert_eq!([of(0), of(u64::MAX / 2), of(u64::MAX)], [27, 29, 33]);
    }
}
