//! Time for the answer to the open question: persons move its deadline, and the hub warns of it.

use super::{Lifecycle, Phase, answer_deadline::AnswerDeadline};
use std::time::{Duration, Instant};

impl Lifecycle {
    fn answer_deadline(&self) -> Option<AnswerDeadline> {
        let mut lifecycle = *self;
        lifecycle.answer_deadline_mut().copied()
    }

    fn answer_deadline_mut(&mut self) -> Option<&mut AnswerDeadline> {
        match &mut self.phase {
            Phase::Asking { answer, .. } | Phase::Evicted { answer } => Some(answer),
            Phase::Queued { .. }
            | Phase::Working { .. }
            | Phase::Returning { .. }
            | Phase::Waiting { .. }
            | Phase::Leaving
            | Phase::Over => None,
        }
    }

    /// Instant until which the task waits for its client's answer; none if it does not wait.
    pub fn answer_until(&self) -> Option<Instant> {
        self.answer_deadline().map(AnswerDeadline::until)
    }

    /// Instant at which the warning before the deadline of the open question is due; none if it was
    /// given, or no question is open.
    pub fn warn_at(&self) -> Option<Instant> {
        self.answer_deadline()?.warn_at()
    }

    /// True if the deadline of the open question is near: its warning was given or is due.
    pub fn is_expiring(&self, now: Instant) -> bool {
        self.answer_deadline().is_some_and(|deadline| deadline.is_expiring(now))
    }

    /// Returns true once for each deadline: if its warning is due, and the deadline itself is not.
    pub fn take_warning(&mut self, now: Instant) -> bool {
        self.answer_deadline_mut().is_some_and(|deadline| deadline.take_warning(now))
    }

    /// Moves the deadline of the open question, at most to the longest time for an answer. Returns
    /// false if no question is open.
    pub fn postpone(&mut self, now: Instant, time: Duration) -> bool {
        let time = time.min(self.timeouts.answer);
        let Some(deadline) = self.answer_deadline_mut() else { return false };
        *deadline = AnswerDeadline::after(now, time);
        true
    }

    /// Extends the deadline of the open question to this time from `now` or to the longest time for
    /// an answer; leaves a later one alone.
    pub fn extend_answer_time(&mut self, now: Instant, time: Duration) {
        let extended = AnswerDeadline::after(now, time.min(self.timeouts.answer));
        if let Some(deadline) = self.answer_deadline_mut()
            && deadline.until() < extended.until()
        {
            *deadline = extended;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::lifecycle::{AgentEntry, Signal, TaskTimeouts};
    use a2a_hub_protocol::task::TaskState;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[expect(clippy::disallowed_methods, reason = "any instant will do: the tests add to it")]
    fn start() -> Instant {
        Instant::now()
    }

    /// Task whose agent asks at `start`, with this time for its answer.
    fn asking(start: Instant, time: Duration) -> Lifecycle {
        let timeouts = TaskTimeouts { task: secs(60), answer: secs(6_000) };
        let mut task = Lifecycle::queued(TaskState::Working, AgentEntry::New, timeouts, start);
        let (state, timeout) = (TaskState::InputRequired, Some(time));
        task.step(start, Signal::Turn);
        task.step(start, Signal::AgentQuestion { state, timeout, waits: true });
        task
    }

    #[test]
    fn warning_is_due_once_for_each_deadline() {
        let start = start();
        let at = |after| start + secs(after);
        let mut task = asking(start, secs(1_000));
        assert_eq!(task.warn_at(), Some(at(900)));
        assert!(!task.take_warning(at(899)) && !task.is_expiring(at(899)));
        assert!(task.take_warning(at(900)) && task.is_expiring(at(900)));
        assert_eq!((task.warn_at(), task.take_warning(at(901))), (None, false));
        assert!(task.is_expiring(at(950)), "it stays so until its deadline");

        assert!(task.postpone(at(950), secs(2_000)));
        assert!(!task.is_expiring(at(950)) && !task.take_warning(at(950)), "not at once");
        assert_eq!(task.warn_at(), Some(at(2_750)));
        assert!(task.take_warning(at(2_750)));
        // An evicted task was warned as well.
        task.step(at(2_751), Signal::Park);
        assert_eq!((task.warn_at(), task.answer_until()), (None, Some(at(2_950))));
        assert!(task.is_expiring(at(2_751)) && !task.take_warning(at(2_751)));

        let mut late = asking(start, secs(1_000));
        assert!(!late.take_warning(at(1_000)), "the deadline itself is due");
        late.step(at(1_000), Signal::Time);
        assert!(!late.asks() && late.warn_at().is_none() && !late.is_expiring(at(1_000)));
        assert_eq!(asking(start, Duration::ZERO).warn_at(), None);
    }

    #[test]
    fn inherited_time_only_extends_deadline() {
        let start = start();
        for (own, inherited, until) in [
            (60, 0, 60),
            (60, 59, 60),
            (60, 600, 600),
            (60, 7_000, 6_000),
            (60, u64::MAX, 6_000),
            (6_000, 600, 6_000),
        ] {
            let mut task = asking(start, secs(own));
            task.extend_answer_time(start, secs(inherited));
            assert_eq!(task.answer_until(), Some(start + secs(until)), "{own} {inherited}");
        }
        let timeouts = TaskTimeouts { task: secs(60), answer: secs(600) };
        let mut idle = Lifecycle::queued(TaskState::Submitted, AgentEntry::New, timeouts, start);
        let before = idle;
        idle.extend_answer_time(start, secs(600));
        assert!(!idle.postpone(start, secs(600)));
        assert_eq!(idle, before, "nothing is asked");
    }
}
