//! Protocol model: A2A's objects and operations in the shape of 1.0 (A2A 1.0, section 4).

pub mod budget;
pub(crate) mod card;
pub mod client;
pub mod error;
pub mod event;
pub mod hub_metadata;
pub mod id;
pub mod interface;
pub mod message;
pub mod method;
pub mod operation;
pub mod parent;
pub mod permission;
pub mod push;
pub mod question;
pub mod scheduled;
pub mod task;
pub mod trace;
