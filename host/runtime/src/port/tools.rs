//! Where an agent finds the tools of its servers of the Model Context Protocol, and calls them.

use crate::failure::Failure;
use serde_json::{Map, Value};
use std::time::Duration;

/// A tool that an agent may call, as its server tells of it: data, and no instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    /// The server, by the operator's name for it.
    pub server: String,
    /// The tool, by the server's name for it.
    pub name: String,
    /// What the server says that it does, in one line.
    pub description: Option<String>,
    /// The JSON Schema of what it takes.
    pub input_schema: Value,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The server, by the operator's name for it.
    pub server: String,
    /// The tool, by the server's name for it.
    pub tool: String,
    /// What it is given.
    pub arguments: Map<String, Value>,
    /// How long it may take.
    pub within: Duration,
}

/// The hub's side: the tools that one agent was granted.
#[async_trait::async_trait]
pub trait ToolsPort: Send + Sync {
    /// Those that there are now.
    async fn list(&self) -> Result<Vec<ToolInfo>, Failure>;

    /// Calls one, and returns its result as the protocol has it: `content`, `structuredContent`, `isError`.
    async fn call(&self, call: ToolCall) -> Result<Value, Failure>;
}
