//! Whether the hub is up: it has taken up all that an earlier one left, and is not stopping.

use tokio::sync::watch;

/// Where the hub is in its life. Cheap to clone.
#[derive(Clone)]
pub(super) struct Phase(watch::Sender<Stage>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Tasks of an earlier hub are being taken up: not all that will be at work is.
    Starting,
    Up,
    /// Tasks are told to end, one after the other.
    Stopping,
}

impl Phase {
    /// A hub that has taken up nothing.
    pub(super) fn starting() -> Self {
        Self(watch::Sender::new(Stage::Starting))
    }

    /// All that an earlier hub left is taken up.
    pub(super) fn up(&self) {
        // A hub may be told to stop while it starts.
        self.0.send_if_modified(|stage| {
            let starts = *stage == Stage::Starting;
            if starts {
                *stage = Stage::Up;
            }
            starts
        });
    }

    /// Tasks are about to be told to end.
    pub(super) fn stop(&self) {
        self.0.send_replace(Stage::Stopping);
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.0.borrow() == Stage::Stopping
    }

    /// Returns once the hub does not start any more.
    pub(super) async fn until_started(&self) {
        // The sender is here: the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|stage| *stage != Stage::Starting).await;
    }
}
