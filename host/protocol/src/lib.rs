//! The A2A protocol as Rust types and codecs, without I/O.
//!
//! The whole hub uses one model in the shape of A2A 1.0; the modules of the model are re-exported
//! at the root of this crate. Codecs at the edge convert between wire forms and the model: [`v1`]
//! and [`v03`] are the official forms, [`hub`] is the Local Hub's form, which uses the nouns of
//! 0.3. [`binding`] holds the envelopes of JSON-RPC, REST and gRPC, which know no dialect.
//! [`dialect`] combines a form and an envelope.

pub mod binding;
pub mod boards;
pub mod card;
mod codec;
pub mod dialect;
pub mod expected;
pub mod five_step;
pub mod foreign;
pub mod hub;
pub mod member;
mod model;
#[cfg(test)]
#[path = "../../../tests/harness/shapes.rs"]
mod shapes;
#[cfg(test)]
mod surface;
pub mod topics;
pub mod v03;
pub mod v1;

pub use codec::limits::{self, MAX_CONTENT};
pub use model::{
    budget, client, error, event, hub_metadata, id, interface, message, method, operation, parent,
    permission, push, question, scheduled, task, trace,
};
