//! Steps with `vote`: one task for each voter, all at the same time, and a rule that counts their
//! ballots. Voters only read, whatever the flow may do otherwise.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toml::Spanned;

use super::kind::{
    Attempt, AttemptValues, CallRights, KindKey, StepKind, StepReader, template_failure,
};
use crate::{
    flow::{
        answer,
        limits::MAX_CHOICES,
        position::{AgentNumbers, Problems, Table, did_you_mean},
        program::refuse_by_name,
        row::{CallFailure, ItemEnd, Row, StepCall},
        schema,
        scope::{distinct_texts, owned, template},
        template::Template,
        text::{cut, one_line},
    },
    record::{Record, VoteResults},
    vote::{Ballot, Poll, PollAction, PollDecision, PollEvent, PollOutcome, PollState, Rule},
};

pub(super) const KEYS: &[KindKey<VoteStep>] =
    &[KindKey { name: "vote", with: &["prompt", "retry"], parse }];

/// Most voters of a step.
const MAX_VOTERS: usize = 128;

/// Weights of voters.
const WEIGHTS: AgentNumbers =
    AgentNumbers { noun: "weight", unknown: "does not vote", max: 1_000.0 };

/// Bytes kept of the reason of a ballot.
const MAX_REASON: usize = 4 << 10;

/// Vote of a step.
#[derive(Clone, Debug)]
pub(in crate::flow) struct VoteStep {
    agents: Vec<String>,
    choices: Vec<String>,
    rule: Rule,
    prompt: Template,
}

impl VoteStep {
    /// JSON schema of a ballot.
    pub(in crate::flow) fn ballot(&self) -> Value {
        let mut members = Map::new();
        members.insert("choice".to_owned(), json!({ "enum": self.choices }));
        let confidence = json!({ "type": "number", "minimum": 0, "maximum": 1 });
        members.insert("confidence".to_owned(), confidence);
        members.insert("reason".to_owned(), json!({ "type": "string" }));
        schema::object(members)
    }

    /// True if a ballot counts the record of its voter.
    pub(in crate::flow) fn is_by_record(&self) -> bool {
        matches!(self.rule, Rule::Record(_))
    }

    /// Takes the records of its voters, if they count.
    pub(in crate::flow) fn weigh(&mut self, all: &BTreeMap<String, Record>) {
        if let Rule::Record(records) = &mut self.rule {
            all.clone_into(records);
        }
    }

    /// Ballots for the record of their agents.
    pub(in crate::flow) fn results(&self, row: &Row) -> Option<VoteResults> {
        let ballots = self.count(row)?.ballots.into_iter().filter_map(|(agent, ballot)| {
            let choice = self.choices.iter().position(|it| *it == ballot.choice)?;
            Some((agent, choice))
        });
        let ballots: BTreeMap<_, _> = ballots.collect();
        let choices = self.choices.clone();
        (!ballots.is_empty()).then_some(VoteResults { choices, ballots, right: None })
    }

    fn count(&self, row: &Row) -> Option<PollOutcome> {
        let (voters, choices) = (self.agents.clone(), self.choices.clone());
        let poll = Poll { voters, choices, rule: self.rule.clone(), timeout_ms: None };
        // The file was checked for what `new` refuses.
        let mut state = PollState::new(poll).ok()?;
        let mut actions = state.step(0, PollEvent::Begun);
        for (agent, item) in self.agents.iter().zip(&row.items) {
            actions.extend(state.step(0, event(agent, item)));
        }
        actions.into_iter().find_map(|action| match action {
            PollAction::Finish(outcome) => Some(outcome),
            PollAction::Call(_) | PollAction::Wait(_) | PollAction::Cancel(_) => None,
        })
    }
}

impl StepKind for VoteStep {
    fn agents(&self) -> &[String] {
        &self.agents
    }

    fn agent(&self, item: usize) -> &str {
        self.agents.get(item).map_or("", String::as_str)
    }

    fn items(&self) -> usize {
        self.agents.len()
    }

    fn decides(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        format!("{} vote", self.agents.join(", "))
    }

    fn brackets(&self) -> (&'static str, &'static str) {
        ("{", "}")
    }

    /// Record of the step, whose items are the voters in their order.
    fn record(&self, row: &Row, items: &[Value]) -> Option<Value> {
        let outcome = self.count(row);
        let text = outcome.as_ref().map(to_text).unwrap_or_default();
        let mut output = outcome.map(|outcome| to_json(&outcome));
        if let (Rule::Record(records), Some(output)) =
            (&self.rule, output.as_mut().and_then(Value::as_object_mut))
        {
            let weight = |agent: &String| records.get(agent).copied().unwrap_or_default().weight();
            let weights = self.agents.iter().map(|agent| (agent, weight(agent)));
            let weights = json!(weights.collect::<BTreeMap<_, _>>());
            output.extend([("weights".to_owned(), weights)]);
        }
        Some(json!({ "state": "completed", "text": text, "output": output, "items": items }))
    }

    fn attempt(&self, values: &AttemptValues<'_>) -> Result<Attempt, CallFailure> {
        let mut text = self.prompt.render(&(values.variables)()).map_err(template_failure)?;
        text.push_str(&answer::request(&self.ballot()));
        text.push_str(&values.correction.map(|why| answer::correction(why)).unwrap_or_default());
        Ok(Attempt::Call { text, data: None, rights: CallRights::ReadOnly })
    }
}

/// Event of a voter whose task is over.
fn event(agent: &str, item: &StepCall) -> PollEvent {
    let failed = |why: &str| PollEvent::Failed(agent.to_owned(), why.to_owned());
    let Some(ItemEnd { completed, end, output, .. }) = &item.done else {
        return failed("no answer");
    };
    let text = |name: &str| output.as_ref()?.get(name)?.as_str().map(str::to_owned);
    match text("choice") {
        Some(choice) if *completed => {
            let confidence = output.as_ref().and_then(|it| it.get("confidence")?.as_f64());
            let mut reason = text("reason").unwrap_or_default();
            cut(&mut reason, MAX_REASON);
            let confidence = confidence.unwrap_or_default();
            PollEvent::Voted(agent.to_owned(), Ballot { choice, confidence, reason })
        }
        Some(_) | None => {
            let text = one_line(&end.text);
            failed(if text.is_empty() { &end.reason } else { &text })
        }
    }
}

/// Output of the step.
fn to_json(PollOutcome { decision, tally, ballots, failed }: &PollOutcome) -> Value {
    let choice = match decision {
        PollDecision::Decided(choice) => Some(choice),
        PollDecision::Tie(_) | PollDecision::None(_) | PollDecision::NoQuorum => None,
    };
    let tally: Map<_, _> =
        tally.iter().map(|(choice, count)| (choice.clone(), json!(count))).collect();
    let ballot = |(agent, ballot): &(String, Ballot)| {
        let Ballot { choice, confidence, reason } = ballot;
        json!({ "agent": agent, "choice": choice, "confidence": confidence, "reason": reason })
    };
    let failed = failed.iter().map(|(agent, why)| json!({ "agent": agent, "reason": why }));
    json!({
        "outcome": decision.word(),
        "choice": choice,
        "tally": tally,
        "ballots": ballots.iter().map(ballot).collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
    })
}

/// Text of the step: the outcome, and each choice with its voters.
fn to_text(PollOutcome { decision, tally, ballots, failed }: &PollOutcome) -> String {
    let mut text = match decision {
        PollDecision::Decided(choice) => format!("decided: {choice}"),
        PollDecision::Tie(choices) => format!("tie: {}", choices.join(", ")),
        PollDecision::None(choice) => format!("no majority: {choice} is ahead"),
        PollDecision::NoQuorum => "no quorum".to_owned(),
    };
    for (choice, count) in tally {
        let supporters = ballots.iter().filter(|(_, ballot)| ballot.choice == *choice);
        let supporters: Vec<_> = supporters.map(|(agent, _)| agent.as_str()).collect();
        if !supporters.is_empty() {
            let count = (count * 100.0).round() / 100.0;
            text.push_str(&format!("\n{choice} ({count}): {}", supporters.join(", ")));
        }
    }
    for (agent, why) in failed {
        text.push_str(&format!("\nno ballot of {agent}: {why}"));
    }
    text
}

fn parse(step: &mut StepReader<'_, '_, '_, '_>) -> Option<VoteStep> {
    let StepReader { key, table, scope, texts, problems } = step;
    let inner = Table::from_value(table.get(key)?, key, problems)?;
    inner.check_keys(&["agents", "choices", "rule", "weights"], problems);
    let agents = distinct_texts((&inner, key), "agents", (1, MAX_VOTERS), problems);
    for (name, at) in agents.iter().flatten() {
        refuse_by_name(name, at, problems);
    }
    let choices = distinct_texts((&inner, key), "choices", (2, MAX_CHOICES), problems);
    let agents = agents.map(|all| all.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
    let rule = rule(&inner, agents.as_deref().unwrap_or_default(), problems);
    let prompt = template(table, "prompt", problems);
    if prompt.is_none() && table.get("prompt").is_none() {
        problems.error(&table.at, format!("{} has a `prompt`", table.name));
    }
    let (prompt, at) = prompt?;
    texts.push((owned(prompt.names()), at, *scope));
    let choices = choices?.into_iter().map(|(choice, _)| choice).collect();
    Some(VoteStep { agents: agents?, choices, rule: rule?, prompt })
}

/// Rule of a vote; `majority` without the key.
fn rule(table: &Table<'_, '_>, agents: &[String], problems: &mut Problems<'_>) -> Option<Rule> {
    let weights = weights(table, agents, problems);
    let value = table.get("rule");
    let is_weighted = value.is_some_and(|it| it.get_ref().as_str() == Some("weighted"));
    if let (Some(at), false) = (table.get("weights").map(Spanned::span), is_weighted) {
        problems.error(&at, "`weights` is a key of a vote with `rule = \"weighted\"`");
    }
    let Some(value) = value else { return Some(Rule::Majority) };
    if value.get_ref().is_table() {
        let inner = Table::from_value(value, "rule", problems)?;
        inner.check_keys(&["quorum"], problems);
        let max = u32::try_from(agents.len().max(1)).unwrap_or(u32::MAX);
        let Some(quorum) = inner.number("quorum", (1, max), problems) else {
            if inner.get("quorum").is_none() {
                problems.error(&inner.at, "`rule` has the key `quorum`, as in { quorum = 2 }");
            }
            return None;
        };
        return Some(Rule::Quorum(usize::try_from(quorum).unwrap_or(usize::MAX)));
    }
    match value.get_ref().as_str() {
        Some("majority") => Some(Rule::Majority),
        Some("weighted") => Some(Rule::Weighted(weights)),
        Some("record") => Some(Rule::Record(BTreeMap::new())),
        other => {
            let near = other.map(|it| did_you_mean(it, ["majority", "weighted", "record"]));
            let rule = format!(
                "`rule` is \"majority\", \"weighted\", \"record\" or {{ quorum = 2 }}{}",
                near.unwrap_or_default()
            );
            problems.error(&value.span(), rule);
            None
        }
    }
}

fn weights(
    table: &Table<'_, '_>,
    agents: &[String],
    problems: &mut Problems<'_>,
) -> BTreeMap<String, f64> {
    let section = table.get("weights").and_then(|it| Table::from_value(it, "weights", problems));
    section.map(|section| section.agent_numbers(&WEIGHTS, agents, problems)).unwrap_or_default()
}
