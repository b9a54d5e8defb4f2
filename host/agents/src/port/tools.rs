//! Tools of one agent: those of the servers of the Model Context Protocol that its operator
//! configures for it. No other agent reaches these servers.
//!
//! ```text
//! a guest ─► capability `tools` ─► Tools ─► Server ─► Connection ─► rmcp ═╦► a pump ═► the program
//!            is it granted?   is it still?  runs it?  one run of it       ╚► Elsewhere ═► a URL
//! ```
//!
//! A program runs under its minder; a URL is called by the agent's rules for HTTP.

mod connection;
mod lines;
mod message_reader;
mod origin;
mod remote;
mod server;

use super::{
    files::Files,
    http::AgentHttp,
    live_grant::{LiveGrant, revoked},
    programs::Programs,
};
use a2a_hub_config::AgentConfig;
use a2a_hub_core::grant::{EffectiveGrant, tools::holds};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::{
    Failure,
    port::tools::{ToolCall, ToolInfo, ToolsPort},
};
use futures::future::join_all;
use origin::ServerOrigin;
use serde_json::Value;
use server::ToolServer;
use std::{collections::BTreeMap, sync::Arc};

/// Tools of one agent. Its servers end when it is dropped.
pub(crate) struct AgentTools {
    agent: AgentId,
    live: LiveGrant,
    servers: BTreeMap<String, ToolServer>,
}

impl AgentTools {
    /// Granted tools of an agent; none if no tool is granted.
    pub(crate) fn for_agent(
        agent: &AgentId,
        live: &LiveGrant,
        config: &AgentConfig,
        programs: &Arc<Programs>,
        files: &Files,
        http: Option<&Arc<AgentHttp>>,
    ) -> Option<Arc<Self>> {
        let grant = live.now();
        if grant.tools.is_empty() {
            return None;
        }
        for server in grant.tools.keys().filter(|server| !config.mcp.contains_key(*server)) {
            tracing::warn!(%agent, server, "tools of an MCP server are granted, but `mcp` does not configure the server");
        }
        let named = config.mcp.iter().filter(|(name, _)| grant.tools.contains_key(*name));
        let servers = named.map(|(name, config)| {
            let origin = ServerOrigin {
                agent: agent.clone(),
                name: name.clone(),
                config: config.clone(),
                programs: Arc::clone(programs),
                files: files.clone(),
                live: live.clone(),
                http: http.cloned(),
            };
            (name.clone(), ToolServer::new(origin))
        });
        Some(Arc::new(Self {
            agent: agent.clone(),
            live: live.clone(),
            servers: servers.collect(),
        }))
    }

    fn server(&self, name: &str) -> Result<&ToolServer, Failure> {
        self.servers.get(name).ok_or_else(|| {
            Failure::Unavailable(format!(
                "ask the server `{name}`: `[agents.{}.mcp.{name}]` of the hub's configuration does not say where it is",
                self.agent
            ))
        })
    }
}

#[async_trait::async_trait]
impl ToolsPort for AgentTools {
    async fn list(&self) -> Result<Vec<ToolInfo>, Failure> {
        let grant = self.live.now();
        let requests = grant.tools.iter().map(async |(name, granted)| {
            let tools = self.server(name)?.list().await?;
            Ok(tools.into_iter().filter(|tool| granted.contains(&tool.name)).collect::<Vec<_>>())
        });
        let (mut listed, mut failed) = (Vec::new(), None);
        for tools in join_all(requests).await {
            match tools {
                Ok(tools) => listed.extend(tools),
                Err(why) => {
                    tracing::warn!(agent = %self.agent, %why, "cannot list tools of an MCP server, leaving them out");
                    failed = Some(why);
                }
            }
        }
        match failed {
            Some(why) if listed.is_empty() => Err(why),
            Some(_) | None => Ok(listed),
        }
    }

    async fn call(&self, call: ToolCall) -> Result<Value, Failure> {
        let action = format!("call the tool `{}` of `{}`", call.tool, call.server);
        let (server, tool) = (call.server.clone(), call.tool.clone());
        let is_granted = move |grant: &EffectiveGrant| holds(&grant.tools, &server, &tool);
        self.live.must(&action, &is_granted)?;
        let revocation = self.live.watch(is_granted.clone());
        let called = tokio::select! {
            biased;
            () = revocation.token.cancelled() => return Err(revoked(&action)),
            called = self.server(&call.server)?.call(&action, call) => called,
        };
        // A server that ends on revocation may fail the call before the watch fires.
        called.or_else(|why| self.live.must(&action, is_granted).and(Err(why)))
    }
}
