//! The engine: conversations, tasks and notifications, and every operation in one entry, [`Hub::handle`]. It knows neither HTTP
//! servers nor SQL nor a command line, and of components, programs and agents elsewhere only what `a2a-hub-agents` tells.
//!
//! A module uses only what stands before it here; `docs/ARCHITECTURE.md` has the map.

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
