//! Claude Code as an agent: one `claude` process per conversation, reused while it is parked, which
//! exchanges lines of JSON.
//!
//! - [`driver`] interprets lines: a state machine without I/O.
//! - `activity` turns tool uses into facts for editors.
//! - [`permission`] reads the CLI's questions and writes the answers; [`change`] reads changed
//!   files.
//! - [`prompt`] and [`launch`] start the CLI safely and check its health.
//!
//! The behaviour that clients notice is implemented in the SDK: [`a2a_hub_sdk::cli`].

mod activity;
pub mod change;
pub mod driver;
pub mod launch;
pub mod permission;
pub mod prompt;
mod shell;

use a2a_hub_sdk::cli::{self, Check, Cli, Job};
use a2a_hub_sdk::prelude::*;

/// Agent that drives the CLI `claude` for an A2A client.
pub struct ClaudeCode;

impl Agent for ClaudeCode {
    fn card() -> Card {
        cli::card::<Self>(
            "Anthropic's coding agent: reads, explains and changes code, and runs commands, asking before it does",
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
export!(ClaudeCode, manifest = "../manifest.toml");

impl Cli for ClaudeCode {
    type Driver = driver::Claude;

    const NAME: &'static str = "Claude Code";
    const PROGRAM: &'static str = "claude";
    const TESTED: &'static str = "2.1.332";
    const INSTALL: &'static str = "npm install -g @anthropic-ai/claude-code";
    const LOGIN: &'static str = "claude /login";
    const TAKES_INSTRUCTIONS: bool = true;
    const NAMES_FILES: bool = true;
    const TAKES_DIRECTORIES: bool = true;

    fn command(ctx: &Context, job: &Job) -> Result<Command, Failure> {
        launch::command(ctx, job)
    }

    fn driver(_: &Context, job: &Job) -> Result<Self::Driver, Failure> {
        Ok(driver::Claude::new(job))
    }

    fn check(ctx: &Context) -> Result<Check, Failure> {
        launch::check(ctx)
    }
}
