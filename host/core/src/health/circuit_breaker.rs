//! Circuit breaker of an agent, driven by the results of its tasks and health checks.
//!
//! ```text
//!            `failures` in a row         pause over, a task comes
//!  ┌────────┐ ─────────────────► ┌──────┐ ──────────────► ┌──────────┐
//!  │ Closed │                    │ Open │                 │ HalfOpen │ ◄─┐ no result for
//!  └───▲────┘                    └──┬───┘ ◄────────────── └────┬─────┘ ──┘ a whole pause
//!      │                            │    failure: pause × 2    │
//!      └────────────────────────────┴──── success ─────────────┘
//! ```
//!
//! A successful health check closes a breaker that failed checks opened. It does not close one that
//! failed tasks opened, because an agent can be healthy and fail its tasks. But the cause may be
//! gone if a client requested the check, or if the check finds a recovery (a program was installed,
//! a user logged in). Then the breaker closes, and the next failed task opens it again.
//!
//! Receivers of notifications use the same state machine, driven by the results of deliveries.

use crate::failure_reason::FailureReason;
use a2a_hub_protocol::{operation::HealthStatus, task::TaskState};
use std::time::{Duration, Instant};

/// Evidence about an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The agent succeeded.
    Success(Evidence),
    /// The agent failed by its own fault.
    Failure(Evidence),
    /// A successful health check that a client requested, or that found the agent better than
    /// before: the cause of failures may be gone.
    Mended,
}

/// Evidence, by its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A finished task; for a receiver, a delivery.
    Task,
    /// A health check of the agent.
    Check,
}

impl Outcome {
    /// Evidence from a task: `None` while it is running, or if the agent is not the cause of its
    /// end. `reason` is the reason of a failed task, if the hub knows it.
    pub fn of_task(state: TaskState, reason: Option<FailureReason>) -> Option<Self> {
        use TaskState as S;
        match state {
            S::Completed | S::Rejected => Some(Self::Success(Evidence::Task)),
            S::Failed => reason
                .is_some_and(FailureReason::is_agents_fault)
                .then_some(Self::Failure(Evidence::Task)),
            S::Canceled
            | S::Submitted
            | S::Working
            | S::InputRequired
            | S::AuthRequired
            | S::Unknown => None,
        }
    }

    /// Evidence from a health check; `before` is the previous health, `wanted` is true if a client
    /// requested the check.
    pub fn of_check(before: HealthStatus, status: HealthStatus, wanted: bool) -> Option<Self> {
        let was_ill = matches!(before, HealthStatus::Unhealthy | HealthStatus::Degraded);
        match status {
            HealthStatus::Healthy if wanted || was_ill => Some(Self::Mended),
            HealthStatus::Healthy | HealthStatus::Degraded => Some(Self::Success(Evidence::Check)),
            HealthStatus::Unhealthy => Some(Self::Failure(Evidence::Check)),
            HealthStatus::Unknown => None,
        }
    }
}

/// Thresholds and pauses of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Consecutive failures that open the breaker.
    pub failures: u32,
    /// First pause; it doubles with every failure that follows a pause.
    pub pause: Duration,
    /// Maximum pause.
    pub max_pause: Duration,
}

/// State of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circuit {
    /// All tasks are admitted.
    Closed {
        /// Consecutive failed tasks.
        tasks: u32,
        /// Consecutive failed health checks.
        checks: u32,
    },
    /// No task is admitted.
    Open {
        /// End of the pause.
        until: Instant,
        /// Length of the pause.
        pause: Duration,
        /// Source of the failures that opened it.
        by: Evidence,
    },
    /// One task is admitted as a trial.
    HalfOpen {
        /// Instant of the next trial if this one yields no result.
        until: Instant,
        /// Length of the pause.
        pause: Duration,
        /// Source of the failures that opened it.
        by: Evidence,
    },
}

/// Circuit breaker of one agent, or of one receiver of notifications.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    settings: BreakerSettings,
    state: Circuit,
}

impl CircuitBreaker {
    /// Creates a closed breaker: an agent is trusted until it fails.
    pub fn new(settings: BreakerSettings) -> Self {
        Self { settings, state: Circuit::Closed { tasks: 0, checks: 0 } }
    }

    /// Current state.
    pub fn state(&self) -> Circuit {
        self.state
    }

    /// Admits a task, or returns the instant at which one may be admitted. At most one trial is in
    /// progress.
    pub fn admit(&mut self, now: Instant) -> Result<(), Instant> {
        match self.state {
            Circuit::Closed { .. } => Ok(()),
            Circuit::Open { until, .. } | Circuit::HalfOpen { until, .. } if now < until => {
                Err(until)
            }
            Circuit::Open { pause, by, .. } | Circuit::HalfOpen { pause, by, .. } => {
                self.state = Circuit::HalfOpen { until: now + pause, pause, by };
                Ok(())
            }
        }
    }

    /// True if a task would be admitted now; changes nothing.
    pub fn would_admit(&self, now: Instant) -> bool {
        self.clone().admit(now).is_ok()
    }

    /// Applies new evidence.
    pub fn record(&mut self, outcome: Outcome, now: Instant) {
        use Outcome::{Failure, Mended, Success};
        let closed = Circuit::Closed { tasks: 0, checks: 0 };
        self.state = match (self.state, outcome) {
            (Circuit::Closed { tasks, .. }, Success(Evidence::Check) | Mended) => {
                Circuit::Closed { tasks, checks: 0 }
            }
            // On probation: the cause of the failed tasks may not be what was repaired.
            (
                Circuit::Open { by: Evidence::Task, .. }
                | Circuit::HalfOpen { by: Evidence::Task, .. },
                Mended,
            ) => Circuit::Closed { tasks: self.settings.failures.saturating_sub(1), checks: 0 },
            (Circuit::Closed { tasks, checks }, Failure(source)) => {
                let (tasks, checks) = match source {
                    Evidence::Task => (tasks.saturating_add(1), checks),
                    Evidence::Check => (tasks, checks.saturating_add(1)),
                };
                if tasks.max(checks) < self.settings.failures {
                    Circuit::Closed { tasks, checks }
                } else {
                    self.open(now, self.settings.pause, source)
                }
            }
            (Circuit::Closed { .. } | Circuit::HalfOpen { .. }, Success(Evidence::Task))
            | (
                Circuit::Open { by: Evidence::Check, .. }
                | Circuit::HalfOpen { by: Evidence::Check, .. },
                Success(Evidence::Check) | Mended,
            ) => closed,
            (Circuit::HalfOpen { pause, by, .. }, Failure(_)) => {
                self.open(now, pause.saturating_mul(2), by)
            }
            // Health checks run independently of admission: after the pause a check counts as the
            // trial.
            (Circuit::Open { until, pause, by }, Failure(Evidence::Check)) if now >= until => {
                self.open(now, pause.saturating_mul(2), by)
            }
            // Result of a task that was admitted earlier, or of a check that does not count.
            (same @ (Circuit::Open { .. } | Circuit::HalfOpen { .. }), Success(_) | Failure(_)) => {
                same
            }
        };
    }

    fn open(&self, now: Instant, pause: Duration, by: Evidence) -> Circuit {
        let pause = pause.min(self.settings.max_pause);
        Circuit::Open { until: now + pause, pause, by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SETTINGS: BreakerSettings = BreakerSettings {
        failures: 3,
        pause: Duration::from_secs(1),
        max_pause: Duration::from_secs(8),
    };

    /// Runs a script, one letter a task: it `f`ails, `s`ucceeds, is `l`ost. A capital is a health
    /// check, `M` one that finds a recovery. A dot is a second. Returns the admission of each task,
    /// and the final state of the breaker.
    #[expect(clippy::disallowed_methods, reason = "an arbitrary starting point")]
    fn run(steps: &str) -> String {
        let mut breaker = CircuitBreaker::new(SETTINGS);
        let mut now = Instant::now();
        let mut said = String::new();
        for step in steps.chars() {
            match step {
                '.' => now += Duration::from_secs(1),
                'F' => breaker.record(Outcome::Failure(Evidence::Check), now),
                'S' => breaker.record(Outcome::Success(Evidence::Check), now),
                'M' => breaker.record(Outcome::Mended, now),
                task => match (breaker.admit(now), task) {
                    (Ok(()), task) => {
                        said.push('y');
                        match task {
                            'f' => breaker.record(Outcome::Failure(Evidence::Task), now),
                            's' => breaker.record(Outcome::Success(Evidence::Task), now),
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
            Circuit::Closed { .. } => "closed",
            Circuit::Open { .. } => "open",
            Circuit::HalfOpen { .. } => "half-open",
        };
        format!("{said} {state}")
    }

    /// The whole state machine as one snapshot.
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
    fn requested_or_improved_check_counts_as_mended() {
        use HealthStatus::{Degraded, Healthy, Unhealthy, Unknown};
        let good = Some(Outcome::Success(Evidence::Check));
        for (before, now, wanted, outcome) in [
            (Healthy, Healthy, false, good),
            (Healthy, Healthy, true, Some(Outcome::Mended)),
            (Unhealthy, Healthy, false, Some(Outcome::Mended)),
            (Degraded, Healthy, false, Some(Outcome::Mended)),
            // The first check finds no recovery.
            (Unknown, Healthy, false, good),
            // A login is still missing.
            (Unhealthy, Degraded, true, good),
            (Healthy, Unhealthy, true, Some(Outcome::Failure(Evidence::Check))),
            (Unhealthy, Unknown, true, None),
        ] {
            assert_eq!(Outcome::of_check(before, now, wanted), outcome, "{before:?} {now:?}");
        }
    }

    #[test]
    fn only_agent_faults_open_breaker() {
        let counted = FailureReason::ALL.into_iter().filter(|reason| {
            let outcome = Outcome::of_task(TaskState::Failed, Some(*reason));
            assert!(matches!(outcome, None | Some(Outcome::Failure(Evidence::Task))), "{reason:?}");
            outcome.is_some()
        });
        use FailureReason::{AgentCrashed, AgentError, Unavailable};
        assert_eq!(counted.collect::<Vec<_>>(), [Unavailable, AgentError, AgentCrashed]);
        assert_eq!(Outcome::of_task(TaskState::Canceled, Some(AgentCrashed)), None);
        assert_eq!(Outcome::of_task(TaskState::Failed, None), None);
        assert_eq!(
            Outcome::of_task(TaskState::Rejected, None),
            Some(Outcome::Success(Evidence::Task))
        );
    }

    proptest! {
        /// For any history, a trial is admitted after the longest pause, and its success closes the
        /// breaker.
        #[test]
        fn trial_after_longest_pause_closes_breaker(steps in "[fslFSM.]{0,64}") {
            let said = run(&(steps + "........s"));
            prop_assert!(said.ends_with("y closed"));
        }
    }
}
