//! Delphi: experts answer in anonymous rounds, and see what all said before, until few change.
//!
//! ```text
//!   new ── Begun ──► round ── all answered or failed, or the deadline passed ──► stable
//!                    ▲    │                                                      capped
//!                    └────┘ more than `max_changes` experts changed              no quorum
//! ```
//!
//! After Dalkey and Helmer, "An Experimental Application of the Delphi Method to the Use of
//! Experts" (1963): experts do not know who said what, each round begins with a summary of the
//! last one, and the method ends when answers are stable. A summary has no names, and its order
//! is that of the answers themselves, so that neither the list of experts nor their speed shows
//! through.

use std::collections::BTreeMap;

use crate::amount::{fraction, millionths};

/// Answer of an expert in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertAnswer {
    /// Estimate or choice.
    pub value: Value,
    /// Grounds, which the others see without a name.
    pub reason: String,
}

/// Value of an answer. All experts give the same kind; other answers count as failures.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Estimate of a quantity, not below 0, to six digits behind the point.
    Number(f64),
    /// One of some choices, or a short text.
    Choice(String),
}

/// Experts and limits.
#[derive(Clone, Debug, PartialEq)]
pub struct DelphiRules {
    /// Names of the experts.
    pub experts: Vec<String>,
    /// True if the answers are numbers.
    pub is_number: bool,
    /// Most experts that may change their answer in a stable round.
    pub max_changes: usize,
    /// Difference up to which a number counts as the same.
    pub tolerance: f64,
    /// Least number of answers of a round.
    pub min_answers: usize,
    /// Most rounds.
    pub max_rounds: u32,
    /// Time for one round; none waits for ever.
    pub timeout_ms: Option<u64>,
}

/// Event of a Delphi.
#[derive(Clone, Debug, PartialEq)]
pub enum DelphiEvent {
    /// The first round begins.
    Begun,
    /// An expert's answer in this round.
    Answered(String, u32, ExpertAnswer),
    /// An expert failed in this round. It is asked again in the next one.
    Failed(String, u32),
    /// Time passed.
    Rang,
}

/// Action of a Delphi.
#[derive(Clone, Debug, PartialEq)]
pub enum DelphiAction {
    /// Ask an expert in this round, with the summary of the last one.
    Call(String, u32, Option<Summary>),
    /// Send [`DelphiEvent::Rang`] at this time.
    Wait(u64),
    /// Withdraw the question to an expert that is too slow.
    Cancel(String, u32),
    /// End the Delphi.
    Finish(DelphiOutcome),
}

/// Answers of a round, without names.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Figures of the answers.
    pub figures: Figures,
    /// Values with their reasons, sorted by value and reason.
    pub answers: Vec<ExpertAnswer>,
}

/// Figures of the answers of a round.
#[derive(Clone, Debug, PartialEq)]
pub enum Figures {
    /// Of numbers: the lower quartile, the median and the upper quartile, each an answer (nearest
    /// rank).
    Quartiles(f64, f64, f64),
    /// Of choices: the number of each, sorted by the choice.
    Counts(Vec<(String, usize)>),
}

/// Kind of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelphiEnd {
    /// Few experts changed their answer in the last round.
    Stable,
    /// The answers still changed in the last round.
    Capped,
    /// Too few experts answered in the last round.
    NoQuorum,
}

/// Outcome of a Delphi.
#[derive(Clone, Debug, PartialEq)]
pub struct DelphiOutcome {
    /// Kind.
    pub end: DelphiEnd,
    /// Number of rounds.
    pub rounds: u32,
    /// Answers of the last round with at least one, without names.
    pub summary: Option<Summary>,
}

/// One Delphi.
#[derive(Clone, Debug)]
pub struct Delphi {
    rules: DelphiRules,
    phase: DelphiPhase,
    round: u32,
    deadline: Option<u64>,
    /// Answers of this round; none of those that failed.
    answers: BTreeMap<String, Option<ExpertAnswer>>,
    /// Last answer of each expert.
    before: BTreeMap<String, ExpertAnswer>,
    summary: Option<Summary>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DelphiPhase {
    New,
    Open,
    Over,
}

impl Delphi {
    /// Creates a Delphi. An expert that is named twice counts once.
    ///
    /// # Errors
    ///
    /// If no round or answer is possible.
    pub fn new(mut rules: DelphiRules) -> Result<Self, String> {
        let mut experts: Vec<String> = Vec::new();
        for expert in std::mem::take(&mut rules.experts) {
            if !experts.contains(&expert) {
                experts.push(expert);
            }
        }
        rules.experts = experts;
        let count = rules.experts.len();
        if count == 0 || rules.max_rounds == 0 {
            return Err("a Delphi has at least one expert and one round".to_owned());
        }
        if !(1..=count).contains(&rules.min_answers) {
            let min_answers = rules.min_answers;
            return Err(format!(
                "a round of {count} experts has from 1 to {count} answers, and here `least` is {min_answers}"
            ));
        }
        Ok(Self {
            rules,
            phase: DelphiPhase::New,
            round: 0,
            deadline: None,
            answers: BTreeMap::new(),
            before: BTreeMap::new(),
            summary: None,
        })
    }

    /// Takes an event at a time in milliseconds, and returns what to do.
    pub fn step(&mut self, now: u64, event: DelphiEvent) -> Vec<DelphiAction> {
        let mut actions = Vec::new();
        let is_late = self.deadline.is_some_and(|deadline| now >= deadline);
        match (self.phase, event) {
            (DelphiPhase::New, DelphiEvent::Begun) => {
                self.phase = DelphiPhase::Open;
                self.begin_round(now, &mut actions);
                return actions;
            }
            (DelphiPhase::Open, DelphiEvent::Answered(expert, round, answer)) if !is_late => {
                let answer = self.is_usable(&answer).then_some(answer);
                self.answered(expert, round, answer);
            }
            (DelphiPhase::Open, DelphiEvent::Failed(expert, round)) => {
                self.answered(expert, round, None);
            }
            (DelphiPhase::New | DelphiPhase::Open | DelphiPhase::Over, _) => {}
        }
        let is_complete = self.answers.len() == self.rules.experts.len();
        if self.phase == DelphiPhase::Open && (is_complete || is_late) {
            self.end_round(now, &mut actions);
        }
        actions
    }

    fn is_usable(&self, answer: &ExpertAnswer) -> bool {
        match &answer.value {
            Value::Number(number) => self.rules.is_number && number.is_finite() && *number >= 0.0,
            Value::Choice(choice) => !self.rules.is_number && !choice.is_empty(),
        }
    }

    fn answered(&mut self, expert: String, round: u32, answer: Option<ExpertAnswer>) {
        if round == self.round && self.rules.experts.contains(&expert) {
            self.answers.entry(expert).or_insert(answer);
        }
    }

    fn begin_round(&mut self, now: u64, actions: &mut Vec<DelphiAction>) {
        self.round += 1;
        for expert in &self.rules.experts {
            actions.push(DelphiAction::Call(expert.clone(), self.round, self.summary.clone()));
        }
        self.deadline = self.rules.timeout_ms.map(|ms| now.saturating_add(ms));
        actions.extend(self.deadline.map(DelphiAction::Wait));
    }

    fn end_round(&mut self, now: u64, actions: &mut Vec<DelphiAction>) {
        let silent = self.rules.experts.iter().filter(|it| !self.answers.contains_key(*it));
        actions.extend(silent.map(|expert| DelphiAction::Cancel(expert.clone(), self.round)));
        let answers = std::mem::take(&mut self.answers);
        let answers: BTreeMap<_, _> =
            answers.into_iter().filter_map(|(expert, answer)| Some((expert, answer?))).collect();
        // An expert without an earlier answer is one that changed.
        let changes = answers.iter().filter(|(expert, answer)| {
            self.before
                .get(*expert)
                .is_none_or(|before| !self.is_same(&before.value, &answer.value))
        });
        let changes = changes.count();
        let count = answers.len();
        if count > 0 {
            self.summary = Some(summary(answers.values().cloned().collect()));
        }
        self.before.extend(answers);
        let end = if count < self.rules.min_answers {
            DelphiEnd::NoQuorum
        } else if self.round > 1 && changes <= self.rules.max_changes {
            DelphiEnd::Stable
        } else if self.round >= self.rules.max_rounds {
            DelphiEnd::Capped
        } else {
            return self.begin_round(now, actions);
        };
        self.phase = DelphiPhase::Over;
        let (rounds, summary) = (self.round, self.summary.clone());
        actions.push(DelphiAction::Finish(DelphiOutcome { end, rounds, summary }));
    }

    fn is_same(&self, one: &Value, other: &Value) -> bool {
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => {
                millionths(*one).abs_diff(millionths(*other)) <= millionths(self.rules.tolerance)
            }
            (Value::Choice(one), Value::Choice(other)) => one == other,
            (Value::Number(_), Value::Choice(_)) | (Value::Choice(_), Value::Number(_)) => false,
        }
    }
}

/// Summary of at least one answer.
fn summary(mut answers: Vec<ExpertAnswer>) -> Summary {
    let key = |answer: &ExpertAnswer| match &answer.value {
        Value::Number(number) => (millionths(*number), String::new(), answer.reason.clone()),
        Value::Choice(choice) => (0, choice.clone(), answer.reason.clone()),
    };
    answers.sort_by_key(key);
    let (mut numbers, mut counts) = (Vec::new(), BTreeMap::<String, usize>::new());
    for answer in &answers {
        match &answer.value {
            Value::Number(number) => numbers.push(fraction(millionths(*number))),
            Value::Choice(choice) => *counts.entry(choice.clone()).or_default() += 1,
        }
    }
    // Nearest rank of this number of quarters.
    let rank = |quarters: usize| (numbers.len() * quarters).div_ceil(4).saturating_sub(1);
    let of = |quarters| numbers.get(rank(quarters)).copied().unwrap_or_default();
    let figures = match counts.is_empty() {
        true => Figures::Quartiles(of(1), of(2), of(3)),
        false => Figures::Counts(counts.into_iter().collect()),
    };
    Summary { figures, answers }
}
