//! The program: puts a hub together, and is its command line.

pub mod builtin;
pub mod cli;
mod telemetry;
