//! Ports of an agent's capabilities: one small trait for each, implemented by the hub and called by
//! a runtime.

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

/// Ports of one call. A capability whose port is missing is refused.
#[derive(Clone, Default)]
pub struct Ports {
    /// Receives the task's events; none for calls outside of a task.
    pub tasks: Option<Arc<dyn tasks::TaskPort>>,
    /// Runs programs; none without the capability `process`.
    pub process: Option<Arc<dyn process::ProcessPort>>,
    /// Stores values between tasks; none without the capability `memory`.
    pub memory: Option<Arc<dyn memory::MemoryPort>>,
    /// Stores the agent's memory of the conversation; none without the capability `memory`, and
    /// outside of a task.
    pub context_memory: Option<Arc<dyn context_memory::ContextMemoryPort>>,
    /// Writes files that programs may read; none without the capability `files`.
    pub files: Option<Arc<dyn files::FilesPort>>,
    /// Opens the task's working directory; none without the capability `workspace`.
    pub workspace: Option<Arc<dyn workspace::WorkspacePort>>,
    /// Sends HTTP requests; none without the capability `http`.
    pub http: Option<Arc<dyn http::HttpPort>>,
    /// Records answers to the agent; none if its runs are not replayed.
    pub journal: Option<Arc<dyn journal::JournalPort>>,
    /// Delegates to the agents that this one may call.
    pub delegate: Option<Arc<dyn delegate::DelegatePort>>,
    /// Calls tools of the agent's servers; none without the capability `tools`.
    pub tools: Option<Arc<dyn tools::ToolsPort>>,
    /// Operator's settings for the agent.
    pub settings: Arc<BTreeMap<String, String>>,
    /// Receives the agent's log lines.
    pub log: Option<Arc<LogPort>>,
    /// Receives the names of refused capabilities; none if they are not watched.
    pub refused: Option<Arc<RefusalPort>>,
}

impl Ports {
    /// Reports that the agent requested a capability that it lacks, such as `memory` or
    /// `process.git`.
    pub fn tell_refused(&self, capability: &str) {
        if let Some(report) = &self.refused {
            report(capability);
        }
    }
}

/// Receives one log line.
pub type LogPort = dyn Fn(tracing::Level, &str) + Send + Sync;

/// Receives the name of a refused capability, in the terms of a grant. The name may contain
/// untrusted text.
pub type RefusalPort = dyn Fn(&str) + Send + Sync;
