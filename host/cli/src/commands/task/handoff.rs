//! `task handoff`: has another agent go on with a task.

use super::watch::watch;
use crate::commands::completion;
use crate::{
    Exit, Format, Global, block_on,
    client::{hub_client::Client, ids},
    ui::{
        render::text,
        text::{FAINT, Text},
    },
};
use clap::Args;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct HandoffOptions {
    /// Id of the task, or a unique beginning or end of it
    #[arg(add = completion::tasks())]
    id: String,
    /// Agent that goes on
    #[arg(add = completion::agents())]
    agent: String,
    /// Words to that agent
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Print the new task at once, and do not follow it
    #[arg(long)]
    no_wait: bool,
}

/// Hands a task over, and follows the new one. Ctrl-C cancels neither.
pub(crate) fn handoff(global: &Global, args: &HandoffOptions) -> anyhow::Result<Exit> {
    let HandoffOptions { id, agent, note, no_wait } = args;
    let task = block_on(async {
        let mut client = Client::connect(global).await?;
        let id = ids::resolve(&mut client, ids::Kind::Task, id).await?;
        let params = json!({ "taskId": id, "agentId": agent, "note": note });
        client.call("hub/tasks/handoff", params).await
    })?;
    let next = text(&task["id"]);
    if *no_wait {
        global.show(&task, || Ok(format!("task {next} of {agent} goes on\n").into()))?;
        return Ok(Exit::Done);
    }
    if global.format == Format::Pretty {
        let line = format!("task {next} of {agent} goes on; Ctrl-C does not cancel it");
        global.console().note(Text::styled(FAINT, line));
    }
    watch(global, Some(next))
}

/// Line of `task show` about the task before or after a handoff.
pub(super) fn lines(metadata: &Value) -> impl Iterator<Item = String> {
    let of = |member: &str, agent: &str, word: &str| {
        let fact = &metadata[member];
        let (agent, task) = (fact[agent].as_str()?, fact["task"].as_str()?);
        Some(format!("handoff  {word} {agent}, task {task}"))
    };
    [of("handoff", "to", "to"), of("handoffFrom", "agent", "from")].into_iter().flatten()
}
