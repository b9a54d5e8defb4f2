//! Whether an agent may be tried, judged by how its last tasks and health checks went: a circuit breaker.
//!
//! ```text
//!            `failures` in a row         pause over, a task comes
//!  ┌────────┐ ─────────────────► ┌──────┐ ──────────────► ┌──────────┐
//!  │ Closed │                    │ Open │                 │ HalfOpen │ ◄─┐ no word for
//!  └───▲────┘                    └──┬───┘ ◄────────────── └────┬─────┘ ──┘ a whole pause
//!      │                            │    failure: pause × 2    │
//!      └────────────────────────────┴──── success ─────────────┘
//! ```
//!
//! A good health check mends what bad ones broke, at once; it says nothing of an agent that is well and fails its tasks. But
//! where somebody asked for the check, or it finds well what was ill before (a program was installed, somebody logged in), the
//! cause may be gone: the breaker closes, and the next failed task opens it again.
//!
//! Receivers of notifications are judged by the same machine, by how deliveries to them went.

use crate::reason::FailureReason;
use a2a_hub_protocol::{operation::HealthStatus, task::TaskState};
use std::time::{Duration, Instant};

/// What was learned of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it was to do.
    Success(Source),
    /// It did not, and is to blame.
    Failure(Source),
    /// A good health check that somebody asked for, or that found it better than before: it may have been mended.
    Mended,
}

/// What it was learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A task that is over; of a receiver, a delivery.
    Task,
    /// A health check: the hub asked the agent how it is.
    Check,
}

impl Outcome {
    /// What a task tells of its agent: nothing while it is alive, or when it ended for another's sake. `reason` is the one of
    /// a failed task, if it is one that the hub knows.
    pub fn of_task(state: TaskState, reason: Option<FailureReason>) -> Option<Self> {
        use TaskState as S;
        match state {
            S::Completed | S::Rejected => Some(Self::Success(Source::Task)),
            S::Failed => reason
                .is_some_and(FailureReason::is_agents_fault)
                .then_some(Self::Failure(Source::Task)),
            S::Canceled
            | S::Submitted
            | S::Working
            | S::InputRequired
            | S::AuthRequired
            | S::Unknown => None,
        }
    }

    /// What a health check tells of its agent, which was in this health `before`. `wanted` is a check that somebody asked for.
    pub fn of_check(before: HealthStatus, status: HealthStatus, wanted: bool) -> Option<Self> {
        let was_ill = matches!(before, HealthStatus::Unhealthy | HealthStatus::Degraded);
        match status {
            HealthStatus::Healthy if wanted || was_ill => Some(Self::Mended),
            HealthStatus::Healthy | HealthStatus::Degraded => Some(Self::Success(Source::Check)),
            HealthStatus::Unhealthy => Some(Self::Failure(Source::Check)),
            HealthStatus::Unknown => None,
        }
    }
}

/// When to stop trying an agent, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Failures in a row that open the breaker.
    pub failures: u32,
    /// The first pause; it doubles with every failure that follows one.
    pub pause: Duration,
    /// No pause is longer than this.
    pub max_pause: Duration,
}

/// Where a breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Every task is let through.
    Closed {
        /// Tasks that failed in a row.
        tasks: u32,
        /// Health checks that failed in a row.
        checks: u32,
    },
    /// No task is let through.
    Open {
        /// When the pause is over.
        until: Instant,
        /// How long the pause is.
        pause: Duration,
        /// What the failures that opened it were learned from.
        by: Source,
    },
    /// One task was let through, to see how it fares.
    HalfOpen {
        /// When another task may try, if nothing is heard of this one.
        until: Instant,
        /// How long the pause is.
        pause: Duration,
        /// What the failures that opened it were learned from.
        by: Source,
    },
}

/// The circuit breaker of one agent, or of one receiver of notifications.
#[derive(Clone, Debug)]
pub struct Breaker {
    settings: Settings,
    state: State,
}

impl Breaker {
    /// A closed breaker: an agent is trusted until it fails.
    pub fn new(settings: Settings) -> Self {
        Self { settings, state: State::Closed { tasks: 0, checks: 0 } }
    }

    /// The state that the breaker is in.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether a task may go ahead now; if not, when one may. At most one is on trial at a time.
    pub fn admit(&mut self, now: Instant) -> Result<(), Instant> {
        match self.state {
            State::Closed { .. } => Ok(()),
            State::Open { until, .. } | State::HalfOpen { until, .. } if now < until => Err(until),
            State::Open { pause, by, .. } | State::HalfOpen { pause, by, .. } => {
                self.state = State::HalfOpen { until: now + pause, pause, by };
                Ok(())
            }
        }
    }

    /// Whether a task would be let through now, which changes nothing.
    pub fn would_admit(&self, now: Instant) -> bool {
        self.clone().admit(now).is_ok()
    }

    /// Takes in what was learned.
    pub fn record(&mut self, outcome: Outcome, now: Instant) {
        use Outcome::{Failure, Mended, Success};
        let closed = State::Closed { tasks: 0, checks: 0 };
        self.state = match (self.state, outcome) {
            (State::Closed { tasks, .. }, Success(Source::Check) | Mended) => {
                State::Closed { tasks, checks: 0 }
            }
            // On probation: nobody knows that what failed the tasks is what was mended.
            (
                State::Open { by: Source::Task, .. } | State::HalfOpen { by: Source::Task, .. },
                Mended,
            ) => State::Closed { tasks: self.settings.failures.saturating_sub(1), checks: 0 },
            (State::Closed { tasks, checks }, Failure(source)) => {
                let (tasks, checks) = match source {
                    Source::Task => (tasks.saturating_add(1), checks),
                    Source::Check => (tasks, checks.saturating_add(1)),
                };
                if tasks.max(checks) < self.settings.failures {
                    State::Closed { tasks, checks }
                } else {
                    self.open(now, self.settings.pause, source)
                }
            }
            (State::Closed { .. } | State::HalfOpen { .. }, Success(Source::Task))
            | (
                State::Open { by: Source::Check, .. } | State::HalfOpen { by: Source::Check, .. },
                Success(Source::Check) | Mended,
            ) => closed,
            (State::HalfOpen { pause, by, .. }, Failure(_)) => {
                self.open(now, pause.saturating_mul(2), by)
            }
            // A check is made whether or not tasks are let through: after the pause it counts as the trial.
            (State::Open { until, pause, by }, Failure(Source::Check)) if now >= until => {
                self.open(now, pause.saturating_mul(2), by)
            }
            // Word of a task that was let through before, or a check that has no say.
            (same @ (State::Open { .. } | State::HalfOpen { .. }), Success(_) | Failure(_)) => same,
        };
    }

    fn open(&self, now: Instant, pause: Duration, by: Source) -> State {
        let pause = pause.min(self.settings.max_pause);
        State::Open { until: now + pause, pause, by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SETTINGS: Settings =
        Settings { failures: 3, pause: Duration::from_secs(1), max_pause: Duration::from_secs(8) };

    /// One letter a task: it `f`ails, `s`ucceeds, is `l`ost. A capital is a health check, `M` one that finds the agent mended.
    /// A dot is a second. Returns
    /// whether each task was let through, and where the breaker then stands.
    #[expect(clippy::disallowed_methods, reason = "an arbitrary starting point")]
    fn run(steps: &str) -> String {
        let mut breaker = Breaker::new(SETTINGS);
        let mut now = Instant::now();
        let mut said = String::new();
        for step in steps.chars() {
            match step {
                '.' => now += Duration::from_secs(1),
                'F' => breaker.record(Outcome::Failure(Source::Check), now),
                'S' => breaker.record(Outcome::Success(Source::Check), now),
                'M' => breaker.record(Outcome::Mended, now),
                task => match (breaker.admit(now), task) {
                    (Ok(()), task) => {
                        said.push('y');
                        match task {
                            'f' => breaker.record(Outcome::Failure(Source::Task), now),
                            's' => breaker.record(Outcome::Success(Source::Task), now),
                            _ => {}
                        }
                    }
                    (Err(until), _) => {
                        assert!(until > now);
                        said.push('n');
                    }
                },
            }
        }
        let state = match breaker.state() {
            State::Closed { .. } => "closed",
            State::Open { .. } => "open",
            State::HalfOpen { .. } => "half-open",
        };
        format!("{said} {state}")
    }

    /// The whole machine on one screen.
    #[test]
    fn transition_table() {
        let stories = [
            ("ffsff", "a success in between forgives"),
            ("fff", "the limit opens it"),
            ("fffs", "nobody is let through"),
            ("fff.s", "the pause is over, and the trial goes well"),
            ("fff.l", "the trial is under way"),
            ("fff.ls", "one trial at a time"),
            ("fff.l.s", "a lost trial is made again"),
            ("fff.f.s.s", "a failed trial doubles the pause"),
            ("FFF", "checks open it as well"),
            ("FFFs", "and then nobody is let through"),
            ("FFFS", "a good check mends what bad ones broke"),
            ("FFF.F.s", "after the pause, a check is the trial"),
            ("FFSFF", "a good check in between forgives"),
            ("ffSf", "but not failed tasks"),
            ("fffS", "nor does it close what they opened"),
            ("fffMs", "one that finds the agent mended does"),
            ("fffMf", "on probation"),
            ("fffMsff", "which a task that goes well ends"),
            ("fff.lMs", "it does so during a trial"),
            ("FFFM", "it mends what bad ones broke"),
            ("ffMf", "it forgives no failed task where none was refused"),
            ("ffFF", "each kind is counted by itself"),
            ("FFsF", "a task that went well forgives all"),
        ];
        let table: Vec<_> =
            stories.iter().map(|(steps, why)| format!("{steps}: {} ({why})", run(steps))).collect();
        insta::assert_snapshot!(table.join("\n"), @r"
        ffsff: yyyyy closed (a success in between forgives)
        fff: yyy open (the limit opens it)
        fffs: yyyn open (nobody is let through)
        fff.s: yyyy closed (the pause is over, and the trial goes well)
        fff.l: yyyy half-open (the trial is under way)
        fff.ls: yyyyn half-open (one trial at a time)
        fff.l.s: yyyyy closed (a lost trial is made again)
        fff.f.s.s: yyyyny closed (a failed trial doubles the pause)
        FFF:  open (checks open it as well)
        FFFs: n open (and then nobody is let through)
        FFFS:  closed (a good check mends what bad ones broke)
        FFF.F.s: n open (after the pause, a check is the trial)
        FFSFF:  closed (a good check in between forgives)
        ffSf: yyy open (but not failed tasks)
        fffS: yyy open (nor does it close what they opened)
        fffMs: yyyy closed (one that finds the agent mended does)
        fffMf: yyyy open (on probation)
        fffMsff: yyyyyy closed (which a task that goes well ends)
        fff.lMs: yyyyy closed (it does so during a trial)
        FFFM:  closed (it mends what bad ones broke)
        ffMf: yyy open (it forgives no failed task where none was refused)
        ffFF: yy closed (each kind is counted by itself)
        FFsF: y closed (a task that went well forgives all)
        ");
    }

    #[test]
    fn a_good_check_tells_more_where_it_was_asked_for_or_is_news() {
        use HealthStatus::{Degraded, Healthy, Unhealthy, Unknown};
        let good = Some(Outcome::Success(Source::Check));
        for (before, now, wanted, outcome) in [
            (Healthy, Healthy, false, good),
            (Healthy, Healthy, true, Some(Outcome::Mended)),
            (Unhealthy, Healthy, false, Some(Outcome::Mended)),
            (Degraded, Healthy, false, Some(Outcome::Mended)),
            // The first check of all finds nothing mended.
            (Unknown, Healthy, false, good),
            // A login is missing still.
            (Unhealthy, Degraded, true, good),
            (Healthy, Unhealthy, true, Some(Outcome::Failure(Source::Check))),
            (Unhealthy, Unknown, true, None),
        ] {
            assert_eq!(Outcome::of_check(before, now, wanted), outcome, "{before:?} {now:?}");
        }
    }

    #[test]
    fn only_the_agents_faults_count() {
        let counted = FailureReason::ALL.into_iter().filter(|reason| {
            let outcome = Outcome::of_task(TaskState::Failed, Some(*reason));
            assert!(matches!(outcome, None | Some(Outcome::Failure(Source::Task))), "{reason:?}");
            outcome.is_some()
        });
        use FailureReason::{AgentCrashed, AgentError, Unavailable};
        assert_eq!(counted.collect::<Vec<_>>(), [Unavailable, AgentError, AgentCrashed]);
        assert_eq!(Outcome::of_task(TaskState::Canceled, Some(AgentCrashed)), None);
        assert_eq!(Outcome::of_task(TaskState::Failed, None), None);
        assert_eq!(
            Outcome::of_task(TaskState::Rejected, None),
            Some(Outcome::Success(Source::Task))
        );
    }

    proptest! {
        /// Whatever happened, waiting out the longest pause earns a trial, and one that goes well closes it.
        #[test]
        fn never_stuck(steps in "[fslFSM.]{0,64}") {
            let said = run(&(steps + "........s"));
            prop_assert!(said.ends_with("y closed"));
        }
    }
}
