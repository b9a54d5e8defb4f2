//! Client of A2A: finds an agent by its card, verifies the card's signatures, and speaks JSON-RPC,
//! REST or gRPC with the agent, in 1.0 or 0.3.
//!
//! All network requests of the hub go through [`Outbound`], which dials only checked addresses.

mod answer;
mod binding;
pub mod card;
pub mod card_changes;
mod client;
mod error;
mod grpc;
mod interface;
mod jsonrpc;
pub mod keys;
#[cfg(test)]
mod odd_servers;
pub mod outbound;
mod request;
mod rest;
mod retry;
#[cfg(test)]
#[path = "../../../tests/harness/shapes.rs"]
mod shapes;
mod signed_card;
pub mod sse;
mod streaming;
mod task_stream;

pub use answer::fetch;
pub use client::A2aClient;
pub use error::ClientError;
pub use outbound::{Outbound, OutboundError};
pub use request::{in_trace, with_trace};
pub use task_stream::{PAUSES, RemoteTaskStream};
