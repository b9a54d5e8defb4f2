//! `best`: has several agents do the same work in worktrees, and picks the best result.
//!
//! It is a flow from the template `best-of`. Its file is named after its content, so that the same
//! agents and judge share one. Who types the judge trusts the file.

use super::{
    agents::require_agents,
    create_file, file_of,
    joined::{joined, require_data_dir},
    trust,
};
use crate::{
    Exit, Global, block_on,
    client::hub_client::Client,
    commands::{
        completion, duration,
        send::{Send, aftermath::note_uncommitted, directory, send},
        start,
    },
    ui::render::{list, text},
};
use a2a_hub_authoring::{
    best_flows::{asking, id_of, mark_used, old_flows, unusable},
    flow_template,
};
use a2a_hub_config::TrustedFlows;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::digest_of;
use a2a_hub_worktrees::RepositoryPaths;
use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Most time until the hub has read the flow's file.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Most tasks of an old flow that are read. A flow with as many is left.
const MAX_TASKS: usize = 100;

/// States of tasks that have ended.
const ENDED: [&str; 4] = ["completed", "failed", "canceled", "rejected"];

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
    /// Print the task's id as soon as the task exists, and leave the task running
    #[arg(long, conflicts_with = "stream")]
    detach: bool,
    /// Time limit of all work, such as `30m`; a bare number counts milliseconds
    #[arg(long, value_name = "TIME", value_parser = duration::milliseconds)]
    timeout: Option<u64>,
    /// Start the hub first if it does not run
    #[arg(long)]
    start: bool,
}

/// Has the agents do the work, and prints the result that is picked.
pub(crate) fn best(global: &Global, best: Best) -> anyhow::Result<Exit> {
    let action = "have several agents try";
    if !(2..=32).contains(&best.of.len()) {
        bail!("{action}: `--of` names 2 to 32 agents, as `--of claude-code,codex`");
    }
    if let Some(judge) = &best.judge
        && let Some(why) = unusable(judge)
    {
        bail!("{action}: `--judge`: {why}");
    }
    let definition = flow_template::best_of(&best.of, best.judge.as_deref(), &best.permissions);
    let id = id_of(&digest_of(definition.as_bytes())).context(action)?;
    let message = Send {
        cwd: best.cwd,
        stream: best.stream,
        detach: best.detach,
        timeout: best.timeout,
        ..Send::to(id.to_string(), best.message)
    };
    let Some(message) = message.with_message(global)? else { return Ok(Exit::Interrupted) };
    let directory = directory(&message)?;
    let prepare = async {
        let mut client = start::client(global, best.start).await?;
        trust::require_operator(global, action).await?;
        require_data_dir(global).context(action)?;
        require_agents(global, &mut client, &best.of).await?;
        // Each candidate would fail without a repository.
        RepositoryPaths::find(Path::new(&directory))
            .and_then(|it| it.require_commit())
            .context(action)?;
        let agents = client.call("hub/agents/list", json!({})).await?;
        if let Some(note) = asking(list(&agents), &best.of, &best.permissions) {
            global.console().note(note);
        }
        // Trusted first: the hub does not see a file that nobody trusts.
        TrustedFlows::new(&global.data_dir()?).trust(&id, &definition).context(action)?;
        let path = file_of(global, &id)?;
        let written = match create_file(&path, &definition) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
                match fs::read_to_string(&path) {
                    Ok(text) if text == definition => mark_used(&path, Timestamp::now().into()),
                    Ok(_) => Err(io::Error::other("it was changed; remove it, and try again")),
                    Err(why) => Err(why),
                }
            }
            written => written,
        };
        written.with_context(|| format!("{action}: write {}", path.display()))?;
        let read = joined(&mut client, &id, READ_TIMEOUT, false);
        let read = global.progress("the hub", true).during("reading the flow", read).await;
        match read? {
            None => {}
            Some(why) => bail!("{action}: use the flow {id}: {why}"),
        }
        note_uncommitted(global, &directory).await;
        forget_old(global, &mut client, &id).await
    };
    let is_prepared = block_on(async {
        tokio::select! {
            prepared = prepare => prepared.map(|()| true),
            _ = tokio::signal::ctrl_c() => Ok(false),
        }
    })?;
    if !is_prepared {
        global.console().note("nothing was begun: no agent has the task");
        return Ok(Exit::Interrupted);
    }
    send(global, message)
}

/// Removes the files of earlier flows of `best`, except the latest ones and those with open tasks.
/// A flow that cannot be removed now stays for the next time.
async fn forget_old(global: &Global, client: &mut Client, current: &AgentId) -> anyhow::Result<()> {
    let flows = TrustedFlows::new(&global.data_dir()?);
    let Ok(settings) = global.settings(Vec::new()) else { return Ok(()) };
    // A client of one tenant does not see the tasks of the others.
    if global.tenant.is_some() {
        return Ok(());
    }
    let tenants: Vec<_> = [Value::Null]
        .into_iter()
        .chain(settings.config.tenants.keys().map(|it| json!(it)))
        .collect();
    for id in old_flows(&global.data_dir()?.join("flows"), current) {
        let mut is_over = true;
        for tenant in &tenants {
            let tasks =
                json!({ "agentId": id, "limit": MAX_TASKS, "historyLength": 0, "tenant": tenant });
            let tasks = client.call("hub/tasks/list", tasks).await.unwrap_or_default();
            let ended = |task: &Value| ENDED.contains(&text(&task["status"]["state"]));
            let all = tasks.as_array().filter(|all| all.len() < MAX_TASKS);
            is_over &= all.is_some_and(|all| all.iter().all(ended));
        }
        if is_over {
            let removed = fs::remove_file(file_of(global, &id)?).and_then(|()| flows.revoke(&id));
            if let Err(why) = removed {
                global.console().note(format!("warning: remove the old flow {id}: {why}"));
            }
        }
    }
    Ok(())
}
