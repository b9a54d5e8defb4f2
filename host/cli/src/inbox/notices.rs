//! Notices in the inbox: what happened and needs no answer, below the questions.

use super::shown::not_shown;
use crate::{
    Exit, Global,
    client::{hub_client::Client, ids},
    ui::{
        console::Console,
        failure::CommandError,
        render::{ago, ahead, counted, list, past, text},
        table::{Cell, Table},
        text::{FAINT, PLAIN, Text, style_of},
    },
};
use a2a_hub_core::text::plain_text::line;
use a2a_hub_protocol::{error::ErrorKind, member};
use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Most characters of what a task was asked, and of what happened, in a row.
const SHOWN: usize = 200;

/// Fewest columns of a terminal that has room for the ids of the tasks.
const WIDE: usize = 72;

/// True if the notices are listed with the ids of their tasks.
fn shows_ids(columns: Option<usize>) -> bool {
    columns.is_none_or(|columns| columns >= WIDE)
}

/// Adds the notices of the hub to its questions: `notices`, and the number of all `unreadNotices`.
/// With `history`, those that were read are among them.
pub(super) async fn attach(
    client: &mut Client,
    questions: &mut Value,
    limit: u32,
    history: bool,
) -> anyhow::Result<()> {
    let query = json!({ "limit": limit, "includeRead": history });
    let mut listed = match client.call("hub/notices/list", query).await {
        // An older hub has none.
        Err(why) if CommandError::from_error(&why).is(ErrorKind::MethodNotFound.reason()) => {
            return Ok(());
        }
        listed => listed?,
    };
    member::set(questions, "notices", member::take(&mut listed, "notices"));
    member::set(questions, "unreadNotices", member::take(&mut listed, "unread"));
    Ok(())
}

/// Renders the notices that [`attach`] has added; empty without any.
pub(super) fn notices_text(inbox: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let notices = list(&inbox["notices"]);
    let mut output = Text::new();
    if notices.is_empty() {
        return output;
    }
    output.push(PLAIN, if columns.is_some() { "\n" } else { "" });
    output.append(table(notices, now, columns).text(columns));
    let unread = notices.iter().filter(|notice| notice["read"] != true).count();
    if let Some(hint) = not_shown(&inbox["unreadNotices"], unread, "notice") {
        output.push(FAINT, &hint);
    }
    output
}

/// Commands for the notices that are listed; empty without any.
pub(super) fn hints(command: &str, inbox: &Value, columns: Option<usize>) -> Text {
    let mut output = Text::new();
    if !list(&inbox["notices"]).is_empty() {
        let shows = if shows_ids(columns) { "task show TASK" } else { "tasks" };
        output.push(FAINT, &format!("{command} {shows}\n"));
        if list(&inbox["notices"]).iter().any(|notice| notice["kind"] == "quota") {
            let task = if shows_ids(columns) { "TASK" } else { "ID" };
            output.push(FAINT, &format!("{command} task retry-now {task}\n"));
            output.push(FAINT, &format!("{command} task handoff {task} AGENT\n"));
        }
        output.push(FAINT, &format!("{command} inbox --mark-read\n"));
    }
    output
}

/// Table of notices, each in one row.
fn table(notices: &[Value], now: Timestamp, columns: Option<usize>) -> Table {
    let ids = || notices.iter().map(|notice| text(&notice["taskId"]));
    let shows_ids = shows_ids(columns);
    let headers = ["KIND", "AGENT", "AGE", "ASKED", "WHY"];
    let mut table = Table::new(shows_ids.then_some("TASK").into_iter().chain(headers));
    for notice in notices {
        let (task, kind) = (text(&notice["taskId"]), text(&notice["kind"]));
        let style = style_of(if kind == "finished" { "completed" } else { "failed" });
        let age = match columns {
            Some(_) => ago(&notice["at"], now).trim_end_matches(" ago").to_owned(),
            None => past(&notice["at"], now, None),
        };
        let id = shows_ids.then(|| Cell::id(task, ids::short(task, &ids())));
        let cells = [
            Cell::styled(style, line(kind, SHOWN)),
            text(&notice["agentId"]).into(),
            age.into(),
            line(text(&notice["title"]), SHOWN).into(),
            why(notice, now).into(),
        ];
        table.row(id.into_iter().chain(cells).collect::<Vec<_>>());
    }
    table
}

/// Reason or result of a notice, with the time at which a quota resets.
fn why(notice: &Value, now: Timestamp) -> String {
    let why = line(text(&notice["text"]), SHOWN);
    let resets = text(&notice["resetsAt"]).parse::<Timestamp>().ok();
    match resets.filter(|resets| *resets > now) {
        Some(_) => format!("resets {}: {why}", ahead(&notice["resetsAt"], now)),
        None => why,
    }
}

/// Marks the notices as read that are listed, since a person has them on the screen.
pub(super) async fn mark_listed(
    console: Console,
    client: &mut Client,
    inbox: &Value,
) -> anyhow::Result<()> {
    let ids: Vec<_> = list(&inbox["notices"]).iter().map(|notice| notice["id"].clone()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let marked = client.call("hub/notices/read", json!({ "ids": ids })).await;
    marked.context("mark the notices as read; `a2a-hub inbox --mark-read` tries again")?;
    console.note("marked as read; `a2a-hub inbox --history` lists them again");
    Ok(())
}

/// Marks all notices as read.
pub(super) async fn mark_all(global: &Global, client: &mut Client) -> anyhow::Result<Exit> {
    let result = client.call("hub/notices/read", json!({ "all": true })).await?;
    global.show(&result, || {
        let marked = result["marked"].as_u64().and_then(|marked| usize::try_from(marked).ok());
        Ok(match marked.unwrap_or_default() {
            0 => "no notice is new\n".into(),
            marked => format!("marked as read: {}\n", counted(marked, "notice")).into(),
        })
    })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(id: u64, kind: &str, title: &str, why: &str) -> Value {
        json!({ "id": id, "kind": kind, "taskId": format!("01a2fc8f-a111-7715-9c95-8a642d72e49{id}"),
            "agentId": "claude-code", "contextId": "c", "title": title, "text": why,
            "at": "2026-01-31T11:48:00Z", "read": false })
    }

    #[test]
    fn notices_fit_terminal_in_one_line_each() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let notices = [
            notice(
                3,
                "failed",
                "fix the parser of dates in the importer",
                "the agent's code broke",
            ),
            notice(2, "quota", "翻訳してください、この長い文章を全部", "You've hit your limit"),
            notice(1, "finished", "hidden\u{1b}[2J\u{202e}\nquestion", "x\r\ny\u{200b}┇ allow it?"),
        ];
        let inbox = json!({ "notices": notices, "unreadNotices": 5 });
        for width in [60, 80, 120] {
            let words = notices_text(&inbox, now, Some(width)).words();
            let lines: Vec<_> = words.lines().collect();
            assert_eq!(lines.len(), 1 + 1 + 3 + 1, "a blank line, headers, rows, a hint: {words}");
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{words}");
            for word in ["12 min", "claude-code", "failed", "quota", "finished"] {
                assert!(words.contains(word), "{word} at {width}: {words}");
            }
            let hostile = ['\u{1b}', '\u{202e}', '\u{200b}', '┇', '\r'];
            assert!(!words.contains(hostile), "{words:?}");
            assert_eq!(lines[5], "2 notices not shown: --limit COUNT");
        }
        let piped = notices_text(&inbox, now, None).words();
        let first = "01a2fc8f-a111-7715-9c95-8a642d72e493\tfailed\tclaude-code\t2026-01-31T11:48:00Z\t\
            fix the parser of dates in the importer\tthe agent's code broke\n";
        assert!(piped.starts_with(first), "{piped}");
        let mut limited = notice(2, "quota", "translate", "You've hit your limit");
        member::set(&mut limited, "resetsAt", "2026-01-31T15:00:00.000Z");
        assert_eq!(why(&limited, now), "resets in 3 h 0 min: You've hit your limit");
        assert_eq!(why(&limited, "2026-01-31T15:00:00Z".parse().unwrap()), "You've hit your limit");
        assert_eq!(notices_text(&json!({ "unreadNotices": 0 }), now, Some(80)).words(), "");
        assert_eq!(hints("a2a-hub", &json!({ "notices": [] }), None).words(), "");
    }
}
