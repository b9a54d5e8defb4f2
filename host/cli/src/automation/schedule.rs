//! `schedule`: lists, runs, pauses, resumes and accepts the schedules of the configuration.

use super::{accepted, add_row_notes, paused, started, state_of_last};
use a2a_hub_socket_client::{exit::Exit, global::Global, hub_client::ask};
use a2a_hub_terminal::{
    render::{ahead, list, past, text},
    table::Table,
    text::Text,
};
use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Commands of `schedule`.
#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// List the schedules with their next time and their latest run
    List,
    /// Start a run of a schedule now, also of a paused one
    Run {
        /// Name of the schedule
        name: String,
    },
    /// Pause a schedule: it starts no run until it is resumed, also after a restart of the hub
    Pause {
        /// Name of the schedule
        name: String,
    },
    /// Resume a paused schedule; planned times during the pause get no run
    Resume {
        /// Name of the schedule
        name: String,
    },
    /// Accept a schedule that passed to you from a removed person: it then runs as you
    Accept {
        /// Name of the schedule
        name: String,
    },
}

/// Carries out a command.
///
/// # Errors
///
/// The hub cannot be reached, or refuses.
pub(crate) fn schedule(global: &Global, schedule: &ScheduleCommand) -> anyhow::Result<Exit> {
    let (answer, shown): (_, Text) = match schedule {
        ScheduleCommand::List => {
            let answer = ask(global, "hub/schedules/list", json!({}))?;
            let shown = schedules_text(list(&answer), Timestamp::now(), global.console().columns());
            (answer, shown)
        }
        ScheduleCommand::Run { name } => {
            let task = ask(global, "hub/schedules/run", json!({ "name": name }))?;
            let shown = started(&task);
            (task, shown)
        }
        ScheduleCommand::Pause { name } => {
            let answer = ask(global, "hub/schedules/pause", json!({ "name": name }))?;
            (answer, paused("schedule", name))
        }
        ScheduleCommand::Resume { name } => {
            let answer = ask(global, "hub/schedules/resume", json!({ "name": name }))?;
            let shown = match answer["next"].as_str() {
                Some(next) => format!("resumed `{name}`; next run: {next}\n"),
                None => format!("resumed `{name}`\n"),
            };
            (answer, shown.into())
        }
        ScheduleCommand::Accept { name } => {
            let answer = ask(global, "hub/schedules/accept", json!({ "name": name }))?;
            let shown = accepted(name, &answer);
            (answer, shown)
        }
    };
    global.show(&answer, || Ok(shown))?;
    Ok(Exit::Done)
}

/// Renders schedules as a table, with notes and warnings below each row.
fn schedules_text(schedules: &[Value], now: Timestamp, columns: Option<usize>) -> Text {
    if schedules.is_empty() {
        return "There are no schedules; `[schedule.<name>]` in the configuration makes one.\n"
            .into();
    }
    let mut table = Table::new(["SCHEDULE", "AGENT", "NEXT", "IN", "LAST", "STATE"]);
    for schedule in schedules {
        let next = &schedule["next"];
        let is_paused = schedule["paused"] == true;
        let last = &schedule["last"];
        // The date and the minute, in the schedule's time zone: a terminal is narrow.
        let timestamp = next.as_str().unwrap_or("-");
        let shown = match (columns, timestamp.get(..10), timestamp.get(11..16)) {
            (Some(_), Some(day), Some(minute)) => format!("{day} {minute}"),
            (_, _, _) => timestamp.to_owned(),
        };
        table.row([
            text(&schedule["name"]).into(),
            text(&schedule["agent"]).into(),
            if is_paused { "paused".into() } else { shown.into() },
            if next.is_null() { "-".into() } else { ahead(next, now).into() },
            past(&last["planned"], now, columns).into(),
            state_of_last(schedule),
        ]);
        let queued = schedule["queued"].as_str();
        let waiting = queued.map(|queued| format!("the run of {queued} waits for that task"));
        add_row_notes(&mut table, schedule, waiting, is_paused.then_some("schedule"));
    }
    table.text(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_table_shows_next_and_last_run() {
        let now = "2026-06-02T00:00:00Z".parse().unwrap();
        let fresh = json!({ "name": "weekly", "agent": "review", "cron": "0 4 * * 1", "paused": true,
            "owner": "ada" });
        let nightly = json!({ "name": "nightly", "agent": "review", "cron": "0 3 * * *", "paused": false,
            "next": "2026-06-02T03:00:00+02:00", "note": "2 earlier planned times were missed, and got no run",
            "warning": "the schedule `nightly` cannot start",
            "last": { "planned": "2026-06-01T03:00:00+02:00", "task": "t1", "state": "completed" } });
        let piped = schedules_text(std::slice::from_ref(&nightly), now, None).words();
        assert!(piped.contains("\t2026-06-02T03:00:00+02:00\t"), "{piped}");
        let shown = schedules_text(&[nightly, fresh], now, Some(80)).words();
        insta::assert_snapshot!(shown, @"
        SCHEDULE  AGENT   NEXT              IN            LAST      STATE
        nightly   review  2026-06-02 03:00  in 1 h 0 min  23 h ago  completed
            latest task: a2a-hub task show t1
            note: 2 earlier planned times were missed, and got no run
            warning: the schedule `nightly` cannot start
        weekly    review  paused            -             -         -
            owner: ada
            to go on: a2a-hub schedule resume weekly
        ");
        assert!(schedules_text(&[], now, None).words().contains("[schedule.<name>]"));
    }
}
