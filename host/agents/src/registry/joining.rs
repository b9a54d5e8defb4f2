//! Count of agents that are still loading at the start of the hub. The set of agents is settled
//! once each has joined or failed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::watch;

/// Counts the agents that are loading since the start of the hub.
pub(super) struct Joining {
    /// Agents that have begun to load.
    begun: AtomicUsize,
    on_their_way: watch::Sender<usize>,
    /// Set while the hub loads the agents that existed before its start; agents added later are not
    /// counted.
    starts: AtomicBool,
}

/// Guard for one loading agent.
pub(super) struct OnItsWay(watch::Sender<usize>);

impl Default for Joining {
    fn default() -> Self {
        Self {
            begun: AtomicUsize::new(0),
            on_their_way: watch::Sender::default(),
            starts: AtomicBool::new(true),
        }
    }
}

impl Joining {
    /// Counts one more agent; none after the start.
    pub(super) fn one(&self) -> Option<OnItsWay> {
        if !self.starts.load(Ordering::Relaxed) {
            return None;
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.on_their_way.send_modify(|agents| *agents += 1);
        Some(OnItsWay(self.on_their_way.clone()))
    }

    /// Ends the start phase: later agents are not counted.
    pub(super) fn started(&self) {
        self.starts.store(false, Ordering::Relaxed);
    }

    /// Number of agents that have begun to load, and of those that are loading.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.begun.load(Ordering::Relaxed), *self.on_their_way.borrow())
    }

    /// True if no agent is loading.
    pub(super) fn is_settled(&self) -> bool {
        *self.on_their_way.borrow() == 0
    }

    /// Waits until no agent is loading. Loading a component and fetching a card have their own
    /// deadlines.
    pub(super) async fn settled(&self) {
        // The sender is `self`, so the wait cannot fail.
        let _ = self.on_their_way.subscribe().wait_for(|agents| *agents == 0).await;
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.send_modify(|agents| *agents -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn settled_after_last_guard_drops() {
        let joining = Joining::default();
        let (one, other) = (joining.one(), joining.one());
        assert_eq!(joining.counts(), (2, 2));
        joining.started();
        assert!(joining.one().is_none(), "it came after the start");
        drop(one);
        assert_eq!(joining.counts(), (2, 1));
        assert!(!joining.is_settled() && joining.settled().now_or_never().is_none());
        drop(other);
        assert!(joining.is_settled() && joining.settled().now_or_never().is_some());
    }
}
