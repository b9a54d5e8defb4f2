//! Tools of MCP servers, which the operator grants one by one.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::host::Host;
use crate::{Context, Failure};

/// Tool that this agent may call. The server's description is data, not instructions.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Server of the tool, by the operator's name for it.
    pub server: String,
    /// Name of the tool.
    pub name: String,
    /// Description in one line.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Content blocks, as MCP defines them.
    #[serde(default)]
    pub content: Vec<Value>,
    /// Structured content for programs, if the tool returns any.
    #[serde(default)]
    pub structured_content: Option<Value>,
    /// True if the tool reports a failure.
    #[serde(default)]
    pub is_error: Option<bool>,
}

impl Context {
    /// Granted tools that are available. Starts the servers that do not run.
    pub fn tools(&self) -> Result<Vec<Tool>, Failure> {
        let json = self.hub.tools()?;
        serde_json::from_str(&json).map_err(|e| not_understood(&e))
    }

    /// Calls a tool with arguments, a JSON object, and waits for its result for at most a minute.
    pub fn call_tool(
        &self,
        server: &str,
        name: &str,
        arguments: &Value,
    ) -> Result<ToolResult, Failure> {
        self.call_tool_within(server, name, arguments, None)
    }

    /// Calls a tool with another timeout, after which the result is [`Failure::Timeout`].
    pub fn call_tool_within(
        &self,
        server: &str,
        name: &str,
        arguments: &Value,
        timeout: Option<Duration>,
    ) -> Result<ToolResult, Failure> {
        let json = self.hub.call_tool(server, name, &arguments.to_string(), timeout)?;
        serde_json::from_str(&json).map_err(|e| not_understood(&e))
    }
}

impl ToolResult {
    /// Text blocks, joined by newlines.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| block["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

fn not_understood(why: &serde_json::Error) -> Failure {
    Failure::Internal(format!("what the hub tells of tools is not understood: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::ScriptedHost;

    #[test]
    fn scripted_tools_are_listed_and_called() {
        let host = ScriptedHost::new();
        let ctx = host.context();
        assert_eq!(ctx.tools().unwrap(), []);
        host.tool("files", "read", &json!({ "content": [{ "type": "text", "text": "hello" }] }));
        let [tool] = &ctx.tools().unwrap()[..] else { panic!("one tool") };
        assert_eq!((tool.server.as_str(), tool.name.as_str()), ("files", "read"));
        let result = ctx.call_tool("files", "read", &json!({ "path": "a" })).unwrap();
        assert_eq!((result.text().as_str(), result.is_error), ("hello", None));
        assert_eq!(
            host.tool_calls(),
            [("files".to_owned(), "read".to_owned(), json!({ "path": "a" }))]
        );
        assert!(ctx.call_tool("files", "read", &json!({})).is_err(), "a script is used up");
    }
}
