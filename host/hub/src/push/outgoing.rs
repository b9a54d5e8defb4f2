//! What all delivery workers share.

use super::{receivers::Receivers, sender::Sender};
use crate::tasks::Tasks;
use a2a_hub_store::Outbox;
use std::{sync::Arc, time::Duration};

/// The way of a notification from the log to its receiver.
pub(super) struct Outgoing {
    /// Knows where notifications are wanted, and how far each place was told.
    pub storage: Arc<dyn Outbox>,
    /// The tasks, whose feeds have the events.
    pub tasks: Tasks,
    /// Signs a notification and posts it.
    pub sender: Sender,
    /// Lets one delivery at a time go to a receiver, and leaves alone those that fail.
    pub receivers: Receivers,
    /// How long one event is tried.
    pub patience: Duration,
}
