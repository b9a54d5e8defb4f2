//! How long an agent's first word takes: an exponentially weighted moving average (EWMA), which is forgotten by and by.

use std::time::{Duration, Instant};

/// How much the newest time counts against all before: enough that three or four make a new average.
const NEWEST: f64 = 0.3;

/// After so long without a word, what is known of an agent counts for little more than a third: one that was slow once is tried again.
const FORGOTTEN: Duration = Duration::from_secs(300);

/// The moving average of one agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    average: Duration,
    at: Instant,
}

impl Latency {
    /// What is known after the first time.
    pub fn new(took: Duration, now: Instant) -> Self {
        Self { average: took, at: now }
    }

    /// Takes in one more.
    pub fn took(&mut self, took: Duration, now: Instant) {
        let before = self.average.mul_f64(1.0 - NEWEST);
        *self = Self { average: before.saturating_add(took.mul_f64(NEWEST)), at: now };
    }

    /// How long the first word is thought to take by now.
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
    fn the_latest_times_count_most_and_all_are_forgotten() {
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
