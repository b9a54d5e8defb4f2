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

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Most items of a board.
const MAX_ITEMS: usize = 10_000;

/// Most bytes of an item's body, as JSON.
const MAX_BODY: usize = 64 << 10;

/// Most entries of an item's history; the oldest ones go first.
const MAX_HISTORY: usize = 100;

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
    LeastRecent,
}

/// Agents and rules of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
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

/// Item of a board.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Kind, by which agents watch it.
    pub kind: String,
    /// Author.
    pub author: String,
    /// Content.
    pub body: Value,
    /// Items that have to be done before.
    pub needs: Vec<usize>,
    /// Number of changes, counted from 1.
    pub version: u64,
    /// State.
    pub state: ItemState,
    /// Last changes, the oldest first.
    pub history: Vec<Entry>,
    wakes: u32,
}

/// State of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemState {
    /// Free, once its needs are done.
    Open,
    /// Held by one agent until a time.
    Claimed(String, u64),
    /// Finished.
    Done,
}

/// Entry of a history: time, agent and change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time in milliseconds.
    pub at: u64,
    /// Agent; of an expired lease its holder.
    pub by: String,
    /// Change.
    pub change: Change,
}

/// Change of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Posted.
    Posted,
    /// Claimed, or the claim renewed.
    Claimed,
    /// Given back.
    Released,
    /// The lease ran out.
    Expired,
    /// The body was written.
    Written,
    /// Finished.
    Done,
}

/// Wish of an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// Posts an item of this kind, with this body and needs.
    Post(String, Value, Vec<usize>),
    /// Claims the item at this version, or renews the claim.
    Claim(usize, u64),
    /// Gives the item back.
    Release(usize, u64),
    /// Writes the body of the item.
    Write(usize, u64, Value),
    /// Writes the body of a claimed item and finishes it.
    Finish(usize, u64, Value),
}

/// Event of a board.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The board opens. Before that, anybody may post.
    Begun,
    /// An agent wants a change.
    Wished(String, Wish),
    /// An agent ended its turn.
    Idle(String),
    /// An agent failed or left; its claims are released.
    Left(String),
    /// Time passed.
    Rang,
}

/// Reason of a refused wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The board has no such item.
    Unknown,
    /// The item has this version now.
    Version(u64),
    /// This agent holds the item.
    Held(String),
    /// The agent does not hold the item.
    NotHeld,
    /// Items that it needs are not done.
    NotReady,
    /// The item is done.
    Done,
    /// The board is full, or the body too large.
    Full,
    /// The agent does not belong to the board, or left it.
    Stranger,
}

/// Action of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Tell an agent that its wish is fulfilled: the item and its version.
    Applied(String, usize, u64),
    /// Tell an agent that its wish is refused.
    Refused(String, Why),
    /// Give an agent a turn for this item.
    Wake(String, usize),
    /// Send [`Event::Rang`] at this time.
    Wait(u64),
    /// End the turn of an agent: the board closed.
    Cancel(String),
    /// End the board.
    Finish(End),
}

/// End of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// This item of the goal is done.
    Goal(usize),
    /// Nobody works, and no agent is to be woken.
    Quiescent,
}

/// One board.
#[derive(Clone, Debug)]
pub struct State {
    rules: Rules,
    phase: Phase,
    items: Vec<Item>,
    active: BTreeSet<String>,
    left: BTreeSet<String>,
    /// Version of each item when an agent was last woken for it.
    seen: BTreeMap<(String, usize), u64>,
    /// Number of the last turn of each agent.
    turns: BTreeMap<String, u64>,
    turn: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Open,
    Closed,
}

impl State {
    /// Creates a board.
    ///
    /// # Errors
    ///
    /// If it has no agent, or one twice.
    pub fn new(rules: Rules) -> Result<Self, String> {
        let names: BTreeSet<_> = rules.agents.iter().map(|(name, _)| name).collect();
        if names.is_empty() {
            return Err("a blackboard has at least one agent".to_owned());
        }
        if names.len() < rules.agents.len() {
            return Err("an agent of a blackboard is listed once".to_owned());
        }
        Ok(Self {
            rules,
            phase: Phase::New,
            items: Vec::new(),
            active: BTreeSet::new(),
            left: BTreeSet::new(),
            seen: BTreeMap::new(),
            turns: BTreeMap::new(),
            turn: 0,
        })
    }

    /// Items in the order in which they were posted.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Takes an event at a time in milliseconds, and returns what to do.
    pub fn step(&mut self, now: u64, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.phase == Phase::Closed {
            return actions;
        }
        self.expire(now);
        match event {
            Event::Begun => self.phase = Phase::Open,
            Event::Wished(who, wish) => match self.apply(now, &who, wish) {
                Ok((item, version)) => {
                    if let ItemState::Claimed(_, until) = &self.items[item].state {
                        actions.push(Action::Wait(*until));
                    }
                    actions.push(Action::Applied(who, item, version));
                }
                Err(why) => actions.push(Action::Refused(who, why)),
            },
            Event::Idle(who) => drop(self.active.remove(&who)),
            Event::Left(who) => {
                self.active.remove(&who);
                for index in 0..self.items.len() {
                    if self.is_held_by(index, &who) {
                        self.change(index, now, &who, Change::Released);
                    }
                }
                self.left.insert(who);
            }
            Event::Rang => {}
        }
        if self.phase == Phase::Open {
            self.go_on(&mut actions);
        }
        actions
    }

    /// Frees items whose lease ran out.
    fn expire(&mut self, now: u64) {
        for index in 0..self.items.len() {
            if let ItemState::Claimed(by, until) = self.items[index].state.clone()
                && now >= until
            {
                self.change(index, now, &by, Change::Expired);
            }
        }
    }

    fn is_held_by(&self, index: usize, who: &str) -> bool {
        matches!(&self.items[index].state, ItemState::Claimed(by, _) if by == who)
    }

    /// Records a change of an item, and returns its new version.
    fn change(&mut self, index: usize, at: u64, by: &str, change: Change) -> u64 {
        let until = at.saturating_add(self.rules.lease_ms);
        let item = &mut self.items[index];
        match change {
            Change::Claimed => item.state = ItemState::Claimed(by.to_owned(), until),
            Change::Released | Change::Expired => item.state = ItemState::Open,
            Change::Done => item.state = ItemState::Done,
            Change::Posted | Change::Written => {}
        }
        item.version += 1;
        if item.history.len() == MAX_HISTORY {
            item.history.remove(0);
        }
        item.history.push(Entry { at, by: by.to_owned(), change });
        item.version
    }

    fn is_ready(&self, item: &Item) -> bool {
        item.needs.iter().all(|&need| self.items[need].state == ItemState::Done)
    }

    fn apply(&mut self, now: u64, who: &str, wish: Wish) -> Result<(usize, u64), Why> {
        let is_member = self.rules.agents.iter().any(|(name, _)| name == who);
        let is_guest = self.phase == Phase::New && matches!(wish, Wish::Post(..));
        if !(is_member || is_guest) || self.left.contains(who) {
            return Err(Why::Stranger);
        }
        if let Wish::Post(_, body, _) | Wish::Write(_, _, body) | Wish::Finish(_, _, body) = &wish
            && body.to_string().len() > MAX_BODY
        {
            return Err(Why::Full);
        }
        let (index, change, body) = match wish {
            Wish::Post(kind, body, needs) => return self.post(now, who, kind, body, needs),
            Wish::Claim(index, version) => {
                self.check(index, version, who)?;
                if !self.is_ready(&self.items[index]) {
                    return Err(Why::NotReady);
                }
                (index, Change::Claimed, None)
            }
            Wish::Write(index, version, body) => {
                self.check(index, version, who)?;
                (index, Change::Written, Some(body))
            }
            Wish::Release(index, version) => {
                self.check_held(index, version, who)?;
                (index, Change::Released, None)
            }
            Wish::Finish(index, version, body) => {
                self.check_held(index, version, who)?;
                (index, Change::Done, Some(body))
            }
        };
        if let Some(body) = body {
            self.items[index].body = body;
        }
        Ok((index, self.change(index, now, who, change)))
    }

    fn post(
        &mut self,
        now: u64,
        who: &str,
        kind: String,
        body: Value,
        needs: Vec<usize>,
    ) -> Result<(usize, u64), Why> {
        let index = self.items.len();
        if index >= MAX_ITEMS {
            return Err(Why::Full);
        }
        // Only earlier items, so that no circle arises.
        if needs.iter().any(|&need| need >= index) {
            return Err(Why::Unknown);
        }
        let (author, state, history) = (who.to_owned(), ItemState::Open, Vec::new());
        self.items.push(Item { kind, author, body, needs, version: 0, state, history, wakes: 0 });
        Ok((index, self.change(index, now, who, Change::Posted)))
    }

    /// Checks that the item is not done, of this version, and not held by another agent.
    fn check(&self, index: usize, version: u64, who: &str) -> Result<(), Why> {
        let item = self.items.get(index).ok_or(Why::Unknown)?;
        match &item.state {
            ItemState::Done => Err(Why::Done),
            ItemState::Claimed(by, _) if by != who => Err(Why::Held(by.clone())),
            ItemState::Open | ItemState::Claimed(..) if item.version == version => Ok(()),
            ItemState::Open | ItemState::Claimed(..) => Err(Why::Version(item.version)),
        }
    }

    fn check_held(&self, index: usize, version: u64, who: &str) -> Result<(), Why> {
        self.check(index, version, who)?;
        if self.is_held_by(index, who) { Ok(()) } else { Err(Why::NotHeld) }
    }

    /// Ends the board, or wakes the agents that are next.
    fn go_on(&mut self, actions: &mut Vec<Action>) {
        let is_goal = |item: &Item| {
            item.state == ItemState::Done
                && self.rules.goal.as_ref().is_some_and(|goal| goal.fits(item))
        };
        if let Some(index) = self.items.iter().position(is_goal) {
            return self.close(End::Goal(index), actions);
        }
        for index in 0..self.items.len() {
            while let Some(agent) = self.next_agent(index) {
                let item = &mut self.items[index];
                item.wakes += 1;
                self.turn += 1;
                self.seen.insert((agent.clone(), index), item.version);
                self.turns.insert(agent.clone(), self.turn);
                self.active.insert(agent.clone());
                actions.push(Action::Wake(agent, index));
            }
        }
        let is_held = |item: &Item| matches!(item.state, ItemState::Claimed(..));
        if self.active.is_empty() && !self.items.iter().any(is_held) {
            self.close(End::Quiescent, actions);
        }
    }

    /// Agent that is woken next for an item.
    fn next_agent(&self, index: usize) -> Option<String> {
        let item = &self.items[index];
        let is_offered = item.state == ItemState::Open && self.is_ready(item);
        if !is_offered || item.wakes >= self.rules.max_wakes {
            return None;
        }
        let has_seen = |name: &String| {
            self.seen.get(&(name.clone(), index)).is_some_and(|version| *version == item.version)
        };
        let is_with_one = || self.active.iter().any(has_seen);
        if self.rules.control != Control::All && is_with_one() {
            return None;
        }
        let fit = self.rules.agents.iter().filter(|(name, pattern)| {
            let is_free = !self.active.contains(name) && !self.left.contains(name);
            is_free && pattern.fits(item) && !has_seen(name)
        });
        let mut fit = fit.map(|(name, _)| name);
        let chosen = match self.rules.control {
            Control::All | Control::Listed => fit.next(),
            Control::LeastRecent => {
                fit.min_by_key(|name| self.turns.get(*name).copied().unwrap_or_default())
            }
        };
        chosen.cloned()
    }

    fn close(&mut self, end: End, actions: &mut Vec<Action>) {
        self.phase = Phase::Closed;
        let active = std::mem::take(&mut self.active);
        actions.extend(active.into_iter().map(Action::Cancel));
        actions.push(Action::Finish(end));
    }
}
