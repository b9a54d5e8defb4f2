//! Steps with `negotiation`: agents make proposals in turn until all accept the same one.

use serde_json::{Value, json};

use super::{
    super::{
        position::{Problems, Table},
        row::{Item, one_line},
        template::as_data,
    },
    Course, RuleBook, Turn, TurnResult, Verdict, is_set, replay, statement,
};
use crate::negotiation::{Action, Event, Outcome, Proposal, Rules as Book, State, Why};

/// Keys of the table, besides those of all interactions.
pub(super) const KEYS: [&str; 1] = ["proposals"];

/// Most proposals, and those without the key.
const MAX_PROPOSALS: u32 = 50;
const PROPOSALS: u32 = 10;

/// Rules of a negotiation.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    proposals: u32,
}

impl Rules {
    pub(super) fn course(&self, agents: &[String], items: &[Item]) -> Result<Course, String> {
        let book =
            Book { parties: agents.to_vec(), max_proposals: self.proposals, timeout_ms: None };
        let state = State::new(book)?;
        Ok(replay(Talks { rules: self, agents, state, number: 0 }, items))
    }

    fn call(&self, agents: &[String], party: String, proposal: Option<&Proposal>) -> Turn {
        let others: Vec<_> = agents.iter().filter(|it| **it != party).map(String::as_str).collect();
        let mut request = format!(
            "You are {party}, and negotiate this with {}. An agreement needs the consent of all to the same terms. \
             At most {} proposals are made.",
            others.join(", "),
            self.proposals
        );
        match proposal {
            None => request.push_str(" Make the first proposal as `terms`; `accept` is false."),
            Some(Proposal { number, by, terms }) => {
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
    rules: &'r Rules,
    agents: &'r [String],
    state: State,
    /// Number of the proposal; 0 before the first one.
    number: u32,
}

impl RuleBook for Talks<'_> {
    type Action = Action;

    fn begin(&mut self) -> Vec<Action> {
        self.state.step(0, Event::Begun)
    }

    fn on_result(&mut self, turn: &Turn, result: TurnResult<'_>) -> Vec<Action> {
        let (party, number) = (turn.agent.clone(), self.number);
        let event = match result {
            TurnResult::Answer(answer) if is_set(answer, "accept") && number > 0 => {
                Event::Accepted(party, number)
            }
            TurnResult::Answer(answer) => match statement(answer, "terms") {
                terms if terms.is_empty() => {
                    Event::Departed(party, "it proposed no terms".to_owned())
                }
                terms => Event::Proposed(party, number, terms),
            },
            TurnResult::Done(_) => Event::Departed(party, "it gave no answer".to_owned()),
            TurnResult::Failed(why) => Event::Departed(party, why),
        };
        self.state.step(0, event)
    }

    fn act(&mut self, action: Action, course: &mut Course) {
        match action {
            Action::Call(party, proposal) => {
                self.number = proposal.as_ref().map_or(0, |it| it.number);
                course.add(|| self.rules.call(self.agents, party, proposal.as_ref()));
            }
            Action::Finish(outcome) => course.verdict = Some(verdict(&outcome)),
            Action::Wait(_) | Action::Cancel(_) | Action::Tell(..) => {}
        }
    }
}

fn verdict(outcome: &Outcome) -> Verdict {
    let shown = |proposal: &Proposal| {
        let Proposal { number, by, terms } = proposal;
        (json!(terms), json!(by), json!(number))
    };
    let (text, output) = match outcome {
        Outcome::Agreed { proposal, signed } => {
            let (terms, by, proposals) = shown(proposal);
            let text = proposal.terms.clone();
            let output = json!({
                "outcome": "agreed", "terms": terms, "by": by, "proposals": proposals, "accepted": signed,
            });
            (text, output)
        }
        Outcome::Failed { why, last, accepted } => {
            let (word, why) = match why {
                Why::Deadline => ("deadline", "the time is over".to_owned()),
                Why::Cap(party) => {
                    ("cap", format!("{party} wants other terms, and no more proposals are left"))
                }
                Why::Departed(party, why) => ("left", format!("{party} left: {}", one_line(why))),
            };
            let (terms, by, proposals) =
                last.as_ref().map_or((Value::Null, Value::Null, json!(0)), shown);
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

pub(super) fn parse(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<Rules> {
    let proposals = table.number("proposals", (1, MAX_PROPOSALS), problems).unwrap_or(PROPOSALS);
    Some(Rules { proposals })
}
