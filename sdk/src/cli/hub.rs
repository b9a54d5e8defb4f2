//! The hub, for a program that may give tasks to other agents: a server of the Model Context Protocol, which the program starts, and a
//! command in its shell. Which agents there are, and on behalf of which task they work, the hub knows by itself.

use serde_json::{Value, json};

use crate::Context;

/// Where the hub's own command and its socket are.
#[derive(Debug, Clone, PartialEq)]
pub struct Hub {
    /// The path of the command `a2a-hub`.
    pub program: String,
    /// The path of the socket that it asks at.
    pub socket: String,
}

impl Hub {
    /// The variable that tells the command where the socket is.
    pub const SOCKET: &str = "A2A_HUB_SOCKET";

    /// What the server is called.
    pub(super) const NAME: &str = "a2a-hub";

    /// Where the host says it is: only where the operator's grant names agents that this one may call (`grant.delegate`), and unless
    /// the setting `other_agents` is `no`.
    pub(super) fn of(ctx: &Context) -> Option<Self> {
        let (program, socket) = (ctx.setting("hub_program")?, ctx.setting("hub_socket")?);
        are_wanted(ctx).then_some(Self { program, socket })
    }

    /// The server, as the programs' own configurations have one.
    pub(super) fn server(&self) -> Value {
        json!({ "command": self.program, "args": ["--socket", self.socket, "mcp"] })
    }

    /// Whether a tool is one of the server's, by the names that Claude Code and Codex give them. The operator has granted what they
    /// do: a task of an agent that this one may call.
    pub(super) fn is_tool(tool: &str) -> bool {
        tool == "mcp:a2a-hub" || tool.starts_with("mcp__a2a-hub__")
    }
}

/// Whether the operator has the program know of other agents.
pub(super) fn are_wanted(ctx: &Context) -> bool {
    ctx.setting("other_agents").is_none_or(|setting| setting != "no")
}
