//! Commands, in files named after what is typed.

pub(super) mod agent;
pub(super) mod agents;
pub(super) mod backup;
pub(super) mod bridge;
pub(super) mod cancel;
pub(super) mod config;
pub(super) mod contexts;
pub(super) mod deliveries;
pub(super) mod doctor;
pub(super) mod flow;
pub(super) mod follow;
pub(super) mod leave;
pub(super) mod logs;
pub(super) mod manual;
pub(super) mod plugin;
pub(super) mod reconnect;
pub(super) mod restart;
pub(super) mod run;
pub(super) mod send;
pub(super) mod start;
pub(super) mod status;
pub(super) mod stop;
pub(super) mod task;
pub(super) mod tasks;
pub(super) mod tree;
pub(super) mod workspace;

pub(super) use a2a_hub_socket_client::completion;
pub(super) use a2a_hub_terminal::duration;
