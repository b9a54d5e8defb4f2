//! `contexts`: lists, shows or deletes the conversations that the hub stores.

use super::{
    completion,
    tasks::{note_more, one_more, tasks_text},
};
use crate::{
    Exit, Format, Global, ask, block_on,
    client::{
        hub_client::Client,
        ids::{self, Kind},
        sent,
    },
    ui::{
        interactive,
        render::{ago, counted, list, text},
        table::{Cell, Table},
        text::Text,
    },
};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ContextsArgs {
    #[command(subcommand)]
    command: Option<ContextsCommand>,
    /// Maximum number of entries, newest first
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: u32,
    /// Number of the newest entries to skip
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    offset: u32,
}

#[derive(Debug, Subcommand)]
enum ContextsCommand {
    /// Show a conversation and its tasks
    Show {
        /// Id of the conversation, or a unique beginning or end of it [default: the latest
        /// conversation in the current directory]
        #[arg(add = completion::contexts())]
        id: Option<String>,
    },
    /// Delete a conversation and its tasks; asks first at a terminal
    Delete {
        /// Id of the conversation, or a unique beginning or end of it
        #[arg(add = completion::contexts())]
        id: String,
        /// Delete without a question
        #[arg(long, short)]
        yes: bool,
    },
}

pub(crate) fn contexts(global: &Global, contexts: &ContextsArgs) -> anyhow::Result<Exit> {
    let (now, columns) = (Timestamp::now(), global.console().columns());
    let (answer, shown): (_, Text) = match &contexts.command {
        None => {
            let limit = one_more(contexts.limit);
            let params = json!({ "limit": limit, "offset": contexts.offset });
            let mut answer = ask(global, "hub/contexts/list", params)?;
            note_more(global, &mut answer, contexts.limit, Some(contexts.offset), "conversations");
            let shown = contexts_text(list(&answer), now, columns);
            (answer, shown)
        }
        Some(ContextsCommand::Show { id }) => {
            let (answer, tasks) = block_on(async {
                let mut client = Client::connect(global).await?;
                let id = match id {
                    Some(id) => ids::resolve(&mut client, Kind::Context, id).await?,
                    None => text(&sent::latest_here(&mut client).await?["contextId"]).to_owned(),
                };
                let answer = client.call("hub/contexts/get", json!({ "contextId": id })).await?;
                let its = json!({ "contextId": id, "limit": 100 });
                Ok((answer, client.call("hub/tasks/list", its).await?))
            })?;
            let mut shown = Text::from(format!("context  {}\n\n", text(&answer["id"])));
            shown.append(tasks_text(&tasks, now, columns));
            (answer, shown)
        }
        Some(ContextsCommand::Delete { id, yes }) => block_on(async {
            let mut client = Client::connect(global).await?;
            let id = ids::resolve(&mut client, Kind::Context, id).await?;
            if !yes && !confirmed(global, &mut client, &id).await? {
                let message = format!("the conversation {id} was kept\n").into();
                return Ok((json!({ "deleted": false, "contextId": id }), message));
            }
            let answer = client.call("hub/contexts/delete", json!({ "contextId": id })).await?;
            Ok((answer, format!("context {id} was deleted\n").into()))
        })?,
    };
    global.show(&answer, || Ok(shown))?;
    Ok(Exit::Done)
}

/// Asks the user at a terminal whether to delete the conversation; true without a terminal.
async fn confirmed(global: &Global, client: &mut Client, id: &str) -> anyhow::Result<bool> {
    let console = global.console();
    if !console.is_attended() || global.format == Format::Json {
        return Ok(true);
    }
    let its = json!({ "contextId": id, "limit": MAX_COUNTED, "historyLength": 0 });
    let tasks = list(&client.call("hub/tasks/list", its).await?).len();
    if tasks == 0 {
        return Ok(true);
    }
    let prefix = if tasks == MAX_COUNTED { "at least " } else { "" };
    console.note(format!(
        "delete the conversation {id} with {prefix}{}? [y/N]",
        counted(tasks, "task")
    ));
    let answer = interactive::ask(console, "y deletes it; an empty answer keeps it").await?;
    Ok(answer.is_one_of(&["y", "yes"]))
}

/// Maximum number of tasks that are counted before a conversation is deleted.
const MAX_COUNTED: usize = 100;

/// Renders conversations as a table.
fn contexts_text(contexts: &[Value], now: Timestamp, columns: Option<usize>) -> Text {
    if contexts.is_empty() {
        return "no conversations\n".into();
    }
    let ids = || contexts.iter().map(|context| text(&context["id"]));
    let mut table = Table::new(["CONTEXT", "TASKS", "CHANGED", "AGENTS"]);
    for context in contexts {
        let agents = list(&context["agents"]).iter().map(text).collect::<Vec<_>>().join(", ");
        let (id, tasks) = (text(&context["id"]), context["taskCount"].to_string());
        let changed = match columns {
            Some(_) => ago(&context["updatedAt"], now),
            None => text(&context["updatedAt"]).to_owned(),
        };
        let name = Cell::id(id, ids::short(id, &ids()));
        table.row([name, tasks.into(), changed.into(), agents.into()]);
    }
    table.text(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversation_table_fits_terminal_width() {
        let contexts = [
            json!({ "id": "01a1fc8f-a111-7715-9c95-8a642d72e498", "taskCount": 3, "agents": ["claude-code", "echo"],
                "createdAt": "2026-01-30T11:58:00Z", "updatedAt": "2026-01-31T11:58:00Z", "state": "active" }),
            json!({ "id": "ctx", "taskCount": 12, "agents": ["echo"], "updatedAt": "2026-01-01T11:58:00Z" }),
        ];
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let shown = |columns| contexts_text(&contexts, now, columns).words();
        insta::assert_snapshot!(shown(Some(100)), @"
        CONTEXT   TASKS  CHANGED      AGENTS
        2d72e498  3      2 min ago    claude-code, echo
        ctx       12     30 days ago  echo
        ");
        insta::assert_snapshot!(shown(Some(40)), @"
        CONTEXT   TASKS  CHANGED      AGENTS
        2d72e498  3      2 min ago    claude-co…
        ctx       12     30 days ago  echo
        ");
        insta::assert_snapshot!(shown(None).replace('\t', " → "), @"
        01a1fc8f-a111-7715-9c95-8a642d72e498 → 3 → 2026-01-31T11:58:00Z → claude-code, echo
        ctx → 12 → 2026-01-01T11:58:00Z → echo
        ");
    }
}
