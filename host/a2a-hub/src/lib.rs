//! A complete hub of agents, assembled and shut down in order: for the program `a2a-hub`, and for
//! programs that embed a hub.
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
//! `examples/embedded.rs` is a complete program.

mod builder;
pub mod builtin;
mod check;
mod endpoints;
mod hub;
mod lineage;
pub mod local;
mod minder;
mod opened_storage;
mod otlp;
mod start_checks;
mod worktrees;

pub use a2a_hub_agents::BuiltIn;
pub use a2a_hub_agents::native::{Native, Stage, completed};
pub use a2a_hub_config as config;
pub use a2a_hub_core::access_control::Principal;
pub use a2a_hub_engine::{Reply, ReplyStream};
pub use a2a_hub_protocol as protocol;
pub use a2a_hub_runtime::{Crash, Ended, Failure, port::delegate::ChildRequest};
pub use builder::{Builder, compile_cache};
pub use check::{Running, check_start};
pub use hub::Hub;
pub use minder::minded;
