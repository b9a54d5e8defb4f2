//! Eviction of waiting agents: an agent that waits for its client can be stopped to free capacity,
//! if it can be started again with the answer.

use crate::tasks::{command::ActorCommand, run_queue::ClientWait};
use a2a_hub_agents::Agent;
use parking_lot::{Mutex, MutexGuard};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// Time that an evicted agent and its programs have to end, before the next one is evicted.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Tasks whose agents can be evicted, longest wait first. Cheap to clone.
#[derive(Clone, Default)]
pub(in crate::tasks) struct EvictionQueue(Arc<Mutex<Offers>>);

#[derive(Default)]
struct Offers {
    next: u64,
    waiting: BTreeMap<u64, mpsc::WeakSender<ActorCommand>>,
}

/// A task's part in evictions: its agent's capacity while it waits for its client, and the others'
/// that can be evicted for it.
#[derive(Default)]
pub(in crate::tasks) struct Idle {
    evictions: EvictionQueue,
    /// Address of this task's actor in the registry.
    commands: Option<mpsc::WeakSender<ActorCommand>>,
    /// Set while the agent waits for its client.
    capacity: Option<IdleCapacity>,
}

/// Capacity of an agent that waits for its client.
enum IdleCapacity {
    /// The agent can be evicted.
    Offered { _offer: Offer },
    /// The agent counts against capacity, for it cannot be started again.
    Counted { _wait: ClientWait },
}

/// A task's registration for eviction. Dropping it cancels the registration.
struct Offer {
    evictions: EvictionQueue,
    number: u64,
}

impl Idle {
    /// Part of the task whose actor receives its commands through `commands`.
    pub(in crate::tasks) fn new(
        evictions: EvictionQueue,
        commands: mpsc::WeakSender<ActorCommand>,
    ) -> Self {
        Self { evictions, commands: Some(commands), capacity: None }
    }

    /// Registers an agent that waits for its client for eviction if it `is_free`, or counts it as
    /// waiting; undoes that once it continues.
    pub(in crate::tasks) fn update(
        &mut self,
        waits: bool,
        is_free: bool,
        count: impl FnOnce() -> ClientWait,
    ) {
        match (&self.capacity, &self.commands) {
            (_, _) if !waits => self.capacity = None,
            (Some(IdleCapacity::Offered { .. }), _) if is_free => {}
            (_, Some(commands)) if is_free => {
                let offer = self.evictions.offer(commands.clone());
                self.capacity = Some(IdleCapacity::Offered { _offer: offer });
            }
            (Some(IdleCapacity::Counted { .. }), _) => {}
            (_, _) => self.capacity = Some(IdleCapacity::Counted { _wait: count() }),
        }
    }

    /// Evicts waiting agents until this one has capacity, or until no more can be evicted.
    pub(in crate::tasks) async fn free_capacity_for(&self, agent: &Agent) {
        while !agent.has_capacity() && self.evictions.evict_next().await {}
    }
}

impl EvictionQueue {
    /// Registers the waiting task that receives these commands.
    fn offer(&self, commands: mpsc::WeakSender<ActorCommand>) -> Offer {
        let mut offers = self.offers();
        let number = offers.next;
        offers.next += 1;
        offers.waiting.insert(number, commands);
        Offer { evictions: self.clone(), number }
    }

    /// Evicts the agent of the task that has waited longest; false if none is registered.
    async fn evict_next(&self) -> bool {
        let Some((_, commands)) = self.offers().waiting.pop_first() else { return false };
        let (done, evicted) = oneshot::channel();
        if let Some(commands) = commands.upgrade()
            && commands.send(ActorCommand::Park(done)).await.is_ok()
        {
            // If the agent takes too long, or has just ended, the caller evicts the next.
            let _ = timeout(EVICTION_TIMEOUT, evicted).await;
        }
        true
    }

    fn offers(&self) -> MutexGuard<'_, Offers> {
        self.0.lock()
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.evictions.offers().waiting.remove(&self.number);
    }
}
