//! Negotiations: parties exchange proposals until all agree on the same one.
//!
//! ```text
//!   new ── Begun ──► open ── all parties accepted the same proposal ──► agreed
//!                    │  ▲
//!                    └──┘ accepted: the next party; countered: a new proposal, from the others on
//!   open ── a party left, the cap of proposals, or the deadline ──► no agreement
//! ```
//!
//! One party at a time has the turn, in the order of the list (alternating offers: Rubinstein,
//! "Perfect Equilibrium in a Bargaining Model", 1982, here with the consent of all). A proposal
//! counts as accepted by its author. A counter-proposal takes its place, and frees all others from
//! what they accepted. An answer names the proposal that it means; one to an older proposal, or
//! from a party without the turn, changes nothing.

/// Parties and limits of a negotiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegotiationRules {
    /// Names of the parties; the first one makes the first proposal.
    pub parties: Vec<String>,
    /// Most proposals, the first one included.
    pub max_proposals: u32,
    /// Time for the whole negotiation; none waits for ever.
    pub timeout_ms: Option<u64>,
}

/// Event of a negotiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NegotiationEvent {
    /// The negotiation begins.
    Begun,
    /// A party proposes these terms in reply to the proposal of this number; 0 is the beginning.
    Proposed(String, u32, String),
    /// A party accepts the proposal of this number.
    Accepted(String, u32),
    /// A party fails or leaves, for this reason.
    Departed(String, String),
    /// Time passed.
    Rang,
}

/// Action of a negotiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NegotiationAction {
    /// Ask a party for the first proposal, or for its answer to this one.
    Call(String, Option<ProposedTerms>),
    /// Send [`NegotiationEvent::Rang`] at this time.
    Wait(u64),
    /// Withdraw the question to a party.
    Cancel(String),
    /// Tell a party the outcome.
    Tell(String, NegotiationOutcome),
    /// End the negotiation.
    Finish(NegotiationOutcome),
}

/// Terms on the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedTerms {
    /// Number, counted from 1.
    pub number: u32,
    /// Author.
    pub by: String,
    /// Text of the terms.
    pub terms: String,
}

/// Outcome of a negotiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NegotiationOutcome {
    /// The written agreement: its terms, and all parties as signatories.
    Agreed {
        /// Proposal that all parties accepted.
        proposal: ProposedTerms,
        /// Parties, in the order of the list.
        signed: Vec<String>,
    },
    /// No agreement.
    Failed {
        /// Reason.
        why: NoAgreementReason,
        /// Last proposal.
        last: Option<ProposedTerms>,
        /// Parties that accepted the last proposal.
        accepted: Vec<String>,
    },
}

/// Reason of a negotiation without agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAgreementReason {
    /// The time is over.
    Deadline,
    /// The cap of proposals is reached, and this party wants other terms.
    Cap(String),
    /// This party left, for this reason.
    Departed(String, String),
}

/// One negotiation.
#[derive(Clone, Debug)]
pub struct Negotiation {
    rules: NegotiationRules,
    phase: NegotiationPhase,
    deadline: Option<u64>,
    proposal: Option<ProposedTerms>,
    /// Indices of the parties that accepted the proposal.
    accepted: Vec<usize>,
    /// Index of the party that has the turn.
    turn: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NegotiationPhase {
    New,
    Open,
    Over,
}

impl Negotiation {
    /// Creates a negotiation.
    ///
    /// # Errors
    ///
    /// If it has fewer than two parties, one is listed twice, or no proposal is allowed.
    pub fn new(rules: NegotiationRules) -> Result<Self, String> {
        let parties = &rules.parties;
        if parties.len() < 2 {
            return Err("a negotiation has at least two parties".to_owned());
        }
        if let Some(twice) = (1..parties.len()).find(|at| parties[..*at].contains(&parties[*at])) {
            return Err(format!("the party `{}` is listed twice", parties[twice]));
        }
        if rules.max_proposals == 0 {
            return Err("a negotiation has at least one proposal".to_owned());
        }
        let (proposal, accepted) = (None, Vec::new());
        Ok(Self {
            rules,
            phase: NegotiationPhase::New,
            deadline: None,
            proposal,
            accepted,
            turn: 0,
        })
    }

    /// Takes an event at a time in milliseconds, and returns what to do.
    pub fn step(&mut self, now: u64, event: NegotiationEvent) -> Vec<NegotiationAction> {
        let mut actions = Vec::new();
        match (self.phase, event) {
            (NegotiationPhase::New, NegotiationEvent::Begun) => {
                self.phase = NegotiationPhase::Open;
                self.deadline = self.rules.timeout_ms.map(|ms| now.saturating_add(ms));
                actions.extend(self.deadline.map(NegotiationAction::Wait));
                self.call(&mut actions);
            }
            (NegotiationPhase::Open, _)
                if self.deadline.is_some_and(|deadline| now >= deadline) =>
            {
                self.fail(NoAgreementReason::Deadline, &mut actions);
            }
            (NegotiationPhase::Open, NegotiationEvent::Proposed(party, to, terms))
                if self.has_turn(&party, to) =>
            {
                if to >= self.rules.max_proposals {
                    self.fail(NoAgreementReason::Cap(party), &mut actions);
                } else {
                    self.proposal = Some(ProposedTerms { number: to + 1, by: party, terms });
                    self.accept(&mut actions);
                }
            }
            (NegotiationPhase::Open, NegotiationEvent::Accepted(party, to))
                if to > 0 && self.has_turn(&party, to) =>
            {
                self.accept(&mut actions);
            }
            (NegotiationPhase::Open, NegotiationEvent::Departed(party, why))
                if self.rules.parties.contains(&party) =>
            {
                self.fail(NoAgreementReason::Departed(party, why), &mut actions);
            }
            (NegotiationPhase::New | NegotiationPhase::Open | NegotiationPhase::Over, _) => {}
        }
        actions
    }

    fn number(&self) -> u32 {
        self.proposal.as_ref().map_or(0, |proposal| proposal.number)
    }

    fn has_turn(&self, party: &str, to: u32) -> bool {
        self.rules.parties[self.turn] == party && to == self.number()
    }

    /// Records the consent of the party that has the turn, and goes on to the next one without.
    fn accept(&mut self, actions: &mut Vec<NegotiationAction>) {
        let is_proposer =
            self.proposal.as_ref().is_some_and(|it| it.by == self.rules.parties[self.turn]);
        if is_proposer {
            self.accepted.clear();
        }
        self.accepted.push(self.turn);
        let count = self.rules.parties.len();
        let others = (1..count).map(|step| (self.turn + step) % count);
        match (others.into_iter().find(|it| !self.accepted.contains(it)), self.proposal.clone()) {
            (None, Some(proposal)) => {
                let signed = self.rules.parties.clone();
                self.finish(NegotiationOutcome::Agreed { proposal, signed }, actions);
            }
            (next, _) => {
                self.turn = next.unwrap_or_default();
                self.call(actions);
            }
        }
    }

    fn call(&self, actions: &mut Vec<NegotiationAction>) {
        let party = self.rules.parties[self.turn].clone();
        actions.push(NegotiationAction::Call(party, self.proposal.clone()));
    }

    fn fail(&mut self, why: NoAgreementReason, actions: &mut Vec<NegotiationAction>) {
        let answered = match &why {
            NoAgreementReason::Deadline => None,
            NoAgreementReason::Cap(name) | NoAgreementReason::Departed(name, _) => Some(name),
        };
        let party = &self.rules.parties[self.turn];
        if answered != Some(party) {
            actions.push(NegotiationAction::Cancel(party.clone()));
        }
        self.accepted.sort_unstable();
        let names = self.accepted.iter().map(|&index| self.rules.parties[index].clone());
        let (accepted, last) = (names.collect(), self.proposal.clone());
        self.finish(NegotiationOutcome::Failed { why, last, accepted }, actions);
    }

    fn finish(&mut self, outcome: NegotiationOutcome, actions: &mut Vec<NegotiationAction>) {
        self.phase = NegotiationPhase::Over;
        let parties = self.rules.parties.iter().cloned();
        actions.extend(parties.map(|party| NegotiationAction::Tell(party, outcome.clone())));
        actions.push(NegotiationAction::Finish(outcome));
    }
}
