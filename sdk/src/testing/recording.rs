//! Recorded conversations with a program, and their results. All functions panic at an unexpected
//! recording.

use serde_json::Value;

use super::program::{Program, json};
use crate::cli::{Action, End};

/// Splits a recording after its first line that contains `mark`.
pub fn split_behind(recording: &str, mark: &str) -> (String, String) {
    let lines: Vec<String> = recording.lines().map(|line| format!("{line}\n")).collect();
    let at = lines.iter().position(|line| line.contains(mark));
    let (before, after) =
        lines.split_at(at.map_or_else(|| panic!("no line holds {mark}"), |at| at + 1));
    (before.concat(), after.concat())
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
