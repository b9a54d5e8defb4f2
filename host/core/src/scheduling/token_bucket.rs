//! Token bucket: limits a rate and a burst. Time adds tokens, and work takes them. The owner
//! defines the meaning of a token (a frame, an event, a byte, a nanosecond of processor time).

use std::time::{Duration, Instant};

/// Rate limit with a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens added each second; at least one.
    pub per_second: u64,
    /// Capacity of the bucket: the maximum burst.
    pub burst: u64,
}

impl Rate {
    /// Rate with a burst of two seconds.
    pub fn new(per_second: u64) -> Self {
        Self { per_second, burst: per_second.saturating_mul(2) }
    }

    /// Tokens added within a duration.
    pub(crate) fn accrued(self, within: Duration) -> u64 {
        let come = within.as_nanos() * u128::from(self.per_second.max(1)) / SECOND;
        u64::try_from(come).unwrap_or(u64::MAX)
    }
}

/// Token bucket, initially full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: Rate,
    /// Negative if more tokens were taken than were available.
    tokens: i64,
    /// Instant up to which the added tokens are counted.
    counted: Instant,
}

/// Nanoseconds of a second.
const SECOND: u128 = 1_000_000_000;

impl Bucket {
    /// Creates a full bucket.
    pub fn full(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: signed(rate.burst), counted: now }
    }

    /// Takes tokens if enough are available; returns true if it did.
    pub fn try_take(&mut self, tokens: u64, now: Instant) -> bool {
        // The elapsed time matters only if the counted tokens are not enough.
        let enough = signed(tokens) <= self.tokens || signed(tokens) <= self.level(now);
        if enough {
            self.tokens -= signed(tokens);
        }
        enough
    }

    /// Takes tokens even if they are not available, and returns the time to wait until the debt is
    /// paid: backpressure for a caller that waits before it continues.
    pub fn take(&mut self, tokens: u64, now: Instant) -> Duration {
        let balance = self.level(now).saturating_sub(signed(tokens));
        self.tokens = balance;
        let (owed, per_second) = (u128::from(balance.min(0).unsigned_abs()), self.rate.per_second);
        let wait = (owed * SECOND).div_ceil(u128::from(per_second.max(1)));
        Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// Adds earned tokens, up to `max` in total.
    pub fn earn(&mut self, tokens: u64, max: u64) {
        self.tokens = self.tokens.saturating_add(signed(tokens)).min(signed(max));
    }

    /// Limits the debt to this number of tokens.
    pub fn forgive(&mut self, beyond: u64) {
        self.tokens = self.tokens.max(-signed(beyond));
    }

    /// Current number of tokens; negative for a debt.
    pub fn level(&mut self, now: Instant) -> i64 {
        let passed = now.saturating_duration_since(self.counted);
        let come = self.rate.accrued(passed);
        if come > 0 {
            let full = self.tokens.max(signed(self.rate.burst));
            self.tokens = self.tokens.saturating_add(signed(come)).min(full);
            // A fraction of a token counts towards the next one.
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
    fn tokens_refill_up_to_burst() {
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
    fn debt_is_paid_by_waiting() {
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
    fn extreme_rates_do_not_overflow() {
        let begun = begun();
        let mut never = Bucket::full(Rate::new(0), begun);
        assert_eq!(never.take(1, begun), Duration::from_secs(1), "as of one a second");
        assert_eq!(never.take(0, begun + ms(1_000)), Duration::ZERO);
        let mut always = Bucket::full(Rate::new(u64::MAX), begun);
        assert_eq!(always.take(u64::MAX, begun), Duration::ZERO);
        assert_eq!(always.take(u64::MAX, begun + ms(5_000)), Duration::ZERO);
    }

    #[test]
    fn earned_tokens_may_exceed_burst() {
        let begun = begun();
        let mut bucket = Bucket::full(RATE, begun);
        bucket.earn(1_000, 100);
        assert_eq!(bucket.level(begun + ms(1_000)), 100);
        assert!(bucket.try_take(100, begun + ms(1_000)));
    }
}
