//! What guests may do and what they may not: one bad guest for each promise of the sandbox.

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
