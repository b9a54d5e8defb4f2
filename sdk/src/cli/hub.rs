//! Access of the program to the hub, to give tasks to other agents: an MCP server, which the
//! program starts, and a command in its shell. The hub itself knows the callable agents and the
//! calling task.

use serde_json::{Value, json};

use crate::Context;

/// Tools of the hub's server that give no task to an agent, beside those for blackboards.
const OF_HUB: [&str; 7] = [
    "list_agents",
    "check_task",
    "cancel_task",
    "answer_task",
    "publish_to_topic",
    "read_topics",
    "list_topics",
];

/// Beginnings of the names of the hub's tools in Claude Code, Gemini CLI and Vibe, before the
/// server's name for the tool. Vibe replaces hyphens. OpenCode has no name for the tools of servers
/// in its questions, and asks none about them unless its user's rules say so.
const PREFIXES: [&str; 3] = ["mcp__a2a-hub__", "mcp_a2a-hub_", "mcp_a2a_hub."];

/// Paths of the hub's command and socket.
#[derive(Debug, Clone, PartialEq)]
pub struct Hub {
    /// Path of the command `a2a-hub`.
    pub program: String,
    /// Path of the socket that the command connects to.
    pub socket: String,
}

impl Hub {
    /// Environment variable with the path of the socket.
    pub const SOCKET: &str = "A2A_HUB_SOCKET";

    /// Names of the tools for blackboards.
    pub const BLACKBOARD_TOOLS: [&str; 5] =
        ["read_blackboard", "add_item", "claim_item", "finish_item", "release_item"];

    /// Name of the MCP server.
    pub const NAME: &str = "a2a-hub";

    /// Reads the paths from the settings. The host sets them only if the operator's grant names
    /// agents that this one may call (`grant.delegate`). The setting `other_agents = no` hides
    /// them.
    pub(super) fn from_settings(ctx: &Context) -> Option<Self> {
        let (program, socket) = (ctx.setting("hub_program")?, ctx.setting("hub_socket")?);
        are_wanted(ctx).then_some(Self { program, socket })
    }

    /// Configuration of the MCP server, in the form that the programs use.
    pub(super) fn server(&self) -> Value {
        json!({ "command": self.program, "args": ["--socket", self.socket, "mcp"] })
    }

    /// Agent that a tool of the hub's server gives a task to. Vibe replaces hyphens, and no agent's
    /// name has an underscore.
    pub(super) fn callee(tool: &str, input: &Value) -> Option<String> {
        let name = PREFIXES.iter().find_map(|prefix| tool.strip_prefix(prefix))?;
        let is_of_hub = OF_HUB.contains(&name) || Self::BLACKBOARD_TOOLS.contains(&name);
        (!is_of_hub && input["message"].is_string()).then(|| name.replace('_', "-"))
    }

    /// Configuration of the MCP server with the tools for blackboards only.
    pub(super) fn board_server(&self) -> Value {
        let args = ["--socket", &self.socket, "mcp", "--only-blackboards"];
        json!({ "command": self.program, "args": args })
    }

    /// True if a tool belongs to the hub's server: Codex names the server, the others the tool. The
    /// operator has already granted the tools' effects: tasks of agents that this one may call,
    /// messages of topics, and changes of the blackboard at which the agent has a turn.
    pub(super) fn is_tool(tool: &str) -> bool {
        tool == "mcp:a2a-hub" || PREFIXES.iter().any(|prefix| tool.starts_with(prefix))
    }

    /// True if tools of a server with this name could have names that [`Self::is_tool`] takes for
    /// the hub's.
    pub(super) fn is_confusable(server: &str) -> bool {
        let in_vibe = server.replace(|char: char| !char.is_ascii_alphanumeric(), "_");
        server.starts_with("a2a-hub_") || in_vibe == "a2a_hub"
    }
}

/// True unless the operator hides other agents from the program.
pub(super) fn are_wanted(ctx: &Context) -> bool {
    ctx.setting("other_agents").is_none_or(|setting| setting != "no")
}
