//! A hub of agents: the program's command line, and a library for whoever embeds one.
//!
//! ```no_run
//! use a2a_hub::{Hub, Native, Stage, completed, protocol::{card::AgentCard, id::AgentId}};
//!
//! # async fn shown(card: AgentCard) -> anyhow::Result<()> {
//! let shout = Native::new(|stage: Stage| async move { completed(&stage.text().to_uppercase()) });
//! let hub = Hub::builder("/var/lib/my-hub").agent(AgentId::parse("shout")?, card, shout).start().await?;
//! hub.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/embedded.rs` is a whole program.

mod builder;
pub mod builtin;
pub mod cli;
mod hub;
mod telemetry;

pub use a2a_hub_config as config;
pub use a2a_hub_core::access::Principal;
pub use a2a_hub_hub::{
    Reply, ReplyStream,
    agents::BuiltIn,
    native::{Native, Stage, completed},
};
pub use a2a_hub_protocol as protocol;
pub use builder::Builder;
pub use hub::Hub;

use std::process::ExitCode;

/// Does what a hub starts its own program for, if that is what this process is: minding the processes of an agent's program, so
/// that none is left when the hub is killed. Whoever embeds a hub whose agents start programs calls this first of all in `main`
/// and, given an exit code, ends with it.
pub fn minded() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1).peekable();
    args.next_if(|first| first == a2a_hub_process::MIND)?;
    Some(a2a_hub_process::mind(args))
}
