//! Phase of the hub: starting (recovering earlier tasks), up, or stopping.

use tokio::sync::watch;

/// Phase of the hub. Cheap to clone.
#[derive(Clone)]
pub(in crate::tasks) struct HubPhase(watch::Sender<PhaseName>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PhaseName {
    /// Tasks of the previous process are being recovered: some that will run do not run yet.
    Starting,
    Up,
    /// Tasks are being shut down, one after the other.
    Stopping,
}

impl HubPhase {
    /// Creates the phase of a hub that has recovered nothing yet.
    pub(in crate::tasks) fn starting() -> Self {
        Self(watch::Sender::new(PhaseName::Starting))
    }

    /// Marks recovery as complete.
    pub(in crate::tasks) fn up(&self) {
        // The hub may have been stopped while it starts.
        self.0.send_if_modified(|stage| {
            let starts = *stage == PhaseName::Starting;
            if starts {
                *stage = PhaseName::Up;
            }
            starts
        });
    }

    /// Marks the beginning of the shutdown.
    pub(in crate::tasks) fn stop(&self) {
        self.0.send_replace(PhaseName::Stopping);
    }

    pub(in crate::tasks) fn is_stopping(&self) -> bool {
        *self.0.borrow() == PhaseName::Stopping
    }

    /// Waits until recovery is complete, or the hub stops.
    pub(in crate::tasks) async fn until_started(&self) {
        // The sender is here: the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|stage| *stage != PhaseName::Starting).await;
    }
}
