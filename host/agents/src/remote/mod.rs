//! Remote agents as agents of this hub: each is pinned by its card and does its work at its own
//! place.

mod agent;
mod endpoint;
mod peer;
mod run;
mod trust;

pub(crate) use agent::RemoteAgent;
pub(crate) use endpoint::RemoteEndpoint;
pub(crate) use trust::TrustError;
