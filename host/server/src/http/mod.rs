//! The HTTP endpoint: listener, router, protection against web pages, replies and server-sent
//! events.

pub(super) mod body;
pub(super) mod caller;
mod connection;
pub(super) mod context;
mod front_page;
pub(super) mod header_value;
mod http2_flood;
pub(super) mod http2_frames;
pub(super) mod hub_names;
mod identity;
pub(super) mod listener;
pub(super) mod origin_guard;
pub(super) mod paths;
pub(super) mod reply;
pub(super) mod router;
pub(super) mod sse;
mod starting;
