//! Agent Client Protocol (<https://agentclientprotocol.com>, version 1), which editors use: the
//! client connects to one agent of the hub. A session is a conversation (context) in the client's
//! directory. A prompt is an ordinary message, sent with the access rights of the connection's
//! peer.
//!
//! ```text
//! unix socket   hub/speak { protocol: acp }     connection ── turn ── Dispatcher ── Hub
//!                                                 │       │
//!                                              wire ── prompt, updates
//! ```
//!
//! `wire` is JSON-RPC with requests in both directions. `connection` holds the sessions, and
//! `modes` their possible modes. A `turn` is one prompt until its stop reason, and `history`
//! replays a conversation. `prompt` and `updates` are pure conversions: content blocks to message
//! parts, and events to updates.

mod connection;
mod history;
mod modes;
mod prompt;
mod turn;
mod updates;
mod wire;

pub(super) use connection::{ConnectionTarget, serve};
