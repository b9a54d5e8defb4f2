//! Health of a store: judged by every write, and by a probe if no write has been made.

use super::StoreHealth;
use a2a_hub_core::text::duration::Span;
use a2a_hub_protocol::operation::StorageCondition;
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::{Instant, sleep, timeout},
};

/// Time without failures after which a store counts as healthy: a store that only has space for
/// small writes would flap otherwise (hysteresis).
const STEADY: Duration = Duration::from_millis(500);

/// Time for which a probe's result is cached, so that health checks do not load the disk.
const BELIEVED: Duration = Duration::from_secs(1);

/// Time limit of a probe. A slower disk delays everyone.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Record of a store's condition.
#[derive(Debug)]
pub(super) struct Judgement {
    condition: watch::Sender<StorageCondition>,
    /// Time of the last failed write.
    failed: Mutex<Option<Instant>>,
}

impl Default for Judgement {
    fn default() -> Self {
        Self { condition: watch::Sender::new(StorageCondition::Ok), failed: Mutex::default() }
    }
}

impl Judgement {
    /// Watches the condition.
    pub(super) fn listen(&self) -> watch::Receiver<StorageCondition> {
        self.condition.subscribe()
    }

    /// Records a successful write.
    pub(super) fn wrote(&self) {
        self.condition.send_if_modified(|condition| {
            let failed = *self.failed.lock();
            let is_better =
                condition.is_failing() && failed.is_none_or(|at| at.elapsed() >= STEADY);
            if is_better {
                *condition = StorageCondition::Ok;
            }
            is_better
        });
    }

    /// Records a failed write, which `fix` would repair. Returns true if this changes the
    /// condition.
    pub(super) fn failed(&self, error: &str, fix: &str) -> bool {
        *self.failed.lock() = Some(Instant::now());
        self.condition.send_if_modified(|condition| {
            let since = match condition {
                StorageCondition::Failing { error: known, .. } if known == error => return false,
                StorageCondition::Failing { since, .. } => since.clone(),
                StorageCondition::Ok => now(),
            };
            let (error, fix) = (error.to_owned(), fix.to_owned());
            *condition = StorageCondition::Failing { since, error, fix };
            true
        })
    }
}

/// Current time, in RFC 3339 in UTC with milliseconds.
fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// Health check of a store. Cheap to clone.
#[derive(Clone)]
pub struct Readiness(Arc<HealthCheck>);

struct HealthCheck {
    storage: Arc<dyn StoreHealth>,
    /// Last result with its time. Locked during a check, so that concurrent callers share the
    /// result.
    answer: AsyncMutex<Option<(Instant, StorageCondition)>>,
}

impl Readiness {
    /// Creates the health check of `storage`, which runs on request.
    pub fn new(storage: Arc<dyn StoreHealth>) -> Self {
        Self(Arc::new(HealthCheck { storage, answer: AsyncMutex::default() }))
    }

    /// Condition of the store: its own, if it is failing; otherwise the result of a probe within
    /// the last second.
    pub async fn now(&self) -> StorageCondition {
        let HealthCheck { storage, answer } = &*self.0;
        let known = || storage.condition().borrow().clone();
        let mut answer = answer.lock().await;
        if known().is_failing() {
            return known();
        }
        if let Some((at, condition)) = &*answer
            && at.elapsed() < BELIEVED
        {
            return condition.clone();
        }
        let condition = match timeout(TIMEOUT, storage.probe()).await {
            // The store itself records a failure, and reports recovery within a second.
            Ok(Err(_)) => return known(),
            Ok(Ok(())) => known(),
            Err(_) => StorageCondition::Failing {
                since: now(),
                error: format!("a write has taken longer than {}", Span(TIMEOUT)),
                fix: "see whether the disk of the data directory hangs, or another program holds the database"
                    .to_owned(),
            },
        };
        *answer = Some((Instant::now(), condition.clone()));
        condition
    }
}

/// Waits until a failing store works again; waits for `pause` if the store is not known to fail.
pub async fn until_usable(storage: &dyn StoreHealth, pause: Duration) {
    let mut condition = storage.condition();
    let is_failing = condition.borrow().is_failing();
    if !is_failing || condition.wait_for(|condition| !condition.is_failing()).await.is_err() {
        sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStorage;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn condition_does_not_flap_between_writes() {
        let judgement = Judgement::default();
        let is_failing = || judgement.condition.borrow().is_failing();
        judgement.wrote();
        assert!(!is_failing());
        for _ in 0..3 {
            judgement.failed("full", "make room");
            advance(STEADY - Duration::from_millis(1)).await;
            judgement.wrote();
            assert!(is_failing());
        }
        advance(Duration::from_millis(1)).await;
        judgement.wrote();
        assert!(!is_failing());
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_failure_keeps_its_start_time() {
        let judgement = Judgement::default();
        assert!(judgement.failed("full", "make room"));
        let StorageCondition::Failing { since: begun, .. } = judgement.condition.borrow().clone()
        else {
            panic!("it fails")
        };
        assert!(!judgement.failed("full", "make room"));
        assert!(judgement.failed("read-only", "let it write"), "another cause");
        let known = judgement.condition.borrow().clone();
        let (error, fix) = ("read-only".to_owned(), "let it write".to_owned());
        assert_eq!(known, StorageCondition::Failing { since: begun, error, fix });
    }

    #[tokio::test(start_paused = true)]
    async fn probe_result_is_cached_for_one_second() {
        let storage = Arc::new(MemoryStorage::default());
        let readiness = Readiness::new(storage.clone());
        assert_eq!(readiness.now().await, StorageCondition::Ok);
        storage.refuse(true);
        assert_eq!(readiness.now().await, StorageCondition::Ok, "asked just now");
        advance(BELIEVED).await;
        assert!(readiness.now().await.is_failing(), "though nobody had written");
        assert_eq!(storage.probes(), 2);
    }
}
