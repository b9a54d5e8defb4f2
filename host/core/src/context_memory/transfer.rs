//! What one agent hands over to another with a task: all stages in their order, and the fact that tells of it.
//!
//! Retrieval of items by their rank is done where they are stored; the items come here in that order.

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

/// The fact of a task that tells what its agent was handed with it.
pub const INHERITED: &str = "inherited";

/// Names of one kind that the fact lists; of the others it tells how many there are.
const MAX_LISTED: usize = 32;

/// Who hands over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Giver {
    /// The agent.
    pub agent: AgentId,
    /// The task that it is at work on.
    pub task: TaskId,
}

/// Something that stays with the caller, and by which rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// It is private.
    Private,
    /// The task does not name it, and the scope is `minimal`.
    NotNamed,
    /// The scope is `summary`: only what was derived of it goes.
    Derived,
    /// It does not fit into the budget.
    Budget,
}

/// So many things of each kind; of those that went, their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Told {
    /// Whether it is the goal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub goal: bool,
    /// How many thoughts.
    #[serde(skip_serializing_if = "is_zero")]
    pub thoughts: usize,
    /// How many decisions.
    #[serde(skip_serializing_if = "is_zero")]
    pub decisions: usize,
    /// How many variables.
    #[serde(skip_serializing_if = "is_zero")]
    pub variables: usize,
    /// How many items.
    #[serde(skip_serializing_if = "is_zero")]
    pub items: usize,
    /// Whether insights were derived.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insights: bool,
    /// The keys, names and ids of the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What stayed, by one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stayed {
    /// The rule.
    pub rule: Rule,
    /// What stayed by it. Nothing of it is named.
    #[serde(flatten)]
    pub what: Told,
}

/// The fact in the log of the task: what went, what stayed, and by which rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inherited {
    /// Whose it was.
    pub from: Giver,
    /// How much of it was to go.
    pub scope: Scope,
    /// Whether the receiver has it. If not, `why` tells.
    pub delivered: bool,
    /// Why it has nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What went.
    #[serde(default)]
    pub went: Told,
    /// What stayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stayed: Vec<Stayed>,
    /// What went, in bytes of JSON.
    #[serde(default)]
    pub bytes: usize,
}

/// What is handed over, and what is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// What the receiver's memory is to have, in the order of its use.
    pub pieces: Vec<Piece>,
    /// The fact.
    pub fact: Inherited,
}

/// Hands over what is asked for. `items` are those that the caller recalls, best first; `message` is the text of the task.
pub fn transfer(
    from: Giver,
    memory: WorkingMemory,
    items: Vec<Item>,
    asked: &Inherit,
    message: &str,
) -> Transfer {
    let memory = if asked.working_memory { memory } else { WorkingMemory::default() };
    let items = if asked.memory { items } else { Vec::new() };
    let (memory, items, private) = acquire(memory, items);
    let memory = encode(memory);
    let mut stayed = vec![(Rule::Private, told_of_private(private))];
    let offered = match asked.scope {
        Scope::Full => in_order(memory, items),
        Scope::Minimal => {
            let words = query_words(message);
            let is_named = |piece: &Piece| named(piece, &words, &asked.names);
            let (named, rest): (Vec<_>, Vec<_>) =
                in_order(memory, items).into_iter().partition(is_named);
            stayed.push((Rule::NotNamed, told(&rest, 0)));
            named
        }
        Scope::Summary => {
            let insights = derive(&memory, &items);
            stayed.push((Rule::Derived, told(&in_order(memory, items), 0)));
            if insights.is_empty() { Vec::new() } else { vec![insights_of(&from, json!(insights))] }
        }
    };
    let (pieces, left) = fit(offered, asked.budget);
    stayed.push((Rule::Budget, told(&left, 0)));
    let stayed = stayed.into_iter().filter(|(_, what)| *what != Told::default());
    let fact = Inherited {
        from,
        scope: asked.scope,
        delivered: true,
        why: None,
        went: told(&pieces, MAX_LISTED),
        stayed: stayed.map(|(rule, what)| Stayed { rule, what }).collect(),
        bytes: pieces.iter().map(Piece::bytes).sum(),
    };
    Transfer { pieces, fact }
}

impl Inherited {
    /// That nothing was handed over, and why.
    pub fn nothing(from: Giver, scope: Scope, why: impl Into<String>) -> Self {
        let (went, stayed) = (Told::default(), Vec::new());
        Self { from, scope, delivered: false, why: Some(why.into()), went, stayed, bytes: 0 }
    }

    /// What the facts of a task say of it.
    pub fn of(facts: Option<&Metadata>) -> Option<Self> {
        Self::deserialize(facts?.get(INHERITED)?).ok()
    }

    /// In one line for people.
    pub fn line(&self) -> String {
        let Giver { agent, task } = &self.from;
        if let Some(why) = &self.why {
            return format!("nothing from {agent} ({task}): {why}");
        }
        let mut line = format!("{} from {agent} ({task}), scope {}", self.went, self.scope.word());
        if !self.went.names.is_empty() {
            line += &format!(": {}", self.went.names.join(", "));
        }
        for Stayed { rule, what } in &self.stayed {
            let why = match rule {
                Rule::Private => "is private",
                Rule::NotNamed => "the task does not name",
                Rule::Derived => "is told as insights only",
                Rule::Budget => "does not fit",
            };
            line += &format!("; stayed, for it {why}: {what}");
        }
        line.replace("for it the task", "for the task")
    }
}

impl std::fmt::Display for Told {
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
    /// What it changes in the receiver's memory. Made twice, it is as if made once.
    pub fn changes(&self) -> Vec<Change> {
        // Thoughts are offered newest first, and kept oldest first.
        let (thoughts, others): (Vec<&Piece>, Vec<&Piece>) =
            self.pieces.iter().partition(|piece| matches!(piece, Piece::Thought(_)));
        let (decisions, others): (Vec<&Piece>, Vec<&Piece>) =
            others.into_iter().partition(|piece| matches!(piece, Piece::Decision(_)));
        // Of items, what is written last counts as the newest.
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

/// All there is, the most useful first: the goal, decisions newest first, variables, items by rank, thoughts newest first.
fn in_order(memory: WorkingMemory, items: Vec<Item>) -> Vec<Piece> {
    let WorkingMemory { goal, thoughts, decisions, variables, private_variables: _ } = memory;
    let goal = goal.into_iter().map(Piece::Goal);
    let decisions = decisions.into_iter().rev().map(Piece::Decision);
    let variables = variables.into_iter().map(|(name, value)| Piece::Variable(name, value));
    let thoughts = thoughts.into_iter().rev().map(Piece::Thought);
    let items = items.into_iter().map(Piece::Item);
    goal.chain(decisions).chain(variables).chain(items).chain(thoughts).collect()
}

/// Whether the task names it. The goal and thoughts have no names: they go where the list has `goal` or `thoughts`.
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

fn told_of_private(private: Private) -> Told {
    let Private { thoughts, decisions, variables, items } = private;
    Told { thoughts, decisions, variables, items, ..Told::default() }
}

/// What these are, with up to `listed` names.
fn told(pieces: &[Piece], listed: usize) -> Told {
    let mut told = Told::default();
    for piece in pieces {
        let name = match piece {
            Piece::Goal(_) => {
                told.goal = true;
                None
            }
            Piece::Thought(Thought { .. }) => {
                told.thoughts += 1;
                None
            }
            Piece::Insights(_) => {
                told.insights = true;
                None
            }
            Piece::Decision(decision) => {
                told.decisions += 1;
                Some(&decision.key)
            }
            Piece::Variable(name, _) => {
                told.variables += 1;
                Some(name)
            }
            Piece::Item(item) => {
                told.items += 1;
                Some(&item.id)
            }
        };
        if let Some(name) = name.filter(|_| told.names.len() < listed) {
            told.names.push(name.clone());
        }
    }
    told
}

#[cfg(test)]
mod tests;
