//! Requests of the agent search to other servers: registries list agents, and embeddings servers
//! compare texts by meaning.
//!
//! A failure is reported as text, because the search goes on without the server. This module knows
//! no agents of the hub.

mod listed;
mod meaning;
mod registries;
pub(crate) use meaning::{EmbeddedText, Meaning};
pub(crate) use registries::Registries;
