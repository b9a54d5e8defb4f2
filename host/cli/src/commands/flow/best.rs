//! `best`: has several agents do the same work in worktrees, and picks the best result.
//!
//! It is a flow from the template `best-of`. Its file is named after its content, so that the same
//! agents and judge share one. Who types the judge trusts the file.

use super::{file_of, joined::joined, made, trust};
use crate::{
    Exit, Global, block_on,
    client::hub_client::Client,
    commands::{
        completion, duration,
        send::{Send, send},
        start,
    },
    ui::{
        failure::CommandError,
        render::{list, text},
    },
};
use a2a_hub_authoring::flow_template;
use a2a_hub_config::{Permissions, Settings, TrustedFlows};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::digest_of;
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use std::{fs, io, path::PathBuf, time::Duration};

/// Most time until the hub has read the flow's file.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reason of a refusal: no agent has the name.
const NO_AGENT: &str = "AGENT_NOT_FOUND";

/// Digits of the digest in the flow's name.
const DIGITS: usize = 8;

#[derive(Debug, Args)]
pub(crate) struct Best {
    /// Work to do; `-` reads it from standard input
    message: String,
    /// Agents that do the work, from 2 to 32. One that is named twice tries twice
    #[arg(long, value_name = "AGENT", value_delimiter = ',', required = true, add = completion::agents(), value_parser = |name: &str| AgentId::parse(name))]
    of: Vec<AgentId>,
    /// Command of the shell that judges each result in its worktree: exit code 0 passes. The
    /// smallest change that passes is picked. Without a judge, you pick
    #[arg(long, value_name = "COMMAND")]
    judge: Option<String>,
    /// Permissions of the agents in their worktrees: what they do there without asking. None has
    /// more than its own setting in the configuration
    #[arg(long, default_value = "edit", value_parser = ["read-only", "ask", "edit", "full"])]
    permissions: String,
    /// Directory of the git repository [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Print the answer while it arrives
    #[arg(long)]
    stream: bool,
    /// Time limit of all work, such as `30m`; a bare number counts milliseconds
    #[arg(long, value_name = "TIME", value_parser = duration::milliseconds)]
    timeout: Option<u64>,
    /// Start the hub first if it does not run
    #[arg(long)]
    start: bool,
}

/// Has the agents do the work, and prints the result that is picked.
pub(crate) fn best(global: &Global, best: Best) -> anyhow::Result<Exit> {
    let what = "have several agents try";
    if !(2..=32).contains(&best.of.len()) {
        bail!("{what}: `--of` names 2 to 32 agents, as `--of claude-code,codex`");
    }
    if let Some(judge) = &best.judge
        && let Some(why) = unusable(judge)
    {
        bail!("{what}: `--judge`: {why}");
    }
    let definition = flow_template::best_of(&best.of, best.judge.as_deref(), &best.permissions);
    let digest = digest_of(definition.as_bytes());
    let digits = digest.get(..DIGITS).unwrap_or(&digest);
    let id = AgentId::parse(format!("best-of-{digits}")).context(what)?;
    let message = Send {
        cwd: best.cwd,
        stream: best.stream,
        timeout: best.timeout,
        ..Send::to(id.to_string(), best.message)
    }
    .with_message()?;
    block_on(async {
        let mut client = start::client(global, best.start).await?;
        trust::require_operator(global, what).await?;
        require_agents(global, &mut client, &best.of).await?;
        let agents = client.call("hub/agents/list", json!({})).await?;
        if let Some(note) = asking(list(&agents), &best.of, &best.permissions) {
            global.console().note(note);
        }
        // Trusted first: the hub does not see a file that nobody trusts.
        TrustedFlows::of(&global.data_dir()?).trust(&id, &definition).context(what)?;
        let path = file_of(global, &id)?;
        let written = match made(&path, &definition) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
                match fs::read_to_string(&path) {
                    Ok(text) if text == definition => Ok(()),
                    Ok(_) => Err(io::Error::other("it was changed; remove it, and try again")),
                    Err(why) => Err(why),
                }
            }
            written => written,
        };
        written.with_context(|| format!("{what}: write {}", path.display()))?;
        let mut progress = global.progress("the hub", true);
        let read = joined(&mut client, &id, PATIENCE, false);
        match progress.during("reading the flow", read).await? {
            None => Ok(()),
            Some(why) => bail!("{what}: use the flow {id}: {why}"),
        }
    })?;
    send(global, message)
}

/// Reason why a judge cannot stand in a flow file; none if it can.
fn unusable(judge: &str) -> Option<&'static str> {
    if judge.trim().is_empty() {
        return Some("it is empty; give a command such as \"cargo test\"");
    }
    if ["{{", "{%", "{#"].iter().any(|mark| judge.contains(mark)) || judge.ends_with("{}") {
        return Some(
            "a command has no `{{`, `{%` or `{#`, and does not end in `{}`; put it into a script, and run that",
        );
    }
    None
}

/// Refuses agents that the hub does not have: their names may be mistyped. Groups of the
/// configuration count as agents.
pub(super) async fn require_agents(
    global: &Global,
    client: &mut Client,
    wanted: &[AgentId],
) -> anyhow::Result<()> {
    let mut groups = None;
    for agent in wanted {
        let Err(unknown) = client.call("hub/agents/get", json!({ "agentId": agent })).await else {
            continue;
        };
        let groups = groups.get_or_insert_with(|| global.settings(Vec::new()).ok());
        let is_group = |it: &Settings| it.config.aliases.contains_key(agent);
        if CommandError::of(&unknown).is(NO_AGENT) && !groups.as_ref().is_some_and(is_group) {
            return Err(unknown);
        }
    }
    Ok(())
}

/// Note about agents that ask nevertheless, since their own setting allows less than `permissions`;
/// none if none does. What a plug-in asks is not known.
fn asking(agents: &[Value], wanted: &[AgentId], permissions: &str) -> Option<String> {
    let most = Permissions::named(permissions).filter(|most| *most > Permissions::Ask)?;
    let asks = |agent: &&Value| {
        let set = agent["permissions"].as_str().and_then(Permissions::named);
        ["built-in", "acp"].contains(&text(&agent["source"])) && set.is_some_and(|set| set < most)
    };
    let is_wanted = |agent: &&Value| wanted.iter().any(|id| id.as_str() == text(&agent["id"]));
    let names = agents.iter().filter(is_wanted).filter(asks);
    let names: Vec<_> = names.map(|agent| text(&agent["id"])).collect();
    let first = names.first()?;
    Some(format!(
        "the own `permissions` of {} allow less than `{permissions}`: they ask or only read; \
         `agents.{first}.permissions = \"{permissions}\"` in the configuration allows it",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_with_less_permission_are_noted() {
        let agent = |id: &str, source: &str, permissions: &str| json!({ "id": id, "source": source, "permissions": permissions });
        let agents = [
            agent("codex", "built-in", "ask"),
            agent("gemini", "built-in", "edit"),
            agent("mine", "acp", "read-only"),
            agent("plugin", "plugin.wasm", "ask"),
            agent("vibe", "built-in", "ask"),
        ];
        let wanted = |names: &[&str]| -> Vec<_> {
            names.iter().map(|name| AgentId::parse(*name).unwrap()).collect()
        };
        let note = |names: &[&str], most: &str| asking(&agents, &wanted(names), most);
        let said = note(&["mine", "codex", "gemini", "plugin"], "edit").unwrap();
        assert!(said.contains(" of codex, mine allow ") && said.contains("agents.codex"), "{said}");
        assert_eq!(note(&["gemini", "plugin"], "edit"), None);
        assert_eq!(note(&["codex", "mine"], "ask"), None, "they are to ask");
        assert!(note(&["gemini"], "full").is_some_and(|said| said.contains(" of gemini allow ")));
    }
}
