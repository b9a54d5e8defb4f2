//! Client of a hub: the options that find the hub, shortened ids, and the errors, signals and exit
//! status of the commands that ask it. Its output is the crate `a2a-hub-terminal`.
//!
//! With the feature `hub`, it reaches the hub of this machine over its unix socket. Without the
//! feature, it reaches remote hubs only, and builds for each system.

pub mod completion;
pub mod exit;
pub mod failure;
pub mod global;
pub mod hub_client;
pub mod ids;
#[cfg(feature = "hub")]
pub mod owner;
pub mod remote_hub;
#[cfg(feature = "hub")]
pub mod running_hub;
pub mod runtime;
pub mod sent;
pub mod signals;
