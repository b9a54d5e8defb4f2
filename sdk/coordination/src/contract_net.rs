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
pub struct ProposalLimits {
    /// Least confidence.
    pub confidence: f64,
    /// Longest time.
    pub time_ms: Option<u64>,
    /// Highest cost.
    pub cost: Option<u64>,
}

/// Call for proposals.
#[derive(Clone, Debug, PartialEq)]
pub struct CallForProposals {
    /// Names of the participants.
    pub participants: Vec<String>,
    /// Number of contractors.
    pub awards: usize,
    /// Weights of the criteria.
    pub weights: Weights,
    /// Limits of acceptable proposals.
    pub limits: ProposalLimits,
    /// Most rounds: those whose proposals are beyond the limits are called again.
    pub max_rounds: u32,
    /// Time for the replies of one round; none waits for ever.
    pub timeout_ms: Option<u64>,
    /// Time for the work; none waits for ever.
    pub work_ms: Option<u64>,
}

/// Report of a contractor.
#[derive(Clone, Debug, PartialEq)]
pub enum ContractorReport {
    /// `failure`, with its reason.
    Failure(String),
    /// `inform-done`.
    Done,
    /// `inform-result`.
    Result(Value),
}

/// Event of a contract net.
#[derive(Clone, Debug, PartialEq)]
pub enum ContractNetEvent {
    /// The call goes out.
    Begun,
    /// `propose`, in reply to the call of this round.
    Proposed(String, u32, Proposal),
    /// `refuse`, or any other end without a proposal, and the reason.
    Refused(String, String),
    /// A contractor's report.
    Reported(String, ContractorReport),
    /// Time passed.
    Rang,
}

/// Reason of a rejected proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposalRejection {
    /// The proposal came after the deadline.
    Late,
    /// The proposal is beyond the limits.
    Limits,
    /// Other proposals are better.
    NotChosen,
}

/// Action of a contract net.
#[derive(Clone, Debug, PartialEq)]
pub enum ContractNetAction {
    /// `cfp` to a participant, in this round.
    Call(String, u32),
    /// Send [`ContractNetEvent::Rang`] at this time.
    Wait(u64),
    /// `accept-proposal`.
    Accept(String),
    /// `reject-proposal`.
    Reject(String, ProposalRejection),
    /// `cancel`: a contractor's work took too long.
    Cancel(String),
    /// End the contract net.
    Finish(ContractNetOutcome),
}

/// Outcome of a contract net, in the order of the participants.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractNetOutcome {
    /// Contractors and their reports.
    pub reports: Vec<(String, ContractorReport)>,
    /// Last proposals that were in time.
    pub proposals: Vec<(String, Proposal)>,
    /// Participants that refused, and the reason.
    pub refused: Vec<(String, String)>,
    /// Number of rounds.
    pub rounds: u32,
}

/// One contract net.
#[derive(Clone, Debug)]
pub struct ContractNet {
    call: CallForProposals,
    phase: ContractNetPhase,
    round: u32,
    deadline: Option<u64>,
    /// Participants in the order of the call.
    rows: Vec<(String, ParticipantState)>,
    /// Last proposals in time, by name.
    proposals: BTreeMap<String, Proposal>,
    reports: BTreeMap<String, ContractorReport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContractNetPhase {
    New,
    Called,
    Awarded,
    Over,
}

/// State of one participant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ParticipantState {
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

impl ContractNet {
    /// Creates a contract net. A participant that is named twice counts once.
    ///
    /// # Errors
    ///
    /// If nobody takes part, or no award or round is allowed.
    pub fn new(call: CallForProposals) -> Result<Self, String> {
        let mut rows: Vec<(String, ParticipantState)> = Vec::new();
        for name in &call.participants {
            if !rows.iter().any(|(other, _)| other == name) {
                rows.push((name.clone(), ParticipantState::Called));
            }
        }
        if rows.is_empty() {
            return Err("a call for proposals has at least one participant".to_owned());
        }
        if call.awards == 0 || call.max_rounds == 0 {
            return Err("a call for proposals has at least one award and one round".to_owned());
        }
        let (proposals, reports) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self {
            call,
            phase: ContractNetPhase::New,
            round: 0,
            deadline: None,
            rows,
            proposals,
            reports,
        })
    }

    /// Takes an event at a time in milliseconds, and returns what to do.
    pub fn step(&mut self, now: u64, event: ContractNetEvent) -> Vec<ContractNetAction> {
        let mut actions = Vec::new();
        let is_late = self.deadline.is_some_and(|deadline| now >= deadline);
        match (self.phase, event) {
            (ContractNetPhase::New, ContractNetEvent::Begun) => {
                self.phase = ContractNetPhase::Called;
                let all: Vec<_> = (0..self.rows.len()).collect();
                self.begin_round(now, &all, &mut actions);
            }
            (ContractNetPhase::Called, ContractNetEvent::Refused(agent, why)) => {
                if let Some(row) = self.row(&agent).filter(|row| **row == ParticipantState::Called)
                {
                    *row = ParticipantState::Refused(why);
                }
            }
            (ContractNetPhase::Called, ContractNetEvent::Proposed(agent, round, proposal))
                if !is_late =>
            {
                let is_current = round == self.round;
                match self.row(&agent) {
                    Some(row) if *row == ParticipantState::Called && is_current => {
                        *row = ParticipantState::Bound;
                        self.proposals.insert(agent, proposal);
                    }
                    Some(row) if *row == ParticipantState::Silent => {
                        *row = ParticipantState::Rejected;
                        actions.push(ContractNetAction::Reject(agent, ProposalRejection::Late));
                    }
                    Some(_) | None => {}
                }
            }
            (
                ContractNetPhase::Called | ContractNetPhase::Awarded | ContractNetPhase::Over,
                ContractNetEvent::Proposed(agent, ..),
            ) => {
                let late = |row: &&mut ParticipantState| {
                    matches!(row, ParticipantState::Called | ParticipantState::Silent)
                };
                if let Some(row) = self.row(&agent).filter(late) {
                    *row = ParticipantState::Rejected;
                    actions.push(ContractNetAction::Reject(agent, ProposalRejection::Late));
                }
            }
            (ContractNetPhase::Awarded, ContractNetEvent::Reported(agent, report)) => {
                self.reported(agent, report);
            }
            (ContractNetPhase::Awarded, ContractNetEvent::Rang) if is_late => {
                for agent in self.named(&ParticipantState::Accepted) {
                    if !self.reports.contains_key(&agent) {
                        actions.push(ContractNetAction::Cancel(agent.clone()));
                        self.reported(
                            agent,
                            ContractorReport::Failure("the work took too long".to_owned()),
                        );
                    }
                }
            }
            (
                ContractNetPhase::New
                | ContractNetPhase::Called
                | ContractNetPhase::Awarded
                | ContractNetPhase::Over,
                _,
            ) => {}
        }
        if self.phase == ContractNetPhase::Called
            && (self.named(&ParticipantState::Called).is_empty() || is_late)
        {
            self.evaluate(now, &mut actions);
        }
        let is_reported = self.reports.len() == self.named(&ParticipantState::Accepted).len();
        if self.phase == ContractNetPhase::Awarded && is_reported {
            self.phase = ContractNetPhase::Over;
            actions.push(ContractNetAction::Finish(self.outcome()));
        }
        actions
    }

    fn row(&mut self, agent: &str) -> Option<&mut ParticipantState> {
        self.rows.iter_mut().find(|(name, _)| name == agent).map(|(_, row)| row)
    }

    /// Names of the participants in this state.
    fn named(&self, state: &ParticipantState) -> Vec<String> {
        let of = self.rows.iter().filter(|(_, row)| row == state);
        of.map(|(name, _)| name.clone()).collect()
    }

    fn reported(&mut self, agent: String, report: ContractorReport) {
        if self.named(&ParticipantState::Accepted).contains(&agent) {
            self.reports.entry(agent).or_insert(report);
        }
    }

    fn wait(&mut self, now: u64, ms: Option<u64>, actions: &mut Vec<ContractNetAction>) {
        self.deadline = ms.map(|ms| now.saturating_add(ms));
        actions.extend(self.deadline.map(ContractNetAction::Wait));
    }

    fn begin_round(&mut self, now: u64, called: &[usize], actions: &mut Vec<ContractNetAction>) {
        self.round += 1;
        for &index in called {
            let (name, row) = &mut self.rows[index];
            *row = ParticipantState::Called;
            actions.push(ContractNetAction::Call(name.clone(), self.round));
        }
        self.wait(now, self.call.timeout_ms, actions);
    }

    /// Ends a round: calls those beyond the limits again, or awards the work.
    fn evaluate(&mut self, now: u64, actions: &mut Vec<ContractNetAction>) {
        let (mut fitting, mut beyond) = (Vec::new(), Vec::new());
        for (index, (name, row)) in self.rows.iter_mut().enumerate() {
            match (&row, self.proposals.get(name)) {
                (ParticipantState::Called, _) => *row = ParticipantState::Silent,
                (ParticipantState::Bound, Some(proposal)) if fits(proposal, &self.call.limits) => {
                    fitting.push(index);
                }
                (ParticipantState::Bound, _) => beyond.push(index),
                (
                    ParticipantState::Refused(_)
                    | ParticipantState::Silent
                    | ParticipantState::Accepted
                    | ParticipantState::Rejected,
                    _,
                ) => {}
            }
        }
        let is_short = fitting.len() < self.call.awards && !beyond.is_empty();
        if is_short && self.round < self.call.max_rounds {
            return self.begin_round(now, &beyond, actions);
        }
        let chosen = self.best(&fitting);
        for index in 0..self.rows.len() {
            let why = if beyond.contains(&index) {
                ProposalRejection::Limits
            } else {
                ProposalRejection::NotChosen
            };
            let (name, row) = &mut self.rows[index];
            if *row == ParticipantState::Bound {
                let is_chosen = chosen.contains(&index);
                *row =
                    if is_chosen { ParticipantState::Accepted } else { ParticipantState::Rejected };
                let name = name.clone();
                actions.push(match is_chosen {
                    true => ContractNetAction::Accept(name),
                    false => ContractNetAction::Reject(name, why),
                });
            }
        }
        self.phase = ContractNetPhase::Awarded;
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

    fn outcome(&self) -> ContractNetOutcome {
        let names = || self.rows.iter().map(|(name, _)| name.clone());
        let of_refusal = |(name, row): &(String, ParticipantState)| match row {
            ParticipantState::Refused(why) => Some((name.clone(), why.clone())),
            ParticipantState::Called
            | ParticipantState::Bound
            | ParticipantState::Silent
            | ParticipantState::Accepted
            | ParticipantState::Rejected => None,
        };
        ContractNetOutcome {
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

fn fits(proposal: &Proposal, limits: &ProposalLimits) -> bool {
    share(proposal.confidence) >= share(limits.confidence)
        && limits.time_ms.is_none_or(|max| proposal.time_ms <= max)
        && limits.cost.is_none_or(|max| proposal.cost <= max)
}
