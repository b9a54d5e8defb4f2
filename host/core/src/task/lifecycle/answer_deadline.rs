//! Deadline of an open question, with the warning before it.

use std::time::{Duration, Instant};

/// Longest time from the warning to the deadline.
const LONGEST_LEAD: Duration = Duration::from_hours(1);

/// Shortest time from the warning to the deadline, if the question has twice that time.
const SHORTEST_LEAD: Duration = Duration::from_mins(1);

/// Shortest time of a question with a warning: nobody reads a warning and answers within a second.
const SHORTEST_TIME: Duration = Duration::from_secs(1);

/// Time from the warning to the deadline of a question that has this `time` for its answer: a tenth
/// of it, at least a minute and at most an hour, but never more than half of it. None for less than
/// a second.
fn warning_lead(time: Duration) -> Option<Duration> {
    let shortest = SHORTEST_LEAD.min(time / 2);
    (time >= SHORTEST_TIME).then(|| (time / 10).clamp(shortest, LONGEST_LEAD))
}

/// Deadline of an open question, with the warning before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerDeadline {
    until: Instant,
    /// Instant from which the question is expiring; none without a warning.
    expiring_from: Option<Instant>,
    /// True once the warning was given.
    is_warned: bool,
}

impl AnswerDeadline {
    /// Deadline of a question that has this time from `now`.
    pub(super) fn after(now: Instant, time: Duration) -> Self {
        let expiring_from = warning_lead(time).map(|lead| now + time.saturating_sub(lead));
        Self { until: now + time, expiring_from, is_warned: false }
    }

    pub(super) fn until(self) -> Instant {
        self.until
    }

    /// Instant of the warning; none if it was given.
    pub(super) fn warn_at(self) -> Option<Instant> {
        self.expiring_from.filter(|_| !self.is_warned)
    }

    /// True if the deadline is near: its warning was given or is due.
    pub(super) fn is_expiring(self, now: Instant) -> bool {
        self.expiring_from.is_some_and(|from| from <= now)
    }

    /// Returns true once: if the warning is due, and the deadline itself is not.
    pub(super) fn take_warning(&mut self, now: Instant) -> bool {
        let is_due = self.warn_at().is_some_and(|at| at <= now) && now < self.until;
        self.is_warned |= is_due;
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    #[test]
    fn warning_leads_by_a_tenth() {
        // Both in milliseconds.
        for (time, lead) in [
            (24 * HOUR, Some(HOUR)),
            (10 * HOUR, Some(HOUR)),
            (2 * HOUR, Some(HOUR / 5)),
            (HOUR, Some(360_000)),
            (600_000, Some(60_000)),
            (300_000, Some(60_000)),
            (120_000, Some(60_000)),
            (90_000, Some(45_000)),
            (2_000, Some(1_000)),
            (1_000, Some(500)),
            (999, None),
            (0, None),
        ] {
            let lead = lead.map(Duration::from_millis);
            assert_eq!(warning_lead(Duration::from_millis(time)), lead, "{time} ms");
        }
        assert_eq!(warning_lead(Duration::MAX), Some(LONGEST_LEAD));
    }
}
