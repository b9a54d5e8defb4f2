//! Where it is told what happens to agents.

use a2a_hub_protocol::hub::event::Happened;

/// Whoever hears what happens to agents: that one joined, left, was replaced or refused, how healthy it is.
pub trait EventSink: Send + Sync {
    /// Takes in what happened. It is called while agents change, so it waits for nobody.
    fn publish(&self, what: Happened);
}
