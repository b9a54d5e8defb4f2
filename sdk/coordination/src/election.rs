//! Elections: one leader for each term, by capability and health.
//!
//! ```text
//!   new ── Begun ──► voting ── all reported, or the deadline passed ──► led ── Acted: admit,
//!                     ▲  ▲                │                              │     or refuse
//!                     │  └── nobody fit ──┘ (a later report)             │
//!                     └───────── the leader failed, or is silent ────────┘ (the next term)
//! ```
//!
//! A healthy member with the highest score becomes leader. A better member that comes later does
//! not replace it. Each act of a leader carries its term. An act of another term is refused, so
//! that a leader that was cut off cannot act after its successor: a fencing token (Kleppmann, "How
//! to do distributed locking", 2016), and the terms of Raft (Ongaro and Ousterhout, 2014).

use std::{cmp::Reverse, collections::BTreeMap};

use crate::amount::{fraction, millionths};

/// Members and times of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionRules {
    /// Names of the members; of equal ones the first becomes leader.
    pub members: Vec<String>,
    /// Time for the reports of an election.
    pub timeout_ms: u64,
    /// Time after which a leader without a report has failed.
    pub lease_ms: u64,
    /// Term before the first one of this election.
    pub last_term: u64,
}

/// Event of an election.
#[derive(Clone, Debug, PartialEq)]
pub enum ElectionEvent {
    /// The election begins.
    Begun,
    /// A member's capability score and health.
    Reported(String, f64, bool),
    /// A member failed or left.
    Failed(String),
    /// A member acts as the leader of this term.
    Acted(String, u64),
    /// Time passed.
    Rang,
}

/// Action of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElectionAction {
    /// Ask a member for its report.
    Call(String),
    /// Send [`ElectionEvent::Rang`] at this time.
    Wait(u64),
    /// Tell all members: this one leads in this term.
    Elect(String, u64),
    /// Tell all members: the leader of this term has failed.
    Depose(String, u64),
    /// Carry out the act.
    Admit(String, u64),
    /// Refuse the act of this member and term; the last number is the newest term.
    Refuse(String, u64, u64),
}

/// Newest term that a store has seen: the store refuses older ones by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fence(u64);

impl Fence {
    /// Admits an act of this term, and from then on none of a lower one.
    pub fn admit(&mut self, term: u64) -> bool {
        let is_new = term >= self.0;
        self.0 = self.0.max(term);
        is_new
    }
}

/// A running election.
#[derive(Clone, Debug)]
pub struct Election {
    rules: ElectionRules,
    phase: ElectionPhase,
    term: u64,
    deadline: u64,
    /// Reports of this election: the score of a healthy member, or none.
    reports: BTreeMap<String, Option<u64>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ElectionPhase {
    New,
    Voting,
    Led(String),
}

impl Election {
    /// Creates an election.
    ///
    /// # Errors
    ///
    /// If it has no member.
    pub fn new(rules: ElectionRules) -> Result<Self, String> {
        if rules.members.is_empty() {
            return Err("an election has at least one member".to_owned());
        }
        let term = rules.last_term;
        Ok(Self { rules, phase: ElectionPhase::New, term, deadline: 0, reports: BTreeMap::new() })
    }

    /// Leader and term, if one leads.
    pub fn leader(&self) -> Option<(&str, u64)> {
        match &self.phase {
            ElectionPhase::Led(leader) => Some((leader, self.term)),
            ElectionPhase::New | ElectionPhase::Voting => None,
        }
    }

    /// Healthy members that reported in the last election, with their scores; the best first.
    pub fn ranking(&self) -> Vec<(&str, f64)> {
        let ranked = self.ranked().into_iter();
        ranked.map(|(member, score)| (member.as_str(), fraction(score))).collect()
    }

    fn ranked(&self) -> Vec<(&String, u64)> {
        let score = |member| Some((member, self.reports.get(member).copied().flatten()?));
        let mut ranked: Vec<_> = self.rules.members.iter().filter_map(score).collect();
        // The sort is stable: of equal scores the first member comes first.
        ranked.sort_by_key(|(_, score)| Reverse(*score));
        ranked
    }

    /// Takes an event at a time in milliseconds, and returns what to do.
    pub fn step(&mut self, now: u64, event: ElectionEvent) -> Vec<ElectionAction> {
        let mut actions = Vec::new();
        // A lease that ran out counts before the event that is late.
        if now >= self.deadline
            && let ElectionPhase::Led(leader) = self.phase.clone()
        {
            self.depose(now, leader, &mut actions);
        }
        match event {
            ElectionEvent::Begun if self.phase == ElectionPhase::New => {
                self.begin(now, &mut actions);
            }
            ElectionEvent::Begun | ElectionEvent::Rang => {}
            ElectionEvent::Reported(member, score, is_healthy) => {
                let score = is_healthy.then(|| millionths(score));
                self.reported(now, member, score, &mut actions);
            }
            ElectionEvent::Failed(member) => self.reported(now, member, None, &mut actions),
            ElectionEvent::Acted(member, term) => {
                let is_leader = self.leader() == Some((member.as_str(), term));
                actions.push(match is_leader {
                    true => ElectionAction::Admit(member, term),
                    false => ElectionAction::Refuse(member, term, self.term),
                });
            }
        }
        if self.phase == ElectionPhase::Voting {
            self.elect(now, &mut actions);
        }
        actions
    }

    fn begin(&mut self, now: u64, actions: &mut Vec<ElectionAction>) {
        self.phase = ElectionPhase::Voting;
        self.reports.clear();
        self.deadline = now.saturating_add(self.rules.timeout_ms);
        actions.extend(self.rules.members.iter().cloned().map(ElectionAction::Call));
        actions.push(ElectionAction::Wait(self.deadline));
    }

    fn reported(
        &mut self,
        now: u64,
        member: String,
        score: Option<u64>,
        actions: &mut Vec<ElectionAction>,
    ) {
        if !self.rules.members.contains(&member) {
            return;
        }
        match &self.phase {
            ElectionPhase::New => {}
            ElectionPhase::Voting => drop(self.reports.insert(member, score)),
            ElectionPhase::Led(leader) if *leader != member => {}
            ElectionPhase::Led(_) if score.is_some() => {
                self.deadline = now.saturating_add(self.rules.lease_ms);
                actions.push(ElectionAction::Wait(self.deadline));
            }
            ElectionPhase::Led(_) => {
                self.depose(now, member.clone(), actions);
                self.reports.insert(member, None);
            }
        }
    }

    fn depose(&mut self, now: u64, leader: String, actions: &mut Vec<ElectionAction>) {
        actions.push(ElectionAction::Depose(leader, self.term));
        self.begin(now, actions);
    }

    /// Elects a leader if all reported or the time is over; without a fit member it waits on.
    fn elect(&mut self, now: u64, actions: &mut Vec<ElectionAction>) {
        let members = &self.rules.members;
        let is_complete = members.iter().all(|member| self.reports.contains_key(member));
        if !is_complete && now < self.deadline {
            return;
        }
        let Some((leader, _)) = self.ranked().first().copied() else { return };
        let leader = leader.clone();
        self.term += 1;
        self.deadline = now.saturating_add(self.rules.lease_ms);
        actions.push(ElectionAction::Elect(leader.clone(), self.term));
        actions.push(ElectionAction::Wait(self.deadline));
        self.phase = ElectionPhase::Led(leader);
    }
}
