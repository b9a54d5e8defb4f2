//! Recorded conversations with a program, and what came of them. All of these panic where a recording is not what it should be.

use serde_json::Value;

use super::program::{Program, json};
use crate::cli::{Action, End};

/// Splits a recording behind its first line that holds `mark`.
pub fn split_behind(recording: &str, mark: &str) -> (String, String) {
    let lines: Vec<String> = recording.lines().map(|line| format!("{line}\n")).collect();
    let at = lines.iter().position(|line| line.contains(mark));
    let (before, after) =
        lines.split_at(at.map_or_else(|| panic!("no line holds {mark}"), |at| at + 1));
    (before.concat(), after.concat())
}

/// The text that a listener has at the end.
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

/// How the run ended.
pub fn end(actions: &[Action]) -> &End {
    let Some(Action::End(end)) = actions.last() else { panic!("no end: {actions:?}") };
    end
}

/// The reason of a failure, and its text.
pub fn failure(actions: &[Action]) -> (&'static str, String) {
    let End::Failed { reason, text, .. } = end(actions) else { panic!("no failure: {actions:?}") };
    (reason.name(), text.clone())
}

/// What is told beside an answer.
pub fn metadata(actions: &[Action]) -> Value {
    let End::Completed { metadata, .. } = end(actions) else { panic!("no answer: {actions:?}") };
    metadata.clone().into()
}

/// What a recording's client of the Agent Client Protocol said (behind `> `), as ours says it: with our version.
pub fn acp_recorded(recording: &str) -> Vec<Value> {
    let mut told: Vec<Value> =
        recording.lines().filter_map(|line| line.strip_prefix("> ")).map(json).collect();
    told[0]["params"]["clientInfo"]["version"] = env!("CARGO_PKG_VERSION").into();
    told
}

/// What a program was told in that protocol, without the member that is the same in each message.
pub fn acp_told(program: &Program) -> Vec<Value> {
    let mut told = program.told();
    for message in &mut told {
        let version = message.as_object_mut().and_then(|message| message.remove("jsonrpc"));
        assert_eq!(version, Some("2.0".into()), "{message}");
    }
    told
}
