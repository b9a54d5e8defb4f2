//! Store monitor: reports failures and recovery, and probes a failing store.

use crate::observability::hub_events::Events;
use a2a_hub_protocol::{hub::event::HubEventKind, operation::StorageCondition};
use a2a_hub_store::StoreHealth;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// Interval of probes to a failing store.
const TRY_EVERY: Duration = Duration::from_millis(500);

/// Publishes failures and recovery of the store, and probes it while it fails. Never returns while
/// the store lives.
pub async fn monitor(storage: Arc<dyn StoreHealth>, events: Events) {
    let mut condition = storage.condition();
    loop {
        let failing = condition.wait_for(StorageCondition::is_failing).await;
        let Ok(StorageCondition::Failing { since, error, fix }) = failing.map(|it| it.clone())
        else {
            return;
        };
        tracing::error!(error, fix, "store failed, trying again until it works");
        events.publish(HubEventKind::StorageFailing { error, fix });
        while storage.condition().borrow().is_failing() {
            sleep(TRY_EVERY).await;
            // The store's condition reflects the result.
            let _ = storage.probe().await;
        }
        tracing::info!(since, "store recovered");
        events.publish(HubEventKind::StorageRecovered { failing_since: since });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::id::TenantId;
    use a2a_hub_store::memory::MemoryStorage;

    #[tokio::test(start_paused = true)]
    async fn monitor_reports_store_failure_and_recovery() {
        let storage = Arc::new(MemoryStorage::default());
        let events = Events::default();
        let mut heard = events.subscribe(&TenantId::default());
        heard.next().await.unwrap();
        let looking = monitor(storage.clone(), events);
        let story = async {
            for _ in 0..2 {
                storage.refuse(true);
                assert!(storage.probe().await.is_err());
                let told = heard.next().await.unwrap();
                assert!(matches!(told.what, HubEventKind::StorageFailing { .. }), "{told:?}");
                storage.refuse(false);
                let told = heard.next().await.unwrap();
                assert!(matches!(told.what, HubEventKind::StorageRecovered { .. }), "{told:?}");
            }
        };
        tokio::select! {
            () = looking => panic!("nobody looks after it any more"),
            () = story => {}
        }
    }
}
