//! What touches the world: sockets, processes, SQLite, the clock.
//!
//! A module uses only what stands before it here; `docs/ARCHITECTURE.md` has the map.

pub mod clock;
pub mod config;
pub mod telemetry;

pub mod events;

pub mod auth;
pub mod outbound;
pub mod process;
pub mod storage;

pub mod remote;

pub mod agents;

pub mod contexts;
pub mod tasks;

pub mod push;

pub mod error;
pub mod hub;

pub mod transport;

pub mod cli;
