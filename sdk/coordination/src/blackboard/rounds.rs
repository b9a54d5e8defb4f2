//! Blackboards in rounds: agents see the whole board, and contribute to it, round after round.
//!
//! ```text
//!   new ── Begun ──► round ── all answered or failed, or the deadline passed ──► all items done
//!                    ▲    │                                                      quiescent
//!                    └────┘ somebody contributed, or holds an item               capped
//!                                                                                no agents
//! ```
//!
//! With [`TurnOrder::All`], all agents of a round see the same board. Their contributions count when
//! all are in, agent after agent; another one is first in each round. So the order in which they
//! arrive decides nothing. With [`TurnOrder::Turns`], each agent of a round sees what those before it
//! changed.
//!
//! A contribution names the version that its author saw. Of an agent's own changes within one
//! answer it need not know: it may claim and finish an item at once. A claim lasts for some rounds,
//! so that an agent that fails does not keep its items. One that fails in two rounds, one after the
//! other, leaves the board.
//!
//! An agent may also change the board in the middle of its turn ([`RoundsState::change`]). Such a change
//! counts at once, before the answers of the round: the first of two claims holds the item.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

pub use super::refusal::ContributionRefusal;
use super::{
    board::{Board, ChangeRefusal, Item, ItemState, Wish},
    usage::BoardUsage,
};

/// Most contributions of one answer, and most changes in the middle of one turn; further ones are
/// refused.
pub const MAX_CONTRIBUTIONS: usize = 32;

/// Most characters of an id or a kind.
const MAX_NAME: usize = 64;

/// Most items that one item needs.
const MAX_NEEDS: usize = 32;

/// Failures, one round after the other, after which an agent leaves.
const MAX_FAILURES: u32 = 2;

/// Most refusals of an outcome; the oldest ones go first.
const MAX_REFUSALS: usize = 100;

/// Agents and limits of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundsRules {
    /// Names of the agents.
    pub agents: Vec<String>,
    /// Choice of those that go next.
    pub control: TurnOrder,
    /// Rounds after that of a claim in which it holds.
    pub lease: u32,
    /// Most rounds.
    pub max_rounds: u32,
    /// Most items.
    pub max_items: usize,
    /// Most bytes of all items with their results, as JSON.
    pub max_bytes: usize,
    /// Time for the answers of one call; none waits for ever.
    pub timeout_ms: Option<u64>,
}

/// Rule that chooses who goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOrder {
    /// All agents at the same time.
    All,
    /// One agent after the other, in their order.
    Turns,
}

/// Item that an agent adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// Name: letters, digits, `-`, `_` and `.`.
    pub id: String,
    /// Kind, such as `question`.
    pub kind: String,
    /// Work to do.
    pub text: String,
    /// Ids of the items that have to be done before.
    pub needs: Vec<String>,
}

/// Contribution of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contribution {
    /// Adds an item.
    Add(NewItem),
    /// Claims the item at this version, or renews the claim.
    Claim(String, u64),
    /// Finishes a claimed item with a result.
    Finish(String, u64, String),
    /// Gives a claimed item back.
    Release(String, u64),
}

impl Contribution {
    /// Verb for texts.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Claim(..) => "claim",
            Self::Finish(..) => "finish",
            Self::Release(..) => "release",
        }
    }

    /// Id of the item.
    pub fn id(&self) -> &str {
        match self {
            Self::Add(item) => &item.id,
            Self::Claim(id, _) | Self::Finish(id, ..) | Self::Release(id, _) => id,
        }
    }
}

/// Contribution that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedContribution {
    /// Verb of the contribution.
    pub verb: &'static str,
    /// Id of the item.
    pub id: String,
    /// Rule that it breaks.
    pub why: ContributionRefusal,
}

/// Event of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundsEvent {
    /// The first round begins.
    Begun,
    /// An agent's contributions in this round; none if it has nothing to add.
    Contributed(String, u32, Vec<Contribution>),
    /// An agent failed in this round, and the reason.
    Failed(String, u32, String),
    /// Time passed.
    Rang,
}

/// Action of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundsAction {
    /// Show the board to an agent in this round, with what was refused of its last answer.
    Call(String, u32, Vec<RefusedContribution>),
    /// Send [`RoundsEvent::Rang`] at this time.
    Wait(u64),
    /// Withdraw the call to an agent that is too slow.
    Cancel(String, u32),
    /// End the board.
    Finish(RoundsOutcome),
}

/// End of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundsEnd {
    /// All items are done, and the board has at least one.
    Goal,
    /// Nobody contributed in a round, and nobody holds an item.
    Quiescent,
    /// The last round is over.
    Capped,
    /// All agents left.
    NoAgents,
}

/// Outcome of a board; its items are those of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundsOutcome {
    /// End.
    pub end: RoundsEnd,
    /// Number of rounds.
    pub rounds: u32,
    /// Last refused contributions: the round, the agent and the refusal.
    pub refused: Vec<(u32, String, RefusedContribution)>,
    /// Agents that left, and the reason of their last failure.
    pub departed: Vec<(String, String)>,
}

/// One board.
#[derive(Clone, Debug)]
pub struct RoundsState {
    rules: RoundsRules,
    phase: RoundsPhase,
    board: Board,
    /// Ids of the items, in their order.
    ids: Vec<String>,
    usage: BoardUsage,
    round: u32,
    deadline: Option<u64>,
    /// Agents of this round that were not called yet.
    queue: VecDeque<String>,
    /// Answers of the agents that were called: the contributions, or why it failed.
    answers: BTreeMap<String, Option<RoundAnswer>>,
    has_contributed: bool,
    has_answered: bool,
    /// Refusals for the next call of each agent.
    pending: BTreeMap<String, Vec<RefusedContribution>>,
    refused: VecDeque<(u32, String, RefusedContribution)>,
    /// Failures of each agent since its last answer, and the last reason.
    failures: BTreeMap<String, (u32, String)>,
    /// Changes of agents in the middle of their turns.
    turns: BTreeMap<String, TurnChanges>,
}

/// Changes of an agent in its turn.
#[derive(Clone, Debug, Default)]
struct TurnChanges {
    /// Number of the changes in the middle of the turn, with those that were refused.
    number: usize,
    /// Version that the agent knows, and the version now, of the items that it changed itself.
    versions: BTreeMap<usize, (u64, u64)>,
}

type RoundAnswer = Result<Vec<Contribution>, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundsPhase {
    New,
    Open,
    Closed,
}

impl RoundsState {
    /// Creates a board.
    ///
    /// # Errors
    ///
    /// If it has no agent, one twice, or no round.
    pub fn new(rules: RoundsRules) -> Result<Self, String> {
        let is_twice =
            rules.agents.iter().enumerate().any(|(at, name)| rules.agents[..at].contains(name));
        if rules.agents.is_empty() || rules.max_rounds == 0 {
            return Err("a blackboard has at least one agent and one round".to_owned());
        }
        if is_twice {
            return Err("an agent of a blackboard is listed once".to_owned());
        }
        // A claim ends as the round after its last one begins.
        let board = Board::new(u64::from(rules.lease).saturating_add(1));
        Ok(Self {
            rules,
            phase: RoundsPhase::New,
            board,
            ids: Vec::new(),
            usage: BoardUsage::default(),
            round: 0,
            deadline: None,
            queue: VecDeque::new(),
            answers: BTreeMap::new(),
            has_contributed: false,
            has_answered: false,
            pending: BTreeMap::new(),
            refused: VecDeque::new(),
            failures: BTreeMap::new(),
            turns: BTreeMap::new(),
        })
    }

    /// Posts an item before the board begins.
    ///
    /// # Errors
    ///
    /// If the item breaks a rule, or the board began.
    pub fn post(&mut self, author: &str, item: NewItem) -> Result<(), ContributionRefusal> {
        match self.phase {
            RoundsPhase::New => self.add(author, item).map(drop),
            RoundsPhase::Open | RoundsPhase::Closed => {
                Err(ContributionRefusal::Rule(ChangeRefusal::Stranger))
            }
        }
    }

    /// Items with their ids, in the order in which they were posted. Text and result are members of
    /// the body.
    pub fn items(&self) -> impl Iterator<Item = (&str, &Item)> {
        self.ids.iter().map(String::as_str).zip(self.board.items())
    }

    /// Id of the item with this index.
    pub fn id(&self, index: usize) -> &str {
        self.ids.get(index).map_or("", String::as_str)
    }

    /// True if all items that this one needs are done.
    pub fn is_ready(&self, item: &Item) -> bool {
        self.board.is_ready(item)
    }

    /// Takes an event at a time in milliseconds, and returns what to do.
    pub fn step(&mut self, now: u64, event: RoundsEvent) -> Vec<RoundsAction> {
        let mut actions = Vec::new();
        match (self.phase, event) {
            (RoundsPhase::New, RoundsEvent::Begun) => {
                self.phase = RoundsPhase::Open;
                self.begin_round(now, &mut actions);
            }
            (RoundsPhase::Open, RoundsEvent::Contributed(agent, round, list)) => {
                self.answered(&agent, round, Ok(list));
            }
            (RoundsPhase::Open, RoundsEvent::Failed(agent, round, why)) => {
                self.answered(&agent, round, Err(why));
            }
            (RoundsPhase::Open, RoundsEvent::Rang)
                if self.deadline.is_some_and(|end| now >= end) =>
            {
                for (agent, answer) in &mut self.answers {
                    if answer.is_none() {
                        actions.push(RoundsAction::Cancel(agent.clone(), self.round));
                        *answer = Some(Err("no answer in time".to_owned()));
                    }
                }
            }
            (RoundsPhase::New | RoundsPhase::Open | RoundsPhase::Closed, _) => {}
        }
        while self.phase == RoundsPhase::Open && self.answers.values().all(Option::is_some) {
            self.take_answers();
            self.go_on(now, &mut actions);
        }
        actions
    }

    /// Changes the board at once, in the middle of an agent's turn. Returns the index of the item.
    ///
    /// # Errors
    ///
    /// If the change breaks a rule, or the agent has no turn now.
    pub fn change(
        &mut self,
        agent: &str,
        contribution: Contribution,
    ) -> Result<usize, ContributionRefusal> {
        let is_called = matches!(self.answers.get(agent), Some(None));
        if self.phase != RoundsPhase::Open || !is_called {
            return Err(ContributionRefusal::Rule(ChangeRefusal::Stranger));
        }
        let mut turn = self.turns.remove(agent).unwrap_or_default();
        turn.number += 1;
        let changed = match turn.number {
            ..=MAX_CONTRIBUTIONS => self.apply(agent, contribution, &mut turn.versions),
            _ => Err(ContributionRefusal::LimitReached),
        };
        self.has_contributed |= changed.is_ok();
        self.turns.insert(agent.to_owned(), turn);
        changed
    }

    /// Records the first answer of an agent that was called in this round.
    fn answered(&mut self, agent: &str, round: u32, reply: RoundAnswer) {
        if let (true, Some(answer @ None)) = (round == self.round, self.answers.get_mut(agent)) {
            *answer = Some(reply);
        }
    }

    fn begin_round(&mut self, now: u64, actions: &mut Vec<RoundsAction>) {
        self.round += 1;
        (self.has_contributed, self.has_answered) = (false, false);
        self.board.expire(u64::from(self.round));
        let is_here = |agent: &&String| !self.has_departed(agent);
        self.queue = self.rules.agents.iter().filter(is_here).cloned().collect();
        self.call(now, actions);
    }

    /// Calls those that go next: all of the round, or one of them.
    fn call(&mut self, now: u64, actions: &mut Vec<RoundsAction>) {
        let count = match self.rules.control {
            TurnOrder::All => self.queue.len(),
            TurnOrder::Turns => self.queue.len().min(1),
        };
        for agent in self.queue.drain(..count) {
            let refusals = self.pending.remove(&agent).unwrap_or_default();
            self.turns.remove(&agent);
            actions.push(RoundsAction::Call(agent.clone(), self.round, refusals));
            self.answers.insert(agent, None);
        }
        self.deadline = self.rules.timeout_ms.map(|ms| now.saturating_add(ms));
        actions.extend(self.deadline.map(RoundsAction::Wait));
    }

    fn has_departed(&self, agent: &str) -> bool {
        self.failures.get(agent).is_some_and(|(times, _)| *times >= MAX_FAILURES)
    }

    /// Applies the answers, whose order does not depend on when they came.
    fn take_answers(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        let mut agents = self.rules.agents.clone();
        let first = usize::try_from(self.round - 1).unwrap_or_default() % agents.len();
        agents.rotate_left(first);
        let mut departed = Vec::new();
        for agent in agents {
            match answers.remove(&agent).flatten() {
                None => {}
                Some(Ok(list)) => {
                    self.has_answered = true;
                    self.has_contributed |= !list.is_empty();
                    self.failures.remove(&agent);
                    self.contribute(&agent, list);
                }
                Some(Err(why)) => {
                    let failures = self.failures.entry(agent.clone()).or_default();
                    *failures = (failures.0 + 1, why);
                    if self.has_departed(&agent) {
                        departed.push(agent);
                    }
                }
            }
        }
        for agent in departed {
            self.board.release_all(u64::from(self.round), &agent);
        }
    }

    /// Ends the board, calls the next agent of the round, or begins the next round.
    fn go_on(&mut self, now: u64, actions: &mut Vec<RoundsAction>) {
        let mut items = self.board.items().iter();
        let is_done = !self.ids.is_empty() && items.all(|item| item.state == ItemState::Done);
        let is_quiet = self.has_answered && !self.has_contributed && !self.board.has_claims();
        let end = match () {
            () if is_done => RoundsEnd::Goal,
            () if !self.queue.is_empty() => return self.call(now, actions),
            () if self.rules.agents.iter().all(|agent| self.has_departed(agent)) => {
                RoundsEnd::NoAgents
            }
            () if is_quiet => RoundsEnd::Quiescent,
            () if self.round >= self.rules.max_rounds => RoundsEnd::Capped,
            () => return self.begin_round(now, actions),
        };
        self.phase = RoundsPhase::Closed;
        let departed = self.rules.agents.iter().filter(|agent| self.has_departed(agent));
        let departed =
            departed.filter_map(|agent| Some((agent.clone(), self.failures.get(agent)?.1.clone())));
        actions.push(RoundsAction::Finish(RoundsOutcome {
            end,
            rounds: self.round,
            refused: self.refused.iter().cloned().collect(),
            departed: departed.collect(),
        }));
    }

    /// Applies the contributions of one answer, one after the other.
    fn contribute(&mut self, agent: &str, list: Vec<Contribution>) {
        let mut versions = self.turns.remove(agent).unwrap_or_default().versions;
        for (at, contribution) in list.into_iter().enumerate() {
            let (verb, id) = (contribution.verb(), short(contribution.id()));
            let why = match at {
                0..MAX_CONTRIBUTIONS => self.apply(agent, contribution, &mut versions).err(),
                _ => Some(ContributionRefusal::LimitReached),
            };
            if let Some(why) = why {
                let is_first_beyond = at <= MAX_CONTRIBUTIONS;
                if is_first_beyond {
                    self.refuse(agent, RefusedContribution { verb, id, why });
                }
            }
        }
    }

    fn refuse(&mut self, agent: &str, refusal: RefusedContribution) {
        if self.refused.len() == MAX_REFUSALS {
            self.refused.pop_front();
        }
        self.refused.push_back((self.round, agent.to_owned(), refusal.clone()));
        self.pending.entry(agent.to_owned()).or_default().push(refusal);
    }

    /// Applies a contribution, and returns the index of its item.
    fn apply(
        &mut self,
        agent: &str,
        contribution: Contribution,
        versions: &mut BTreeMap<usize, (u64, u64)>,
    ) -> Result<usize, ContributionRefusal> {
        let index = match &contribution {
            Contribution::Add(_) => None,
            Contribution::Claim(id, _)
            | Contribution::Finish(id, ..)
            | Contribution::Release(id, _) => Some(self.index(id)?),
        };
        let mut bytes = 0;
        let (base, wish) = match (contribution, index) {
            (Contribution::Claim(_, base), Some(at)) => {
                (base, Wish::Claim(at, current(versions, at, base)))
            }
            (Contribution::Release(_, base), Some(at)) => {
                (base, Wish::Release(at, current(versions, at, base)))
            }
            (Contribution::Finish(_, base, result), Some(at)) => {
                bytes = bytes_of(&result);
                self.require_share(agent, (0, bytes))?;
                let text = &self.board.items()[at].body["text"];
                let body = json!({ "text": text, "result": result });
                (base, Wish::Finish(at, current(versions, at, base), body))
            }
            (Contribution::Add(item), _) => {
                let (at, version) = self.add(agent, item)?;
                versions.insert(at, (version, version));
                return Ok(at);
            }
            (
                Contribution::Claim(..) | Contribution::Finish(..) | Contribution::Release(..),
                None,
            ) => return Err(ContributionRefusal::Rule(ChangeRefusal::Unknown)),
        };
        let applied = self.board.apply(u64::from(self.round), agent, wish);
        let (at, version) = applied.map_err(ContributionRefusal::Rule)?;
        self.usage.count(agent, 0, bytes);
        versions.entry(at).or_insert((base, version)).1 = version;
        Ok(at)
    }

    fn require_share(&self, agent: &str, added: (usize, usize)) -> Result<(), ContributionRefusal> {
        let RoundsRules { agents, max_items, max_bytes, .. } = &self.rules;
        self.usage.require_share(agents, (*max_items, *max_bytes), agent, added)
    }

    fn index(&self, id: &str) -> Result<usize, ContributionRefusal> {
        let found = self.ids.iter().position(|it| it == id);
        found.ok_or_else(|| ContributionRefusal::Missing(short(id)))
    }

    fn add(&mut self, agent: &str, item: NewItem) -> Result<(usize, u64), ContributionRefusal> {
        let NewItem { id, kind, text, needs } = item;
        if !(is_name(&id) && is_name(&kind)) {
            return Err(ContributionRefusal::Name);
        }
        if self.ids.contains(&id) {
            return Err(ContributionRefusal::Taken);
        }
        let is_twice = needs.iter().enumerate().any(|(at, need)| needs[..at].contains(need));
        if needs.len() > MAX_NEEDS || is_twice || needs.contains(&id) {
            return Err(ContributionRefusal::Needs);
        }
        let indexes: Result<Vec<_>, _> = needs.iter().map(|need| self.index(need)).collect();
        let bytes = needs.iter().chain([&id, &kind, &text]).map(|it| bytes_of(it)).sum();
        self.require_share(agent, (1, bytes))?;
        let wish = Wish::Post(kind, json!({ "text": text }), indexes?);
        let posted = self
            .board
            .apply(u64::from(self.round), agent, wish)
            .map_err(ContributionRefusal::Rule)?;
        self.usage.count(agent, 1, bytes);
        self.ids.push(id);
        Ok(posted)
    }
}

/// Version of an item for an agent that saw `base`: its own changes since then do not count.
fn current(versions: &BTreeMap<usize, (u64, u64)>, at: usize, base: u64) -> u64 {
    versions.get(&at).filter(|(known, _)| *known == base).map_or(base, |(_, version)| *version)
}

/// True for a short text of letters, digits, `-`, `_` and `.`.
pub fn is_name(text: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || matches!(it, '-' | '_' | '.');
    !text.is_empty() && text.chars().count() <= MAX_NAME && text.chars().all(is_part)
}

/// Bytes of a text as JSON, in which control characters are longer.
fn bytes_of(text: &str) -> usize {
    Value::from(text).to_string().len()
}

/// First characters of an id, which may be long.
fn short(id: &str) -> String {
    id.chars().take(MAX_NAME).collect()
}
