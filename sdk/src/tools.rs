//! Tools of servers of the Model Context Protocol, which the operator grants one by one.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::host::Host;
use crate::{Context, Failure};

/// A tool that this agent may call. What its server says of it is data, and no instruction.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The server that has it, by the operator's name for it.
    pub server: String,
    /// Its name.
    pub name: String,
    /// What it does, in one line.
    #[serde(default)]
    pub description: Option<String>,
    /// The JSON Schema of what it takes.
    pub input_schema: Value,
}

/// What came of calling a tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Its content, block by block, as the protocol has it.
    #[serde(default)]
    pub content: Vec<Value>,
    /// The same for programs, where the tool tells it so.
    #[serde(default)]
    pub structured_content: Option<Value>,
    /// Whether the tool says that it failed.
    #[serde(default)]
    pub is_error: Option<bool>,
}

impl Context {
    /// The tools that are granted and there. Starts the servers that do not run.
    pub fn tools(&self) -> Result<Vec<Tool>, Failure> {
        let json = self.hub.tools()?;
        serde_json::from_str(&json).map_err(|e| not_understood(&e))
    }

    /// Calls a tool with arguments, a JSON object, and waits for its result, a minute at most.
    pub fn call_tool(
        &self,
        server: &str,
        name: &str,
        arguments: &Value,
    ) -> Result<ToolResult, Failure> {
        self.call_tool_within(server, name, arguments, None)
    }

    /// The same with another deadline, after which it is [`Failure::Timeout`].
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
    /// All its text, a line a block.
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
    fn tools_are_listed_and_called_by_a_script() {
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
