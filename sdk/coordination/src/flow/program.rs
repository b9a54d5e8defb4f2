//! Programs of steps: their arguments stand in the file, and values reach them as variables of
//! their environment.

use serde_json::{Map, Value, json};

use super::{
    position::{Problems, Table},
    scope::SourceRange,
};

/// Agent that runs the programs of flows. The hub lets no other agent and no client call it.
pub const SCRIPT: &str = "script";

/// Most words of a command, and the most bytes of one.
const MAX_WORDS: usize = 64;
const MAX_WORD: usize = 4 << 10;

/// Failure reasons of a task that the end of its hub cut off: by a kill, or by a shutdown.
const HUB_ENDED: [&str; 2] = [HUB_RESTARTED, "hub_stopped"];
pub(super) const HUB_RESTARTED: &str = "hub_restarted";

/// Program of a step.
#[derive(Clone, Debug)]
pub(super) struct StepProgram {
    pub(super) command: Vec<String>,
    /// True if an exit code other than 0 completes the step: `on_exit` says what follows.
    pub(super) takes_any_exit: bool,
    pub(super) on_restart: OnRestart,
}

/// Continuation of a program that a restart of the hub cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OnRestart {
    Retry,
    /// The client decides: nobody knows how far the program came.
    #[default]
    Ask,
    Fail,
}

impl StepProgram {
    /// Data of the message to [`SCRIPT`].
    pub(super) fn request(&self, environment: &Map<String, Value>) -> Value {
        json!({ "run": self.command, "env": environment })
    }
}

/// Refuses the agent that runs programs: its commands would not stand in a `run`.
pub(super) fn refuse_by_name(name: &str, at: &SourceRange, problems: &mut Problems<'_>) {
    if name == SCRIPT {
        problems.error(at, "the agent `script` works for `run` only: write `run = [\"PROGRAM\"]`");
    }
}

/// Program of a step.
pub(super) fn parse(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<StepProgram> {
    let value = table.get("run")?;
    let words = table.texts("run", problems);
    if words.is_empty() || words.len() > MAX_WORDS {
        let rule = format!("`run` is a program and its arguments, {MAX_WORDS} at most");
        problems.error(&value.span(), rule);
        return None;
    }
    for (index, (word, at)) in words.iter().enumerate() {
        if let Some(why) = word_rule(word, index == 0) {
            problems.error(at, format!("`run`: {why}"));
        }
    }
    let on_restart = table.word("on_restart", &["retry", "ask", "fail"], problems);
    Some(StepProgram {
        command: words.into_iter().map(|(word, _)| word).collect(),
        takes_any_exit: table.get("on_exit").is_some(),
        on_restart: match on_restart.as_deref() {
            Some("retry") => OnRestart::Retry,
            Some("fail") => OnRestart::Fail,
            Some(_) | None => OnRestart::Ask,
        },
    })
}

/// Rule that a word of a command breaks.
fn word_rule(word: &str, is_program: bool) -> Option<String> {
    if word.len() > MAX_WORD || word.contains('\0') {
        return Some(format!("a word has at most {MAX_WORD} bytes, and none of them is zero"));
    }
    if ["{{", "{%", "{#"].iter().any(|mark| word.contains(mark)) {
        let rule = "a program's arguments stand in the file, and are no texts with variables; the program reads values from its environment, such as `A2A_INPUT_TASK`";
        return Some(rule.to_owned());
    }
    if is_program && (word.is_empty() || word.contains('/') || word.starts_with('-')) {
        let rule = "the first word is the name of a program on the hub's PATH; for a file of the working directory, write [\"sh\", \"./FILE\"]";
        return Some(rule.to_owned());
    }
    // The hub's patterns of arguments give these a meaning of their own.
    if word.ends_with("{}") || word == "{}*" || (word.starts_with('[') && word.ends_with(']')) {
        let rule = format!(
            "`{word}`: a word does not end in {{}}, and is not in brackets; put the command into a file, and write [\"sh\", \"./FILE\"]"
        );
        return Some(rule);
    }
    None
}

/// Exit code in the answer of [`SCRIPT`].
pub(super) fn exit_of(data: Option<&Value>) -> Option<i64> {
    data?.get("exit")?.as_i64()
}

/// True if a task with this failure reason was cut off by the end of its hub.
pub(super) fn is_cut_off(reason: &str) -> bool {
    HUB_ENDED.contains(&reason)
}
