//! Notifiers: programs and servers that the hub sends a message when an open question or an unread
//! notice needs a person. [`plan`] decides when a message is due and about which items, and
//! [`message`] writes it.

pub mod item;
pub mod message;
pub mod plan;
