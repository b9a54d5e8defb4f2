//! Capabilities of guests: one file for each, with its permission check and its limits. The hub's
//! side is a port of `a2a-hub-runtime`.

mod context_memory;
mod delegate;
mod ending;
mod files;
mod http;
mod journal;
mod log;
mod memory;
mod permission;
mod process;
mod settings;
mod steps;
mod tasks;
mod timeout;
mod tools;
mod wait;
