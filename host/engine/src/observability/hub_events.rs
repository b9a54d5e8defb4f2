//! Event bus of the hub, for live subscribers.
//!
//! It keeps no history: a late subscriber queries the current state, and then receives changes.

use crate::observability::metrics::Metrics;
use a2a_hub_agents::EventSink;
use a2a_hub_clock as clock;
use a2a_hub_protocol::{
    hub::event::{HubEvent, HubEventKind, StreamEnd},
    id::TenantId,
};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use tokio::sync::broadcast::{self, error::RecvError};

/// Buffer for slow subscribers. A subscriber that is further behind is disconnected, as a gap would
/// mislead it.
const CHANNEL_CAPACITY: usize = 1024;

/// Publisher of hub events. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    speaker: Arc<Mutex<Speaker>>,
    /// Counts events, for dashboards.
    metrics: Metrics,
}

struct Speaker {
    /// Number of the latest event.
    seq: u64,
    /// None once the hub stops.
    sender: Option<broadcast::Sender<Arc<HubEvent>>>,
}

impl Default for Events {
    fn default() -> Self {
        let sender = Some(broadcast::Sender::new(CHANNEL_CAPACITY));
        let speaker = Arc::new(Mutex::new(Speaker { seq: 0, sender }));
        Self { speaker, metrics: Metrics::default() }
    }
}

impl Events {
    /// Publishes an event to all subscribers, without waiting for them.
    pub fn publish(&self, event: HubEventKind) {
        self.metrics.record(&event);
        let mut speaker = self.speaker();
        speaker.seq += 1;
        if let Some(sender) = speaker.sender.as_ref().filter(|sender| sender.receiver_count() > 0) {
            // All subscribers may leave in the meantime.
            let _ = sender.send(Arc::new(speaker.event(event)));
        }
    }

    /// Subscribes to all events from now on, except those of other tenants' tasks.
    pub fn subscribe(&self, tenant: &TenantId) -> Listener {
        let speaker = self.speaker();
        let first = Some(Arc::new(speaker.event(HubEventKind::Subscribed)));
        let receiver = speaker.sender.as_ref().map(broadcast::Sender::subscribe);
        let (tenant, receiver) = (Some(tenant.clone()), receiver.ok_or(StreamEnd::HubStopped));
        Listener { first, tenant, receiver }
    }

    /// Subscribes to the events of all tenants from now on.
    pub fn subscribe_to_all(&self) -> Listener {
        Listener { tenant: None, ..self.subscribe(&TenantId::default()) }
    }

    /// Metrics of the hub.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Ends every subscription, after the events that were published.
    pub fn close(&self) {
        self.speaker().sender = None;
    }

    fn speaker(&self) -> MutexGuard<'_, Speaker> {
        self.speaker.lock()
    }
}

impl EventSink for Events {
    fn publish(&self, event: HubEventKind) {
        Self::publish(self, event);
    }
}

impl Speaker {
    fn event(&self, event: HubEventKind) -> HubEvent {
        HubEvent { seq: self.seq, cursor: None, timestamp: clock::now(), what: event }
    }
}

/// Subscribing side. Each subscription has its own cursor, so a slow one delays nobody.
pub struct Listener {
    first: Option<Arc<HubEvent>>,
    /// Tenant of the events; `None` for all.
    tenant: Option<TenantId>,
    /// The receiver, or the reason why the stream has ended.
    receiver: Result<broadcast::Receiver<Arc<HubEvent>>, StreamEnd>,
}

impl Listener {
    /// Next event, or the reason why the stream has ended.
    pub async fn next(&mut self) -> Result<Arc<HubEvent>, StreamEnd> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        let (receiver, tenant) = (self.receiver.as_mut().map_err(|end| *end)?, &self.tenant);
        let is_foreign = |event: &HubEvent| {
            tenant.as_ref().is_some_and(|tenant| event.what.tenant().is_some_and(|it| it != tenant))
        };
        let end = loop {
            match receiver.recv().await {
                Ok(event) if is_foreign(&event) => {}
                Ok(event) => return Ok(event),
                Err(RecvError::Lagged(_)) => break StreamEnd::TooSlow,
                Err(RecvError::Closed) => break StreamEnd::HubStopped,
            }
        };
        self.receiver = Err(end);
        Err(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::id::AgentId;

    fn left() -> HubEventKind {
        HubEventKind::AgentLeft { agent_id: AgentId::parse("echo").unwrap() }
    }

    #[tokio::test]
    async fn events_are_numbered_gaplessly_until_close() {
        let events = Events::default();
        events.publish(left());
        let mut listener = events.subscribe(&TenantId::default());
        events.publish(left());
        events.publish(left());
        events.close();
        for seq in 1..=3 {
            assert_eq!(listener.next().await.unwrap().seq, seq);
        }
        assert_eq!(listener.next().await, Err(StreamEnd::HubStopped));
        let mut late = events.subscribe(&TenantId::default());
        assert_eq!(late.next().await.unwrap().what, HubEventKind::Subscribed);
        assert_eq!(late.next().await, Err(StreamEnd::HubStopped));
    }

    #[tokio::test]
    async fn slow_subscriber_is_disconnected_without_delaying_others() {
        let events = Events::default();
        let (mut slow, mut quick) =
            (events.subscribe(&TenantId::default()), events.subscribe(&TenantId::default()));
        quick.next().await.unwrap();
        for seq in 1..=CHANNEL_CAPACITY as u64 + 1 {
            events.publish(left());
            assert_eq!(quick.next().await.unwrap().seq, seq);
        }
        assert_eq!(slow.next().await.unwrap().what, HubEventKind::Subscribed);
        assert_eq!(slow.next().await, Err(StreamEnd::TooSlow));
        assert_eq!(slow.next().await, Err(StreamEnd::TooSlow), "and nothing after that");
    }
}
