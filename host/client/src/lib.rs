//! A client of A2A: it finds an agent by its card, checks who signed the card, and speaks JSON-RPC, REST or gRPC with it, in
//! 1.0 or 0.3.
//!
//! Everything that the hub sends to the network goes through [`Outbound`], which dials only the addresses that were judged.

mod answer;
mod binding;
pub mod card;
mod client;
mod error;
mod grpc;
mod interface;
mod jsonrpc;
pub mod keys;
pub mod outbound;
mod request;
mod rest;
#[cfg(test)]
#[path = "../../../tests/harness/shapes.rs"]
mod shapes;
mod sse;
mod task_stream;

pub use answer::fetch;
pub use client::A2aClient;
pub use error::ClientError;
pub use outbound::{Outbound, OutboundError};
pub use request::{in_trace, with_trace};
pub use task_stream::{PAUSES, TaskStream};
