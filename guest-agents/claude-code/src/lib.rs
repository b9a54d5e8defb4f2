//! Claude Code as an agent: one `claude` process a conversation, as long as it is kept, told and heard in its line-JSON dialect.
//!
//! - [`driver`] knows what a line means: a state machine without a world.
//! - [`permission`] knows the CLI's questions and what it takes for an answer, [`change`] what it says of changed files.
//! - [`prompt`] and [`launch`] know how the CLI is told and started safely, and how to see that it would work.
//!
//! What a client can notice is the SDK's: [`a2a_hub_sdk::cli`].

pub mod change;
pub mod driver;
pub mod launch;
pub mod permission;
pub mod prompt;

use a2a_hub_sdk::cli::{self, Check, Cli, Job};
use a2a_hub_sdk::prelude::*;

/// The CLI `claude`, driven on behalf of an A2A client.
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
    const TESTED: &'static str = "2.1.329";
    const INSTALL: &'static str = "npm install -g @anthropic-ai/claude-code";
    const LOGIN: &'static str = "claude /login";
    const TAKES_INSTRUCTIONS: bool = true;
    const NAMES_FILES: bool = true;

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
