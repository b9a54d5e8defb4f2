//! Commands, in files named after what is typed.

pub(super) mod agent;
pub(super) mod agents;
#[cfg(feature = "hub")]
pub(super) mod backup;
#[cfg(feature = "hub")]
pub(super) mod bridge;
pub(super) mod cancel;
#[cfg(feature = "hub")]
pub(super) mod config;
pub(super) mod contexts;
pub(super) mod deliveries;
#[cfg(feature = "hub")]
pub(super) mod doctor;
#[cfg(feature = "hub")]
pub(super) mod flow;
pub(super) mod follow;
pub(super) mod leave;
#[cfg(feature = "hub")]
pub(super) mod logs;
pub(super) mod manual;
#[cfg(feature = "hub")]
pub(super) mod plugin;
pub(super) mod reconnect;
#[cfg(not(feature = "hub"))]
pub(super) mod remote_only;
#[cfg(feature = "hub")]
pub(super) mod restart;
#[cfg(feature = "hub")]
pub(super) mod run;
pub(super) mod send;
#[cfg(feature = "hub")]
pub(super) mod start;
pub(super) mod status;
#[cfg(feature = "hub")]
pub(super) mod stop;
pub(super) mod task;
pub(super) mod tasks;
#[cfg(feature = "hub")]
pub(super) mod workspace;

pub(super) use a2a_hub_socket_client::completion;
pub(super) use a2a_hub_terminal::duration;

/// Agent that reads flow files, and runs those that are no agents.
const RUNNER: &str = "flow";
