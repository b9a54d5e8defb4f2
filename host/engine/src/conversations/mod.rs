//! Conversations (contexts) in a store, handoffs in a conversation, requests that are repeated, and
//! messages to tasks at work; the generations of tasks.
//! A conversation consists of its tasks; this module neither starts nor changes one.

pub mod contexts;
pub mod generation;
pub mod handoff;
pub mod pending_messages;
pub mod refusals;
pub mod repeats;
pub mod task_tree;
