//! Where an agent learns of the others that it may call.

use serde_json::Value;

/// The hub's side: the agents that one agent may call.
pub trait DelegatePort: Send + Sync {
    /// Their cards, as the hub publishes them, each with its `agentId`.
    fn agents(&self) -> Vec<Value>;
}
