//! Servers of the hub: they decode requests to operations and encode replies. The only decision
//! made here is the caller's identity and admission.

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

/// Maximum size of a request in bytes. Larger input must be passed as a file.
const MAX_REQUEST: usize = 8 << 20;
