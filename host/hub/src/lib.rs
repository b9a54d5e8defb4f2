//! The engine: agents, conversations, tasks and notifications. It knows neither HTTP servers nor SQL nor a command line.
//!
//! A module uses only what stands before it here; `docs/ARCHITECTURE.md` has the map.

pub mod clock;
pub mod custody;
mod error;
pub mod events;
#[cfg(test)]
mod fake;
mod metrics;
pub mod native;
pub mod repeats;
pub mod spans;
pub mod token;
pub mod upkeep;

pub mod remote;

pub mod agents;

pub mod contexts;
pub mod routes;
pub mod tasks;

pub mod push;

mod hub;
mod refusals;

pub use a2a_hub_store::Looked;
pub use error::HubError;
pub use hub::{Hub, LiveConfig, ReadConfig, Reply, ReplyStream, SetLevel, Visit};
