//! `send` to several agents: a flow in the message asks all of them at the same time, and lists
//! their answers.

use super::{RUNNER, agents::require_agents};
use crate::{
    Global, block_on,
    client::remote::is_url,
    commands::{send::Send, start},
    ui::failure::CommandError,
};
use a2a_hub_authoring::flow_template;
use a2a_hub_protocol::id::AgentId;
use anyhow::bail;
use serde_json::json;
use std::collections::BTreeSet;

/// Most agents of one message.
const MAX_RECEIVERS: usize = 32;

/// Agents of a message whose receivers are written as `a,b,c`; none if it has one receiver.
///
/// # Errors
/// A name is empty, wrong or listed twice, or the message has an option for one agent only.
pub(crate) fn receivers(send: &Send) -> anyhow::Result<Option<Vec<AgentId>>> {
    if !send.agent.contains(',') || is_url(&send.agent) {
        return Ok(None);
    }
    let usage = |why: String| CommandError::usage(format!("send to `{}`: {why}", send.agent));
    if let Some(option) = send.option_for_one_agent() {
        bail!(usage(format!("`{option}` is for a message to one agent; leave it out")));
    }
    let mut agents = Vec::new();
    let mut unique = BTreeSet::new();
    for name in send.agent.split(',').map(str::trim) {
        let agent = AgentId::parse(name).map_err(|why| usage(format!("`{name}`: {why}")))?;
        if !unique.insert(agent.clone()) {
            bail!(usage(format!("`{agent}` is listed twice; name each agent once")));
        }
        agents.push(agent);
    }
    match agents.len() {
        2..=MAX_RECEIVERS => Ok(Some(agents)),
        count => bail!(usage(format!("{count} agents; name 2 to {MAX_RECEIVERS}"))),
    }
}

/// The message to all agents: a message to the agent that runs flow files.
///
/// # Errors
/// The hub has no agent of one of the names; none of them has worked then.
pub(crate) fn to_all(global: &Global, send: Send, agents: &[AgentId]) -> anyhow::Result<Send> {
    block_on(async {
        let mut client = start::client(global, send.start).await?;
        require_agents(global, &mut client, agents).await
    })?;
    let flow = flow_template::ask_all(agents);
    let data = json!({ "do": "run", "flow": flow, "text": send.message });
    Ok(Send { agent: RUNNER.to_owned(), message: String::new(), data: Some(data), ..send })
}
