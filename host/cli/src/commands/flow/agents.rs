//! Agents that a flow names, compared with those of the hub.

use super::joined::NO_AGENT;
use crate::{
    Global, block_on,
    client::hub_client::Client,
    ui::{
        failure::CommandError,
        render::{list, text},
    },
};
use a2a_hub_authoring::flow_template::line_of;
use a2a_hub_config::Settings;
use a2a_hub_protocol::{id::AgentId, member};
use serde_json::{Value, json};

/// Adds an error to the checked task of a flow file for each agent that the hub does not have. If
/// the hub cannot tell, a note says so.
pub(super) fn check(global: &Global, definition: &str, task: &mut Value) -> anyhow::Result<()> {
    if task["status"]["state"] != "completed" {
        return Ok(());
    }
    // The name of a skill has a colon; a skill of one agent follows its name behind a slash.
    let names = list(&task["metadata"]["agents"]).iter().map(text);
    let names = names.map(|name| name.split('/').next().unwrap_or_default());
    let agents: Vec<_> = names.filter_map(|name| AgentId::parse(name).ok()).collect();
    let mut errors = String::new();
    block_on(async {
        let mut client = Client::connect(global).await?;
        for agent in &agents {
            let Err(why) = find_agent(global, &mut client, agent).await else { continue };
            let line = line_of(definition, agent);
            if CommandError::from_error(&why).is(NO_AGENT) {
                errors.push_str(&format!("{line}: {why}\n"));
            } else {
                global
                    .console()
                    .note(format!("warning: {line}: `{agent}` was not looked up: {why}"));
            }
        }
        Ok(())
    })?;
    if !errors.is_empty() {
        let status = member::take(task, "status");
        let message = text(&status["message"]["parts"][0]["text"]).replacen(
            "The flow is right",
            "Otherwise the flow is right",
            1,
        );
        *task = json!({ "status": { "state": "failed", "message": { "parts": [{ "text": format!("{errors}{message}") }] } } });
    }
    Ok(())
}

/// Refuses agents that the hub does not have: their names may be mistyped. Groups of the
/// configuration count as agents.
pub(super) async fn require_agents(
    global: &Global,
    client: &mut Client,
    wanted: &[AgentId],
) -> anyhow::Result<()> {
    for agent in wanted {
        match find_agent(global, client, agent).await {
            Err(unknown) if CommandError::from_error(&unknown).is(NO_AGENT) => return Err(unknown),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Looks for an agent or a group of this name.
async fn find_agent(global: &Global, client: &mut Client, agent: &AgentId) -> anyhow::Result<()> {
    let Err(unknown) = client.call("hub/agents/get", json!({ "agentId": agent })).await else {
        return Ok(());
    };
    let settings = global.settings(Vec::new()).ok();
    let is_group = |it: Settings| it.config.aliases.contains_key(agent);
    if settings.is_some_and(is_group) { Ok(()) } else { Err(unknown) }
}
