//! Eviction of waiting agents: an agent that waits for its client can be stopped to free capacity,
//! if it can be started again with the answer.

use crate::tasks::{command::ActorCommand, run_queue::ClientWait};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// Time that an evicted agent and its programs have to end, before the next one is evicted.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tasks whose agents can be evicted, longest wait first. Cheap to clone.
#[derive(Clone, Default)]
pub(in crate::tasks) struct Parking(Arc<Mutex<Offers>>);

#[derive(Default)]
struct Offers {
    next: u64,
    waiting: BTreeMap<u64, mpsc::WeakSender<ActorCommand>>,
}

/// Capacity of an agent that waits for its client.
pub(in crate::tasks) enum IdleCapacity {
    /// The agent can be evicted.
    Offered { _offer: Offer },
    /// The agent counts against capacity, for it cannot be started again.
    Counted { _wait: ClientWait },
}

/// A task's registration for eviction. Dropping it cancels the registration.
pub(in crate::tasks) struct Offer {
    parking: Parking,
    number: u64,
}

impl Parking {
    /// Registers the waiting task that receives these commands.
    pub(in crate::tasks) fn offer(&self, commands: mpsc::WeakSender<ActorCommand>) -> Offer {
        let mut offers = self.offers();
        let number = offers.next;
        offers.next += 1;
        offers.waiting.insert(number, commands);
        Offer { parking: self.clone(), number }
    }

    /// Evicts the agent of the task that has waited longest; false if none is registered.
    pub(in crate::tasks) async fn make_room(&self) -> bool {
        let Some((_, commands)) = self.offers().waiting.pop_first() else { return false };
        let (done, gone) = oneshot::channel();
        if let Some(commands) = commands.upgrade()
            && commands.send(ActorCommand::Park(done)).await.is_ok()
        {
            // If the agent takes too long, or has just ended, the caller evicts the next.
            let _ = timeout(PATIENCE, gone).await;
        }
        true
    }

    fn offers(&self) -> MutexGuard<'_, Offers> {
        self.0.lock()
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.parking.offers().waiting.remove(&self.number);
    }
}
