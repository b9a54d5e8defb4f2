//! What a guest may do: runs WebAssembly agents with the capabilities they were granted.
//!
//! The only crate that knows WebAssembly. A component is read and checked ([`Plugin`]), then each task runs in a store
//! and an instance of its own ([`Guest`]), which holds the overlap of what its manifest asks and what the operator
//! grants. What a capability does in the world is done by the hub, through the small trait in its file.

mod bindings;
pub mod capability;
mod convert;
pub mod engine;
pub mod failure;
pub mod guest;
pub mod limits;
pub mod manifest;
pub mod plugin;
mod redaction;
mod state;

pub use engine::{Engine, EngineSettings};
pub use failure::Failure;
pub use guest::{Call, Ended, Guest, Report};
pub use limits::Limits;
pub use plugin::{LoadError, Plugin};
