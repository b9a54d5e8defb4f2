//! Agents elsewhere as agents of this hub: each is pinned by its card, and does its work where it is.

mod agent;
mod endpoint;
mod peer;
mod run;
mod trust;

pub use agent::RemoteAgent;
pub use endpoint::RemoteEndpoint;
pub use trust::TrustError;
