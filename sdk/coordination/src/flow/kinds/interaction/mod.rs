//! Steps in which agents decide or work together over several turns: `auction`, `blackboard`,
//! `contract_net`, `delphi`, `election` and `negotiation`.
//!
//! ```text
//!   turns of one batch, all at the same time ── all are over ──► the rule book
//!             ▲                                                     │
//!             └───────────── the next batch ────────────────────────┴──► verdict
//! ```
//!
//! The rule books are state machines of this crate. A step stores none: it replays its turns, in
//! their order, so that the order in which agents answer decides nothing.

mod auction;
mod blackboard;
mod contract_net;
mod delphi;
mod election;
mod negotiation;
mod rules;

use std::sync::Arc;

use serde_json::Value;

use super::kind::{
    Attempt, AttemptValues, CallRights, KindKey, StepKind, StepReader, template_failure,
};
use crate::flow::{
    answer,
    permission::{WORDS, is_elevated},
    position::{Problems, Table},
    program::refuse_by_name,
    row::{CallFailure, StepCall},
    scope::{SourceRange, distinct_texts, only, owned, template},
    template::Template,
    turn::{MidTurnChange, TurnKind, TurnLimits},
};
pub(in crate::flow) use rules::Course;
use rules::{InteractionKey, PastTurns, Rules};

/// Makes the table of interactions.
macro_rules! interactions {
    ($($rules:path),* $(,)?) => {
        const RULES: &[InteractionKey] = &[$($rules),*];
        pub(super) const KEYS: &[KindKey<Interaction>] = &[$(key($rules.name)),*];
    };
}

interactions![
    auction::RULES,
    blackboard::RULES,
    contract_net::RULES,
    delphi::RULES,
    election::RULES,
    negotiation::RULES,
];

const fn key(name: &'static str) -> KindKey<Interaction> {
    KindKey { name, with: &["prompt", "permissions", "retry"], parse }
}

/// Decision of a step over several turns.
#[derive(Clone, Debug)]
pub(in crate::flow) struct Interaction {
    pub(in crate::flow) agents: Vec<String>,
    prompt: Template,
    /// Permissions of those that do the work; all others only read.
    permissions: Option<String>,
    pub(in crate::flow) limits: TurnLimits,
    rules: Arc<dyn Rules>,
}

impl Interaction {
    /// Course after these items, all of which are over, with the changes that agents made while
    /// they worked. `seed` is the id of the flow's task.
    pub(in crate::flow) fn course(
        &self,
        items: &[StepCall],
        changes: &[MidTurnChange],
        seed: &str,
    ) -> Course {
        let past = PastTurns { agents: &self.agents, items, changes, seed };
        // The file was checked for what the rule books refuse.
        self.rules.course(&past).unwrap_or_else(Course::refused)
    }

    /// True if the agents share a blackboard.
    pub(in crate::flow) fn has_board(&self) -> bool {
        self.rules.has_board()
    }

    /// Answer to the last of these changes, and the board after it; none without a blackboard.
    /// The turns of `items` are over.
    pub(in crate::flow) fn changed(
        &self,
        items: &[StepCall],
        changes: &[MidTurnChange],
    ) -> Option<(Value, Value)> {
        self.rules.changed(&PastTurns { agents: &self.agents, items, changes, seed: "" })
    }
}

impl StepKind for Interaction {
    fn agents(&self) -> &[String] {
        &self.agents
    }

    fn permissions(&self) -> Option<&str> {
        self.permissions.as_deref()
    }

    fn decides(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        format!("{} {}", self.agents.join(", "), self.rules.verb())
    }

    fn brackets(&self) -> (&'static str, &'static str) {
        ("{", "}")
    }

    fn attempt(&self, values: &AttemptValues<'_>) -> Result<Attempt, CallFailure> {
        let turn = values.turn.ok_or_else(|| template_failure("a turn is missing".to_owned()))?;
        let mut text = self.prompt.render(&(values.variables)()).map_err(template_failure)?;
        text.push_str("\n\n");
        text.push_str(&turn.request);
        if let Some(schema) = turn.schema() {
            text.push_str(&answer::request(schema));
        }
        text.push_str(&values.correction.map(|why| answer::correction(why)).unwrap_or_default());
        let rights = match turn.kind {
            TurnKind::Answer(_) => CallRights::ReadOnly,
            TurnKind::Work => CallRights::OfStep(self.permissions.clone()),
        };
        Ok(Attempt::Call { text, data: None, rights })
    }
}

fn parse(step: &mut StepReader<'_, '_, '_, '_>) -> Option<Interaction> {
    let StepReader { key, table, scope, texts, problems } = step;
    let rules = RULES.iter().find(|rules| rules.name == *key)?;
    if !rules.has_work {
        let of = "a step whose agents work; the agents of this one only answer";
        only(table, &["permissions"], of, problems);
    }
    let inner = Table::from_value(table.get(key)?, key, problems)?;
    let known: Vec<_> = ["agents", "answer_timeout"].iter().chain(rules.keys).copied().collect();
    inner.check_keys(&known, problems);
    let agents = distinct_texts((&inner, key), "agents", rules.agents, problems);
    for (name, at) in agents.iter().flatten() {
        refuse_by_name(name, at, problems);
    }
    let agents: Option<Vec<_>> = agents.map(|all| all.into_iter().map(|(name, _)| name).collect());
    let rules = (rules.parse)(&inner, agents.as_deref().unwrap_or_default(), problems);
    let answer_ms = inner.duration("answer_timeout", problems);
    let limits = TurnLimits { answer_ms, work_ms: inner.duration("work_timeout", problems) };
    let permissions = permissions(table, agents.as_deref().unwrap_or_default(), problems);
    let prompt = template(table, "prompt", problems);
    if prompt.is_none() && table.get("prompt").is_none() {
        problems.error(&table.at, format!("{} has a `prompt`", table.name));
    }
    let (prompt, at) = prompt?;
    texts.push((owned(prompt.names()), at, *scope));
    Some(Interaction { agents: agents?, prompt, permissions, limits, rules: rules? })
}

fn permissions(
    table: &Table<'_, '_>,
    agents: &[String],
    problems: &mut Problems<'_>,
) -> Option<String> {
    let permissions = table.word("permissions", &WORDS, problems);
    let is_routed = agents.iter().any(|agent| agent.contains(':'));
    if is_routed && permissions.as_deref().is_some_and(is_elevated) {
        let at: SourceRange =
            table.get("permissions").map_or(table.at.clone(), toml::Spanned::span);
        problems.error(&at, "permissions above \"ask\" are for agents that are named");
    }
    permissions
}
