//! Rule books of interactions, the replay of their turns, and the keys and answers that several
//! of them have.

use std::{fmt::Debug, sync::Arc};

use serde_json::{Value, json};

use crate::flow::{
    position::{Problems, Table, json as to_json},
    row::{ItemEnd, StepCall},
    text::{cut, one_line},
    turn::{MidTurnChange, Turn, TurnKind, Verdict},
};

/// Most agents of a step, and of an auction, whose bidders read nothing of the others.
pub(super) const MAX_AGENTS: usize = 32;
pub(super) const MAX_BIDDERS: usize = 128;

/// Bytes kept of a reason, plan or proposal.
const MAX_STATEMENT: usize = 8 << 10;

/// Largest amount: whole numbers up to it are exact in any JSON reader.
pub(super) const MAX_AMOUNT: u64 = 1 << 53;

/// Key of a step that says the rules of its interaction.
pub(super) struct InteractionKey {
    pub(super) name: &'static str,
    /// Keys of its table, besides those of all interactions.
    pub(super) keys: &'static [&'static str],
    /// Fewest and most agents.
    pub(super) agents: (usize, usize),
    /// True if the winner or leader does the work of the prompt.
    pub(super) has_work: bool,
    /// Reads the table; none if a key has an error. The list of agents is empty if it has one.
    pub(super) parse: ParseRules,
}

/// Function that reads the table of an interaction with these agents.
type ParseRules = fn(&Table<'_, '_>, &[String], &mut Problems<'_>) -> Option<Arc<dyn Rules>>;

/// Rules of an interaction.
pub(super) trait Rules: Debug + Send + Sync {
    /// Verb for charts and progress.
    fn verb(&self) -> &'static str;

    /// Course after these turns.
    ///
    /// # Errors
    ///
    /// If the rule book refuses the rules.
    fn course(&self, past: &PastTurns<'_>) -> Result<Course, String>;

    /// True if the agents share a blackboard.
    fn has_board(&self) -> bool {
        false
    }

    /// Answer to the last change of a blackboard, and the board after it.
    fn changed(&self, past: &PastTurns<'_>) -> Option<(Value, Value)> {
        let _ = past;
        None
    }
}

/// Turns that are over.
#[derive(Clone, Copy)]
pub(in crate::flow) struct PastTurns<'a> {
    pub(in crate::flow) agents: &'a [String],
    pub(in crate::flow) items: &'a [StepCall],
    /// Changes of a blackboard that agents made while they worked.
    pub(in crate::flow) changes: &'a [MidTurnChange],
    /// Id of the flow's task, from which lots are drawn.
    pub(in crate::flow) seed: &'a str,
}

/// Further course of an interaction, and its end.
#[derive(Debug, Default)]
pub(in crate::flow) struct Course {
    /// Turns that are over, and come again in the replay.
    over: usize,
    /// Turns that come next.
    pub(in crate::flow) turns: Vec<Turn>,
    pub(in crate::flow) verdict: Option<Verdict>,
    /// State of a blackboard, for people: before these turns, or at its end.
    pub(in crate::flow) board: Option<Value>,
}

impl Course {
    /// Course of rules that the rule book refuses.
    pub(super) fn refused(why: String) -> Self {
        let (failure, output) = (Some("invalid_flow"), Value::Null);
        Self { verdict: Some(Verdict { failure, text: why, output }), ..Self::default() }
    }

    /// True if the next turn is one that was not taken yet.
    pub(super) fn is_new(&self) -> bool {
        self.over == 0
    }

    /// Adds a turn. One that is over is not made again: its request may be long.
    pub(super) fn add(&mut self, turn: impl FnOnce() -> Turn) {
        match self.over {
            0 => self.turns.push(turn()),
            over => self.over = over - 1,
        }
    }
}

/// Rule book of an interaction, which turns drive.
pub(super) trait RuleBook {
    /// Action of the rule book.
    type Action;

    /// Actions with which it begins.
    fn begin(&mut self) -> Vec<Self::Action>;

    /// Takes the result of a turn, and returns what to do.
    fn on_result(&mut self, turn: &Turn, result: TurnResult<'_>) -> Vec<Self::Action>;

    /// Adds the turn of an action to the course, or its end.
    fn act(&mut self, action: Self::Action, course: &mut Course);

    /// Takes what the agents of the present batch did before its first turn was over.
    fn before_results(&mut self) {}
}

/// Replays the turns of these items, all of which are over.
pub(super) fn replay<B: RuleBook>(mut book: B, items: &[StepCall]) -> Course {
    replay_in(&mut book, items)
}

/// Replays the turns in a rule book, which has their results afterwards.
pub(super) fn replay_in<B: RuleBook>(book: &mut B, items: &[StepCall]) -> Course {
    let mut course = Course { over: items.len(), ..Course::default() };
    let mut actions = book.begin();
    let mut results = items.iter().filter_map(turn_result);
    loop {
        for action in actions {
            book.act(action, &mut course);
        }
        book.before_results();
        let Some((turn, result)) = results.next() else { return course };
        actions = book.on_result(turn, result);
    }
}

/// Result of a turn that is over.
pub(super) enum TurnResult<'i> {
    /// Structured answer.
    Answer(&'i Value),
    /// Text of the work.
    Done(&'i str),
    /// Failure with a text for people.
    Failed(String),
}

/// Turn of an item, with its result.
fn turn_result(item: &StepCall) -> Option<(&Turn, TurnResult<'_>)> {
    let turn = item.turn.as_ref()?;
    let Some(ItemEnd { completed, end, output, .. }) = &item.done else {
        return Some((turn, TurnResult::Failed("no answer".to_owned())));
    };
    let result = match (completed, &turn.kind, output) {
        (true, TurnKind::Work, _) => TurnResult::Done(&end.text),
        (true, TurnKind::Answer(_), Some(output)) => TurnResult::Answer(output),
        _ => {
            let text = one_line(&end.text);
            TurnResult::Failed(if text.is_empty() { end.reason.clone() } else { text })
        }
    };
    Some((turn, result))
}

/// Text of a member of an answer, within bounds.
pub(super) fn statement(answer: &Value, name: &str) -> String {
    let mut text = answer.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    cut(&mut text, MAX_STATEMENT);
    text
}

/// Reason of an agent that passed, with the text of a member of its answer.
pub(super) fn passed(answer: &Value, name: &str) -> String {
    match statement(answer, name).as_str() {
        "" => "passed".to_owned(),
        reason => format!("passed: {reason}"),
    }
}

/// True if an answer has this member, and it is true.
pub(super) fn is_set(answer: &Value, name: &str) -> bool {
    answer.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// Rows `{ agent, reason }`.
pub(super) fn with_reasons(rows: &[(String, String)]) -> Value {
    rows.iter().map(|(agent, reason)| json!({ "agent": agent, "reason": reason })).collect()
}

/// Whole number of a key, such as an amount; an error if it is below 0 or too large.
pub(super) fn amount(table: &Table<'_, '_>, key: &str, problems: &mut Problems<'_>) -> Option<u64> {
    let value = table.get(key)?;
    let number = value.get_ref().as_integer();
    let number = number.and_then(|it| it.to_string().parse::<u64>().ok());
    let number = number.filter(|number| *number <= MAX_AMOUNT);
    if number.is_none() {
        problems.error(&value.span(), format!("`{key}` is a whole number from 0 to {MAX_AMOUNT}"));
    }
    number
}

/// Number of a key between two limits.
pub(super) fn decimal(
    table: &Table<'_, '_>,
    key: &str,
    (min, max): (f64, f64),
    problems: &mut Problems<'_>,
) -> Option<f64> {
    let value = table.get(key)?;
    let number = to_json(value.get_ref()).as_f64();
    let number = number.filter(|number| (min..=max).contains(number));
    if number.is_none() {
        problems.error(&value.span(), format!("`{key}` is a number from {min} to {max}"));
    }
    number
}

/// Unit of amounts: a short text.
pub(super) fn unit(table: &Table<'_, '_>, default: &str, problems: &mut Problems<'_>) -> String {
    let Some((unit, at)) = table.text("unit", problems) else { return default.to_owned() };
    if unit.trim().is_empty() || unit.len() > 40 || unit.chars().any(char::is_control) {
        problems.error(&at, "`unit` is a short text, such as \"cents\"");
    }
    unit
}
