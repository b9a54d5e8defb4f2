//! What becomes of an event that was to be delivered: whether it arrived, when to try again, and when to give up.

use std::time::Duration;

/// The pause after the first failure; it doubles with each that follows. A receiver that was just restarted is back by
/// the second or third.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// No pause is longer: a receiver that is back after a day is heard of within ten minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// What a receiver's answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has it.
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

/// What to do after failure number `attempts` of the same event, which has failed for `failing` now, if it is given up
/// after `patience`. `chance` is any number, and spreads those who wait for the same receiver over half a pause.
pub fn next(attempts: u32, failing: Duration, patience: Duration, chance: u64) -> Next {
    if failing >= patience {
        return Next::GiveUp;
    }
    let doublings = attempts.saturating_sub(1).min(16);
    let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
    let spread = pause / 2000 * u32::try_from(chance % 1001).unwrap_or_default();
    let pause = pause / 2 + spread;
    // The last try is at the end of the patience, not beyond it.
    Next::Retry(pause.min(patience - failing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn pauses_double_up_to_a_limit() {
        let pauses = [1, 2, 3, 4, 10, 11, 12, u32::MAX]
            .map(|attempts| next(attempts, Duration::ZERO, DAY, 1000));
        let seconds = [1, 2, 4, 8, 512, 600, 600, 600];
        assert_eq!(pauses, seconds.map(|seconds| Next::Retry(Duration::from_secs(seconds))));
        assert_eq!(next(1, Duration::ZERO, DAY, 0), Next::Retry(FIRST_PAUSE / 2));
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
                match next(attempts, failing, DAY, chance) {
                    Next::Retry(pause) => failing += pause,
                    Next::GiveUp => break,
                }
            }
            prop_assert_eq!(failing, DAY, "after {} attempts", attempts);
        }
    }
}
