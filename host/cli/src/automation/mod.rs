//! Commands for schedules and triggers, which the hub starts by itself, for topics, for
//! notifiers, and for decisions of several agents.

#[cfg(feature = "hub")]
pub(crate) mod blackboard;
#[cfg(feature = "hub")]
pub(crate) mod decide;
#[cfg(feature = "hub")]
pub(crate) mod decision;
#[cfg(feature = "hub")]
pub(crate) mod notify;
#[cfg(feature = "hub")]
pub(crate) mod record;
pub(crate) mod schedule;
pub(crate) mod topic;
pub(crate) mod trigger;

use a2a_hub_terminal::{
    render::{shell_word, text},
    table::{Cell, Table},
    text::{Text, style_of},
};
use serde_json::Value;

/// Text about a run that was started by hand.
fn started(task: &Value) -> Text {
    let id = shell_word(text(&task["id"]));
    format!("started the task {id}; then: a2a-hub task watch {id}\n").into()
}

/// Text about a pause; `command` is `schedule` or `trigger`.
fn paused(command: &str, name: &str) -> Text {
    let again = shell_word(name);
    format!("paused `{name}`; to go on: a2a-hub {command} resume {again}\n").into()
}

/// Text about automation that was accepted.
fn accepted(name: &str, answer: &Value) -> Text {
    format!("accepted `{name}`; its runs begin tasks as {}\n", text(&answer["owner"])).into()
}

/// Cell with the state of the latest run.
fn state_of_last(of: &Value) -> Cell {
    let last = &of["last"];
    let state = match (last.is_null(), text(&last["state"])) {
        (true, _) => "-",
        (false, "") => "deleted",
        (false, state) => state,
    };
    Cell::styled(style_of(state), state)
}

/// Adds the lines below a row: the owner, the latest task, the rule for interruptions, `waiting`,
/// the way to go on, notes and warnings.
fn add_row_notes(table: &mut Table, of: &Value, waiting: Option<String>, resume_by: Option<&str>) {
    match of["owner"].as_str() {
        Some(owner) if of["offered"] == true => {
            table.add_note(format!("owner: {owner}, once accepted"));
        }
        Some(owner) => table.add_note(format!("owner: {owner}")),
        None => {}
    }
    if let Some(task) = of["last"]["task"].as_str() {
        table.add_note(format!("latest task: a2a-hub task show {}", shell_word(task)));
    }
    if of["onRestart"] == "fail" {
        table.add_note("a run that the end of the hub interrupts fails");
    }
    if let Some(waiting) = waiting {
        table.add_note(waiting);
    }
    if let Some(command) = resume_by {
        let name = shell_word(text(&of["name"]));
        table.add_note(format!("to go on: a2a-hub {command} resume {name}"));
    }
    for name in ["note", "warning"] {
        if let Some(note) = of[name].as_str() {
            table.add_note(format!("{name}: {note}"));
        }
    }
}
