//! Steps with `pick`: the best of several worktrees. Candidates count that completed, changed
//! something and passed all judges; of these, the one with the fewest changed lines is chosen.

use serde_json::{Value, json};

use super::kind::{Attempt, AttemptValues, KindKey, StepKind};
use crate::flow::{
    event::ChildChanges,
    row::{CallFailure, ItemEnd, Row},
    text::one_line,
};

/// The keys of its table name other steps, and are read once these are known.
pub(super) const KEYS: &[KindKey<Pick>] =
    &[KindKey { name: "pick", with: &[], parse: |_| Some(Pick::default()) }];

/// Choice among candidates in worktrees.
#[derive(Clone, Debug, Default)]
pub(in crate::flow) struct Pick {
    /// Step with the candidates.
    pub(in crate::flow) from: usize,
    /// Steps with a program, which has to exit with 0 in the worktree of the candidate.
    pub(in crate::flow) judges: Vec<usize>,
    /// True if the client decides among all candidates that pass, whatever their size.
    pub(in crate::flow) asks_always: bool,
    /// True if the client decides among candidates of the same size.
    pub(in crate::flow) asks_at_tie: bool,
}

/// Candidates of a step that is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::flow) struct CandidateRanking {
    /// Indices of the best candidates: none, one, or several of the same size.
    pub(in crate::flow) best: Vec<usize>,
    /// Reason of each candidate that does not count, by index.
    pub(in crate::flow) out: Vec<(usize, String)>,
    /// True if the client chooses among several best candidates.
    pub(in crate::flow) needs_choice: bool,
}

/// Most lines of a judge's output that are shown.
const MAX_OUTPUT_LINES: usize = 2;

impl Pick {
    /// Compares the candidates. The rows of the candidates and judges are over; `id` names a step.
    pub(in crate::flow) fn rank<'a>(
        &self,
        id: impl Fn(usize) -> &'a str,
        rows: &[Row],
    ) -> CandidateRanking {
        let mut ranking = CandidateRanking::default();
        let mut fewest_lines = u64::MAX;
        for (index, item) in rows[self.from].items.iter().enumerate() {
            let lines = match item.done.as_ref() {
                Some(end) => self.lines(&id, rows, index, end),
                None => Err("it has not ended".to_owned()),
            };
            match lines {
                Ok(lines) if lines == fewest_lines || self.asks_always => ranking.best.push(index),
                Ok(lines) if lines < fewest_lines => {
                    (fewest_lines, ranking.best) = (lines, vec![index]);
                }
                Ok(_) => {}
                Err(why) => ranking.out.push((index, why)),
            }
        }
        ranking.needs_choice = ranking.best.len() > 1 && (self.asks_always || self.asks_at_tie);
        ranking
    }

    /// Changed lines of a candidate, or the reason why it does not count.
    fn lines<'a>(
        &self,
        id: impl Fn(usize) -> &'a str,
        rows: &[Row],
        index: usize,
        end: &ItemEnd,
    ) -> Result<u64, String> {
        if !end.completed {
            return Err(one_line(&end.end.text));
        }
        let changes = end.end.worktree.as_ref().filter(|changes| changes.files > 0);
        let Some(changes) = changes else { return Err("it changed nothing".to_owned()) };
        for &judge in &self.judges {
            let id = id(judge);
            let judged = rows[judge].items.get(index).and_then(|item| item.done.as_ref());
            match judged {
                Some(ItemEnd { completed: true, exit: Some(0), .. }) => {}
                Some(ItemEnd { exit: Some(exit), end, .. }) => {
                    let last = last_lines(&end.text);
                    return Err(format!("`{id}` exited with {exit}{last}"));
                }
                Some(ItemEnd { end, .. }) => {
                    return Err(format!("`{id}` failed: {}", one_line(&end.text)));
                }
                None => return Err(format!("`{id}` did not judge it")),
            }
        }
        Ok(lines(changes))
    }
}

impl StepKind for Pick {
    fn calls(&self) -> bool {
        false
    }

    fn label(&self) -> String {
        "picks".to_owned()
    }

    fn brackets(&self) -> (&'static str, &'static str) {
        ("{", "}")
    }

    fn attempt(&self, _values: &AttemptValues<'_>) -> Result<Attempt, CallFailure> {
        Ok(Attempt::Pick)
    }
}

/// Size of a change: its lines, and at least one for each file, since binary files have none.
fn lines(changes: &ChildChanges) -> u64 {
    changes.insertions.saturating_add(changes.deletions).max(changes.files)
}

/// Name of a candidate: its agent and its number, counted from 1.
pub(in crate::flow) fn name(rows: &[Row], from: usize, index: usize) -> String {
    let done = rows[from].items.get(index).and_then(|item| item.done.as_ref());
    let agent = done.map(|done| done.agent.as_str()).unwrap_or_default();
    format!("{} {agent}", index + 1)
}

/// Name of a candidate with the size of its change and its cost, as far as they are known.
pub(in crate::flow) fn label(rows: &[Row], from: usize, index: usize) -> String {
    let done = rows[from].items.get(index).and_then(|item| item.done.as_ref());
    let changes = done.and_then(|done| done.end.worktree.as_ref());
    let size = changes.map(|it| format!("+{} -{}", it.insertions, it.deletions));
    let cost = done.and_then(|done| done.end.cost_usd).map(|dollars| format!("${dollars:.2}"));
    let facts: Vec<_> = size.into_iter().chain(cost).collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    name(rows, from, index) + &facts
}

/// Text about all candidates except the chosen one: a Markdown list of their sizes and costs, and
/// why each was not taken.
pub(in crate::flow) fn others(
    rows: &[Row],
    from: usize,
    ranking: &CandidateRanking,
    chosen: Option<usize>,
) -> String {
    let why = |index: usize| {
        let out = ranking.out.iter().find(|(other, _)| *other == index);
        match out {
            Some((_, why)) => why.as_str(),
            None if ranking.best.contains(&index) && ranking.needs_choice => "passed, not chosen",
            None if ranking.best.contains(&index) => "passed, same size, later",
            None => "passed, larger",
        }
    };
    let others = (0..rows[from].items.len()).filter(|index| Some(*index) != chosen);
    let line = |index| format!("- {}: {}", label(rows, from, index), why(index));
    others.map(line).collect::<Vec<_>>().join("\n")
}

/// Last lines of a program's output in a code span of Markdown, behind a colon; empty without any.
fn last_lines(output: &str) -> String {
    let lines = output.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
    let mut last: Vec<_> = lines.take(MAX_OUTPUT_LINES).map(one_line).collect();
    last.reverse();
    match last.join(" / ").replace('`', "'") {
        none if none.is_empty() => none,
        last => format!(": `{last}`"),
    }
}

/// Output of the step.
pub(in crate::flow) fn output(
    rows: &[Row],
    from: usize,
    chosen: usize,
    ranking: &CandidateRanking,
) -> Value {
    let items = &rows[from].items;
    let done = |index: usize| items.get(index).and_then(|item| item.done.as_ref());
    let changes = |index: usize| done(index).and_then(|done| done.end.worktree.as_ref());
    let agent = |index: usize| done(index).map(|done| done.agent.clone());
    let candidate = |index: usize| {
        let out = ranking.out.iter().find(|(other, _)| *other == index);
        let lines = changes(index).map(lines);
        json!({ "agent": agent(index), "lines": lines, "out": out.map(|(_, why)| why) })
    };
    json!({
        "index": chosen,
        "agent": agent(chosen),
        "candidates": (0..items.len()).map(candidate).collect::<Vec<_>>(),
    })
}
