//! Contract net: a manager calls for proposals, and awards work to the best of them.
//!
//! ```text
//!   new ── Begun ──► called ── all replied, or the deadline ──► awarded ──► over
//!                     ▲    │                                       │
//!                     └────┘                                       one report a contractor:
//!     too few acceptable proposals: the next round,                failure, done or result
//!     at most `max_rounds`
//! ```
//!
//! The rules are those of FIPA SC00029H (Contract Net Interaction Protocol) and, for more than one
//! round, SC00030H (Iterated Contract Net):
//! - A participant replies with one proposal or a refusal.
//! - A proposal binds its author until it is accepted or rejected.
//! - A proposal after the deadline is rejected with that reason.
//! - Each author of a proposal learns its end, once. A rejection sets it free, so that nobody takes
//!   the place of a contractor that fails.
//! - A contractor reports exactly one of failure, inform-done and inform-result.

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;

use crate::amount::{ONE, millionths, share};

/// Offer of a participant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proposal {
    /// Certainty to do the work well, from 0 to 1.
    pub confidence: f64,
    /// Time that the work takes.
    pub time_ms: u64,
    /// Cost in whole numbers of one unit.
    pub cost: u64,
}

/// Weights of the criteria. Time and cost count in relation to the largest of the proposals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Weight of the confidence.
    pub confidence: f64,
    /// Weight of a short time.
    pub time: f64,
    /// Weight of a low cost.
    pub cost: f64,
}

/// Limits of acceptable proposals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Least confidence.
    pub confidence: f64,
    /// Longest time.
    pub time_ms: Option<u64>,
    /// Highest cost.
    pub cost: Option<u64>,
}

/// Call for proposals.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Names of the participants.
    pub participants: Vec<String>,
    /// Number of contractors.
    pub awards: usize,
    /// Weights of the criteria.
    pub weights: Weights,
    /// Limits of acceptable proposals.
    pub limits: Limits,
    /// Most rounds: those whose proposals are beyond the limits are called again.
    pub max_rounds: u32,
    /// Time for the replies of one round; none waits for ever.
    pub timeout_ms: Option<u64>,
    /// Time for the work; none waits for ever.
    pub work_ms: Option<u64>,
}

/// Report of a contractor.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// `failure`, with its reason.
    Failure(String),
    /// `inform-done`.
    Done,
    /// `inform-result`.
    Result(Value),
}

/// Event of a contract net.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The call goes out.
    Begun,
    /// `propose`, in reply to the call of this round.
    Proposed(String, u32, Proposal),
    /// `refuse`, or any other end without a proposal, and the reason.
    Refused(String, String),
    /// A contractor's report.
    Reported(String, Report),
    /// Time passed.
    Rang,
}

/// Reason of a rejected proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The proposal came after the deadline.
    Late,
    /// The proposal is beyond the limits.
    Limits,
    /// Other proposals are better.
    NotChosen,
}

/// Action of a contract net.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// `cfp` to a participant, in this round.
    Call(String, u32),
    /// Send [`Event::Rang`] at this time.
    Wait(u64),
    /// `accept-proposal`.
    Accept(String),
    /// `reject-proposal`.
    Reject(String, Why),
    /// `cancel`: a contractor's work took too long.
    Cancel(String),
    /// End the contract net.
    Finish(Outcome),
}

/// Outcome of a contract net, in the order of the participants.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Contractors and their reports.
    pub reports: Vec<(String, Report)>,
    /// Last proposals that were in time.
    pub proposals: Vec<(String, Proposal)>,
    /// Participants that refused, and the reason.
    pub refused: Vec<(String, String)>,
    /// Number of rounds.
    pub rounds: u32,
}

/// One contract net.
#[derive(Clone, Debug)]
pub struct State {
    call: Call,
    phase: Phase,
    round: u32,
    deadline: Option<u64>,
    /// Participants in the order of the call.
    rows: Vec<(String, Row)>,
    /// Last proposals in time, by name.
    proposals: BTreeMap<String, Proposal>,
    reports: BTreeMap<String, Report>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Called,
    Awarded,
    Over,
}

/// State of one participant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Row {
    /// Called, without a reply.
    Called,
    /// Proposed, and the proposal binds.
    Bound,
    Refused(String),
    /// Did not reply in time; a late proposal is still to be rejected.
    Silent,
    Accepted,
    Rejected,
}

impl State {
    /// Creates a contract net. A participant that is named twice counts once.
    ///
    /// # Errors
    ///
    /// If nobody takes part, or no award or round is allowed.
    pub fn new(call: Call) -> Result<Self, String> {
        let mut rows: Vec<(String, Row)> = Vec::new();
        for name in &call.participants {
            if !rows.iter().any(|(other, _)| other == name) {
                rows.push((name.clone(), Row::Called));
            }
        }
        if rows.is_empty() {
            return Err("a call for proposals has at least one participant".to_owned());
        }
        if call.awards == 0 || call.max_rounds == 0 {
            return Err("a call for proposals has at least one award and one round".to_owned());
        }
        let (proposals, reports) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { call, phase: Phase::New, round: 0, deadline: None, rows, proposals, reports })
    }

    /// Takes an event at a time in milliseconds, and returns what to do.
    pub fn step(&mut self, now: u64, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        let is_late = self.deadline.is_some_and(|deadline| now >= deadline);
        match (self.phase, event) {
            (Phase::New, Event::Begun) => {
                self.phase = Phase::Called;
                let all: Vec<_> = (0..self.rows.len()).collect();
                self.begin_round(now, &all, &mut actions);
            }
            (Phase::Called, Event::Refused(agent, why)) => {
                if let Some(row) = self.row(&agent).filter(|row| **row == Row::Called) {
                    *row = Row::Refused(why);
                }
            }
            (Phase::Called, Event::Proposed(agent, round, proposal)) if !is_late => {
                let is_current = round == self.round;
                match self.row(&agent) {
                    Some(row) if *row == Row::Called && is_current => {
                        *row = Row::Bound;
                        self.proposals.insert(agent, proposal);
                    }
                    Some(row) if *row == Row::Silent => {
                        *row = Row::Rejected;
                        actions.push(Action::Reject(agent, Why::Late));
                    }
                    Some(_) | None => {}
                }
            }
            (Phase::Called | Phase::Awarded | Phase::Over, Event::Proposed(agent, ..)) => {
                let late = |row: &&mut Row| matches!(row, Row::Called | Row::Silent);
                if let Some(row) = self.row(&agent).filter(late) {
                    *row = Row::Rejected;
                    actions.push(Action::Reject(agent, Why::Late));
                }
            }
            (Phase::Awarded, Event::Reported(agent, report)) => self.reported(agent, report),
            (Phase::Awarded, Event::Rang) if is_late => {
                for agent in self.named(&Row::Accepted) {
                    if !self.reports.contains_key(&agent) {
                        actions.push(Action::Cancel(agent.clone()));
                        self.reported(agent, Report::Failure("the work took too long".to_owned()));
                    }
                }
            }
            (Phase::New | Phase::Called | Phase::Awarded | Phase::Over, _) => {}
        }
        if self.phase == Phase::Called && (self.named(&Row::Called).is_empty() || is_late) {
            self.evaluate(now, &mut actions);
        }
        let is_reported = self.reports.len() == self.named(&Row::Accepted).len();
        if self.phase == Phase::Awarded && is_reported {
            self.phase = Phase::Over;
            actions.push(Action::Finish(self.outcome()));
        }
        actions
    }

    fn row(&mut self, agent: &str) -> Option<&mut Row> {
        self.rows.iter_mut().find(|(name, _)| name == agent).map(|(_, row)| row)
    }

    /// Names of the participants in this state.
    fn named(&self, state: &Row) -> Vec<String> {
        let of = self.rows.iter().filter(|(_, row)| row == state);
        of.map(|(name, _)| name.clone()).collect()
    }

    fn reported(&mut self, agent: String, report: Report) {
        if self.named(&Row::Accepted).contains(&agent) {
            self.reports.entry(agent).or_insert(report);
        }
    }

    fn wait(&mut self, now: u64, ms: Option<u64>, actions: &mut Vec<Action>) {
        self.deadline = ms.map(|ms| now.saturating_add(ms));
        actions.extend(self.deadline.map(Action::Wait));
    }

    fn begin_round(&mut self, now: u64, called: &[usize], actions: &mut Vec<Action>) {
        self.round += 1;
        for &index in called {
            let (name, row) = &mut self.rows[index];
            *row = Row::Called;
            actions.push(Action::Call(name.clone(), self.round));
        }
        self.wait(now, self.call.timeout_ms, actions);
    }

    /// Ends a round: calls those beyond the limits again, or awards the work.
    fn evaluate(&mut self, now: u64, actions: &mut Vec<Action>) {
        let (mut fitting, mut beyond) = (Vec::new(), Vec::new());
        for (index, (name, row)) in self.rows.iter_mut().enumerate() {
            match (&row, self.proposals.get(name)) {
                (Row::Called, _) => *row = Row::Silent,
                (Row::Bound, Some(proposal)) if fits(proposal, &self.call.limits) => {
                    fitting.push(index);
                }
                (Row::Bound, _) => beyond.push(index),
                (Row::Refused(_) | Row::Silent | Row::Accepted | Row::Rejected, _) => {}
            }
        }
        let is_short = fitting.len() < self.call.awards && !beyond.is_empty();
        if is_short && self.round < self.call.max_rounds {
            return self.begin_round(now, &beyond, actions);
        }
        let chosen = self.best(&fitting);
        for index in 0..self.rows.len() {
            let why = if beyond.contains(&index) { Why::Limits } else { Why::NotChosen };
            let (name, row) = &mut self.rows[index];
            if *row == Row::Bound {
                let is_chosen = chosen.contains(&index);
                *row = if is_chosen { Row::Accepted } else { Row::Rejected };
                let name = name.clone();
                actions.push(match is_chosen {
                    true => Action::Accept(name),
                    false => Action::Reject(name, why),
                });
            }
        }
        self.phase = Phase::Awarded;
        self.deadline = None;
        if !chosen.is_empty() {
            self.wait(now, self.call.work_ms, actions);
        }
    }

    /// Best of the acceptable proposals; of equal ones those that are listed first.
    fn best(&self, fitting: &[usize]) -> Vec<usize> {
        let of = |index: usize| self.proposals.get(&self.rows[index].0).copied();
        let offers: Vec<_> =
            fitting.iter().filter_map(|&index| Some((index, of(index)?))).collect();
        let time = offers.iter().map(|(_, offer)| offer.time_ms).max().unwrap_or_default();
        let cost = offers.iter().map(|(_, offer)| offer.cost).max().unwrap_or_default();
        let Weights { confidence, time: of_time, cost: of_cost } = self.call.weights;
        // The least part of the largest scores most.
        let saved = |part: u64, total: u64| {
            let part = u128::from(part) * u128::from(ONE) / u128::from(total.max(1));
            u128::from(ONE) - part
        };
        let score = |offer: &Proposal| {
            u128::from(millionths(confidence)) * u128::from(share(offer.confidence))
                + u128::from(millionths(of_time)) * saved(offer.time_ms, time)
                + u128::from(millionths(of_cost)) * saved(offer.cost, cost)
        };
        let mut ranking = offers;
        ranking.sort_by_key(|(index, offer)| (Reverse(score(offer)), *index));
        ranking.into_iter().take(self.call.awards).map(|(index, _)| index).collect()
    }

    fn outcome(&self) -> Outcome {
        let names = || self.rows.iter().map(|(name, _)| name.clone());
        let of_refusal = |(name, row): &(String, Row)| match row {
            Row::Refused(why) => Some((name.clone(), why.clone())),
            Row::Called | Row::Bound | Row::Silent | Row::Accepted | Row::Rejected => None,
        };
        Outcome {
            reports: names()
                .filter_map(|name| Some((name.clone(), self.reports.get(&name)?.clone())))
                .collect(),
            proposals: names()
                .filter_map(|name| Some((name.clone(), *self.proposals.get(&name)?)))
                .collect(),
            refused: self.rows.iter().filter_map(of_refusal).collect(),
            rounds: self.round,
        }
    }
}

fn fits(proposal: &Proposal, limits: &Limits) -> bool {
    share(proposal.confidence) >= share(limits.confidence)
        && limits.time_ms.is_none_or(|max| proposal.time_ms <= max)
        && limits.cost.is_none_or(|max| proposal.cost <= max)
}
