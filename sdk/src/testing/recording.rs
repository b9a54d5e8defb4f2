//! Recorded conversations with a program, and their results. All functions panic at an unexpected
//! recording.

use std::collections::BTreeMap;

use serde_json::Value;

use super::program::{Program, json};
use crate::cli::{Action, Driver, End};
use crate::{Event, TaskStatus};

/// Splits a recording after its first line that contains `mark`.
pub fn split_behind(recording: &str, mark: &str) -> (String, String) {
    let lines: Vec<String> = recording.lines().map(|line| format!("{line}\n")).collect();
    let at = lines.iter().position(|line| line.contains(mark));
    let (before, after) =
        lines.split_at(at.map_or_else(|| panic!("no line holds {mark}"), |at| at + 1));
    (before.concat(), after.concat())
}

/// Actions on a line of the program, and on the silence that the driver then waits for, if any.
pub fn fed<D: Driver>(driver: &mut D, line: &str) -> Vec<Action> {
    let mut actions = driver.line(line);
    if actions.iter().any(|action| matches!(action, Action::AwaitQuiet { .. })) {
        actions.extend(driver.quiet());
    }
    actions
}

/// Text that a client has at the end.
pub fn streamed(actions: &[Action]) -> String {
    let mut text = String::new();
    for action in actions {
        if let Action::Delta(delta) = action {
            text.push_str(delta);
        } else if *action == Action::Restart {
            text.clear();
        }
    }
    text
}

/// Result of the run.
pub fn end(actions: &[Action]) -> &End {
    let Some(Action::End(end)) = actions.last() else { panic!("no end: {actions:?}") };
    end
}

/// Reason and text of a failure.
pub fn failure(actions: &[Action]) -> (&'static str, String) {
    let End::Failed { reason, text, .. } = end(actions) else { panic!("no failure: {actions:?}") };
    (reason.name(), text.clone())
}

/// Metadata of an answer.
pub fn metadata(actions: &[Action]) -> Value {
    let End::Completed { metadata, .. } = end(actions) else { panic!("no answer: {actions:?}") };
    metadata.clone().into()
}

/// Number of tool calls that a run reported in the metadata of its statuses. Panics unless the id
/// of each is unique, and each has ended.
pub fn ended_tool_calls(events: &[Event]) -> usize {
    let mut open: BTreeMap<String, bool> = BTreeMap::new();
    for event in events {
        let Event::Status(TaskStatus { metadata: Some(metadata), .. }) = event else { continue };
        let tool = json(metadata)["tool"].take();
        let (Some(id), Some(status)) = (tool["id"].as_str(), tool["status"].as_str()) else {
            continue;
        };
        let is_end = matches!(status, "completed" | "failed");
        let before = open.insert(id.to_owned(), !is_end);
        assert_ne!(before, Some(false), "the call {id} has ended, and is {status}: {events:?}");
    }
    let left: Vec<_> = open.iter().filter(|(_, is_open)| **is_open).collect();
    assert!(left.is_empty(), "calls without an end: {left:?}");
    open.len()
}

/// Messages of the client in a recording of the Agent Client Protocol (after `> `), with our
/// version.
pub fn acp_recorded(recording: &str) -> Vec<Value> {
    let mut told: Vec<Value> =
        recording.lines().filter_map(|line| line.strip_prefix("> ")).map(json).collect();
    told[0]["params"]["clientInfo"]["version"] = env!("CARGO_PKG_VERSION").into();
    told
}

/// Messages to a program in that protocol, without the member `jsonrpc`, which is the same in each.
pub fn acp_told(program: &Program) -> Vec<Value> {
    let mut told = program.told();
    for message in &mut told {
        let version = message.as_object_mut().and_then(|message| message.remove("jsonrpc"));
        assert_eq!(version, Some("2.0".into()), "{message}");
    }
    told
}
