//! Steps with `contract_net`: agents propose how they would do the work of the prompt, and the best
//! of them do it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::rules::{
    Course, InteractionKey, MAX_AGENTS, MAX_AMOUNT, PastTurns, RuleBook, Rules, TurnResult, amount,
    decimal, is_set, replay, statement, unit, with_reasons,
};
use crate::{
    contract_net::{
        CallForProposals, ContractNet, ContractNetAction, ContractNetEvent, ContractNetOutcome,
        ContractorReport, Proposal, ProposalLimits, Weights,
    },
    flow::{
        position::{Problems, Table},
        template::as_data,
        turn::{Turn, Verdict},
    },
};

pub(super) const RULES: InteractionKey = InteractionKey {
    name: "contract_net",
    keys: &["awards", "weights", "limits", "rounds", "unit"],
    agents: (1, MAX_AGENTS),
    has_work: true,
    parse: |table, agents, problems| Some(Arc::new(parse(table, agents.len().max(1), problems)?)),
};

/// Most rounds of proposals.
const MAX_ROUNDS: u32 = 10;

/// Highest weight of a criterion.
const MAX_WEIGHT: f64 = 1_000.0;

/// Most minutes of a proposal: 366 days.
const MAX_MINUTES: f64 = 527_040.0;

/// Rules of a contract net.
#[derive(Clone, Debug)]
struct ContractNetStep {
    awards: usize,
    weights: Weights,
    limits: ProposalLimits,
    rounds: u32,
    unit: String,
}

/// Plans and works of the participants, which do not count for the award.
#[derive(Default)]
struct Notes {
    /// Plans of the participants, the last one of each at the end.
    plans: Vec<(String, String)>,
    /// Texts of the contractors' works.
    works: Vec<(String, String)>,
}

impl Notes {
    fn plan(&self, agent: &str) -> &str {
        self.plans.iter().rev().find(|(name, _)| name == agent).map_or("", |(_, plan)| plan)
    }
}

impl Rules for ContractNetStep {
    fn verb(&self) -> &'static str {
        "propose"
    }

    fn course(&self, past: &PastTurns<'_>) -> Result<Course, String> {
        let PastTurns { agents, items, .. } = *past;
        let state = ContractNet::new(CallForProposals {
            participants: agents.to_vec(),
            awards: self.awards,
            weights: self.weights,
            limits: self.limits,
            max_rounds: self.rounds,
            timeout_ms: None,
            work_ms: None,
        })?;
        let (notes, round) = (Notes::default(), 1);
        Ok(replay(Tender { rules: self, state, notes, round }, items))
    }
}

impl ContractNetStep {
    fn call(&self, agent: String, round: u32) -> Turn {
        let unit = &self.unit;
        let mut request = format!(
            "This is a call for proposals for the task above. Do not begin with it. Say how sure you are to do it well \
             (`confidence`, from 0 to 1), how long it takes you (`minutes`), what it costs (`cost`, a whole number of \
             {unit}), and how you would do it (`plan`). A proposal binds you. If you cannot do the task, set `refuse` \
             to true, and give the reason as `plan`."
        );
        let ProposalLimits { confidence, time_ms, cost } = self.limits;
        if confidence > 0.0 {
            request.push_str(&format!(" The confidence has to be at least {confidence}."));
        }
        if let Some(ms) = time_ms {
            request.push_str(&format!(" At most {} minutes are accepted.", ms / 60_000));
        }
        if let Some(cost) = cost {
            request.push_str(&format!(" At most {cost} {unit} are accepted."));
        }
        if round > 1 {
            request.push_str(" Your last proposal was beyond these limits; you may propose anew.");
        }
        let members = [
            ("confidence", json!({ "type": "number", "minimum": 0, "maximum": 1 })),
            ("minutes", json!({ "type": "number", "minimum": 0, "maximum": MAX_MINUTES })),
            ("cost", json!({ "type": "integer", "minimum": 0, "maximum": MAX_AMOUNT })),
            ("plan", json!({ "type": "string" })),
            ("refuse", json!({ "type": "boolean" })),
        ];
        Turn::answer(agent, members, request)
    }

    fn verdict(&self, outcome: &ContractNetOutcome, notes: &Notes) -> Verdict {
        let ContractNetOutcome { reports, proposals, refused, rounds } = outcome;
        let work = |agent: &String| notes.works.iter().find(|(name, _)| name == agent);
        let contractors = reports.iter().map(|(agent, report)| match report {
            ContractorReport::Failure(why) => {
                json!({ "agent": agent, "state": "failed", "text": why })
            }
            ContractorReport::Done | ContractorReport::Result(_) => {
                let text = work(agent).map_or("", |(_, text)| text);
                json!({ "agent": agent, "state": "completed", "text": text })
            }
        });
        let contractors: Vec<_> = contractors.collect();
        let proposals = proposals.iter().map(|(agent, Proposal { confidence, time_ms, cost })| {
            let is_accepted = reports.iter().any(|(name, _)| name == agent);
            json!({
                "agent": agent,
                "confidence": confidence,
                "minutes": minutes(*time_ms),
                "cost": cost,
                "plan": notes.plan(agent),
                "accepted": is_accepted,
            })
        });
        let output = json!({
            "contractors": contractors,
            "proposals": proposals.collect::<Vec<_>>(),
            "unit": self.unit,
            "refused": with_reasons(refused),
            "rounds": rounds,
        });
        let done: Vec<_> = notes.works.iter().map(|(_, text)| text.as_str()).collect();
        if !done.is_empty() {
            return Verdict { failure: None, text: done.join("\n\n"), output };
        }
        let mut text = match reports.is_empty() {
            true => "no proposal was accepted".to_owned(),
            false => "every contractor failed".to_owned(),
        };
        for (agent, why) in refused {
            text.push_str(&format!("\n{agent}: {why}"));
        }
        for (agent, report) in reports {
            if let ContractorReport::Failure(why) = report {
                text.push_str(&format!("\n{agent}: {why}"));
            }
        }
        Verdict { failure: Some("no_contractor"), text, output }
    }
}

/// Contract net with the notes of its participants.
struct Tender<'r> {
    rules: &'r ContractNetStep,
    state: ContractNet,
    notes: Notes,
    round: u32,
}

impl RuleBook for Tender<'_> {
    type Action = ContractNetAction;

    fn begin(&mut self) -> Vec<ContractNetAction> {
        self.state.step(0, ContractNetEvent::Begun)
    }

    fn on_result(&mut self, turn: &Turn, result: TurnResult<'_>) -> Vec<ContractNetAction> {
        let agent = turn.agent.clone();
        let event = match result {
            TurnResult::Answer(answer) if is_set(answer, "refuse") => {
                let why = statement(answer, "plan");
                let why = if why.is_empty() { "refused".to_owned() } else { why };
                ContractNetEvent::Refused(agent, why)
            }
            TurnResult::Answer(answer) => {
                self.notes.plans.push((agent.clone(), statement(answer, "plan")));
                ContractNetEvent::Proposed(agent, self.round, proposal(answer))
            }
            TurnResult::Done(text) => {
                self.notes.works.push((agent.clone(), text.to_owned()));
                ContractNetEvent::Reported(agent, ContractorReport::Done)
            }
            TurnResult::Failed(why) if turn.schema().is_none() => {
                ContractNetEvent::Reported(agent, ContractorReport::Failure(why))
            }
            TurnResult::Failed(why) => ContractNetEvent::Refused(agent, why),
        };
        self.state.step(0, event)
    }

    fn act(&mut self, action: ContractNetAction, course: &mut Course) {
        match action {
            ContractNetAction::Call(agent, round) => {
                self.round = round;
                course.add(|| self.rules.call(agent, round));
            }
            ContractNetAction::Accept(agent) => course.add(|| accept(&self.notes, agent)),
            ContractNetAction::Finish(outcome) => {
                course.verdict = Some(self.rules.verdict(&outcome, &self.notes));
            }
            ContractNetAction::Wait(_)
            | ContractNetAction::Reject(..)
            | ContractNetAction::Cancel(_) => {}
        }
    }
}

fn accept(notes: &Notes, agent: String) -> Turn {
    let plan = as_data(notes.plan(&agent));
    let request = format!("Your proposal was accepted. Do the task now, as you proposed:{plan}");
    Turn::work(agent, request)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the schema bounds the number"
)]
fn proposal(answer: &Value) -> Proposal {
    let number = |name: &str| answer.get(name).and_then(Value::as_f64).unwrap_or_default();
    Proposal {
        confidence: number("confidence"),
        time_ms: (number("minutes") * 60_000.0).round() as u64,
        cost: answer.get("cost").and_then(Value::as_u64).unwrap_or_default(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number to show")]
fn minutes(ms: u64) -> f64 {
    ms as f64 / 60_000.0
}

fn parse(
    table: &Table<'_, '_>,
    agents: usize,
    problems: &mut Problems<'_>,
) -> Option<ContractNetStep> {
    let max = u32::try_from(agents.max(1)).unwrap_or(u32::MAX);
    let awards = table.number("awards", (1, max), problems).unwrap_or(1);
    let rounds = table.number("rounds", (1, MAX_ROUNDS), problems).unwrap_or(1);
    let mut weights = Weights { confidence: 1.0, time: 0.0, cost: 0.0 };
    if let Some(value) = table.get("weights") {
        let inner = Table::from_value(value, "weights", problems)?;
        inner.check_keys(&["confidence", "time", "cost"], problems);
        let mut of = |key| decimal(&inner, key, (0.0, MAX_WEIGHT), problems).unwrap_or_default();
        weights = Weights { confidence: of("confidence"), time: of("time"), cost: of("cost") };
        if weights.confidence + weights.time + weights.cost == 0.0 {
            problems.error(&inner.at, "`weights`: one of them is above 0");
        }
    }
    let mut limits = ProposalLimits::default();
    if let Some(value) = table.get("limits") {
        let inner = Table::from_value(value, "limits", problems)?;
        inner.check_keys(&["confidence", "time", "cost"], problems);
        let confidence = decimal(&inner, "confidence", (0.0, 1.0), problems).unwrap_or_default();
        let time_ms = inner.duration("time", problems);
        limits = ProposalLimits { confidence, time_ms, cost: amount(&inner, "cost", problems) };
    }
    if rounds > 1 && table.get("limits").is_none() {
        problems.error(&table.at, "`rounds` call for better proposals, and so need `limits`");
    }
    let awards = usize::try_from(awards).unwrap_or(usize::MAX);
    Some(ContractNetStep { awards, weights, limits, rounds, unit: unit(table, "cents", problems) })
}
