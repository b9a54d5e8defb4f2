//! The hub's side of agents' capabilities, as the ports of [`a2a_hub_runtime::port`]. Each port
//! reads the current grant, so that a revocation reaches running tasks as well.

pub(crate) mod confinement;
pub(crate) mod context_memory;
mod environment;
pub(crate) mod files;
pub(crate) mod http;
pub(crate) mod hub_access;
pub(crate) mod live_grant;
pub(crate) mod logins;
pub(crate) mod memory;
pub(crate) mod peer_directory;
pub(crate) mod programs;
pub(crate) mod tools;
pub(crate) mod workspace;

pub use context_memory::GrantedMemory;
pub use files::sweep_files;
pub use hub_access::HubAccess;
pub use programs::is_idle_owner;
