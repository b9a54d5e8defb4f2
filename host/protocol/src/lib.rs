//! The A2A protocol as Rust types: what is said, never how it travels.
//!
//! One model, in the shape of A2A 1.0, is used throughout the hub. Older wire forms are turned into it, and it into
//! them, at the edge: see [`compat`].

pub mod card;
pub mod compat;
pub mod error;
pub mod event;
pub mod hub_event;
pub mod id;
pub mod jsonrpc;
pub mod limits;
pub mod message;
pub mod ndjson;
pub mod operation;
pub mod push;
pub mod task;
