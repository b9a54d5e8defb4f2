//! What a guest may ask of the hub: one file a capability, with its check, its limits and the hub's side as a trait.

pub mod delegate;
pub mod files;
mod http;
mod log;
pub mod memory;
pub mod process;
mod settings;
pub mod tasks;
mod wait;

use std::{collections::BTreeMap, sync::Arc};

/// The hub's side of the capabilities of one call. What is missing is refused.
#[derive(Clone, Default)]
pub struct Ports {
    /// Hears of the task; none for calls outside of a task.
    pub tasks: Option<Arc<dyn tasks::TaskPort>>,
    /// Runs programs.
    pub process: Option<Arc<dyn process::ProcessPort>>,
    /// Remembers values.
    pub memory: Option<Arc<dyn memory::MemoryPort>>,
    /// Writes files.
    pub files: Option<Arc<dyn files::FilesPort>>,
    /// Knows the agents that this one may call.
    pub delegate: Option<Arc<dyn delegate::DelegatePort>>,
    /// What the operator set for the agent.
    pub settings: Arc<BTreeMap<String, String>>,
    /// Hears the agent's log lines.
    pub log: Option<Arc<LogPort>>,
}

/// The hub's side of `log`: takes one line.
pub type LogPort = dyn Fn(tracing::Level, &str) + Send + Sync;
