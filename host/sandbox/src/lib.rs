//! Sandbox: runs WebAssembly agents with the capabilities that they were granted.
//!
//! The only crate that knows WebAssembly. A component is read and checked ([`Plugin`]); then each
//! task runs in its own store and instance ([`Guest`]), which holds the overlap of its manifest's
//! requests and the operator's grant. The hub performs the effects of a capability through a port
//! of `a2a-hub-runtime`.

mod capability;
mod compile;
pub mod component;
mod cpu;
pub mod run;
mod store;

pub use crate::{
    compile::{
        bundled_code::{CARRY, CarriedCode, carry},
        cache::{CacheSettings, CompileLimits},
        cache_key::CacheKey,
        compiler::{COMPILE, Hurry, compile_in_worker},
        digest::digest_of,
    },
    component::{
        engine::{Engine, EngineSettings, MAX_INSTANCES},
        plugin::{LoadError, Plugin},
    },
    run::guest::Guest,
};
