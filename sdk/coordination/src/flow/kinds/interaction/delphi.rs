//! Steps with `delphi`: agents answer in anonymous rounds until few of them change their answer.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::rules::{
    Course, InteractionKey, MAX_AGENTS, PastTurns, RuleBook, Rules, TurnResult, decimal, replay,
    statement, unit,
};
use crate::{
    delphi::{
        Delphi, DelphiAction, DelphiEnd, DelphiEvent, DelphiOutcome, DelphiRules as Book,
        ExpertAnswer, Figures, Summary, Value as Estimate,
    },
    flow::{
        limits::MAX_CHOICES,
        position::{Problems, Table},
        scope::distinct_texts,
        template::as_data,
        turn::{Turn, Verdict},
    },
};

pub(super) const RULES: InteractionKey = InteractionKey {
    name: "delphi",
    keys: &["choices", "unit", "rounds", "least", "max_changes", "tolerance"],
    agents: (1, MAX_AGENTS),
    has_work: false,
    parse: |table, agents, problems| Some(Arc::new(parse(table, agents.len().max(1), problems)?)),
};

/// Most rounds.
const MAX_ROUNDS: u32 = 10;

/// Largest estimate: up to it, six digits behind the point are exact.
const MAX_ESTIMATE: f64 = 1_000_000.0;

/// Rules of a Delphi.
#[derive(Clone, Debug)]
struct DelphiStep {
    /// Answers to choose from; none for numbers.
    choices: Option<Vec<String>>,
    unit: String,
    rounds: u32,
    min_answers: usize,
    max_changes: usize,
    tolerance: f64,
}

impl Rules for DelphiStep {
    fn verb(&self) -> &'static str {
        "estimate"
    }

    fn course(&self, past: &PastTurns<'_>) -> Result<Course, String> {
        let PastTurns { agents, items, .. } = *past;
        let state = Delphi::new(Book {
            experts: agents.to_vec(),
            is_number: self.choices.is_none(),
            max_changes: self.max_changes,
            tolerance: self.tolerance,
            min_answers: self.min_answers,
            max_rounds: self.rounds,
            timeout_ms: None,
        })?;
        Ok(replay(Rounds { rules: self, state, round: 1 }, items))
    }
}

impl DelphiStep {
    fn estimate(&self, answer: &Value) -> Option<ExpertAnswer> {
        let value = answer.get("value")?;
        let value = match &self.choices {
            None => Estimate::Number(value.as_f64()?),
            Some(_) => Estimate::Choice(value.as_str()?.to_owned()),
        };
        Some(ExpertAnswer { value, reason: statement(answer, "reason") })
    }

    fn call(&self, expert: String, round: u32, summary: Option<&Summary>) -> Turn {
        let value = match &self.choices {
            None => json!({ "type": "number", "minimum": 0, "maximum": MAX_ESTIMATE }),
            Some(choices) => json!({ "enum": choices }),
        };
        let mut request = format!(
            "Several experts answer this, each alone, in at most {} rounds. This is round {round}.",
            self.rounds
        );
        if self.choices.is_none() && !self.unit.is_empty() {
            request.push_str(&format!(" Answer in {}.", self.unit));
        }
        if let Some(summary) = summary {
            let report = format!("{}\n{}", self.figures(&summary.figures), answers(summary));
            request.push_str(" The answers of the last round, without names, were:");
            request.push_str(&as_data(&report));
            request.push_str("Keep your answer or change it, and give your reason.");
        }
        Turn::answer(expert, [("value", value), ("reason", json!({ "type": "string" }))], request)
    }

    fn figures(&self, figures: &Figures) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        match figures {
            Figures::Quartiles(lower, median, upper) => {
                format!("median {median}{unit}, half of the answers from {lower} to {upper}")
            }
            Figures::Counts(counts) => {
                let counts = counts.iter().map(|(choice, count)| format!("{choice}: {count}"));
                counts.collect::<Vec<_>>().join(", ")
            }
        }
    }

    fn verdict(&self, DelphiOutcome { end, rounds, summary }: &DelphiOutcome) -> Verdict {
        let (word, label) = match end {
            DelphiEnd::Stable => ("stable", "stable"),
            DelphiEnd::Capped => ("capped", "not stable"),
            DelphiEnd::NoQuorum => ("no_quorum", "too few answers"),
        };
        let mut output = Map::new();
        output.insert("outcome".to_owned(), word.into());
        output.insert("rounds".to_owned(), (*rounds).into());
        output.insert("unit".to_owned(), self.unit.as_str().into());
        let mut text = format!("{label} after {rounds} rounds");
        let value = summary.as_ref().map_or(Value::Null, |it| of_all(&it.figures));
        output.insert("value".to_owned(), value);
        if let Some(summary) = summary {
            let figures = match &summary.figures {
                Figures::Quartiles(lower, median, upper) => {
                    json!({ "lower": lower, "median": median, "upper": upper })
                }
                Figures::Counts(counts) => {
                    let counts =
                        counts.iter().map(|(choice, count)| (choice.clone(), json!(count)));
                    Value::Object(counts.collect())
                }
            };
            output.insert("figures".to_owned(), figures);
            let rows = summary
                .answers
                .iter()
                .map(|answer| json!({ "value": to_json(&answer.value), "reason": answer.reason }));
            output.insert("answers".to_owned(), rows.collect());
            text.push_str(&format!(": {}\n{}", self.figures(&summary.figures), answers(summary)));
        }
        Verdict { failure: None, text, output: output.into() }
    }
}

/// Delphi in one of its rounds.
struct Rounds<'r> {
    rules: &'r DelphiStep,
    state: Delphi,
    round: u32,
}

impl RuleBook for Rounds<'_> {
    type Action = DelphiAction;

    fn begin(&mut self) -> Vec<DelphiAction> {
        self.state.step(0, DelphiEvent::Begun)
    }

    fn on_result(&mut self, turn: &Turn, result: TurnResult<'_>) -> Vec<DelphiAction> {
        let expert = turn.agent.clone();
        let estimate = match result {
            TurnResult::Answer(answer) => self.rules.estimate(answer),
            TurnResult::Done(_) | TurnResult::Failed(_) => None,
        };
        let event = match estimate {
            Some(estimate) => DelphiEvent::Answered(expert, self.round, estimate),
            None => DelphiEvent::Failed(expert, self.round),
        };
        self.state.step(0, event)
    }

    fn act(&mut self, action: DelphiAction, course: &mut Course) {
        match action {
            DelphiAction::Call(expert, round, summary) => {
                self.round = round;
                course.add(|| self.rules.call(expert, round, summary.as_ref()));
            }
            DelphiAction::Finish(outcome) => course.verdict = Some(self.rules.verdict(&outcome)),
            DelphiAction::Wait(_) | DelphiAction::Cancel(..) => {}
        }
    }
}

/// Answer of all: the median, or the only choice with the most answers.
fn of_all(figures: &Figures) -> Value {
    match figures {
        Figures::Quartiles(_, median, _) => json!(median),
        Figures::Counts(counts) => {
            let max = counts.iter().map(|(_, count)| *count).max().unwrap_or_default();
            let mut best = counts.iter().filter(|(_, count)| *count == max);
            match (best.next(), best.next()) {
                (Some((choice, _)), None) => json!(choice),
                _ => Value::Null,
            }
        }
    }
}

fn to_json(value: &Estimate) -> Value {
    match value {
        Estimate::Number(number) => json!(number),
        Estimate::Choice(choice) => json!(choice),
    }
}

/// Answers with their reasons, one a line.
fn answers(summary: &Summary) -> String {
    let line = |answer: &ExpertAnswer| match &answer.value {
        Estimate::Number(number) => format!("{number}: {}", answer.reason),
        Estimate::Choice(choice) => format!("{choice}: {}", answer.reason),
    };
    summary.answers.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn parse(table: &Table<'_, '_>, agents: usize, problems: &mut Problems<'_>) -> Option<DelphiStep> {
    let choices = match table.get("choices") {
        Some(_) => {
            for key in ["unit", "tolerance"] {
                if let Some(value) = table.get(key) {
                    let rule =
                        format!("`{key}` is a key of a Delphi about a number; `choices` are texts");
                    problems.error(&value.span(), rule);
                }
            }
            let choices = distinct_texts((table, "delphi"), "choices", (2, MAX_CHOICES), problems)?;
            Some(choices.into_iter().map(|(choice, _)| choice).collect())
        }
        None => None,
    };
    let max = u32::try_from(agents.max(1)).unwrap_or(u32::MAX);
    let count = |number: Option<u32>| number.and_then(|it| usize::try_from(it).ok());
    let min_answers = count(table.number("least", (1, max), problems)).unwrap_or(agents / 2 + 1);
    let max_changes = count(table.number("max_changes", (0, max), problems)).unwrap_or(0);
    Some(DelphiStep {
        choices,
        unit: unit(table, "", problems),
        rounds: table.number("rounds", (2, MAX_ROUNDS), problems).unwrap_or(4),
        min_answers: min_answers.min(agents.max(1)),
        max_changes,
        tolerance: decimal(table, "tolerance", (0.0, MAX_ESTIMATE), problems).unwrap_or(0.0),
    })
}
