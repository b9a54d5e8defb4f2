//! `events`: prints the events of the hub as they happen, or from a cursor on.

use crate::{
    Exit, Format, Global, block_on,
    client::{hub_client::Client, signals::LeaveSignals},
    ui::{
        render::text,
        text::{FAINT, PLAIN, Text, style_of},
    },
};
use a2a_hub_core::text::{plain_text::line, shell::shell_word};
use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use std::pin::pin;

/// Most characters of a member of an event.
const MAX_TEXT: usize = 200;

/// Members of events that a line shows, in this order.
const MEMBERS: [&str; 9] = [
    "agentId",
    "taskId",
    "questionId",
    "state",
    "file",
    "error",
    "fix",
    "expiresAt",
    "failingSince",
];

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Begin after this cursor of an earlier event, with the changes of tasks since then
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// End after this number of events
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

pub(crate) fn events(global: &Global, args: &EventsArgs) -> anyhow::Result<Exit> {
    block_on(async {
        let console = global.console();
        let mut signals = LeaveSignals::new()?;
        let mut unread = pin!(console.unread());
        let mut cursor = None;
        let ended = tokio::select! {
            ended = follow(global, args, &mut cursor) => ended.map(|()| Exit::Done),
            _ = signals.next() => Ok(Exit::Interrupted),
            () = &mut unread => return Ok(Exit::Interrupted),
        };
        if let Some(cursor) = cursor {
            let (command, cursor) = (global.command(), shell_word(&cursor));
            let more = format!("to go on here: {command} events --after {cursor}");
            console.note(Text::styled(FAINT, more));
        }
        ended
    })
}

/// Prints events until enough are printed. `cursor` is that of the last one.
async fn follow(
    global: &Global,
    args: &EventsArgs,
    cursor: &mut Option<String>,
) -> anyhow::Result<()> {
    let mut client = Client::connect(global).await?;
    client.ask("hub/events", json!({ "after": args.after })).await?;
    let mut printed = 0;
    while args.count.is_none_or(|count| printed < count) {
        let event = client.next().await?.1?;
        if event["kind"] == "stream-end" {
            bail!("follow the events: the stream ended ({})", text(&event["reason"]));
        }
        match global.format {
            Format::Json => global.console().print_json(&event)?,
            Format::Pretty => global.console().print(&event_text(&event))?,
        }
        if let Some(now) = event["cursor"].as_str() {
            *cursor = Some(line(now, MAX_TEXT));
        }
        printed += 1;
    }
    Ok(())
}

/// Renders an event as one line.
fn event_text(event: &Value) -> Text {
    let mut shown = Text::new();
    let member = |name: &str| line(text(&event[name]), MAX_TEXT);
    shown.push(FAINT, &member("timestamp"));
    shown.push(PLAIN, &format!("  {}", member("type")));
    for name in MEMBERS {
        let value = member(name);
        if !value.is_empty() {
            let style = if name == "state" { style_of(&value) } else { PLAIN };
            shown.push(PLAIN, "  ");
            shown.push(style, &value);
        }
    }
    shown.push(PLAIN, "\n");
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_one_line_without_escapes() {
        let event = json!({
            "kind": "hub-event", "seq": 7, "cursor": "5f0c-7", "type": "task-state", "agentId": "echo",
            "timestamp": "2026-01-31T11:58:00.000Z", "taskId": "01a1fc8f", "state": "working",
        });
        let shown = event_text(&event).words();
        assert_eq!(shown, "2026-01-31T11:58:00.000Z  task-state  echo  01a1fc8f  working\n");
        let odd = json!({ "type": "plugin-rejected", "file": "a\n\u{1b}[2J.wasm", "error": 7 });
        assert_eq!(event_text(&odd).words(), "  plugin-rejected  a [2J.wasm\n");
    }
}
