//! Moving average of an agent's time to its first event, exponentially weighted (EWMA) and decaying
//! with time.

use std::time::{Duration, Instant};

/// Weight of the newest value; after three or four values the average is mostly new.
const NEWEST: f64 = 0.3;

/// Time constant of the decay: after it, an average counts for little more than a third, so that a
/// once slow agent is tried again.
const FORGOTTEN: Duration = Duration::from_secs(300);

/// Moving average of one agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    average: Duration,
    at: Instant,
}

impl Latency {
    /// Creates the average from the first value.
    pub fn new(took: Duration, now: Instant) -> Self {
        Self { average: took, at: now }
    }

    /// Adds a value.
    pub fn took(&mut self, took: Duration, now: Instant) {
        let before = self.average.mul_f64(1.0 - NEWEST);
        *self = Self { average: before.saturating_add(took.mul_f64(NEWEST)), at: now };
    }

    /// Estimated time to the first event, with decay.
    pub fn estimate(&self, now: Instant) -> Duration {
        let age = now.saturating_duration_since(self.at).as_secs_f64();
        self.average.mul_f64((-age / FORGOTTEN.as_secs_f64()).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an arbitrary starting point")]
    fn latest_values_count_most_and_decay() {
        let now = Instant::now();
        let ms = Duration::from_millis;
        let mut latency = Latency::new(ms(1_000), now);
        assert_eq!(latency.estimate(now), ms(1_000));
        for _ in 0..10 {
            latency.took(ms(100), now);
        }
        assert!((ms(100)..ms(130)).contains(&latency.estimate(now)), "{latency:?}");
        latency.took(ms(1_000), now);
        assert!((ms(360)..ms(400)).contains(&latency.estimate(now)), "{latency:?}");
        let later = now + FORGOTTEN;
        assert!((ms(130)..ms(150)).contains(&latency.estimate(later)), "{latency:?}");
        assert!(latency.estimate(now + 20 * FORGOTTEN) < ms(1));
    }
}
