//! Accounts whose quotas are used up: their tasks wait as one, and one of them tries first.
//!
//! ```text
//!  Open ──refused──► Closed ──time of the reset, first task──► Probing ──ended, a minute──► Open
//!                      ▲                                          │
//!                      └──────────────── refused again ───────────┘
//! ```

use a2a_hub_protocol::id::TaskId;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Time after which the run that tried first counts as not refused: programs report a used-up quota
/// with their first request.
const PROBE: Duration = Duration::from_secs(60);

/// A point in time on both clocks: a steady clock stops while the machine sleeps, and a wall
/// clock may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Steady clock.
    pub steady: Instant,
    /// Wall clock, in milliseconds since 1970.
    pub wall_ms: u64,
}

impl Moment {
    /// Moment of this wall-clock time, seen from `self`.
    pub fn at_wall(self, wall_ms: u64) -> Self {
        let ahead = Duration::from_millis(wall_ms.saturating_sub(self.wall_ms));
        Self { steady: self.steady.checked_add(ahead).unwrap_or(self.steady), wall_ms }
    }

    /// True if it has come by either clock.
    pub fn has_come(self, now: Self) -> bool {
        self.steady <= now.steady || self.wall_ms <= now.wall_ms
    }

    fn after(self, time: Duration) -> Self {
        self.at_wall(self.wall_ms.saturating_add(super::millis(time)))
    }
}

/// Answer to a task that wants to begin or to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaAdmission {
    /// The task starts its agent.
    Starts,
    /// The task waits, and asks again at that moment.
    Waits(Moment),
}

/// Accounts with a used-up quota.
#[derive(Debug, Default)]
pub struct Accounts {
    closed: BTreeMap<String, ClosedAccount>,
}

#[derive(Debug)]
struct ClosedAccount {
    until: Moment,
    /// Task that tries first, and the moment of its start.
    probe: Option<(TaskId, Moment)>,
}

impl Accounts {
    /// Closes an account until the reset of its quota. The latest reset counts.
    pub fn close(&mut self, account: &str, until: Moment, now: Moment) {
        let known = self.closed.get(account).filter(|known| known.probe.is_none());
        let open = known.map(|known| known.until).filter(|known| !known.has_come(now));
        let later = open.filter(|known| known.wall_ms > until.wall_ms);
        let closed = ClosedAccount { until: later.unwrap_or(until), probe: None };
        self.closed.insert(account.to_owned(), closed);
    }

    /// Reset that the tasks of an account wait for.
    pub fn closed_until(&self, account: &str, now: Moment) -> Option<Moment> {
        let closed = self.closed.get(account)?;
        (!closed.until.has_come(now)).then_some(closed.until)
    }

    /// Decides whether a task of an account starts its agent. The first one after the reset tries
    /// alone.
    pub fn admit(&mut self, account: &str, task: &TaskId, now: Moment) -> QuotaAdmission {
        let Some(closed) = self.closed.get_mut(account) else { return QuotaAdmission::Starts };
        match &closed.probe {
            Some((probe, _)) if probe == task => QuotaAdmission::Starts,
            Some((_, since)) if !since.after(PROBE).has_come(now) => {
                QuotaAdmission::Waits(since.after(PROBE))
            }
            Some(_) => {
                self.closed.remove(account);
                QuotaAdmission::Starts
            }
            None if !closed.until.has_come(now) => QuotaAdmission::Waits(closed.until),
            None => {
                closed.probe = Some((task.clone(), now));
                QuotaAdmission::Starts
            }
        }
    }

    /// Lets a task try now: its client asked for it.
    pub fn try_now(&mut self, account: &str, task: &TaskId, now: Moment) {
        if let Some(closed) = self.closed.get_mut(account) {
            closed.probe = Some((task.clone(), now));
        }
    }

    /// Reports that the run of a task ended, and was not refused for lack of quota. Returns true if
    /// that opens its account. A task that ends without a run (`has_run`) only stops trying.
    pub fn ended(&mut self, account: &str, task: &TaskId, has_run: bool) -> bool {
        let Some(closed) = self.closed.get_mut(account) else { return false };
        if closed.probe.as_ref().is_none_or(|(probe, _)| probe != task) {
            return false;
        }
        if has_run {
            self.closed.remove(account);
        } else {
            closed.probe = None;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> TaskId {
        TaskId::new(name)
    }

    #[expect(clippy::disallowed_methods, reason = "an arbitrary starting point")]
    fn clock() -> impl Fn(u64) -> Moment {
        let begin = Moment { steady: Instant::now(), wall_ms: 1_000_000 };
        move |seconds| begin.after(Duration::from_secs(seconds))
    }

    #[test]
    fn one_task_tries_then_others() {
        let (mut accounts, at) = (Accounts::default(), clock());
        assert_eq!(accounts.admit("a", &id("1"), at(0)), QuotaAdmission::Starts);
        accounts.close("a", at(100), at(0));
        accounts.close("a", at(90), at(0));
        assert_eq!(accounts.closed_until("a", at(1)), Some(at(100)), "the latest reset counts");
        for task in ["1", "2", "3"] {
            assert_eq!(accounts.admit("a", &id(task), at(99)), QuotaAdmission::Waits(at(100)));
        }
        assert_eq!(accounts.admit("b", &id("4"), at(1)), QuotaAdmission::Starts, "another account");
        assert_eq!(accounts.closed_until("a", at(100)), None);
        assert_eq!(accounts.admit("a", &id("2"), at(100)), QuotaAdmission::Starts);
        assert_eq!(accounts.admit("a", &id("2"), at(101)), QuotaAdmission::Starts, "asks twice");
        assert_eq!(accounts.admit("a", &id("1"), at(101)), QuotaAdmission::Waits(at(160)));
        assert!(!accounts.ended("a", &id("1"), true), "it did not try");
        assert!(accounts.ended("a", &id("2"), true));
        assert_eq!(accounts.admit("a", &id("1"), at(102)), QuotaAdmission::Starts);
    }

    #[test]
    fn refused_probe_closes_account_again() {
        let (mut accounts, at) = (Accounts::default(), clock());
        accounts.close("a", at(100), at(0));
        assert_eq!(accounts.admit("a", &id("1"), at(100)), QuotaAdmission::Starts);
        accounts.close("a", at(200), at(110));
        assert!(!accounts.ended("a", &id("1"), true), "it was refused");
        assert_eq!(accounts.admit("a", &id("2"), at(150)), QuotaAdmission::Waits(at(200)));
        // A cancelled task leaves the try to another one.
        assert_eq!(accounts.admit("a", &id("1"), at(200)), QuotaAdmission::Starts);
        assert!(accounts.ended("a", &id("1"), false));
        assert_eq!(accounts.admit("a", &id("2"), at(201)), QuotaAdmission::Starts);
        assert_eq!(accounts.admit("a", &id("3"), at(201)), QuotaAdmission::Waits(at(261)));
        assert_eq!(
            accounts.admit("a", &id("3"), at(261)),
            QuotaAdmission::Starts,
            "a minute of work"
        );
    }

    #[test]
    fn client_may_try_before_reset() {
        let (mut accounts, at) = (Accounts::default(), clock());
        accounts.try_now("a", &id("1"), at(0));
        assert_eq!(
            accounts.admit("a", &id("2"), at(0)),
            QuotaAdmission::Starts,
            "nothing was closed"
        );
        accounts.close("a", at(100), at(0));
        accounts.try_now("a", &id("1"), at(10));
        assert_eq!(accounts.admit("a", &id("1"), at(10)), QuotaAdmission::Starts);
        assert_eq!(accounts.admit("a", &id("2"), at(10)), QuotaAdmission::Waits(at(70)));
        assert!(accounts.ended("a", &id("1"), true));
        assert_eq!(accounts.admit("a", &id("2"), at(11)), QuotaAdmission::Starts);
    }

    /// A reset that has come by one clock does not hide a new one, whatever the other clock says.
    #[test]
    fn past_reset_is_replaced() {
        let (mut accounts, at) = (Accounts::default(), clock());
        let slow = Moment { wall_ms: at(500).wall_ms, ..at(100) };
        accounts.close("a", slow, at(0));
        accounts.close("a", at(300), at(100));
        assert_eq!(accounts.admit("a", &id("1"), at(101)), QuotaAdmission::Waits(at(300)));
    }

    /// A machine that slept, and a clock that was set, do not delay the reset.
    #[test]
    fn either_clock_may_reach_reset() {
        let at = clock();
        let (reset, now) = (at(100), at(10));
        assert!(!reset.has_come(now));
        assert!(reset.has_come(Moment { wall_ms: reset.wall_ms, ..now }), "slept");
        assert!(reset.has_come(Moment { steady: reset.steady, ..now }), "set back");
        assert_eq!(now.at_wall(0).steady, now.steady);
        assert_eq!(now.at_wall(u64::MAX).wall_ms, u64::MAX);
    }
}
