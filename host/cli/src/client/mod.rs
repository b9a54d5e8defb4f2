//! Client of a hub over its unix socket, and the hub that runs in the background.

pub(super) mod files;
pub(super) mod global;
pub(super) mod hub_client;
pub(super) mod ids;
pub(super) mod owner;
pub(super) mod remote;
pub(super) mod remote_task;
pub(super) mod running_hub;
pub(super) mod runtime;
pub(super) mod signals;

pub(super) use a2a_hub_terminal::task_snapshot;
