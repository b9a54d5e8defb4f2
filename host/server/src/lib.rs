//! The doors of the hub: bytes to operations and replies to bytes. Nothing is decided here but who may knock.

mod cards;
mod desk;
mod door;
mod frames;
mod grpc;
mod guard;
mod http;
mod jsonrpc;
mod keys;
mod official;
mod patience;
mod peer;
mod probes;
mod telling;
mod unix;

pub use desk::{Desk, Whereabouts};
pub use http::Http;

pub use unix::{Unix, UnixError};

/// The largest request, in bytes. An agent that is to read more gets a file.
const MAX_REQUEST: usize = 8 << 20;
