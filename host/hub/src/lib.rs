//! Engine of the hub: conversations, tasks, push notifications, and the single entry point for all
//! operations, [`Hub::handle`]. This crate contains no HTTP server, no SQL and no command line. It
//! knows components, programs and remote agents only through `a2a-hub-agents`.
//!
//! A module uses only the modules listed before it here; `docs/ARCHITECTURE.md` has the map.

pub mod custody;
mod error;
pub mod events;
#[cfg(test)]
mod fake;
mod metrics;
pub mod repeats;
pub mod spans;
pub mod token;
pub mod upkeep;

pub mod contexts;
pub mod routes;
pub mod tasks;

pub mod push;

mod hub;
mod refusals;

pub use a2a_hub_store::Looked;
pub use error::HubError;
pub use hub::{Hub, LiveConfig, ReadConfig, Reply, ReplyStream, SetLevel, StartingHub, Visit};
