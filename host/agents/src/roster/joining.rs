//! Agents that are on their way while the hub starts: which agents there are is settled once each has joined or cannot.

use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Counts the agents that are on their way since the hub began to start.
pub(super) struct Joining {
    on_their_way: watch::Sender<usize>,
    /// Whether the hub still looks for agents that were there before it: what is dropped into the folder later was not.
    starts: AtomicBool,
}

/// One agent that is on its way, until this is dropped.
pub(super) struct OnItsWay(watch::Sender<usize>);

impl Default for Joining {
    fn default() -> Self {
        Self { on_their_way: watch::Sender::default(), starts: AtomicBool::new(true) }
    }
}

impl Joining {
    /// One more agent is on its way; nothing for one that came after the start.
    pub(super) fn one(&self) -> Option<OnItsWay> {
        if !self.starts.load(Ordering::Relaxed) {
            return None;
        }
        self.on_their_way.send_modify(|agents| *agents += 1);
        Some(OnItsWay(self.on_their_way.clone()))
    }

    /// All agents were looked for that there were before the hub.
    pub(super) fn started(&self) {
        self.starts.store(false, Ordering::Relaxed);
    }

    /// Whether nobody is on the way.
    pub(super) fn is_settled(&self) -> bool {
        *self.on_their_way.borrow() == 0
    }

    /// Returns once nobody is on the way. Loading a component and looking for a card have deadlines of their own.
    pub(super) async fn settled(&self) {
        // The sender is here: the wait cannot fail.
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
    async fn agents_are_settled_once_each_has_joined_or_cannot() {
        let joining = Joining::default();
        let (one, other) = (joining.one(), joining.one());
        joining.started();
        assert!(joining.one().is_none(), "it came after the start");
        drop(one);
        assert!(!joining.is_settled() && joining.settled().now_or_never().is_none());
        drop(other);
        assert!(joining.is_settled() && joining.settled().now_or_never().is_some());
    }
}
