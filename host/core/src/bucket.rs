//! The token bucket: how fast something may go on, and how much of it may come at once. Time fills the bucket, and what is
//! done takes tokens out; what each token is (a frame, an event, a byte, a nanosecond of the processor) is the owner's to say.

use std::time::{Duration, Instant};

/// How fast something may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens that come with each second, one at least.
    pub per_second: u64,
    /// Tokens that a full bucket holds: as much as may come at once.
    pub burst: u64,
}

impl Rate {
    /// So much each second, of which the share of two seconds may come at once.
    pub fn of(per_second: u64) -> Self {
        Self { per_second, burst: per_second.saturating_mul(2) }
    }

    /// The tokens that come within so long.
    pub(crate) fn come(self, within: Duration) -> u64 {
        let come = within.as_nanos() * u128::from(self.per_second.max(1)) / SECOND;
        u64::try_from(come).unwrap_or(u64::MAX)
    }
}

/// A bucket of tokens, full at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: Rate,
    /// Negative while more was taken than there was.
    tokens: i64,
    /// Until when what comes with time was counted.
    counted: Instant,
}

/// A second, in nanoseconds.
const SECOND: u128 = 1_000_000_000;

impl Bucket {
    /// A full one.
    pub fn full(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: signed(rate.burst), counted: now }
    }

    /// Takes tokens if so many are there, and says whether they were.
    pub fn try_take(&mut self, tokens: u64, now: Instant) -> bool {
        // While there are enough, time need not be counted.
        let enough = signed(tokens) <= self.tokens || signed(tokens) <= self.level(now);
        if enough {
            self.tokens -= signed(tokens);
        }
        enough
    }

    /// Takes tokens, be they there or not, and says how long to wait until what was too many has come in: backpressure for a
    /// caller that waits before it goes on.
    pub fn take(&mut self, tokens: u64, now: Instant) -> Duration {
        let left = self.level(now).saturating_sub(signed(tokens));
        self.tokens = left;
        let (owed, per_second) = (u128::from(left.min(0).unsigned_abs()), self.rate.per_second);
        let wait = (owed * SECOND).div_ceil(u128::from(per_second.max(1)));
        Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// Puts in tokens that were earned, as long as there are no more than `most`.
    pub fn earn(&mut self, tokens: u64, most: u64) {
        self.tokens = self.tokens.saturating_add(signed(tokens)).min(signed(most));
    }

    /// Lets go of what was taken too much beyond so many tokens.
    pub fn forgive(&mut self, beyond: u64) {
        self.tokens = self.tokens.max(-signed(beyond));
    }

    /// How many tokens there are; fewer than none if more was taken than there was.
    pub fn level(&mut self, now: Instant) -> i64 {
        let passed = now.saturating_duration_since(self.counted);
        let come = self.rate.come(passed);
        if come > 0 {
            let full = self.tokens.max(signed(self.rate.burst));
            self.tokens = self.tokens.saturating_add(signed(come)).min(full);
            // What remains of a token counts for the next one.
            let counted = u128::from(come) * SECOND / u128::from(self.rate.per_second.max(1));
            self.counted += Duration::from_nanos(u64::try_from(counted).unwrap_or(u64::MAX));
        }
        self.tokens
    }
}

fn signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 100, burst: 10 };

    #[expect(clippy::disallowed_methods, reason = "an arbitrary starting point")]
    fn begun() -> Instant {
        Instant::now()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn what_is_taken_comes_back_with_time_and_no_more_than_a_burst() {
        let begun = begun();
        let mut bucket = Bucket::full(RATE, begun);
        assert!(bucket.try_take(10, begun));
        assert!(!bucket.try_take(1, begun + ms(9)));
        assert!(bucket.try_take(1, begun + ms(10)));
        assert!(!bucket.try_take(1, begun + ms(19)), "none is counted twice");
        assert!(bucket.try_take(1, begun + ms(20)), "and none is lost between");
        assert!(!bucket.try_take(11, begun + Duration::from_secs(1 << 20)));
        assert!(bucket.try_take(10, begun), "a clock that goes back takes nothing away");
    }

    #[test]
    fn who_takes_too_much_waits_until_it_has_come_in() {
        let begun = begun();
        let mut bucket = Bucket::full(RATE, begun);
        assert_eq!(bucket.take(10, begun), Duration::ZERO);
        assert_eq!(bucket.take(5, begun), ms(50));
        assert_eq!(bucket.take(0, begun + ms(30)), ms(20));
        assert_eq!(bucket.take(1, begun + ms(50)), ms(10));
        bucket.take(1_000_000, begun + ms(60));
        bucket.forgive(20);
        assert_eq!(bucket.take(0, begun + ms(60)), ms(200));
    }

    #[test]
    fn a_rate_of_nothing_and_a_rate_beyond_all_numbers_are_rates() {
        let begun = begun();
        let mut never = Bucket::full(Rate::of(0), begun);
        assert_eq!(never.take(1, begun), Duration::from_secs(1), "as of one a second");
        assert_eq!(never.take(0, begun + ms(1_000)), Duration::ZERO);
        let mut always = Bucket::full(Rate::of(u64::MAX), begun);
        assert_eq!(always.take(u64::MAX, begun), Duration::ZERO);
        assert_eq!(always.take(u64::MAX, begun + ms(5_000)), Duration::ZERO);
    }

    #[test]
    fn what_is_earned_is_kept_beyond_a_burst() {
        let begun = begun();
        let mut bucket = Bucket::full(RATE, begun);
        bucket.earn(1_000, 100);
        assert_eq!(bucket.level(begun + ms(1_000)), 100);
        assert!(bucket.try_take(100, begun + ms(1_000)));
    }
}
