//! Tests of commands as people type them, and of their output.

mod answers;
mod broken_streams;
mod lists;
mod messages;
mod progress;
mod questions;
mod readme;
mod registry;
mod spans;
pub(crate) mod terminals;
