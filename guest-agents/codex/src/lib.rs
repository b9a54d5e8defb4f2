//! OpenAI Codex as an agent: one `codex app-server` process a conversation, as long as it is kept, told and heard in its JSON-RPC lines.
//!
//! - [`driver`] knows the course of a run: a state machine without a world.
//! - [`item`] knows what Codex says it does; [`approval`], what it asks approval for; [`end`], how a turn ends.
//! - [`launch`] knows how the CLI is started safely, and how healthy it is.
//!
//! What all such agents have in common is in [`a2a_hub_sdk::cli`].

pub mod approval;
pub mod driver;
pub mod end;
pub mod item;
pub mod launch;

use a2a_hub_sdk::{cli, prelude::*};

/// The CLI `codex`, driven on behalf of an A2A client.
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
