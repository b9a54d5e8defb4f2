//! What a guest may ask of the hub: one file a capability, with its check and its limits; the hub's side is a port of `a2a-hub-runtime`.

mod context_memory;
mod delegate;
mod files;
mod http;
mod journal;
mod log;
mod memory;
mod process;
mod settings;
mod steps;
mod tasks;
mod timeout;
mod tools;
mod wait;
