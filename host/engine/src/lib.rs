//! Engine of the hub: tasks, push notifications, and the single entry point for all
//! operations, [`Hub::handle`]. This crate contains no HTTP server, no SQL and no command line. It
//! knows components, programs and remote agents only through `a2a-hub-agents`.
//!
//! A module uses only those below it, as `xtask/tests/tidy/crates.rs` lists them;
//! `docs/ARCHITECTURE.md` has the map.

pub mod conversations;
pub mod devices;
mod error;
mod error_mapping;
pub mod notify;
pub mod observability;
mod operations;
pub mod people;
pub mod push;
pub mod routing;
mod signer;
pub mod tasks;
pub mod webhooks;
pub mod worktree_runs;

pub use crate::operations::{
    ClientContext, Hub, LiveConfig, ReadConfig, Reply, ReplyStream, SetLevel, StartingHub,
};
pub use a2a_hub_store::TaskView;
pub use error::HubError;
pub use signer::{HubSigner, PUBLIC_KEY_FILE, SignerError};

#[cfg(test)]
mod tests;
