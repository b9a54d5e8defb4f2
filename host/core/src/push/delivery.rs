//! Retry policy for notifications: the meaning of a receiver's response, the pauses between
//! attempts, and the end of attempts.

use crate::health::circuit_breaker::{Evidence, Outcome};
use std::time::Duration;

/// Pause after the first failure; it doubles with each further one. A restarted receiver is usually
/// back by the second or third attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause: a receiver that returns after a day gets its event within ten minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Maximum `Retry-After` that is respected: an hour is longer than the usual window of rate limits,
/// and a year is a mistake.
const LONGEST_REST: Duration = Duration::from_secs(60 * 60);

/// Minimum time for which an event waits in the queue, even near the end of its retry period: other
/// events to the same receiver may be in progress.
const MIN_WAIT: Duration = Duration::from_secs(15);

/// Meaning of a receiver's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryVerdict {
    /// The receiver accepted the event.
    Taken,
    /// A later attempt may succeed.
    Later,
    /// The receiver states that it will never accept events again.
    Gone,
}

/// Next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Retry after this pause.
    Retry(Duration),
    /// Stop until a user requests another attempt.
    GiveUp,
}

/// Meaning of an HTTP status. Only 410 stops at once: 401 or 404 can be a deployment error, and
/// redirects are not followed because they could lead anywhere.
pub fn verdict(status: u16) -> DeliveryVerdict {
    match status {
        200..=299 => DeliveryVerdict::Taken,
        410 => DeliveryVerdict::Gone,
        _ => DeliveryVerdict::Later,
    }
}

/// True for a status whose `Retry-After` header counts (RFC 9110, section 15.6.4; RFC 6585, section
/// 4).
pub fn may_ask_for_rest(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// Evidence from an HTTP status about the server at this scheme, host and port. A server that
/// refuses one URL or one client's token is healthy: otherwise a wrong URL would block the
/// notifications to correct ones.
pub fn breaker_outcome(status: u16) -> Outcome {
    match status {
        429 | 500..=599 => Outcome::Failure(Evidence::Task),
        _ => Outcome::Success(Evidence::Task),
    }
}

/// Decides after failure number `attempts` of an event that has failed for the time `failing`.
/// After `retry_period` the hub gives the event up. `retry_after` is the receiver's `Retry-After`:
/// it takes precedence over `retry_period`, because an earlier attempt would be useless. The pause
/// doubles with each failure (exponential backoff). `chance` is a random number that spreads the
/// attempts over half a pause (jitter).
pub fn next(
    attempts: u32,
    failing: Duration,
    retry_period: Duration,
    retry_after: Option<Duration>,
    chance: u64,
) -> RetryDecision {
    if failing >= retry_period {
        return RetryDecision::GiveUp;
    }
    let doublings = attempts.saturating_sub(1).min(16);
    let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
    let spread = pause / 2000 * u32::try_from(chance % 1001).unwrap_or_default();
    // The last attempt is at the end of the retry period, not after it.
    let pause = (pause / 2 + spread).min(retry_period - failing);
    let rest =
        retry_after.map_or(Duration::ZERO, |retry_after| retry_after.min(LONGEST_REST) + spread);
    RetryDecision::Retry(pause.max(rest))
}

/// Remaining part of a stored pause, limited to the longest possible pause in case the clock was
/// set back.
pub fn rest_of(pause: Duration) -> Duration {
    pause.min(LONGEST_REST + LONGEST_PAUSE)
}

/// Time for which an event that has failed for `failing` may wait while its receiver's breaker is
/// open or the receiver is busy. After it the hub gives the event up, so that no event waits for
/// ever.
pub fn wait(failing: Duration, retry_period: Duration) -> Duration {
    retry_period.saturating_sub(failing).max(MIN_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn pauses_double_up_to_a_limit() {
        let pauses = [1, 2, 3, 4, 10, 11, 12, u32::MAX]
            .map(|attempts| next(attempts, Duration::ZERO, DAY, None, 1000));
        let seconds = [1, 2, 4, 8, 512, 600, 600, 600];
        assert_eq!(
            pauses,
            seconds.map(|seconds| RetryDecision::Retry(Duration::from_secs(seconds)))
        );
        assert_eq!(next(1, Duration::ZERO, DAY, None, 0), RetryDecision::Retry(FIRST_PAUSE / 2));
    }

    /// Arguments in seconds: the time of failing, the receiver's `Retry-After`, and the random
    /// number; the result is the pause.
    #[test]
    fn retry_after_delays_next_attempt() {
        let again = |failing, asked, chance| {
            let [failing, asked] = [failing, asked].map(Duration::from_secs);
            match next(3, failing, Duration::from_secs(100), Some(asked), chance) {
                RetryDecision::Retry(pause) => pause.as_millis().to_string(),
                RetryDecision::GiveUp => "never".to_owned(),
            }
        };
        assert_eq!(again(0, 0, 0), "2000", "its own pause");
        assert_eq!(again(0, 1, 0), "2000", "it is longer anyway");
        assert_eq!(again(0, 30, 0), "30000");
        assert_eq!(again(0, 30, 1000), "32000", "not all at once");
        assert_eq!(again(99, 30, 0), "30000", "a try before would be for nothing");
        assert_eq!(again(0, 1_000_000, 0), "3600000", "an hour at most");
        assert_eq!(again(100, 30, 0), "never");
    }

    #[test]
    fn only_server_errors_blame_the_server() {
        let failure = Outcome::Failure(Evidence::Task);
        assert_eq!([429, 500, 502, 503, 599].map(breaker_outcome), [failure; 5]);
        let success = Outcome::Success(Evidence::Task);
        assert_eq!(
            [200, 302, 400, 401, 403, 404, 410].map(breaker_outcome),
            [success; 7],
            "its URL's only"
        );
        assert_eq!([429, 503, 500, 200].map(may_ask_for_rest), [true, true, false, false]);
    }

    #[test]
    fn queue_wait_is_bounded() {
        let seconds = Duration::from_secs;
        assert_eq!(wait(seconds(10), DAY), DAY - seconds(10));
        assert_eq!(wait(DAY + seconds(1), DAY), MIN_WAIT);
        assert_eq!(rest_of(seconds(5)), seconds(5));
        assert_eq!(rest_of(DAY), seconds(4200), "the clock was set back");
    }

    #[test]
    fn verdict_follows_http_status() {
        let taken = [200, 201, 204, 299].map(verdict);
        assert_eq!(taken, [DeliveryVerdict::Taken; 4]);
        let later = [100, 301, 302, 400, 401, 404, 408, 429, 500, 503].map(verdict);
        assert_eq!(later, [DeliveryVerdict::Later; 10]);
        assert_eq!(verdict(410), DeliveryVerdict::Gone);
    }

    proptest! {
        #[test]
        fn retries_end_exactly_after_patience(chances in proptest::collection::vec(any::<u64>(), 400)) {
            let (mut failing, mut attempts) = (Duration::ZERO, 0);
            for chance in chances {
                attempts += 1;
                match next(attempts, failing, DAY, None, chance) {
                    RetryDecision::Retry(pause) => failing += pause,
                    RetryDecision::GiveUp => break,
                }
            }
            prop_assert_eq!(failing, DAY, "after {} attempts", attempts);
        }
    }
}
