//! OpenAI Codex as an agent: one `codex app-server` process per conversation, reused while it is
//! parked, which exchanges lines of JSON-RPC.
//!
//! - [`driver`] implements the course of a run: a state machine without I/O.
//! - [`item`] reads the items of a turn, [`approval`] the requests for approval, [`end`] the
//!   errors.
//! - [`launch`] starts the CLI safely and checks its health.
//!
//! Common behaviour of all such agents is in [`a2a_hub_sdk::cli`].

pub mod approval;
pub mod driver;
pub mod end;
pub mod item;
pub mod launch;

use a2a_hub_sdk::{cli, prelude::*};

/// Agent that drives the CLI `codex` for an A2A client.
pub struct Codex;

impl Agent for Codex {
    fn card() -> Card {
        cli::card::<Self>(
            "OpenAI's coding agent: reads, explains and changes code, and runs commands in a sandbox, asking to leave it",
            env!("CARGO_PKG_VERSION"),
        )
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        cli::run::<Self>(ctx, task)
    }

    fn health(ctx: &Context) -> Health {
        cli::health::<Self>(ctx)
    }
}
export!(Codex, manifest = "../manifest.toml");
