//! Steps with `negotiation`: agents make proposals in turn until all accept the same one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::rules::{
    Course, InteractionKey, MAX_AGENTS, PastTurns, RuleBook, Rules, TurnResult, is_set, replay,
    statement,
};
use crate::{
    flow::{
        position::{Problems, Table},
        template::as_data,
        text::one_line,
        turn::{Turn, Verdict},
    },
    negotiation::{
        Negotiation, NegotiationAction, NegotiationEvent, NegotiationOutcome,
        NegotiationRules as Book, NoAgreementReason, ProposedTerms,
    },
};

pub(super) const RULES: InteractionKey = InteractionKey {
    name: "negotiation",
    keys: &["proposals"],
    agents: (2, MAX_AGENTS),
    has_work: false,
    parse: |table, _, problems| Some(Arc::new(parse(table, problems)?)),
};

/// Most proposals, and those without the key.
const MAX_PROPOSALS: u32 = 50;
const PROPOSALS: u32 = 10;

/// Rules of a negotiation.
#[derive(Clone, Debug)]
struct NegotiationStep {
    proposals: u32,
}

impl Rules for NegotiationStep {
    fn verb(&self) -> &'static str {
        "negotiate"
    }

    fn course(&self, past: &PastTurns<'_>) -> Result<Course, String> {
        let PastTurns { agents, items, .. } = *past;
        let book =
            Book { parties: agents.to_vec(), max_proposals: self.proposals, timeout_ms: None };
        let state = Negotiation::new(book)?;
        Ok(replay(Talks { rules: self, agents, state, number: 0 }, items))
    }
}

impl NegotiationStep {
    fn call(&self, agents: &[String], party: String, proposal: Option<&ProposedTerms>) -> Turn {
        let others: Vec<_> = agents.iter().filter(|it| **it != party).map(String::as_str).collect();
        let mut request = format!(
            "You are {party}, and negotiate this with {}. An agreement needs the consent of all to the same terms. \
             At most {} proposals are made.",
            others.join(", "),
            self.proposals
        );
        match proposal {
            None => request.push_str(" Make the first proposal as `terms`; `accept` is false."),
            Some(ProposedTerms { number, by, terms }) => {
                request.push_str(&format!(" Proposal {number} is by {by}:{}", as_data(terms)));
                request.push_str(
                    "Set `accept` to true to agree to it. Otherwise propose other terms, complete ones.",
                );
            }
        }
        let members =
            [("accept", json!({ "type": "boolean" })), ("terms", json!({ "type": "string" }))];
        Turn::answer(party, members, request)
    }
}

/// Negotiation with the proposal on the table.
struct Talks<'r> {
    rules: &'r NegotiationStep,
    agents: &'r [String],
    state: Negotiation,
    /// Number of the proposal; 0 before the first one.
    number: u32,
}

impl RuleBook for Talks<'_> {
    type Action = NegotiationAction;

    fn begin(&mut self) -> Vec<NegotiationAction> {
        self.state.step(0, NegotiationEvent::Begun)
    }

    fn on_result(&mut self, turn: &Turn, result: TurnResult<'_>) -> Vec<NegotiationAction> {
        let (party, number) = (turn.agent.clone(), self.number);
        let event = match result {
            TurnResult::Answer(answer) if is_set(answer, "accept") && number > 0 => {
                NegotiationEvent::Accepted(party, number)
            }
            TurnResult::Answer(answer) => match statement(answer, "terms") {
                terms if terms.is_empty() => {
                    NegotiationEvent::Departed(party, "it proposed no terms".to_owned())
                }
                terms => NegotiationEvent::Proposed(party, number, terms),
            },
            TurnResult::Done(_) => {
                NegotiationEvent::Departed(party, "it gave no answer".to_owned())
            }
            TurnResult::Failed(why) => NegotiationEvent::Departed(party, why),
        };
        self.state.step(0, event)
    }

    fn act(&mut self, action: NegotiationAction, course: &mut Course) {
        match action {
            NegotiationAction::Call(party, proposal) => {
                self.number = proposal.as_ref().map_or(0, |it| it.number);
                course.add(|| self.rules.call(self.agents, party, proposal.as_ref()));
            }
            NegotiationAction::Finish(outcome) => course.verdict = Some(verdict(&outcome)),
            NegotiationAction::Wait(_)
            | NegotiationAction::Cancel(_)
            | NegotiationAction::Tell(..) => {}
        }
    }
}

fn verdict(outcome: &NegotiationOutcome) -> Verdict {
    let values = |proposal: &ProposedTerms| {
        let ProposedTerms { number, by, terms } = proposal;
        (json!(terms), json!(by), json!(number))
    };
    let (text, output) = match outcome {
        NegotiationOutcome::Agreed { proposal, signed } => {
            let (terms, by, proposals) = values(proposal);
            let text = proposal.terms.clone();
            let output = json!({
                "outcome": "agreed", "terms": terms, "by": by, "proposals": proposals, "accepted": signed,
            });
            (text, output)
        }
        NegotiationOutcome::Failed { why, last, accepted } => {
            let (word, why) = match why {
                NoAgreementReason::Deadline => ("deadline", "the time is over".to_owned()),
                NoAgreementReason::Cap(party) => {
                    ("cap", format!("{party} wants other terms, and no more proposals are left"))
                }
                NoAgreementReason::Departed(party, why) => {
                    ("left", format!("{party} left: {}", one_line(why)))
                }
            };
            let (terms, by, proposals) =
                last.as_ref().map_or((Value::Null, Value::Null, json!(0)), values);
            let text = format!("no agreement: {why}");
            let output = json!({
                "outcome": word, "terms": terms, "by": by, "proposals": proposals, "accepted": accepted,
                "reason": why,
            });
            (text, output)
        }
    };
    Verdict { failure: None, text, output }
}

fn parse(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<NegotiationStep> {
    let proposals = table.number("proposals", (1, MAX_PROPOSALS), problems).unwrap_or(PROPOSALS);
    Some(NegotiationStep { proposals })
}
