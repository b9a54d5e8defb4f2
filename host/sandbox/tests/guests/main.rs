//! Permitted and refused operations of guests: one bad guest for each promise of the sandbox.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a panic is how a test fails"
)]

mod capabilities;
mod limits;
mod loading;
mod recorded;
mod stage;
mod wasi;
mod web;
mod workspace;
