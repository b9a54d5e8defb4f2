//! Blackboards: agents work on a shared list of items, each when an item is for them.
//!
//! ```text
//!   an item:   waiting (its needs) ──► open ── Claim ──► claimed ── Finish ──► done
//!                                       ▲                   │
//!                                       └── Release, or the lease ran out
//!
//!   an agent:  idle ── Wake (an open item that it watches) ──► active ── Idle ──► idle
//!
//!   the board: new ── Begun ──► open ── an item of the goal is done ──► goal
//!                                    └─ nobody is active, nothing to wake ──► quiescent
//! ```
//!
//! After Hayes-Roth, "A Blackboard Architecture for Control" (1985): items carry the state, agents
//! are woken by patterns, and a control rule chooses which. Each change of an item raises its
//! version, and names the version that it changes (compare-and-set), so that no agent overwrites
//! what it has not seen. An agent whose lease ran out holds an old version, and is refused.
//!
//! In [`rounds`], agents see the board in rounds, and contribute what they want.

mod board;
mod refusal;
pub mod rounds;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use board::Board;
pub use board::{ChangeRefusal, Entry, Item, ItemChange, ItemState, Wish};
pub use usage::share_of_agent;

/// Items for an agent, or of the goal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Kinds of items; all if empty.
    pub kinds: Vec<String>,
    /// Authors of items; all if empty.
    pub authors: Vec<String>,
}

impl Pattern {
    fn fits(&self, item: &Item) -> bool {
        let is_among = |names: &[String], name| names.is_empty() || names.contains(name);
        is_among(&self.kinds, &item.kind) && is_among(&self.authors, &item.author)
    }
}

/// Rule that chooses the agents for an open item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// All idle agents that watch it; the first claim wins.
    All,
    /// One at a time: the first idle agent in the list.
    Listed,
    /// One at a time: the idle agent that was woken longest ago.
    LongestIdle,
}

/// Agents and rules of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardRules {
    /// Agents, each with the items that it watches.
    pub agents: Vec<(String, Pattern)>,
    /// Choice of the next agents.
    pub control: Control,
    /// Items of which one that is done ends the board; none waits for quiescence.
    pub goal: Option<Pattern>,
    /// Time of a claim until it is renewed.
    pub lease_ms: u64,
    /// Most times that agents are woken for one item, so that no item goes round for ever.
    pub max_wakes: u32,
}

/// Event of a board.
#[derive(Clone, Debug, PartialEq)]
pub enum BoardEvent {
    /// The board opens. Before that, anybody may post.
    Begun,
    /// An agent wants a change.
    Wished(String, Wish),
    /// An agent ended its turn.
    Idle(String),
    /// An agent failed or left; its claims are released.
    Departed(String),
    /// Time passed.
    Rang,
}

/// Action of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardAction {
    /// Tell an agent that its wish is fulfilled: the item and its version.
    Applied(String, usize, u64),
    /// Tell an agent that its wish is refused.
    Refused(String, ChangeRefusal),
    /// Give an agent a turn for this item.
    Wake(String, usize),
    /// Send [`BoardEvent::Rang`] at this time.
    Wait(u64),
    /// End the turn of an agent: the board closed.
    Cancel(String),
    /// End the board.
    Finish(BoardEnd),
}

/// End of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardEnd {
    /// This item of the goal is done.
    Goal(usize),
    /// Nobody works, and no agent is to be woken.
    Quiescent,
}

/// One board.
#[derive(Clone, Debug)]
pub struct BlackboardRun {
    rules: BoardRules,
    phase: BoardPhase,
    board: Board,
    /// Times that agents were woken for each item.
    wakes: BTreeMap<usize, u32>,
    active: BTreeSet<String>,
    departed: BTreeSet<String>,
    /// Version of each item when an agent was last woken for it.
    woken_versions: BTreeMap<(String, usize), u64>,
    /// Number of the last turn of each agent.
    turns: BTreeMap<String, u64>,
    turn: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoardPhase {
    New,
    Open,
    Closed,
}

impl BlackboardRun {
    /// Creates a board.
    ///
    /// # Errors
    ///
    /// If it has no agent, or one twice.
    pub fn new(rules: BoardRules) -> Result<Self, String> {
        let names: BTreeSet<_> = rules.agents.iter().map(|(name, _)| name).collect();
        if names.is_empty() {
            return Err("a blackboard has at least one agent".to_owned());
        }
        if names.len() < rules.agents.len() {
            return Err("an agent of a blackboard is listed once".to_owned());
        }
        Ok(Self {
            board: Board::new(rules.lease_ms),
            rules,
            phase: BoardPhase::New,
            wakes: BTreeMap::new(),
            active: BTreeSet::new(),
            departed: BTreeSet::new(),
            woken_versions: BTreeMap::new(),
            turns: BTreeMap::new(),
            turn: 0,
        })
    }

    /// Items in the order in which they were posted.
    pub fn items(&self) -> &[Item] {
        self.board.items()
    }

    /// Takes an event at a time in milliseconds, and returns what to do.
    pub fn step(&mut self, now: u64, event: BoardEvent) -> Vec<BoardAction> {
        let mut actions = Vec::new();
        if self.phase == BoardPhase::Closed {
            return actions;
        }
        self.board.expire(now);
        match event {
            BoardEvent::Begun => self.phase = BoardPhase::Open,
            BoardEvent::Wished(agent, wish) => match self.apply(now, &agent, wish) {
                Ok((item, version)) => {
                    if let ItemState::Claimed(_, until) = &self.board.items()[item].state {
                        actions.push(BoardAction::Wait(*until));
                    }
                    actions.push(BoardAction::Applied(agent, item, version));
                }
                Err(why) => actions.push(BoardAction::Refused(agent, why)),
            },
            BoardEvent::Idle(agent) => drop(self.active.remove(&agent)),
            BoardEvent::Departed(agent) => {
                self.active.remove(&agent);
                self.board.release_all(now, &agent);
                self.departed.insert(agent);
            }
            BoardEvent::Rang => {}
        }
        if self.phase == BoardPhase::Open {
            self.go_on(&mut actions);
        }
        actions
    }

    fn apply(&mut self, now: u64, agent: &str, wish: Wish) -> Result<(usize, u64), ChangeRefusal> {
        let is_member = self.rules.agents.iter().any(|(name, _)| name == agent);
        let is_guest = self.phase == BoardPhase::New && matches!(wish, Wish::Post(..));
        if !(is_member || is_guest) || self.departed.contains(agent) {
            return Err(ChangeRefusal::Stranger);
        }
        self.board.apply(now, agent, wish)
    }

    /// Ends the board, or wakes the agents that are next.
    fn go_on(&mut self, actions: &mut Vec<BoardAction>) {
        let is_goal = |item: &Item| {
            item.state == ItemState::Done
                && self.rules.goal.as_ref().is_some_and(|goal| goal.fits(item))
        };
        if let Some(index) = self.board.items().iter().position(is_goal) {
            return self.close(BoardEnd::Goal(index), actions);
        }
        for index in 0..self.board.items().len() {
            while let Some(agent) = self.next_agent(index) {
                *self.wakes.entry(index).or_default() += 1;
                self.turn += 1;
                let version = self.board.items()[index].version;
                self.woken_versions.insert((agent.clone(), index), version);
                self.turns.insert(agent.clone(), self.turn);
                self.active.insert(agent.clone());
                actions.push(BoardAction::Wake(agent, index));
            }
        }
        if self.active.is_empty() && !self.board.has_claims() {
            self.close(BoardEnd::Quiescent, actions);
        }
    }

    /// Agent that is woken next for an item.
    fn next_agent(&self, index: usize) -> Option<String> {
        let item = &self.board.items()[index];
        let is_offered = item.state == ItemState::Open && self.board.is_ready(item);
        let wakes = self.wakes.get(&index).copied().unwrap_or_default();
        if !is_offered || wakes >= self.rules.max_wakes {
            return None;
        }
        let was_woken = |name: &String| {
            self.woken_versions
                .get(&(name.clone(), index))
                .is_some_and(|version| *version == item.version)
        };
        let is_with_one = || self.active.iter().any(was_woken);
        if self.rules.control != Control::All && is_with_one() {
            return None;
        }
        let fit = self.rules.agents.iter().filter(|(name, pattern)| {
            let is_free = !self.active.contains(name) && !self.departed.contains(name);
            is_free && pattern.fits(item) && !was_woken(name)
        });
        let mut fit = fit.map(|(name, _)| name);
        let chosen = match self.rules.control {
            Control::All | Control::Listed => fit.next(),
            Control::LongestIdle => {
                fit.min_by_key(|name| self.turns.get(*name).copied().unwrap_or_default())
            }
        };
        chosen.cloned()
    }

    fn close(&mut self, end: BoardEnd, actions: &mut Vec<BoardAction>) {
        self.phase = BoardPhase::Closed;
        let active = std::mem::take(&mut self.active);
        actions.extend(active.into_iter().map(BoardAction::Cancel));
        actions.push(BoardAction::Finish(end));
    }
}
