//! The Agent Client Protocol (<https://agentclientprotocol.com>, version 1), which editors speak: one agent of the hub is the
//! agent of its client. A session is a conversation (context) in the client's directory, and a prompt is an ordinary message on
//! behalf of whoever is at the other end of the connection.
//!
//! ```text
//! unix socket   hub/speak { protocol: acp }     door ── turn ── Dispatcher ── Hub
//!                                                 │       │
//!                                              wire ── prompt, told: ACP's words
//! ```
//!
//! `wire` is JSON-RPC with requests both ways; `door` knows the sessions, and `modes` what they may be set to; a `turn` is one
//! prompt until its stop reason. `prompt` and `told` are pure: content blocks as parts of a message, and events as updates.

mod door;
mod modes;
mod prompt;
mod told;
mod turn;
mod wire;

pub(super) use door::{Asked, serve};
