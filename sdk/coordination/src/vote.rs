//! Votes: agents choose among given answers, and a rule says which answer wins.
//!
//! ```text
//!   new ── Begun ──► open ── all voted or failed, or the deadline passed ──► closed
//!
//!   closed:  decided   one choice fulfils the rule
//!            tie       the best choices are equal
//!            none      one choice is ahead, and does not fulfil the rule
//!            no quorum too few ballots
//! ```
//!
//! A poll closes once, with all ballots that are in by then, so that dissent is kept and the order
//! of the ballots decides nothing. Each agent has one ballot: the first that names a choice.

use std::collections::BTreeMap;

use crate::{
    amount::{fraction, millionths, share},
    record::Record,
};

/// Rule by which a choice wins.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Simple majority: more than half of the ballots, of which more than half of the voters have
    /// to cast one (Robert's Rules of Order, section 44).
    Majority,
    /// A majority in which a ballot counts its confidence, times the weight of its voter. Voters
    /// without a weight have 1. Turnout is as in `Majority`.
    Weighted(BTreeMap<String, f64>),
    /// A majority in which a ballot counts the weight of its voter's record, whatever its
    /// confidence.
    Record(BTreeMap<String, Record>),
    /// At least `k` equal ballots of n, whatever became of the other n - k voters (Gifford,
    /// "Weighted Voting for Replicated Data", 1979). If two choices have them, the larger wins.
    Quorum(usize),
}

/// Ballot of one voter.
#[derive(Clone, Debug, PartialEq)]
pub struct Ballot {
    /// One of the choices.
    pub choice: String,
    /// Certainty of the voter, from 0 to 1.
    pub confidence: f64,
    /// Grounds of the voter.
    pub reason: String,
}

/// Question of a poll.
#[derive(Clone, Debug, PartialEq)]
pub struct Poll {
    /// Names of the voters.
    pub voters: Vec<String>,
    /// Answers among which they choose.
    pub choices: Vec<String>,
    /// Rule by which a choice wins.
    pub rule: Rule,
    /// Time for all ballots; none waits for ever.
    pub timeout_ms: Option<u64>,
}

/// Event of a poll.
#[derive(Clone, Debug, PartialEq)]
pub enum PollEvent {
    /// The poll begins.
    Begun,
    /// A voter answered.
    Voted(String, Ballot),
    /// A voter failed, for this reason, or left.
    Failed(String, String),
    /// Time passed.
    Rang,
}

/// Action of a poll.
#[derive(Clone, Debug, PartialEq)]
pub enum PollAction {
    /// Ask a voter.
    Call(String),
    /// Send [`PollEvent::Rang`] at this time.
    Wait(u64),
    /// Withdraw the question: the poll closed without this voter.
    Cancel(String),
    /// End the poll.
    Finish(PollOutcome),
}

/// Kind of an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollDecision {
    /// This choice fulfils the rule.
    Decided(String),
    /// These choices are equal, and none is better.
    Tie(Vec<String>),
    /// This choice is ahead, and does not fulfil the rule.
    None(String),
    /// Too few ballots, or by [`Rule::Quorum`] too few equal ones.
    NoQuorum,
}

impl PollDecision {
    /// Word for files and messages.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Decided(_) => "decided",
            Self::Tie(_) => "tie",
            Self::None(_) => "no_majority",
            Self::NoQuorum => "no_quorum",
        }
    }
}

/// Outcome of a poll. All its lists are in the order of the voters or of the choices.
#[derive(Clone, Debug, PartialEq)]
pub struct PollOutcome {
    /// The decision.
    pub decision: PollDecision,
    /// Weight of each choice; by `Majority` and `Quorum` the number of its ballots.
    pub tally: Vec<(String, f64)>,
    /// All ballots, dissent included.
    pub ballots: Vec<(String, Ballot)>,
    /// Voters without a ballot, and the reason.
    pub failed: Vec<(String, String)>,
}

/// One poll.
#[derive(Clone, Debug)]
pub struct PollState {
    poll: Poll,
    deadline: Option<u64>,
    answers: BTreeMap<String, Result<Ballot, String>>,
    phase: PollPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PollPhase {
    New,
    Open,
    Closed,
}

impl PollState {
    /// Creates a poll. A voter or choice that is named twice counts once.
    ///
    /// # Errors
    ///
    /// If nobody votes, fewer than two choices are given, or the quorum cannot be reached.
    pub fn new(mut poll: Poll) -> Result<Self, String> {
        for names in [&mut poll.voters, &mut poll.choices] {
            let mut unique = Vec::new();
            names.retain(|name| {
                !unique.contains(name) && {
                    unique.push(name.clone());
                    true
                }
            });
        }
        let voter_count = poll.voters.len();
        if voter_count == 0 {
            return Err("a vote has at least one voter".to_owned());
        }
        if poll.choices.len() < 2 {
            return Err("a vote has at least two choices".to_owned());
        }
        if let Rule::Quorum(k) = poll.rule
            && !(1..=voter_count).contains(&k)
        {
            return Err(format!(
                "a quorum of {voter_count} voters is from 1 to {voter_count}, and here is {k}"
            ));
        }
        Ok(Self { poll, deadline: None, answers: BTreeMap::new(), phase: PollPhase::New })
    }

    /// Takes an event at a time in milliseconds, and returns what to do.
    pub fn step(&mut self, now: u64, event: PollEvent) -> Vec<PollAction> {
        let mut actions = Vec::new();
        match (self.phase, event) {
            (PollPhase::New, PollEvent::Begun) => {
                self.phase = PollPhase::Open;
                actions.extend(self.poll.voters.iter().cloned().map(PollAction::Call));
                self.deadline = self.poll.timeout_ms.map(|ms| now.saturating_add(ms));
                actions.extend(self.deadline.map(PollAction::Wait));
            }
            (PollPhase::Open, PollEvent::Voted(voter, ballot)) if !self.is_late(now) => {
                let answer = match self.poll.choices.contains(&ballot.choice) {
                    true => Ok(ballot),
                    false => Err(format!("`{}` is none of the choices", ballot.choice)),
                };
                self.answered(voter, answer);
            }
            (PollPhase::Open, PollEvent::Failed(voter, why)) => self.answered(voter, Err(why)),
            (PollPhase::New | PollPhase::Open | PollPhase::Closed, _) => {}
        }
        let is_complete = self.answers.len() == self.poll.voters.len();
        if self.phase == PollPhase::Open && (is_complete || self.is_late(now)) {
            self.close(&mut actions);
        }
        actions
    }

    fn is_late(&self, now: u64) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    fn answered(&mut self, voter: String, answer: Result<Ballot, String>) {
        if self.poll.voters.contains(&voter) {
            self.answers.entry(voter).or_insert(answer);
        }
    }

    fn close(&mut self, actions: &mut Vec<PollAction>) {
        self.phase = PollPhase::Closed;
        let (mut ballots, mut failed) = (Vec::new(), Vec::new());
        for voter in &self.poll.voters {
            match self.answers.get(voter) {
                Some(Ok(ballot)) => ballots.push((voter.clone(), ballot.clone())),
                Some(Err(why)) => failed.push((voter.clone(), why.clone())),
                None => {
                    actions.push(PollAction::Cancel(voter.clone()));
                    failed.push((voter.clone(), "no answer in time".to_owned()));
                }
            }
        }
        actions.push(PollAction::Finish(count(&self.poll, ballots, failed)));
    }
}

/// Counts the ballots by the rule of the poll.
fn count(
    poll: &Poll,
    ballots: Vec<(String, Ballot)>,
    failed: Vec<(String, String)>,
) -> PollOutcome {
    let weight = |voter: &str, ballot: &Ballot| match &poll.rule {
        Rule::Majority | Rule::Quorum(_) => millionths(1.0),
        Rule::Weighted(weights) => {
            let record = weights.get(voter).copied().map_or(millionths(1.0), millionths);
            // Both are in millionths.
            share(ballot.confidence).saturating_mul(record) / millionths(1.0)
        }
        Rule::Record(records) => {
            millionths(records.get(voter).copied().unwrap_or_default().weight())
        }
    };
    let of_choice = |choice: &String| {
        let matching = ballots.iter().filter(|(_, ballot)| ballot.choice == *choice);
        matching.map(|(voter, ballot)| weight(voter, ballot)).fold(0, u64::saturating_add)
    };
    let counts: Vec<u64> = poll.choices.iter().map(of_choice).collect();
    let total = counts.iter().copied().fold(0, u64::saturating_add);
    let highest = counts.iter().copied().max().unwrap_or_default();
    let best = poll.choices.iter().zip(&counts).filter(|(_, count)| **count == highest);
    let best: Vec<String> = best.map(|(choice, _)| choice.clone()).collect();
    let (has_turnout, is_fulfilled) = match &poll.rule {
        Rule::Majority | Rule::Weighted(_) | Rule::Record(_) => {
            (ballots.len() * 2 > poll.voters.len() && total > 0, highest > total - highest)
        }
        Rule::Quorum(k) => (highest >= millionths(1.0).saturating_mul(*k as u64), true),
    };
    let decision = match best.as_slice() {
        _ if !has_turnout => PollDecision::NoQuorum,
        [one] if is_fulfilled => PollDecision::Decided(one.clone()),
        [one] => PollDecision::None(one.clone()),
        _ => PollDecision::Tie(best),
    };
    let tally = poll.choices.iter().cloned().zip(counts.into_iter().map(fraction)).collect();
    PollOutcome { decision, tally, ballots, failed }
}
