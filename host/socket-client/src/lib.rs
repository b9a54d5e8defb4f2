//! Client of a hub over its unix socket: the options that find the hub, shortened ids, and the
//! errors, signals and exit status of the commands that ask it. Its output is the crate
//! `a2a-hub-terminal`.

pub mod completion;
pub mod exit;
pub mod failure;
pub mod global;
pub mod hub_client;
pub mod ids;
pub mod owner;
pub mod remote_hub;
pub mod running_hub;
pub mod runtime;
pub mod sent;
pub mod signals;
