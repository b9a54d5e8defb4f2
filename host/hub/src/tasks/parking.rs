//! Room for those who start: an agent that waits for its client can be let go, where it can be started again with the answer.

use super::{command::Command, run_queue::Wait};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// How long an agent and its programs may take to be gone, before somebody else is asked for room.
const PATIENCE: Duration = Duration::from_secs(10);

/// The tasks whose agents can be let go, the one that has waited longest first. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Parking(Arc<Mutex<Offers>>);

#[derive(Default)]
struct Offers {
    next: u64,
    waiting: BTreeMap<u64, mpsc::WeakSender<Command>>,
}

/// What becomes of the room of an agent that waits for its client.
pub(super) enum Room {
    /// Whoever needs it may have it.
    Offered { _offer: Offer },
    /// It counts, for the agent cannot be started again.
    Counted { _wait: Wait },
}

/// A task's offer to let its agent go. Dropping it takes it back.
pub(super) struct Offer {
    parking: Parking,
    number: u64,
}

impl Parking {
    /// The task that hears these commands waits, and its agent can be let go.
    pub(super) fn offer(&self, commands: mpsc::WeakSender<Command>) -> Offer {
        let mut offers = self.offers();
        let number = offers.next;
        offers.next += 1;
        offers.waiting.insert(number, commands);
        Offer { parking: self.clone(), number }
    }

    /// Has the task that has waited longest let its agent go; false if there is none.
    pub(super) async fn make_room(&self) -> bool {
        let Some((_, commands)) = self.offers().waiting.pop_first() else { return false };
        let (done, gone) = oneshot::channel();
        if let Some(commands) = commands.upgrade()
            && commands.send(Command::Park(done)).await.is_ok()
        {
            // Whoever takes too long, or has just ended, leaves it to the next.
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
