//! State that all delivery workers share.

use crate::tasks::Tasks;
use crate::webhooks::{Receivers, Sender};
use a2a_hub_store::Outbox;
use std::{sync::Arc, time::Duration};

/// Path of a notification from the log to its receiver.
pub(super) struct PushPath {
    /// Stores configs and their progress.
    pub storage: Arc<dyn Outbox>,
    /// Tasks, whose feeds have the events.
    pub tasks: Tasks,
    /// Signs and posts notifications.
    pub sender: Arc<Sender>,
    /// Limits concurrent deliveries to each receiver, and suspends failing receivers.
    pub receivers: Receivers,
    /// Time for which one event is retried.
    pub retry_timeout: Duration,
}
