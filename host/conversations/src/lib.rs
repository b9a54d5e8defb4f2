//! Conversations (contexts) in a store, handoffs in a conversation, and requests that are repeated.
//! A conversation consists of its tasks; this crate neither starts nor changes one.

pub mod contexts;
pub mod handoff;
pub mod repeats;
