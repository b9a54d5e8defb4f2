//! Decision logic of the hub: state machines and rules that take events and the time as input, and
//! do no I/O.

pub mod access_control;
pub mod bm25;
pub mod card_trust;
pub mod context_memory;
pub mod devices;
pub mod discovery;
pub mod failure_reason;
pub mod grant;
pub mod health;
pub mod http_name;
pub mod identity;
pub mod notify;
pub mod permission;
pub mod plugin;
pub mod push;
pub mod review;
pub mod routing;
pub mod scheduling;
pub mod search;
#[cfg(test)]
mod surface;
pub mod task;
pub mod text;
pub mod timeline;
pub mod usage;
