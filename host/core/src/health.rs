//! When an agent is asked how it is.

use std::time::Duration;

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
    fn stays_within_a_tenth() {
        let of = |chance| pause(Duration::from_secs(30), chance).as_secs();
        assert_eq!([of(0), of(u64::MAX / 2), of(u64::MAX)], [27, 29, 33]);
    }
}
