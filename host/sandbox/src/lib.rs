//! Sandbox: runs WebAssembly agents with the capabilities that they were granted.
//!
//! The only crate that knows WebAssembly. A component is read and checked ([`Plugin`]); then each
//! task runs in its own store and instance ([`Guest`]), which holds the overlap of its manifest's
//! requests and the operator's grant. The hub performs the effects of a capability through a port
//! of `a2a-hub-runtime`.

#[cfg(target_os = "linux")]
mod beneath;
mod bindings;
mod capability;
mod card;
mod carried;
mod code_cache;
mod code_in_place;
mod code_settings;
mod compiled_code;
mod compiler;
mod convert;
mod digest;
pub mod engine;
pub mod guest;
mod host_functions;
mod http_door;
mod limits;
pub mod manifest;
pub mod plugin;
mod redaction;
mod replay;
mod resources;
mod run_clock;
mod runtime;
mod scheduler;
mod state;
mod thread_time;
mod ticker;
mod usage;
mod wasi_http;
mod workspace;

pub use carried::{CARRY, CarriedCode, carry};
pub use code_cache::{CacheSettings, CompileLimits};
pub use compiled_code::CacheKey;
pub use compiler::{COMPILE, compile_in_worker};
pub use digest::digest_of;
pub use engine::{Engine, EngineSettings, MAX_INSTANCES};
pub use guest::Guest;
pub use plugin::{LoadError, Plugin};
