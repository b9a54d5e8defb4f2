//! Receivers, each a scheme, a host and a port: how many deliveries go there at once, and whether any does.
//!
//! ```text
//!  workers ──► line ──► gate ──────────► on their way ──► went ─┐
//!               4 pass   one asks the     at most 4              │
//!               at once  breaker, and                            ▼
//!                        waits for it ◄──────────────── core::breaker
//! ```
//!
//! Where several deliveries failed in a row, nobody knocks until a pause is over; then one worker does, and the others
//! wait for what it finds. All wait in the order in which they came, so that one who fails again and again does not keep
//! from its turn one who would not.

use a2a_hub_core::breaker::{Breaker, Outcome, Settings, State};
use a2a_hub_core::span::Span;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    sync::{AcquireError, Mutex as Gate, Notify, Semaphore, SemaphorePermit},
    time::{Instant, sleep_until},
};

/// How many deliveries are under way to one receiver, so that one that is slow holds up its own only.
const AT_ONCE: usize = 4;

/// The receivers that there are workers to. What was learned of one is forgotten with the last of them.
pub(super) struct Receivers {
    settings: Settings,
    known: Mutex<HashMap<String, Weak<Receiver>>>,
}

pub(super) struct Receiver {
    /// Its scheme, host and port.
    origin: String,
    line: Semaphore,
    /// Whoever holds it is the next to go.
    gate: Gate<()>,
    judged: Mutex<Judged>,
    /// Told when the receiver takes deliveries again.
    back: Notify,
}

struct Judged {
    breaker: Breaker,
    /// How the last delivery failed that did.
    cause: String,
}

/// A receiver is left alone.
#[derive(Debug)]
pub(super) struct LeftAlone {
    /// For so long still.
    pub(super) for_now: Duration,
    /// How the last delivery failed.
    pub(super) cause: String,
}

impl Receivers {
    /// Each is left alone by these settings.
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, known: Mutex::default() }
    }

    /// The receiver at a scheme, host and port, the same for all who ask.
    pub(super) fn at(&self, origin: String) -> Arc<Receiver> {
        let mut known = self.known();
        if let Some(receiver) = known.get(&origin).and_then(Weak::upgrade) {
            return receiver;
        }
        known.retain(|_, receiver| receiver.strong_count() > 0);
        let receiver = Arc::new(Receiver::new(origin.clone(), self.settings));
        known.insert(origin, Arc::downgrade(&receiver));
        receiver
    }

    /// Whether the receiver there is left alone.
    pub(super) fn left_alone(&self, origin: &str) -> Option<LeftAlone> {
        let receiver = self.known().get(origin).and_then(Weak::upgrade);
        receiver.and_then(|receiver| receiver.left_alone())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Weak<Receiver>>> {
        self.known.lock()
    }
}

impl Receiver {
    fn new(origin: String, settings: Settings) -> Self {
        let judged = Judged { breaker: Breaker::new(settings), cause: String::new() };
        let (line, gate, judged) = (Semaphore::new(AT_ONCE), Gate::new(()), Mutex::new(judged));
        Self { origin, line, gate, judged, back: Notify::new() }
    }

    /// Waits until a delivery may go there; it does as long as the turn is held, and is to be told by [`Self::went`].
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        let turn = self.line.acquire().await?;
        let _next = self.gate.lock().await;
        loop {
            // Before the breaker is asked: what comes between would be missed.
            let back = self.back.notified();
            let now = Instant::now().into_std();
            let Err(until) = self.judged().breaker.admit(now) else { return Ok(turn) };
            tokio::select! {
                () = sleep_until(until.into()) => {}
                () = back => {}
            }
        }
    }

    /// Takes in how a delivery went; `cause` is how it failed.
    pub(super) fn went(&self, outcome: Outcome, cause: Option<String>) {
        let mut judged = self.judged();
        let before = judged.breaker.state();
        if let (Outcome::Failure(_), Some(cause)) = (outcome, cause) {
            judged.cause = cause;
        }
        judged.breaker.record(outcome, Instant::now().into_std());
        let (receiver, cause) = (&self.origin, &judged.cause);
        match (before, judged.breaker.state()) {
            (State::Closed { .. }, State::Open { pause, .. }) => {
                let pause = tracing::field::display(Span(pause));
                tracing::warn!(receiver, pause, cause, "deliveries fail in a row: left alone");
            }
            (State::Open { .. } | State::HalfOpen { .. }, State::Closed { .. }) => {
                tracing::info!(receiver, "deliveries arrive again");
                self.back.notify_waiters();
            }
            _ => {}
        }
    }

    /// Whether it is left alone.
    pub(super) fn left_alone(&self) -> Option<LeftAlone> {
        let judged = self.judged();
        match judged.breaker.state() {
            State::Closed { .. } => None,
            State::Open { until, .. } | State::HalfOpen { until, .. } => {
                let for_now = until.saturating_duration_since(Instant::now().into_std());
                Some(LeftAlone { for_now, cause: judged.cause.clone() })
            }
        }
    }

    /// Why it is nobody's turn.
    pub(super) fn held_up(&self) -> String {
        self.left_alone().map_or_else(
            || "others are before it".to_owned(),
            |left| format!("others failed in a row, the last one so: {}", left.cause),
        )
    }

    fn judged(&self) -> MutexGuard<'_, Judged> {
        self.judged.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::breaker::Source;
    use tokio::{
        task::JoinSet,
        time::{sleep, timeout},
    };

    const PAUSE: Duration = Duration::from_secs(30);
    const FAILED: Outcome = Outcome::Failure(Source::Task);
    const ARRIVED: Outcome = Outcome::Success(Source::Task);

    fn receivers() -> Receivers {
        Receivers::new(Settings { failures: 3, pause: PAUSE, max_pause: 2 * PAUSE })
    }

    /// A receiver to which three deliveries failed in a row.
    fn failing(receivers: &Receivers) -> Arc<Receiver> {
        let receiver = receivers.at("https://example.com".into());
        for _ in 0..3 {
            receiver.went(FAILED, Some("connection refused".into()));
        }
        receiver
    }

    #[tokio::test(start_paused = true)]
    async fn where_deliveries_fail_in_a_row_one_knocks_for_all() {
        let receivers = receivers();
        let receiver = failing(&receivers);
        let start = Instant::now();
        let mut workers = JoinSet::new();
        for n in 0..20 {
            let receiver = Arc::clone(&receiver);
            workers.spawn(async move {
                let turn = receiver.turn().await.unwrap();
                let since = start.elapsed().as_secs();
                // The first finds that nothing has changed, the second that all is well.
                sleep(Duration::from_secs(1)).await;
                let (outcome, cause) =
                    if n == 0 { (FAILED, Some("reset".into())) } else { (ARRIVED, None) };
                receiver.went(outcome, cause);
                drop(turn);
                (n, since)
            });
            tokio::task::yield_now().await;
        }
        let left = receivers.left_alone("https://example.com").unwrap();
        assert_eq!((left.for_now, left.cause.as_str()), (PAUSE, "connection refused"));
        let mut went = workers.join_all().await;
        went.sort_unstable();
        assert_eq!(went[0], (0, 30), "once the pause is over");
        assert_eq!(went[1], (1, 91), "and once the next one is, which is twice as long");
        assert_eq!(went[2], (2, 92), "at once when that one has arrived");
        assert!(went.iter().all(|&(_, since)| since <= 97), "{went:?}");
        assert!(receivers.left_alone("https://example.com").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_is_judged_by_itself_and_a_courier_that_leaves_is_not_waited_for() {
        let receivers = receivers();
        let receiver = failing(&receivers);
        let other = receivers.at("https://example.com:8443".into());
        let at_once = Duration::ZERO;
        assert!(timeout(at_once, other.turn()).await.is_ok(), "another port is another receiver");
        assert!(timeout(PAUSE / 2, receiver.turn()).await.is_err());
        sleep(PAUSE).await;
        let trial = timeout(at_once, receiver.turn()).await;
        drop(trial.unwrap().unwrap());
        assert!(timeout(PAUSE / 2, receiver.turn()).await.is_err(), "one at a time");
        assert!(timeout(PAUSE, receiver.turn()).await.is_ok(), "nobody heard of the first");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_holds_up_its_own_only() {
        let receivers = receivers();
        let [slow, well] = ["http://slow", "http://well"].map(|at| receivers.at(at.into()));
        let mut turns = Vec::new();
        for _ in 0..AT_ONCE {
            turns.push(slow.turn().await.unwrap());
        }
        assert!(timeout(PAUSE, slow.turn()).await.is_err());
        assert!(timeout(PAUSE, well.turn()).await.is_ok());
        turns.pop();
        assert!(timeout(PAUSE, slow.turn()).await.is_ok());
    }
}
