//! Whether a store takes what it is given: judged by every write, and by a write of its own where there was none (a health
//! check).

use super::StoreHealth;
use a2a_hub_core::span::Span;
use a2a_hub_protocol::operation::StorageCondition;
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::{Instant, sleep, timeout},
};

/// How long a store must have failed at nothing before it counts as well: one with room for small writes only would change
/// its mind with each (hysteresis).
const STEADY: Duration = Duration::from_millis(500);

/// How long it is believed what was found out by a write: those who ask must not keep the disk busy.
const BELIEVED: Duration = Duration::from_secs(1);

/// How long a write that is to find out may take. A disk that takes longer holds up whoever works.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a store thinks of itself.
#[derive(Debug)]
pub(super) struct Judgement {
    told: watch::Sender<StorageCondition>,
    /// When a write failed the last time.
    failed: Mutex<Option<Instant>>,
}

impl Default for Judgement {
    fn default() -> Self {
        Self { told: watch::Sender::new(StorageCondition::Ok), failed: Mutex::default() }
    }
}

impl Judgement {
    /// Whatever it comes to think of itself.
    pub(super) fn listen(&self) -> watch::Receiver<StorageCondition> {
        self.told.subscribe()
    }

    /// A write was made.
    pub(super) fn wrote(&self) {
        self.told.send_if_modified(|told| {
            let failed = *self.failed.lock();
            let is_better = told.is_failing() && failed.is_none_or(|at| at.elapsed() >= STEADY);
            if is_better {
                *told = StorageCondition::Ok;
            }
            is_better
        });
    }

    /// A write was not made, and `fix` mends that. Says whether that is news.
    pub(super) fn failed(&self, error: &str, fix: &str) -> bool {
        *self.failed.lock() = Some(Instant::now());
        self.told.send_if_modified(|told| {
            let since = match told {
                StorageCondition::Failing { error: known, .. } if known == error => return false,
                StorageCondition::Failing { since, .. } => since.clone(),
                StorageCondition::Ok => now(),
            };
            let (error, fix) = (error.to_owned(), fix.to_owned());
            *told = StorageCondition::Failing { since, error, fix };
            true
        })
    }
}

/// The time now, in RFC 3339 in UTC with milliseconds.
fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// Finds out whether a store can store, now. Cheap to clone.
#[derive(Clone)]
pub struct Readiness(Arc<Asked>);

struct Asked {
    storage: Arc<dyn StoreHealth>,
    /// What was found out last, and when. Held while it is found out, so that those who ask at once share the answer.
    answer: AsyncMutex<Option<(Instant, StorageCondition)>>,
}

impl Readiness {
    /// The readiness of `storage`, found out when somebody asks.
    pub fn of(storage: Arc<dyn StoreHealth>) -> Self {
        Self(Arc::new(Asked { storage, answer: AsyncMutex::default() }))
    }

    /// What the store says of itself if it fails, or else what comes of a write that changes nothing, as of the last second.
    pub async fn now(&self) -> StorageCondition {
        let Asked { storage, answer } = &*self.0;
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
        let condition = match timeout(PATIENCE, storage.probe()).await {
            // Whether it failed, the store has told itself; when it works again, it tells sooner than in a second.
            Ok(Err(_)) => return known(),
            Ok(Ok(())) => known(),
            Err(_) => StorageCondition::Failing {
                since: now(),
                error: format!("a write has taken longer than {}", Span(PATIENCE)),
                fix: "see whether the disk of the data directory hangs, or another program holds the database"
                    .to_owned(),
            },
        };
        *answer = Some((Instant::now(), condition.clone()));
        condition
    }
}

/// Waits until a store that fails works again; where nothing is known to be wrong with it, for as long as `pause`.
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
    async fn a_store_with_room_for_small_writes_only_does_not_change_its_mind_with_each() {
        let judgement = Judgement::default();
        let is_failing = || judgement.told.borrow().is_failing();
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
    async fn trouble_is_news_once_and_has_one_beginning() {
        let judgement = Judgement::default();
        assert!(judgement.failed("full", "make room"));
        let StorageCondition::Failing { since: begun, .. } = judgement.told.borrow().clone() else {
            panic!("it fails")
        };
        assert!(!judgement.failed("full", "make room"));
        assert!(judgement.failed("read-only", "let it write"), "another cause");
        let known = judgement.told.borrow().clone();
        let (error, fix) = ("read-only".to_owned(), "let it write".to_owned());
        assert_eq!(known, StorageCondition::Failing { since: begun, error, fix });
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_is_told_the_truth_of_the_last_second() {
        let storage = Arc::new(MemoryStorage::default());
        let readiness = Readiness::of(storage.clone());
        assert_eq!(readiness.now().await, StorageCondition::Ok);
        storage.refuse(true);
        assert_eq!(readiness.now().await, StorageCondition::Ok, "asked just now");
        advance(BELIEVED).await;
        assert!(readiness.now().await.is_failing(), "though nobody had written");
        assert_eq!(storage.probes(), 2);
    }
}
