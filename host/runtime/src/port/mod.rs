//! The hub's side of an agent's capabilities: one small trait a capability, which the hub implements and a runtime calls.

pub mod context_memory;
pub mod delegate;
pub mod files;
pub mod http;
pub mod journal;
pub mod memory;
pub mod process;
pub mod tasks;
pub mod tools;
pub mod workspace;

use std::{collections::BTreeMap, sync::Arc};

/// The hub's side of the capabilities of one call. What is missing is refused.
#[derive(Clone, Default)]
pub struct Ports {
    /// Hears of the task; none for calls outside of a task.
    pub tasks: Option<Arc<dyn tasks::TaskPort>>,
    /// Runs programs; none without the capability `process`.
    pub process: Option<Arc<dyn process::ProcessPort>>,
    /// Remembers values between tasks; none without the capability `memory`.
    pub memory: Option<Arc<dyn memory::MemoryPort>>,
    /// Keeps what the agent has in mind in the conversation; none without the capability `memory`, and outside of a task.
    pub context_memory: Option<Arc<dyn context_memory::ContextMemoryPort>>,
    /// Writes files that programs may read; none without the capability `files`.
    pub files: Option<Arc<dyn files::FilesPort>>,
    /// Opens the task's working directory; none without the capability `workspace`.
    pub workspace: Option<Arc<dyn workspace::WorkspacePort>>,
    /// Sends requests by HTTP; none without the capability `http`.
    pub http: Option<Arc<dyn http::HttpPort>>,
    /// Records what the agent is answered; none if its runs are not replayed.
    pub journal: Option<Arc<dyn journal::JournalPort>>,
    /// Knows the agents that this one may call.
    pub delegate: Option<Arc<dyn delegate::DelegatePort>>,
    /// Calls tools of the agent's servers; none without the capability `tools`.
    pub tools: Option<Arc<dyn tools::ToolsPort>>,
    /// What the operator set for the agent.
    pub settings: Arc<BTreeMap<String, String>>,
    /// Hears the agent's log lines.
    pub log: Option<Arc<LogPort>>,
    /// Hears what the agent asked for and does not hold; none if nobody looks.
    pub refused: Option<Arc<RefusalPort>>,
}

impl Ports {
    /// Tells whoever looks that the agent asked for a capability that it does not hold, such as `memory` or `process.git`.
    pub fn tell_refused(&self, capability: &str) {
        if let Some(hear) = &self.refused {
            hear(capability);
        }
    }
}

/// The hub's side of `log`: takes one line.
pub type LogPort = dyn Fn(tracing::Level, &str) + Send + Sync;

/// Hears of a refusal: the capability that was asked for, in the words of a grant. Names in it may be anybody's word.
pub type RefusalPort = dyn Fn(&str) + Send + Sync;
