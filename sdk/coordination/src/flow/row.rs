//! State of one step in a run, and the records of its items for templates.

use serde_json::{Value, json};

use super::{
    event::{ChildChanges, ChildEnd},
    turn::{MidTurnChange, Turn, Verdict},
};

/// State of one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) phase: StepPhase,
    pub(super) round: u32,
    pub(super) items: Vec<StepCall>,
    /// Elements of the list of a `for_each`.
    pub(super) list: Vec<Value>,
    pub(super) record: Option<Value>,
    pub(super) previous: Option<Value>,
    /// End of an interaction.
    pub(super) verdict: Option<Verdict>,
    /// Changes of a blackboard by agents at work, in the order in which they arrived.
    pub(super) changes: Vec<MidTurnChange>,
    /// Times that each entry of `next` was followed.
    pub(super) jumps: Vec<u32>,
    /// Text that a step with `stream` has written so far.
    pub(super) written: String,
    /// Input of a task that reads a step while it is written.
    pub(super) handed: Option<Handed>,
    /// True once a pause is over, and what was written meanwhile is handed over.
    pub(super) is_due: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StepPhase {
    #[default]
    Waiting,
    Running,
    Done,
    Failed,
    /// Not needed any more: the steps after it have begun without it.
    Dropped,
}

/// One call of a step; a step without `for_each` has one.
#[derive(Clone, Debug, Default)]
pub(super) struct StepCall {
    pub(super) attempt: u32,
    pub(super) retries: u32,
    /// Index of the agent: the first one, or one of `fallback`.
    pub(super) agent: usize,
    /// Reason why the last answer does not fit the schema.
    pub(super) correction: Option<String>,
    /// Task of one agent in an interaction.
    pub(super) turn: Option<Turn>,
    pub(super) done: Option<ItemEnd>,
}

#[derive(Clone, Debug)]
pub(super) struct ItemEnd {
    pub(super) completed: bool,
    pub(super) end: ChildEnd,
    pub(super) output: Option<Value>,
    pub(super) agent: String,
    /// Exit code of a program.
    pub(super) exit: Option<i64>,
}

/// Reason of an item that was not done, because what it works on is missing.
pub(super) const SKIPPED: &str = "skipped";

impl ItemEnd {
    /// True if the item was done, and failed.
    pub(super) fn is_failed(&self) -> bool {
        !self.completed && self.end.reason != SKIPPED
    }

    /// State for templates.
    fn state(&self) -> &'static str {
        match (self.completed, self.is_failed()) {
            (true, _) => "completed",
            (false, true) => "failed",
            (false, false) => SKIPPED,
        }
    }
}

/// Failure of an item.
pub(super) struct CallFailure {
    pub(super) reason: String,
    pub(super) text: String,
}

/// Agent of an attempt: the first one, or one of `fallback`.
pub(super) fn agents<'a>(first: &'a str, fallback: &'a [String], which: usize) -> &'a str {
    which.checked_sub(1).and_then(|it| fallback.get(it)).map_or(first, String::as_str)
}

/// Record of one item.
pub(super) fn of_item(item: &StepCall) -> Value {
    let Some(done) = &item.done else { return Value::Null };
    let ItemEnd { completed: _, end, output, agent, exit } = done;
    json!({
        "state": done.state(),
        "text": end.text,
        "output": output,
        "artifacts": end.artifacts,
        "agent": agent,
        "exit": exit,
        "worktree": end.worktree.as_ref().map(changes_record),
    })
}

/// Record of a worktree's changes for templates.
fn changes_record(changes: &ChildChanges) -> Value {
    let ChildChanges { files, insertions, deletions, diff } = changes;
    json!({ "files": files, "insertions": insertions, "deletions": deletions, "diff": diff })
}

/// Input of a reader.
#[derive(Clone, Debug, Default)]
pub(super) struct Handed {
    /// Bytes of the text that the reader has.
    pub(super) bytes: usize,
    /// Bytes before the piece that is on its way.
    pub(super) before: usize,
    pub(super) pieces: u32,
    /// True while a piece is on its way: the reader has not read it.
    pub(super) is_sent: bool,
    /// True if the piece before could not be sent.
    pub(super) is_refused: bool,
    /// True once the last piece is sent.
    pub(super) is_closed: bool,
    /// True if the reader has ended before the last piece.
    pub(super) has_ended: bool,
    /// True while the reader asks: a message would be the answer, and is not taken.
    pub(super) asks: bool,
}
