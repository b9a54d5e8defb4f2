//! The A2A protocol as Rust types: what is said, never how it travels.
//!
//! One model, in the shape of A2A 1.0, is used throughout the hub. The wire forms are turned into it, and it into them, at
//! the edge: [`v1`] and [`v03`] are the official ones, [`v03_rest`] is how REST spells the latter, and [`compat`] is the
//! Local Hub's; [`dialect`] is for whoever does not care which.

pub mod card;
pub mod compat;
pub mod dialect;
pub mod error;
pub mod event;
pub mod grpc;
pub mod hub_event;
pub mod id;
pub mod jsonrpc;
pub mod limits;
mod members;
pub mod message;
pub mod ndjson;
pub mod operation;
mod protojson;
pub mod push;
pub mod question;
pub mod rest;
pub mod service;
pub mod task;
pub mod terms;
pub mod v03;
pub mod v03_rest;
pub mod v1;
