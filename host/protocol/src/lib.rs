//! The A2A protocol as Rust types and codecs: what is said, never how it travels.
//!
//! One model, in the shape of A2A 1.0, is used throughout the hub; its modules stand at the root of this crate. The wire
//! forms are turned into it, and it into them, at the edge: [`v1`] and [`v03`] are the official ones, and [`hub`] is the
//! Local Hub's, whose nouns are those of 0.3. [`binding`] has the envelopes in which they travel, which know no dialect,
//! and [`dialect`] on top chooses a form and an envelope.

pub mod binding;
pub mod card;
mod codec;
pub mod dialect;
pub mod expected;
pub mod five_step;
pub mod hub;
pub mod member;
mod model;
#[cfg(test)]
#[path = "../../../tests/harness/shapes.rs"]
mod shapes;
#[cfg(test)]
mod surface;
pub mod v03;
pub mod v1;

pub use codec::limits::MAX_CONTENT;
pub use model::{
    budget, client, error, event, hub_metadata, id, interface, message, method, operation, parent,
    push, question, task, trace,
};
