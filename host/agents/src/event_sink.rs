//! Outlet for events about agents.

use a2a_hub_protocol::hub::event::HubEventKind;

/// Receives events about agents: registered, left, replaced, refused, health changed.
pub trait EventSink: Send + Sync {
    /// Takes an event. It is called while the registry changes, so it must not block.
    fn publish(&self, event: HubEventKind);
}
