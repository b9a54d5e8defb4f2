//! Inheritance of memory from one agent to another with a task: runs all stages in order, and
//! describes the result.
//!
//! The store ranks the items; they arrive here in that order.

use super::{
    acquisition::{Private, acquire},
    derivation::derive,
    encoding::{Piece, encode},
    inherit::{Inherit, Scope},
    model::{Change, Item, Thought, WorkingMemory, semantic},
    retrieval::{names, names_item, query_words},
    utilisation::fit,
};
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    message::Metadata,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Metadata member of a task that describes the memory that its agent inherited.
pub const INHERITED: &str = "inherited";

/// Maximum number of names of one kind that the member lists; the others are only counted.
const MAX_LISTED: usize = 32;

/// Agent whose memory is inherited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Giver {
    /// Agent id.
    pub agent: AgentId,
    /// Task that the agent works on.
    pub task: TaskId,
}

/// Rule by which a part is not inherited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// It is private.
    Private,
    /// The task does not name it, and the scope is `minimal`.
    NotNamed,
    /// The scope is `summary`: it contributes only to the summary.
    Derived,
    /// It does not fit into the budget.
    Budget,
}

/// Number of parts of each kind, with the names of inherited ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TransferSummary {
    /// True if the goal is one of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub goal: bool,
    /// Number of thoughts.
    #[serde(skip_serializing_if = "is_zero")]
    pub thoughts: usize,
    /// Number of decisions.
    #[serde(skip_serializing_if = "is_zero")]
    pub decisions: usize,
    /// Number of variables.
    #[serde(skip_serializing_if = "is_zero")]
    pub variables: usize,
    /// Number of items.
    #[serde(skip_serializing_if = "is_zero")]
    pub items: usize,
    /// True if a summary was derived.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insights: bool,
    /// Keys, names and ids of the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Parts that were not inherited, by one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stayed {
    /// Rule that excluded them.
    pub rule: Rule,
    /// Number of parts; names are never listed.
    #[serde(flatten)]
    pub what: TransferSummary,
}

/// Description of an inheritance, in the task's metadata: inherited parts, and left-out parts by
/// rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inherited {
    /// Agent and task that the memory is from.
    pub from: Giver,
    /// Scope of the request.
    pub scope: Scope,
    /// True if the receiver has it. If not, `why` gives the reason.
    pub delivered: bool,
    /// Reason why nothing was inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Inherited parts.
    #[serde(default)]
    pub went: TransferSummary,
    /// Left-out parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stayed: Vec<Stayed>,
    /// Size of the inherited parts, in bytes of JSON.
    #[serde(default)]
    pub bytes: usize,
}

/// Inherited pieces, with their description.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Pieces for the receiver's memory, most useful first.
    pub pieces: Vec<Piece>,
    /// Description for the task's metadata.
    pub fact: Inherited,
}

/// Runs the stages. `items` are the caller's recalled items, best first; `message` is the text of
/// the task.
pub fn transfer(
    from: Giver,
    memory: WorkingMemory,
    items: Vec<Item>,
    options: &Inherit,
    message: &str,
) -> Transfer {
    let memory = if options.working_memory { memory } else { WorkingMemory::default() };
    let items = if options.memory { items } else { Vec::new() };
    let (memory, items, private) = acquire(memory, items);
    let memory = encode(memory);
    let mut stayed = vec![(Rule::Private, private_summary(private))];
    let offered = match options.scope {
        Scope::Full => in_order(memory, items),
        Scope::Minimal => {
            let words = query_words(message);
            let is_named = |piece: &Piece| named(piece, &words, &options.names);
            let (named, rest): (Vec<_>, Vec<_>) =
                in_order(memory, items).into_iter().partition(is_named);
            stayed.push((Rule::NotNamed, count_pieces(&rest, 0)));
            named
        }
        Scope::Summary => {
            let insights = derive(&memory, &items);
            stayed.push((Rule::Derived, count_pieces(&in_order(memory, items), 0)));
            if insights.is_empty() { Vec::new() } else { vec![insights_of(&from, json!(insights))] }
        }
    };
    let (pieces, omitted) = fit(offered, options.budget);
    stayed.push((Rule::Budget, count_pieces(&omitted, 0)));
    let stayed = stayed.into_iter().filter(|(_, summary)| *summary != TransferSummary::default());
    let fact = Inherited {
        from,
        scope: options.scope,
        delivered: true,
        why: None,
        went: count_pieces(&pieces, MAX_LISTED),
        stayed: stayed.map(|(rule, summary)| Stayed { rule, what: summary }).collect(),
        bytes: pieces.iter().map(Piece::bytes).sum(),
    };
    Transfer { pieces, fact }
}

impl Inherited {
    /// Description of an inheritance that failed, with the reason.
    pub fn nothing(from: Giver, scope: Scope, why: impl Into<String>) -> Self {
        let (went, stayed) = (TransferSummary::default(), Vec::new());
        Self { from, scope, delivered: false, why: Some(why.into()), went, stayed, bytes: 0 }
    }

    /// Reads the description from a task's metadata.
    pub fn from_metadata(facts: Option<&Metadata>) -> Option<Self> {
        Self::deserialize(facts?.get(INHERITED)?).ok()
    }

    /// One-line description for people.
    pub fn line(&self) -> String {
        let Giver { agent, task } = &self.from;
        if let Some(why) = &self.why {
            return format!("nothing from {agent} ({task}): {why}");
        }
        let mut line = format!("{} from {agent} ({task}), scope {}", self.went, self.scope.word());
        if !self.went.names.is_empty() {
            line += &format!(": {}", self.went.names.join(", "));
        }
        for Stayed { rule, what: summary } in &self.stayed {
            let why = match rule {
                Rule::Private => "is private",
                Rule::NotNamed => "the task does not name",
                Rule::Derived => "is told as insights only",
                Rule::Budget => "does not fit",
            };
            line += &format!("; stayed, for it {why}: {summary}");
        }
        line.replace("for it the task", "for the task")
    }
}

impl std::fmt::Display for TransferSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = |count: usize, one: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {one}s")),
        };
        let parts = [
            self.goal.then(|| "the goal".to_owned()),
            counted(self.decisions, "decision"),
            counted(self.variables, "variable"),
            counted(self.items, "item"),
            counted(self.thoughts, "thought"),
            self.insights.then(|| "insights".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "nothing" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

impl Transfer {
    /// Changes of the receiver's memory. Applying them twice has the same effect as once.
    pub fn changes(&self) -> Vec<Change> {
        // The pieces have the newest thoughts first; the memory has the oldest first.
        let (thoughts, others): (Vec<&Piece>, Vec<&Piece>) =
            self.pieces.iter().partition(|piece| matches!(piece, Piece::Thought(_)));
        let (decisions, others): (Vec<&Piece>, Vec<&Piece>) =
            others.into_iter().partition(|piece| matches!(piece, Piece::Decision(_)));
        // The item that is written last counts as the newest.
        let in_order = others.into_iter().chain(decisions).chain(thoughts).rev();
        in_order.map(change).collect()
    }
}

fn change(piece: &Piece) -> Change {
    match piece {
        Piece::Goal(goal) => Change::Goal(Some(goal.clone())),
        Piece::Decision(decision) => Change::Decide(decision.clone()),
        Piece::Variable(name, value) => {
            Change::Variable { name: name.clone(), value: Some(value.clone()), private: false }
        }
        Piece::Insights(item) | Piece::Item(item) => Change::Remember(item.clone()),
        Piece::Thought(thought) => Change::Thought(thought.clone()),
    }
}

/// All pieces, most useful first: the goal, decisions newest first, variables, items by rank,
/// thoughts newest first.
fn in_order(memory: WorkingMemory, items: Vec<Item>) -> Vec<Piece> {
    let WorkingMemory { goal, thoughts, decisions, variables, private_variables: _ } = memory;
    let goal = goal.into_iter().map(Piece::Goal);
    let decisions = decisions.into_iter().rev().map(Piece::Decision);
    let variables = variables.into_iter().map(|(name, value)| Piece::Variable(name, value));
    let thoughts = thoughts.into_iter().rev().map(Piece::Thought);
    let items = items.into_iter().map(Piece::Item);
    goal.chain(decisions).chain(variables).chain(items).chain(thoughts).collect()
}

/// True if the task names the piece. The goal and thoughts have no names: the list selects them as
/// `goal` and `thoughts`.
fn named(piece: &Piece, words: &BTreeSet<String>, list: &[String]) -> bool {
    let listed = |kind: &str| list.iter().any(|name| name == kind);
    match piece {
        Piece::Goal(_) => listed("goal"),
        Piece::Thought(_) => listed("thoughts"),
        Piece::Decision(decision) => names(words, list, &decision.key),
        Piece::Variable(name, _) => names(words, list, name),
        Piece::Item(item) | Piece::Insights(item) => names_item(words, list, item),
    }
}

fn insights_of(from: &Giver, data: Value) -> Piece {
    let metadata = json!({ "derived": true, "agent": from.agent, "task": from.task });
    let metadata = metadata.as_object().cloned();
    Piece::Insights(Item {
        id: format!("insights/{}", from.task),
        kind: semantic(),
        data,
        metadata,
    })
}

fn private_summary(private: Private) -> TransferSummary {
    let Private { thoughts, decisions, variables, items } = private;
    TransferSummary { thoughts, decisions, variables, items, ..TransferSummary::default() }
}

/// Counts the pieces, and lists up to `listed` names.
fn count_pieces(pieces: &[Piece], listed: usize) -> TransferSummary {
    let mut summary = TransferSummary::default();
    for piece in pieces {
        let name = match piece {
            Piece::Goal(_) => {
                summary.goal = true;
                None
            }
            Piece::Thought(Thought { .. }) => {
                summary.thoughts += 1;
                None
            }
            Piece::Insights(_) => {
                summary.insights = true;
                None
            }
            Piece::Decision(decision) => {
                summary.decisions += 1;
                Some(&decision.key)
            }
            Piece::Variable(name, _) => {
                summary.variables += 1;
                Some(name)
            }
            Piece::Item(item) => {
                summary.items += 1;
                Some(&item.id)
            }
        };
        if let Some(name) = name.filter(|_| summary.names.len() < listed) {
            summary.names.push(name.clone());
        }
    }
    summary
}

#[cfg(test)]
mod tests;
