//! Tools of MCP servers: the grant is checked here, the hub calls them.

use crate::store::{
    bindings::a2a::hub::{tools::Host, types},
    convert::failure_to_guest,
    state::GuestState,
};
use a2a_hub_core::grant::tools::{ToolRefusal, holds};
use a2a_hub_runtime::{
    Failure,
    port::tools::{ToolCall, ToolInfo, ToolsPort},
};
use serde_json::{Map, Value, json};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::task::JoinSet;

/// Longest arguments and longest result of a call, in bytes.
const MAX_JSON: usize = 1 << 20;

/// Default timeout of a call.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest timeout of a call.
const MAX_TIMEOUT: Duration = Duration::from_secs(3_600);

impl GuestState {
    fn tools(&self) -> Result<Arc<dyn ToolsPort>, Failure> {
        self.require_in_step("call tools")?;
        self.ports.tools.clone().ok_or_else(|| {
            self.ports.tell_refused("tools");
            Failure::Denied(format!(
                "call tools: none is granted; the manifest must ask with `[tools.SERVER]`, and the operator allows it with \
                 `tools.SERVER = [\"TOOL\"]` in `[agents.{0}.grant]` of the hub's configuration, or to a plug-in with `a2a-hub plugin \
                 grant {0} --tool SERVER:TOOL`",
                self.agent
            ))
        })
    }

    /// Runs work on the hub's own threads, where servers are started; ended with the task.
    pub(super) async fn on_the_hub<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let mut working = JoinSet::new();
        working.spawn_on(work, &self.hub);
        let done = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Failure::Cancelled),
            done = working.join_next() => done,
        };
        match done {
            Some(Ok(done)) => done,
            Some(Err(why)) if why.is_panic() => Err(Failure::Internal(why.to_string())),
            // The runtime shuts down, and all its work with it.
            Some(Err(_)) | None => Err(Failure::Cancelled),
        }
    }

    async fn list_tools(&mut self) -> Result<String, Failure> {
        let tools = self.tools()?;
        let listed = self.on_the_hub(async move { tools.list().await }).await?;
        let one = |tool: ToolInfo| {
            let ToolInfo { server, name, description, input_schema } = tool;
            json!({ "server": server, "name": name, "description": description, "inputSchema": input_schema })
        };
        bounded(Value::Array(listed.into_iter().map(one).collect()).to_string(), "list the tools")
    }

    async fn call_tool(
        &mut self,
        server: String,
        tool: String,
        arguments: &str,
        timeout_ms: Option<u32>,
    ) -> Result<String, Failure> {
        let tools = self.tools()?;
        if !holds(&self.processes.grant.tools, &server, &tool) {
            let agent = self.agent.to_string();
            return Err(Failure::Denied(
                ToolRefusal::NotGranted { server, tool, agent }.to_string(),
            ));
        }
        let action = format!("call the tool `{tool}` of `{server}`");
        if arguments.len() > MAX_JSON {
            return Err(Failure::Invalid(format!(
                "{action}: its arguments are longer than {} MiB",
                MAX_JSON >> 20
            )));
        }
        let arguments: Map<String, Value> = serde_json::from_str(arguments).map_err(|why| {
            Failure::Invalid(format!("{action}: its arguments are no JSON object: {why}"))
        })?;
        let within = timeout_ms.map(|ms| Duration::from_millis(ms.into()));
        let within = within.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT);
        let call = ToolCall { server, tool, arguments, within };
        let result = self.on_the_hub(async move { tools.call(call).await }).await?;
        bounded(result.to_string(), &action)
    }
}

fn bounded(json: String, action: &str) -> Result<String, Failure> {
    if json.len() > MAX_JSON {
        return Err(Failure::Exhausted(format!(
            "{action}: what comes of it is longer than {} MiB",
            MAX_JSON >> 20
        )));
    }
    Ok(json)
}

impl Host for GuestState {
    async fn list(&mut self) -> wasmtime::Result<Result<String, types::Failure>> {
        Ok(self.list_tools().await.map_err(failure_to_guest))
    }

    async fn call(
        &mut self,
        server: String,
        name: String,
        arguments: String,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<String, types::Failure>> {
        let called = self.call_tool(server, name, &arguments, timeout_ms).await;
        Ok(called.map_err(failure_to_guest))
    }
}
