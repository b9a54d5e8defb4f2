//! `tasks --search`: finds tasks by the words in their messages and answers.

use crate::{
    Exit, Global,
    client::{hub_client::Client, ids, sent::agent_name},
    ui::{
        render::{list, past, text},
        table::{Cell, Table},
        text::{FAINT, Text, style_of},
    },
};
use a2a_hub_core::text::plain_text::line;
use a2a_hub_protocol::member;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Most characters of an excerpt.
const MAX_EXCERPT: usize = 600;

/// Most pages that one command reads. A page examines some thousand tasks, of which a filter may
/// admit none.
const MAX_PAGES: usize = 500;

/// Options of a search for tasks.
#[derive(Debug, Args)]
pub(crate) struct SearchOptions {
    /// Only tasks whose messages and answers contain these words, `"phrases"` and beginnings of
    /// words such as `pars*`
    #[arg(long = "search", value_name = "WORDS")]
    #[arg(conflicts_with_all = ["workflow", "offset", "watch", "all"])]
    pub(crate) query: Option<String>,
    /// With --search: only tasks that this person began, such as `ada` or `operator`
    #[arg(long, value_name = "NAME", requires = "query")]
    person: Option<String>,
}

/// Prints up to `limit` tasks that a search finds. `params` has its other filters.
pub(crate) async fn search(
    global: &Global,
    client: &mut Client,
    options: &SearchOptions,
    mut params: Value,
    limit: u32,
) -> anyhow::Result<Exit> {
    member::set(&mut params, "query", json!(options.query));
    member::set(&mut params, "person", json!(options.person));
    // The hub says what is wrong with a limit.
    member::set(&mut params, "limit", limit);
    let mut found = Vec::new();
    let mut page = Value::Null;
    for _ in 0..MAX_PAGES {
        page = client.call("hub/search", params.clone()).await?;
        found.extend(list(&page["results"]).iter().cloned());
        let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        if count >= limit || page["next"].is_null() {
            break;
        }
        member::set(&mut params, "limit", limit - count);
        member::set(&mut params, "cursor", page["next"].clone());
    }
    member::set(&mut page, "results", found);
    let columns = global.console().columns();
    global.show(&page, || Ok(found_text(&page, Timestamp::now(), columns)))?;
    for note in notes(&page) {
        global.console().note(Text::styled(FAINT, note));
    }
    Ok(Exit::Done)
}

/// Remarks on results that are not complete.
fn notes(page: &Value) -> Vec<String> {
    let mut notes = Vec::new();
    if !page["next"].is_null() {
        notes.push("older tasks have these words, too: `--limit COUNT` lists more".to_owned());
    }
    if let Some(failure) = page["failure"].as_str() {
        let why = line(failure, MAX_EXCERPT);
        notes.push(format!("the index is behind, and the latest tasks may be missing: {why}"));
    } else if let Some(pending) = page["pending"].as_u64().filter(|pending| *pending > 0) {
        let tasks =
            if pending == 1 { "1 task is".to_owned() } else { format!("{pending} tasks are") };
        notes.push(format!("{tasks} not in the index yet: try again in a moment"));
    }
    notes
}

/// Renders found tasks, each with its excerpt.
fn found_text(page: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let found = list(&page["results"]);
    if found.is_empty() {
        return "no task has these words\n".into();
    }
    let ids = || found.iter().map(|task| text(&task["taskId"]));
    let mut table = Table::new(["TASK", "STATE", "CHANGED", "AGENT", "FOUND"]);
    for task in found {
        let (id, state) = (text(&task["taskId"]), text(&task["state"]));
        table.row([
            Cell::id(id, ids::short(id, &ids())),
            Cell::styled(style_of(state), state),
            past(&task["updatedAt"], now, columns).into(),
            agent_name(text(&task["agentId"])).into(),
            excerpt(&task["excerpt"]).into(),
        ]);
    }
    table.text(columns)
}

/// Excerpt with its hits in brackets, in one line.
fn excerpt(parts: &Value) -> String {
    let mut excerpt = String::new();
    for part in list(parts) {
        let words = text(&part["text"]);
        if part["hit"] == true {
            excerpt.extend(["[", words, "]"]);
        } else {
            excerpt.push_str(words);
        }
    }
    line(&excerpt, MAX_EXCERPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_show_hits_and_obey_no_escapes() {
        let task = |id: &str, excerpt: Value| {
            json!({ "taskId": id, "agentId": "claude-code", "contextId": "c", "state": "completed",
                "updatedAt": "2026-01-31T11:58:00.000Z", "excerpt": excerpt })
        };
        let page = json!({ "results": [
            task("01a1fc8f-a111-7715-9c95-8a642d72e498", json!([
                { "text": "the " }, { "text": "parser", "hit": true }, { "text": " is slow" },
            ])),
            task("01a1fc8f-a111-7716-9c95-8a642d72f498", json!([
                { "text": "\u{1b}[2J\u{202e}pars\ner", "hit": true },
            ])),
        ], "next": "7", "pending": 2 });
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let shown = found_text(&page, now, Some(100)).words();
        assert!(shown.contains("the [parser] is slow"), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
        assert_eq!(shown.lines().count(), 3, "{shown}");
        let piped = found_text(&page, now, None).words();
        let first = "01a1fc8f-a111-7715-9c95-8a642d72e498\tcompleted\t2026-01-31T11:58:00.000Z\t\
            claude-code\tthe [parser] is slow\n";
        assert!(piped.starts_with(first), "{piped}");
        let notes = notes(&page);
        assert!(notes[0].contains("--limit") && notes[1].starts_with("2 tasks are"), "{notes:?}");
        assert_eq!(
            found_text(&json!({ "results": [] }), now, None).words(),
            "no task has these words\n"
        );
    }
}
