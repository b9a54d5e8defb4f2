//! `contexts`: the conversations the hub remembers.

use super::{
    Exit, Global, ask,
    render::{ago, list, text},
    tasks::tasks_text,
    text::Text,
};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fmt::{self, Write as _};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Contexts {
    #[command(subcommand)]
    command: Option<Command>,
    /// Show at most so many, newest first
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: u32,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show a conversation and its tasks
    Show {
        /// The conversation, as `a2a-hub contexts` lists it
        id: String,
    },
    /// Forget a conversation and its tasks
    Delete {
        /// The conversation, as `a2a-hub contexts` lists it
        id: String,
    },
}

pub(super) fn contexts(global: &Global, contexts: &Contexts) -> anyhow::Result<Exit> {
    let now = Timestamp::now();
    let (answer, shown) = match &contexts.command {
        None => {
            let answer = ask(global, "hub/contexts/list", json!({ "limit": contexts.limit }))?;
            let shown = contexts_text(list(&answer), now)?;
            (answer, shown)
        }
        Some(Command::Show { id }) => {
            let answer = ask(global, "hub/contexts/get", json!({ "contextId": id }))?;
            let tasks = ask(global, "hub/tasks/list", json!({ "contextId": id, "limit": 100 }))?;
            let context = contexts_text(std::slice::from_ref(&answer), now)?;
            let mut shown = context;
            shown.append(tasks_text(&tasks, now)?);
            (answer, shown)
        }
        Some(Command::Delete { id }) => {
            let answer = ask(global, "hub/contexts/delete", json!({ "contextId": id }))?;
            (answer, format!("context {id} is forgotten\n").into())
        }
    };
    global.show(&answer, || Ok(shown))?;
    Ok(Exit::Done)
}

/// Conversations, a line each.
fn contexts_text(contexts: &[Value], now: Timestamp) -> Result<Text, fmt::Error> {
    let mut out = Text::new();
    if contexts.is_empty() {
        writeln!(out, "no conversations")?;
    }
    for context in contexts {
        let agents = list(&context["agents"]).iter().map(text).collect::<Vec<_>>().join(", ");
        let tasks = format!("{} task(s)", context["taskCount"]);
        let (id, when) = (text(&context["id"]), ago(&context["updatedAt"], now));
        writeln!(out, "{id}  {tasks:<10}  {when:<11}  {agents}")?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_as_people_see_them() {
        let contexts = [
            json!({ "id": "01a1fc8f-a111-7715-9c95-8a642d72e498", "taskCount": 3, "agents": ["claude-code", "echo"],
                "createdAt": "2026-01-30T11:58:00Z", "updatedAt": "2026-01-31T11:58:00Z", "state": "active" }),
            json!({ "id": "ctx", "taskCount": 12, "agents": ["echo"], "updatedAt": "2026-01-01T11:58:00Z" }),
        ];
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        insta::assert_snapshot!(contexts_text(&contexts, now).unwrap().words(), @r"
        01a1fc8f-a111-7715-9c95-8a642d72e498  3 task(s)   2 min ago    claude-code, echo
        ctx  12 task(s)  30 days ago  echo
        ");
    }
}
