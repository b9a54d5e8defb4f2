//! Clients of hubs: of the own one, which is the crate `a2a-hub-socket-client`, and of remote
//! agents; and attached files.

pub(super) mod files;
pub(super) mod remote;
pub(super) mod remote_task;

pub(super) use a2a_hub_socket_client::{global, hub_client, ids, runtime, sent, signals};
#[cfg(feature = "hub")]
pub(super) use a2a_hub_socket_client::{owner, running_hub};
pub(super) use a2a_hub_terminal::task_snapshot;
