//! Receivers (scheme, host and port): limits concurrent deliveries to each, and suspends failing
//! ones.
//!
//! ```text
//!  workers ──► line ──► gate ──────────► on their way ──► went ─┐
//!               4 pass   one asks the     at most 4              │
//!               at once  breaker, and                            ▼
//!                        waits for it ◄──────────────── core::breaker
//! ```
//!
//! After several failed deliveries in a row, no worker tries until a pause is over; then one worker
//! does, and the others wait for its result. Workers wait in order of arrival, so a delivery that
//! fails repeatedly does not starve the others.

use a2a_hub_core::{
    health::circuit_breaker::{BreakerSettings, Circuit, CircuitBreaker, Outcome},
    text::duration::Span,
};
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

/// Limit of concurrent deliveries to one receiver, so that a slow receiver delays only its own
/// deliveries.
const AT_ONCE: usize = 4;

/// Receivers that have workers. The state of a receiver is dropped with its last worker.
pub struct Receivers {
    settings: BreakerSettings,
    known: Mutex<HashMap<String, Weak<Receiver>>>,
}

/// One receiver, shared by the workers that deliver to it.
pub struct Receiver {
    /// Scheme, host and port.
    origin: String,
    line: Semaphore,
    /// Its holder is the next to deliver.
    gate: Gate<()>,
    judged: Mutex<Judged>,
    /// Notified once the receiver accepts deliveries again.
    back: Notify,
}

struct Judged {
    breaker: CircuitBreaker,
    /// Error of the last failed delivery.
    cause: String,
}

/// A suspended receiver.
#[derive(Debug)]
pub struct CircuitOpen {
    /// Remaining time of the suspension.
    pub for_now: Duration,
    /// Error of the last failed delivery.
    pub cause: String,
}

impl Receivers {
    /// Creates the registry, with these circuit breaker settings for each receiver.
    pub fn new(settings: BreakerSettings) -> Self {
        Self { settings, known: Mutex::default() }
    }

    /// Receiver at a scheme, host and port, shared by all its workers.
    pub fn at(&self, origin: String) -> Arc<Receiver> {
        let mut known = self.known();
        if let Some(receiver) = known.get(&origin).and_then(Weak::upgrade) {
            return receiver;
        }
        known.retain(|_, receiver| receiver.strong_count() > 0);
        let receiver = Arc::new(Receiver::new(origin.clone(), self.settings));
        known.insert(origin, Arc::downgrade(&receiver));
        receiver
    }

    /// Suspension of the receiver there, if it is suspended.
    pub fn suspension(&self, origin: &str) -> Option<CircuitOpen> {
        let receiver = self.known().get(origin).and_then(Weak::upgrade);
        receiver.and_then(|receiver| receiver.suspension())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Weak<Receiver>>> {
        self.known.lock()
    }
}

impl Receiver {
    fn new(origin: String, settings: BreakerSettings) -> Self {
        let judged = Judged { breaker: CircuitBreaker::new(settings), cause: String::new() };
        let (line, gate, judged) = (Semaphore::new(AT_ONCE), Gate::new(()), Mutex::new(judged));
        Self { origin, line, gate, judged, back: Notify::new() }
    }

    /// Waits until a delivery may start. The permit must be held during the delivery, and its
    /// result passed to [`Self::went`].
    pub async fn turn(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        let turn = self.line.acquire().await?;
        let _next = self.gate.lock().await;
        loop {
            // Registered before the breaker is asked, so that no notification is missed.
            let back = self.back.notified();
            let now = Instant::now().into_std();
            let Err(until) = self.judged().breaker.admit(now) else { return Ok(turn) };
            tokio::select! {
                () = sleep_until(until.into()) => {}
                () = back => {}
            }
        }
    }

    /// Records the outcome of a delivery; `cause` is its error.
    pub fn went(&self, outcome: Outcome, cause: Option<String>) {
        let mut judged = self.judged();
        let before = judged.breaker.state();
        if let (Outcome::Failure(_), Some(cause)) = (outcome, cause) {
            judged.cause = cause;
        }
        judged.breaker.record(outcome, Instant::now().into_std());
        let (receiver, cause) = (&self.origin, &judged.cause);
        match (before, judged.breaker.state()) {
            (Circuit::Closed { .. }, Circuit::Open { pause, .. }) => {
                let pause = tracing::field::display(Span(pause));
                tracing::warn!(receiver, pause, cause, "deliveries paused after repeated failures");
            }
            (Circuit::Open { .. } | Circuit::HalfOpen { .. }, Circuit::Closed { .. }) => {
                tracing::info!(receiver, "deliveries resumed");
                self.back.notify_waiters();
            }
            _ => {}
        }
    }

    /// Suspension of the receiver, if it is suspended.
    pub fn suspension(&self) -> Option<CircuitOpen> {
        let judged = self.judged();
        match judged.breaker.state() {
            Circuit::Closed { .. } => None,
            Circuit::Open { until, .. } | Circuit::HalfOpen { until, .. } => {
                let for_now = until.saturating_duration_since(Instant::now().into_std());
                Some(CircuitOpen { for_now, cause: judged.cause.clone() })
            }
        }
    }

    /// Reason why a delivery had to wait.
    pub fn wait_reason(&self) -> String {
        self.suspension().map_or_else(
            || "others are before it".to_owned(),
            |suspension| format!("others failed in a row, the last one so: {}", suspension.cause),
        )
    }

    fn judged(&self) -> MutexGuard<'_, Judged> {
        self.judged.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::health::circuit_breaker::Evidence;
    use tokio::{
        task::JoinSet,
        time::{sleep, timeout},
    };

    const PAUSE: Duration = Duration::from_secs(30);
    const FAILED: Outcome = Outcome::Failure(Evidence::Task);
    const ARRIVED: Outcome = Outcome::Success(Evidence::Task);

    fn receivers() -> Receivers {
        Receivers::new(BreakerSettings { failures: 3, pause: PAUSE, max_pause: 2 * PAUSE })
    }

    /// Receiver with three failed deliveries in a row.
    fn failing(receivers: &Receivers) -> Arc<Receiver> {
        let receiver = receivers.at("https://example.com".into());
        for _ in 0..3 {
            receiver.went(FAILED, Some("connection refused".into()));
        }
        receiver
    }

    #[tokio::test(start_paused = true)]
    async fn one_worker_probes_suspended_receiver() {
        let receivers = receivers();
        let receiver = failing(&receivers);
        let start = Instant::now();
        let mut workers = JoinSet::new();
        for n in 0..20 {
            let receiver = Arc::clone(&receiver);
            workers.spawn(async move {
                let turn = receiver.turn().await.unwrap();
                let since = start.elapsed().as_secs();
                // The first delivery fails again, the second succeeds.
                sleep(Duration::from_secs(1)).await;
                let (outcome, cause) =
                    if n == 0 { (FAILED, Some("reset".into())) } else { (ARRIVED, None) };
                receiver.went(outcome, cause);
                drop(turn);
                (n, since)
            });
            tokio::task::yield_now().await;
        }
        let left = receivers.suspension("https://example.com").unwrap();
        assert_eq!((left.for_now, left.cause.as_str()), (PAUSE, "connection refused"));
        let mut went = workers.join_all().await;
        went.sort_unstable();
        assert_eq!(went[0], (0, 30), "once the pause is over");
        assert_eq!(went[1], (1, 91), "and once the next one is, which is twice as long");
        assert_eq!(went[2], (2, 92), "at once when that one has arrived");
        assert!(went.iter().all(|&(_, since)| since <= 97), "{went:?}");
        assert!(receivers.suspension("https://example.com").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn receivers_have_separate_breakers_and_trials() {
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
    async fn slow_receiver_delays_only_its_own_deliveries() {
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
