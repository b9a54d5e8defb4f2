//! `trigger`: lists, runs, pauses, resumes and accepts the triggers of the configuration.

use super::{accepted, add_row_notes, paused, started, state_of_last};
use a2a_hub_socket_client::{exit::Exit, global::Global, hub_client::ask};
use a2a_hub_terminal::{
    render::{list, past, text},
    table::Table,
    text::Text,
};
use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Commands of `trigger`.
#[derive(Debug, Subcommand)]
pub(crate) enum TriggerCommand {
    /// List the triggers with what they watch and their latest run
    List,
    /// Start a run of a trigger now, without an event, also of a paused one
    Run {
        /// Name of the trigger
        name: String,
    },
    /// Pause a trigger: events start no run until it is resumed, also after a restart of the hub
    Pause {
        /// Name of the trigger
        name: String,
    },
    /// Resume a trigger that was paused, or stopped by its limit; earlier events get no run
    Resume {
        /// Name of the trigger
        name: String,
    },
    /// Accept a trigger that passed to you from a removed person: it then runs as you
    Accept {
        /// Name of the trigger
        name: String,
    },
}

/// Carries out a command.
///
/// # Errors
///
/// The hub cannot be reached, or refuses.
pub(crate) fn trigger(global: &Global, trigger: &TriggerCommand) -> anyhow::Result<Exit> {
    let (answer, shown): (_, Text) = match trigger {
        TriggerCommand::List => {
            let answer = ask(global, "hub/triggers/list", json!({}))?;
            let shown = triggers_text(list(&answer), Timestamp::now(), global.console().columns());
            (answer, shown)
        }
        TriggerCommand::Run { name } => {
            let task = ask(global, "hub/triggers/run", json!({ "name": name }))?;
            let shown = started(&task);
            (task, shown)
        }
        TriggerCommand::Pause { name } => {
            let answer = ask(global, "hub/triggers/pause", json!({ "name": name }))?;
            (answer, paused("trigger", name))
        }
        TriggerCommand::Resume { name } => {
            let answer = ask(global, "hub/triggers/resume", json!({ "name": name }))?;
            (answer, format!("resumed `{name}`; it waits for the next event\n").into())
        }
        TriggerCommand::Accept { name } => {
            let answer = ask(global, "hub/triggers/accept", json!({ "name": name }))?;
            let shown = accepted(name, &answer);
            (answer, shown)
        }
    };
    global.show(&answer, || Ok(shown))?;
    Ok(Exit::Done)
}

/// Renders triggers as a table, with notes and warnings below each row.
fn triggers_text(triggers: &[Value], now: Timestamp, columns: Option<usize>) -> Text {
    if triggers.is_empty() {
        return "There are no triggers; `[trigger.<name>]` in the configuration makes one.\n"
            .into();
    }
    let mut table = Table::new(["TRIGGER", "ON", "WATCHES", "AGENT", "LAST", "STATE"]);
    for trigger in triggers {
        let is = |word: &str| trigger[word] == true;
        let on = match (is("paused"), is("stopped")) {
            (true, _) => "paused",
            (false, true) => "stopped",
            (false, false) => text(&trigger["on"]),
        };
        table.row([
            text(&trigger["name"]).into(),
            on.into(),
            text(&trigger["watches"]).into(),
            text(&trigger["agent"]).into(),
            past(&trigger["last"]["started"], now, columns).into(),
            state_of_last(trigger),
        ]);
        let events = trigger["pending"].as_u64().filter(|events| *events > 0);
        let waiting = events.map(|events| format!("events that wait for a run: {events}"));
        let resume_by = (is("paused") || is("stopped")).then_some("trigger");
        add_row_notes(&mut table, trigger, waiting, resume_by);
    }
    table.text(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigger_table_shows_latest_run() {
        let now = "2026-06-02T00:00:00Z".parse().unwrap();
        let review = json!({ "name": "review", "on": "commit", "watches": "/src/shop", "agent": "codex",
            "paused": false, "stopped": false, "pending": 2,
            "last": { "started": "2026-06-01T03:00:00.000Z", "task": "t1", "state": "completed" } });
        let fix = json!({ "name": "fix", "on": "task", "watches": "codex", "agent": "claude-code",
            "paused": false, "stopped": true, "pending": 0, "onRestart": "fail", "warning": "the trigger `fix` starts no runs" });
        let shown = triggers_text(&[review, fix], now, Some(80)).words();
        insta::assert_snapshot!(shown, @"
        TRIGGER  ON       WATCHES    AGENT        LAST      STATE
        review   commit   /src/shop  codex        21 h ago  completed
            latest task: a2a-hub task show t1
            events that wait for a run: 2
        fix      stopped  codex      claude-code  -         -
            a run that the end of the hub interrupts fails
            to go on: a2a-hub trigger resume fix
            warning: the trigger `fix` starts no runs
        ");
        assert!(triggers_text(&[], now, None).words().contains("[trigger.<name>]"));
    }
}
