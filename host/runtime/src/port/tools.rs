//! Port for tools of an agent's MCP servers (Model Context Protocol).

use crate::failure::Failure;
use serde_json::{Map, Value};
use std::time::Duration;

/// A tool that an agent may call, as described by its server: untrusted data, not instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    /// Server, by the operator's name for it.
    pub server: String,
    /// Tool, by the server's name for it.
    pub name: String,
    /// Server's description of the tool, in one line.
    pub description: Option<String>,
    /// JSON Schema of its input.
    pub input_schema: Value,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Server, by the operator's name for it.
    pub server: String,
    /// Tool, by the server's name for it.
    pub tool: String,
    /// Input.
    pub arguments: Map<String, Value>,
    /// Time limit.
    pub within: Duration,
}

/// Tools that one agent was granted.
#[async_trait::async_trait]
pub trait ToolsPort: Send + Sync {
    /// Lists the tools that are available now.
    async fn list(&self) -> Result<Vec<ToolInfo>, Failure>;

    /// Calls a tool, and returns its result as in MCP: `content`, `structuredContent`, `isError`.
    async fn call(&self, call: ToolCall) -> Result<Value, Failure>;
}
