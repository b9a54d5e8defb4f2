//! Steps with `negotiation`: agents make proposals in turn until all accept the same one.

use serde_json::{Value, json};

use super::{
    super::{
        position::{Problems, Table},
        row::{Item, one_line},
        template::as_data,
    },
    Course, RuleBook, Said, Turn, Verdict, is_set, replay, statement,
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

    fn call(&self, agents: &[String], who: String, proposal: Option<&Proposal>) -> Turn {
        let others: Vec<_> = agents.iter().filter(|it| **it != who).map(String::as_str).collect();
        let mut request = format!(
            "You are {who}, and negotiate this with {}. An agreement needs the consent of all to the same terms. \
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
        Turn::answer(who, members, request)
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

    fn hear(&mut self, turn: &Turn, said: Said<'_>) -> Vec<Action> {
        let (who, number) = (turn.agent.clone(), self.number);
        let event = match said {
            Said::Answer(answer) if is_set(answer, "accept") && number > 0 => {
                Event::Accepted(who, number)
            }
            Said::Answer(answer) => match statement(answer, "terms") {
                terms if terms.is_empty() => Event::Left(who, "it proposed no terms".to_owned()),
                terms => Event::Proposed(who, number, terms),
            },
            Said::Done(_) => Event::Left(who, "it gave no answer".to_owned()),
            Said::Failed(why) => Event::Left(who, why),
        };
        self.state.step(0, event)
    }

    fn act(&mut self, action: Action, course: &mut Course) {
        match action {
            Action::Call(who, proposal) => {
                self.number = proposal.as_ref().map_or(0, |it| it.number);
                course.add(|| self.rules.call(self.agents, who, proposal.as_ref()));
            }
            Action::Finish(outcome) => course.verdict = Some(told(&outcome)),
            Action::Wait(_) | Action::Cancel(_) | Action::Tell(..) => {}
        }
    }
}

fn told(outcome: &Outcome) -> Verdict {
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
                Why::Cap(who) => {
                    ("cap", format!("{who} wants other terms, and no more proposals are left"))
                }
                Why::Left(who, why) => ("left", format!("{who} left: {}", one_line(why))),
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
