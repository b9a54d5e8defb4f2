//! State of a notifier in this process, which outlives a change of its settings.

use a2a_hub_core::notify::plan::NotifierState;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

/// State of one notifier.
#[derive(Default)]
pub(super) struct NotifierSlot {
    /// Held during a step and a delivery: a notifier delivers one message at a time.
    pub(super) work: AsyncMutex<()>,
    known: Mutex<Option<NotifierState>>,
}

impl NotifierSlot {
    /// Latest state; none before it was read from the store.
    pub(super) fn state(&self) -> Option<NotifierState> {
        self.known.lock().clone()
    }

    /// Replaces the state.
    pub(super) fn set(&self, state: NotifierState) {
        *self.known.lock() = Some(state);
    }
}
