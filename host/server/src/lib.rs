//! The doors of the hub: bytes to operations and replies to bytes. Nothing is decided here but who may knock.

mod acp;
mod asked;
mod begun;
mod body;
mod caller;
mod cards;
mod caught;
mod dispatcher;
mod endpoint_path;
mod five_step;
mod frames;
mod grpc;
mod http;
mod http_context;
mod http_listener;
mod http_reply;
mod jsonrpc;
mod keys;
mod line_reader;
mod mcp;
mod metrics;
mod official;
mod origin_guard;
mod peer;
mod peers;
mod probes;
mod registry;
mod said;
mod socket_owner;
mod speak;
mod sse;
mod task_stream;
#[cfg(test)]
mod tests;
mod unix;
mod write_timeout;

pub use dispatcher::{Dispatcher, PublicEndpoints};
pub use http::Http;
pub use peer::Lineage;

pub use unix::{Unix, UnixError};

/// The largest request, in bytes. An agent that is to read more gets a file.
const MAX_REQUEST: usize = 8 << 20;
