//! Agent Client Protocol (<https://agentclientprotocol.com>, version 1), which editors use: the
//! client connects to one agent of the hub. A session is a conversation (context) in the client's
//! directory. A prompt is an ordinary message, sent with the access rights of the connection's
//! peer.
//!
//! ```text
//! unix socket   hub/speak { protocol: acp }     connection ── turn ── Dispatcher ── Hub
//!                                                 │  │         │
//!                                              wire setup   prompt, updates, children, elicitation
//! ```
//!
//! `wire` is JSON-RPC with requests in both directions, and `capabilities` what each side can do.
//! `setup` begins, opens, lists and ends the `sessions`; `options` are what a client may set in
//! them, such as one of the `modes`. A `turn` is one prompt until its stop reason, `children` are
//! the tasks that its agent gave to others, and `history` replays a conversation. `prompt`,
//! `content`, `updates`, `activity`, `commands`, `file_changes`, `permission` and `elicitation` are
//! pure conversions: content blocks to message parts and back, events and their metadata to
//! updates, and questions to permission requests and forms. `directory` compares paths.

mod activity;
mod capabilities;
mod children;
mod commands;
mod connection;
mod content;
mod directory;
mod elicitation;
mod file_changes;
mod history;
mod modes;
mod options;
mod permission;
mod prompt;
mod sessions;
mod setup;
mod turn;
mod updates;
mod wire;

pub(super) use connection::{ConnectionTarget, serve};
