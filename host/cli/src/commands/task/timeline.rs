//! `task timeline`: prints what happened in a task, a line for each event of its log.

use crate::{
    Exit, Global, block_on,
    client::{
        hub_client::Client,
        sent::{self, agent_name},
    },
    commands::completion,
    ui::{
        render::{list, past, text},
        table::{Cell, Table},
        text::{FAINT, Text, style_of},
    },
};
use a2a_hub_core::text::{plain_text::line, shell::shell_word};
use a2a_hub_protocol::member;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Most characters of a line's text.
const MAX_TEXT: usize = 400;

/// Most events of one request.
const PAGE: u32 = 500;

#[derive(Debug, Args)]
pub(crate) struct TimelineArgs {
    /// Id of the task, or a unique beginning or end of it [default: the latest task in the current
    /// directory]
    #[arg(value_name = "ID", add = completion::tasks())]
    id: Option<String>,
    /// Print at most this many events [default: all]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Print the events after this cursor, which an earlier run named
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

pub(crate) fn timeline(global: &Global, args: &TimelineArgs) -> anyhow::Result<Exit> {
    block_on(async {
        let mut client = Client::connect(global).await?;
        let id = sent::resolve_or_latest(global, &mut client, args.id.as_deref()).await?;
        let page = read(&mut client, &id, args).await?;
        let columns = global.console().columns();
        global.show(&page, || Ok(timeline_text(&page, Timestamp::now(), columns)))?;
        if let Some(next) = page["next"].as_str() {
            let next = line(next, MAX_TEXT);
            let (command, next) = (global.command(), shell_word(&next));
            let more = format!("later events: `{command} task timeline {id} --after {next}`");
            global.console().note(Text::styled(FAINT, more));
        }
        Ok(Exit::Done)
    })
}

/// Reads as many pages as are asked for, as one.
async fn read(client: &mut Client, id: &str, args: &TimelineArgs) -> anyhow::Result<Value> {
    let (mut entries, mut covered) = (Vec::new(), 0);
    let mut params = json!({ "id": id });
    if let Some(after) = &args.after {
        member::set(&mut params, "cursor", json!(after));
    }
    loop {
        let limit = args.limit.map_or(PAGE, |limit| PAGE.min(limit - covered));
        member::set(&mut params, "limit", limit);
        let mut page = client.call("hub/tasks/timeline", params.clone()).await?;
        entries.extend(list(&page["entries"]).iter().cloned());
        covered += limit;
        if page["next"].is_null() || args.limit.is_some_and(|most| covered >= most) {
            member::set(&mut page, "entries", entries);
            return Ok(page);
        }
        member::set(&mut params, "cursor", page["next"].clone());
    }
}

/// Renders a timeline, a line for each entry.
fn timeline_text(page: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let entries = list(&page["entries"]);
    if entries.is_empty() {
        return "no more events\n".into();
    }
    let mut table = Table::new(["EVENT", "WHEN", "WHAT", "BY", "TEXT"]);
    for entry in entries {
        let kind = text(&entry["kind"]);
        let state = entry["state"].as_str().filter(|_| kind == "state" || kind == "question");
        let event_words = match state {
            Some(state) => Cell::styled(style_of(state), state),
            None => kind.into(),
        };
        let seq = entry["seq"].as_u64().map(|seq| seq.to_string()).unwrap_or_default();
        let by = entry["rule"].as_str().map_or_else(
            || line(text(&entry["by"]), MAX_TEXT),
            |rule| format!("rule {}", line(rule, MAX_TEXT)),
        );
        table.row([
            seq.into(),
            past(&entry["at"], now, columns).into(),
            event_words,
            by.into(),
            words(entry).into(),
        ]);
    }
    table.text(columns)
}

/// Text of an entry, with the other task that it is about.
fn words(entry: &Value) -> String {
    let mut words = line(text(&entry["text"]), MAX_TEXT);
    if let Some(events) = entry["events"].as_u64() {
        words += &format!(" in {events} parts");
    }
    let agent = entry["agentId"].as_str().map(agent_name);
    match (text(&entry["kind"]), entry["taskId"].as_str(), agent) {
        ("child", Some(task), _) => words += &format!(" (task {})", line(task, MAX_TEXT)),
        ("question", Some(task), Some(agent)) => {
            words += &format!(" (asked by {agent}, task {})", line(task, MAX_TEXT));
        }
        _ => {}
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_single_lines_without_escapes() {
        let page = json!({ "entries": [
            { "seq": 1, "at": "2026-01-31T11:58:00.000Z", "kind": "created", "state": "submitted",
                "text": "fix it", "by": "operator", "agentId": "codex" },
            { "seq": 2, "at": "2026-01-31T11:58:01.000Z", "kind": "state", "state": "working", "text": "" },
            { "at": "2026-01-31T11:58:02.000Z", "kind": "child", "text": "gave work to echo",
                "taskId": "01a1fc8f-a111", "agentId": "echo" },
            { "seq": 5, "events": 3, "at": "2026-01-31T11:58:03.000Z", "kind": "artifact", "text": "a, 9 bytes" },
            { "seq": 6, "at": "2026-01-31T11:58:04.000Z", "kind": "rule", "text": "\u{1b}[2Jcargo test",
                "rule": "r-1" },
            { "seq": 7, "at": "2026-01-31T11:58:05.000Z", "kind": "question", "state": "input-required",
                "text": "May\nI?", "taskId": "01a1fc8f-a112", "agentId": "codex" },
        ], "next": "7@2026-01-31T11:58:05.000Z" });
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let piped = timeline_text(&page, now, None).words();
        let lines: Vec<Vec<_>> = piped.lines().map(|line| line.split('\t').collect()).collect();
        assert!(lines.iter().all(|line| line.len() == 5), "{piped}");
        assert_eq!(lines[0], ["1", "2026-01-31T11:58:00.000Z", "created", "operator", "fix it"]);
        let texts: Vec<_> = lines.iter().map(|line| line[4]).collect();
        assert_eq!(texts[2], "gave work to echo (task 01a1fc8f-a111)");
        assert_eq!(texts[3], "a, 9 bytes in 3 parts");
        assert_eq!((lines[4][3], texts[4]), ("rule r-1", "[2Jcargo test"));
        assert_eq!(lines[5][2], "input-required");
        assert_eq!(texts[5], "May I? (asked by codex, task 01a1fc8f-a112)");
        let shown = timeline_text(&page, now, Some(60)).words();
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
        assert_eq!(timeline_text(&json!({}), now, None).words(), "no more events\n");
    }
}
