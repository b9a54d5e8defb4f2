//! Subscription to the events of the hub.

/// Kind of a subscription to the events of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventWatch {
    /// Events from now on, without cursors, for transports that tell their clients something else.
    Live,
    /// Events with cursors. Those of tasks come from the log, in its order.
    Resumable {
        /// Cursor of the last event that the client received; from now on if `None`.
        after: Option<String>,
    },
}
