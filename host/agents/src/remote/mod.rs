//! Remote agents as agents of this hub, each pinned by its card.

mod agent;
mod endpoint;
mod peer;
mod run;
mod trust;

pub(crate) use agent::RemoteAgent;
pub(crate) use endpoint::RemoteEndpoint;
pub(crate) use trust::TrustError;
