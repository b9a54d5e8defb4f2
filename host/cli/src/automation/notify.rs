//! `notify`: lists the notifiers of the configuration, and sends a test message by one.

use a2a_hub_socket_client::{exit::Exit, global::Global, hub_client::ask};
use a2a_hub_terminal::{
    render::{list, past, shell_word, text},
    table::Table,
    text::Text,
};
use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Commands of `notify`.
#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// List the notifiers with their latest message, and those that cannot send
    #[command(visible_alias = "status")]
    List,
    /// Send a test message now, and say what came of it
    Test {
        /// Name of the notifier
        name: String,
    },
}

/// Carries out a command.
///
/// # Errors
///
/// The hub cannot be reached, or refuses.
pub(crate) fn notify(global: &Global, command: &NotifyCommand) -> anyhow::Result<Exit> {
    match command {
        NotifyCommand::List => {
            let answer = ask(global, "hub/notifiers/list", json!({}))?;
            let columns = global.console().columns();
            global
                .show(&answer, || Ok(notifiers_text(list(&answer), Timestamp::now(), columns)))?;
            Ok(Exit::Done)
        }
        NotifyCommand::Test { name } => {
            let answer = ask(global, "hub/notifiers/test", json!({ "name": name }))?;
            global.show(&answer, || Ok(test_text(&answer)))?;
            Ok(if answer["delivered"] == true { Exit::Done } else { Exit::Fault })
        }
    }
}

/// Renders the result of a test message.
fn test_text(result: &Value) -> Text {
    let (name, by, target) = (text(&result["name"]), text(&result["by"]), text(&result["target"]));
    let ms = result["tookMs"].as_u64().unwrap_or_default();
    match result["error"].as_str() {
        None => {
            let ends = match by {
                "command" => "the program ended with success",
                _ => "the server confirmed it",
            };
            format!("sent a test message by `{name}` to {target}; {ends} after {ms} ms\n").into()
        }
        Some(why) => {
            format!("`{name}` did not deliver the test message to {target}: {why}\n").into()
        }
    }
}

/// Renders notifiers as a table, with notes below each row.
fn notifiers_text(notifiers: &[Value], now: Timestamp, columns: Option<usize>) -> Text {
    if notifiers.is_empty() {
        return "There are no notifiers; `[notify.<name>]` in the configuration makes one.\n"
            .into();
    }
    let mut table = Table::new(["NOTIFIER", "BY", "TO", "SENT", "LAST", "STATE"]);
    for notifier in notifiers {
        let failure = &notifier["failure"];
        let state = match (failure.is_null(), notifier["quietUntil"].as_str()) {
            (false, _) => "failing",
            (true, Some(_)) => "quiet",
            (true, None) => "ok",
        };
        table.row([
            text(&notifier["name"]).into(),
            text(&notifier["by"]).into(),
            text(&notifier["target"]).into(),
            notifier["sent"].as_u64().unwrap_or_default().to_string().into(),
            past(&notifier["lastSentAt"], now, columns).into(),
            state.into(),
        ]);
        let words = |name: &str| {
            let words: Vec<_> = list(&notifier[name]).iter().map(text).collect();
            words.join(", ")
        };
        let agents = words("agents");
        let of = if agents.is_empty() { agents } else { format!(" of {agents}") };
        let seconds = notifier["afterMs"].as_u64().unwrap_or_default() / 1000;
        table.add_note(format!("on {}{of}, after {seconds} s", words("on")));
        if let Some(end) = notifier["quietUntil"].as_str() {
            table.add_note(format!("quiet until {end}"));
        }
        if let Some(why) = failure["error"].as_str() {
            table.add_note(format!("failing since {}: {why}", text(&failure["since"])));
            if let Some(lost) = failure["lost"].as_u64().filter(|lost| *lost > 0) {
                table.add_note(format!("messages that were given up: {lost}"));
            }
            if let Some(again) = notifier["retryAt"].as_str() {
                table.add_note(format!("next attempt: {again}"));
            }
            let name = shell_word(text(&notifier["name"]));
            table.add_note(format!("to try it: a2a-hub notify test {name}"));
        }
    }
    table.text(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifier_table_shows_failures() {
        let now = "2026-06-02T00:00:00Z".parse().unwrap();
        let phone = json!({ "name": "phone", "by": "ntfy", "target": "https://ntfy.sh", "sent": 3,
            "on": ["permission", "failed"], "agents": ["codex"], "afterMs": 30_000,
            "lastSentAt": "2026-06-01T03:00:00.000Z", "quietUntil": "2026-06-02T05:00:00.000Z" });
        let desk = json!({ "name": "desk", "by": "webhook", "target": "https://hooks.example",
            "sent": 0, "on": ["expiring"], "afterMs": 0, "retryAt": "2026-06-02T00:05:00.000Z",
            "failure": { "since": "2026-06-01T23:00:00.000Z", "lost": 2,
                "error": "it answered with HTTP status 500" } });
        let shown = notifiers_text(&[phone, desk], now, Some(80)).words();
        insta::assert_snapshot!(shown, @"
        NOTIFIER  BY       TO                     SENT  LAST      STATE
        phone     ntfy     https://ntfy.sh        3     21 h ago  quiet
            on permission, failed of codex, after 30 s
            quiet until 2026-06-02T05:00:00.000Z
        desk      webhook  https://hooks.example  0     -         failing
            on expiring, after 0 s
            failing since 2026-06-01T23:00:00.000Z: it answered with HTTP status 500
            messages that were given up: 2
            next attempt: 2026-06-02T00:05:00.000Z
            to try it: a2a-hub notify test desk
        ");
        assert!(notifiers_text(&[], now, None).words().contains("[notify.<name>]"));
    }

    #[test]
    fn test_result_says_what_came_of_it() {
        let sent = json!({ "name": "phone", "by": "command", "target": "notify-send",
            "delivered": true, "tookMs": 12 });
        assert_eq!(
            test_text(&sent).words(),
            "sent a test message by `phone` to notify-send; the program ended with success after 12 ms\n"
        );
        let failed = json!({ "name": "phone", "by": "ntfy", "target": "https://ntfy.sh",
            "delivered": false, "error": "it answered with HTTP status 403", "tookMs": 12 });
        assert!(
            test_text(&failed)
                .words()
                .ends_with("https://ntfy.sh: it answered with HTTP status 403\n")
        );
    }
}
