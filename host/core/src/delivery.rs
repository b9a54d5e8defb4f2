//! What becomes of an event that was to be delivered: whether it arrived, when to try again, and when to give up.

use crate::breaker::{Outcome, Source};
use std::time::Duration;

/// The pause after the first failure; it doubles with each that follows. A receiver that was just restarted is back by
/// the second or third.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// No pause is longer: a receiver that is back after a day is heard of within ten minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// How long a receiver may ask to be left in peace: an hour is longer than a limit of requests commonly counts, and one
/// that says a year is mistaken.
const LONGEST_REST: Duration = Duration::from_secs(60 * 60);

/// However little patience is left, an event waits so long for its turn: others may be under way to the same receiver.
const LEAST_WAIT: Duration = Duration::from_secs(15);

/// What a receiver's answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The receiver has taken the event.
    Taken,
    /// It may take it another time.
    Later,
    /// It says itself that it never will again.
    Gone,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try again after so long.
    Retry(Duration),
    /// Nothing, until somebody says so.
    GiveUp,
}

/// What an answer with this HTTP status means. Only 410 ends it at once: 401 or 404 can be a slip in a deployment, and
/// a redirect is not followed, for it could lead anywhere.
pub fn verdict(status: u16) -> Verdict {
    match status {
        200..=299 => Verdict::Taken,
        410 => Verdict::Gone,
        _ => Verdict::Later,
    }
}

/// Whether a receiver that answers with this HTTP status may say when it wants to be asked again, as `Retry-After` does
/// (RFC 9110, section 15.6.4; RFC 6585, section 4).
pub fn may_ask_for_rest(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// What an answer with this HTTP status tells of all that is at the same scheme, host and port. Whoever refuses one URL,
/// or one client's token, is well: else a URL that is wrong would keep notifications from those that are right.
pub fn blame(status: u16) -> Outcome {
    match status {
        429 | 500..=599 => Outcome::Failure(Source::Task),
        _ => Outcome::Success(Source::Task),
    }
}

/// What to do after failure number `attempts` of the same event, which has failed for `failing` now, if it is given up
/// after `patience`. `asked` is for how long the receiver wants to be left in peace, if it said so: that counts more than
/// the patience, for a try before would be for nothing. The pause doubles with each failure (exponential backoff); `chance` is
/// any number, and spreads those who wait for the same receiver over half a pause (jitter).
pub fn next(
    attempts: u32,
    failing: Duration,
    patience: Duration,
    asked: Option<Duration>,
    chance: u64,
) -> Next {
    if failing >= patience {
        return Next::GiveUp;
    }
    let doublings = attempts.saturating_sub(1).min(16);
    let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
    let spread = pause / 2000 * u32::try_from(chance % 1001).unwrap_or_default();
    // The last try is at the end of the patience, not beyond it.
    let pause = (pause / 2 + spread).min(patience - failing);
    let rest = asked.map_or(Duration::ZERO, |asked| asked.min(LONGEST_REST) + spread);
    Next::Retry(pause.max(rest))
}

/// What is left of a pause of which that much is to come, as far as a clock can be trusted that may have been set since.
pub fn rest_of(pause: Duration) -> Duration {
    pause.min(LONGEST_REST + LONGEST_PAUSE)
}

/// How long an event that has failed for `failing` may wait until it is its turn, its receiver being left alone or busy.
/// Then it is given up: nothing waits for ever behind others.
pub fn wait(failing: Duration, patience: Duration) -> Duration {
    patience.saturating_sub(failing).max(LEAST_WAIT)
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
        assert_eq!(pauses, seconds.map(|seconds| Next::Retry(Duration::from_secs(seconds))));
        assert_eq!(next(1, Duration::ZERO, DAY, None, 0), Next::Retry(FIRST_PAUSE / 2));
    }

    /// In seconds: how long it has failed, what the receiver asks for, by chance; and when it is asked again.
    #[test]
    fn a_receiver_is_not_asked_before_it_wants_to_be() {
        let again = |failing, asked, chance| {
            let [failing, asked] = [failing, asked].map(Duration::from_secs);
            match next(3, failing, Duration::from_secs(100), Some(asked), chance) {
                Next::Retry(pause) => pause.as_millis().to_string(),
                Next::GiveUp => "never".to_owned(),
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
    fn whose_fault_it_was() {
        let failure = Outcome::Failure(Source::Task);
        assert_eq!([429, 500, 502, 503, 599].map(blame), [failure; 5]);
        let success = Outcome::Success(Source::Task);
        assert_eq!([200, 302, 400, 401, 403, 404, 410].map(blame), [success; 7], "its URL's only");
        assert_eq!([429, 503, 500, 200].map(may_ask_for_rest), [true, true, false, false]);
    }

    #[test]
    fn nobody_waits_for_ever() {
        let seconds = Duration::from_secs;
        assert_eq!(wait(seconds(10), DAY), DAY - seconds(10));
        assert_eq!(wait(DAY + seconds(1), DAY), LEAST_WAIT);
        assert_eq!(rest_of(seconds(5)), seconds(5));
        assert_eq!(rest_of(DAY), seconds(4200), "the clock was set back");
    }

    #[test]
    fn what_answers_mean() {
        let taken = [200, 201, 204, 299].map(verdict);
        assert_eq!(taken, [Verdict::Taken; 4]);
        let later = [100, 301, 302, 400, 401, 404, 408, 429, 500, 503].map(verdict);
        assert_eq!(later, [Verdict::Later; 10]);
        assert_eq!(verdict(410), Verdict::Gone);
    }

    proptest! {
        #[test]
        fn it_ends_and_the_last_try_is_in_time(chances in proptest::collection::vec(any::<u64>(), 400)) {
            let (mut failing, mut attempts) = (Duration::ZERO, 0);
            for chance in chances {
                attempts += 1;
                match next(attempts, failing, DAY, None, chance) {
                    Next::Retry(pause) => failing += pause,
                    Next::GiveUp => break,
                }
            }
            prop_assert_eq!(failing, DAY, "after {} attempts", attempts);
        }
    }
}
