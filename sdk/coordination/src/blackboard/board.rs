//! Items of a board: claims, leases and compare-and-set.

use serde_json::Value;

/// Most items of a board.
const MAX_ITEMS: usize = 10_000;

/// Most bytes of an item's body, as JSON.
const MAX_BODY: usize = 64 << 10;

/// Most entries of an item's history; the oldest ones go first.
const MAX_HISTORY: usize = 100;

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

/// Entry of a history: time, agent and change. A board in rounds counts time in rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time.
    pub at: u64,
    /// Agent; of an expired lease its holder.
    pub by: String,
    /// Change.
    pub change: ItemChange,
}

/// Change of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemChange {
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

/// Reason of a refused wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeRefusal {
    /// The board has no such item.
    Unknown,
    /// The item has this version now.
    Version(u64),
    /// This agent holds the item.
    ClaimedBy(String),
    /// The agent does not hold the item.
    NotClaimed,
    /// Items that it needs are not done.
    NotReady,
    /// The item is done.
    Done,
    /// The board is full, or the body too large.
    Full,
    /// The agent does not belong to the board, or left it.
    Stranger,
}

/// Items of a board, which agents change by wishes.
#[derive(Clone, Debug)]
pub(super) struct Board {
    items: Vec<Item>,
    /// Time of a claim until it is renewed.
    lease: u64,
}

impl Board {
    pub(super) fn new(lease: u64) -> Self {
        Self { items: Vec::new(), lease }
    }

    /// Items in the order in which they were posted.
    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    /// Frees items whose lease ran out.
    pub(super) fn expire(&mut self, now: u64) {
        for index in 0..self.items.len() {
            if let ItemState::Claimed(by, until) = self.items[index].state.clone()
                && now >= until
            {
                self.change(index, now, &by, ItemChange::Expired);
            }
        }
    }

    /// Gives back all items that an agent holds.
    pub(super) fn release_all(&mut self, now: u64, agent: &str) {
        for index in 0..self.items.len() {
            if self.is_claimed_by(index, agent) {
                self.change(index, now, agent, ItemChange::Released);
            }
        }
    }

    /// True if an agent holds an item.
    pub(super) fn has_claims(&self) -> bool {
        self.items.iter().any(|item| matches!(item.state, ItemState::Claimed(..)))
    }

    fn is_claimed_by(&self, index: usize, agent: &str) -> bool {
        matches!(&self.items[index].state, ItemState::Claimed(by, _) if by == agent)
    }

    /// Records a change of an item, and returns its new version.
    fn change(&mut self, index: usize, at: u64, by: &str, change: ItemChange) -> u64 {
        let until = at.saturating_add(self.lease);
        let item = &mut self.items[index];
        match change {
            ItemChange::Claimed => item.state = ItemState::Claimed(by.to_owned(), until),
            ItemChange::Released | ItemChange::Expired => item.state = ItemState::Open,
            ItemChange::Done => item.state = ItemState::Done,
            ItemChange::Posted | ItemChange::Written => {}
        }
        item.version += 1;
        if item.history.len() == MAX_HISTORY {
            item.history.remove(0);
        }
        item.history.push(Entry { at, by: by.to_owned(), change });
        item.version
    }

    /// True if all items that this one needs are done.
    pub(super) fn is_ready(&self, item: &Item) -> bool {
        item.needs.iter().all(|&need| self.items[need].state == ItemState::Done)
    }

    /// Changes an item; returns its index and new version.
    ///
    /// # Errors
    ///
    /// The rule that the wish breaks.
    pub(super) fn apply(
        &mut self,
        now: u64,
        agent: &str,
        wish: Wish,
    ) -> Result<(usize, u64), ChangeRefusal> {
        if let Wish::Post(_, body, _) | Wish::Write(_, _, body) | Wish::Finish(_, _, body) = &wish
            && body.to_string().len() > MAX_BODY
        {
            return Err(ChangeRefusal::Full);
        }
        let (index, change, body) = match wish {
            Wish::Post(kind, body, needs) => return self.post(now, agent, kind, body, needs),
            Wish::Claim(index, version) => {
                self.check(index, version, agent)?;
                if !self.is_ready(&self.items[index]) {
                    return Err(ChangeRefusal::NotReady);
                }
                (index, ItemChange::Claimed, None)
            }
            Wish::Write(index, version, body) => {
                self.check(index, version, agent)?;
                (index, ItemChange::Written, Some(body))
            }
            Wish::Release(index, version) => {
                self.check_claimed(index, version, agent)?;
                (index, ItemChange::Released, None)
            }
            Wish::Finish(index, version, body) => {
                self.check_claimed(index, version, agent)?;
                (index, ItemChange::Done, Some(body))
            }
        };
        if let Some(body) = body {
            self.items[index].body = body;
        }
        Ok((index, self.change(index, now, agent, change)))
    }

    fn post(
        &mut self,
        now: u64,
        agent: &str,
        kind: String,
        body: Value,
        needs: Vec<usize>,
    ) -> Result<(usize, u64), ChangeRefusal> {
        let index = self.items.len();
        if index >= MAX_ITEMS {
            return Err(ChangeRefusal::Full);
        }
        // Only earlier items, so that no circle arises.
        if needs.iter().any(|&need| need >= index) {
            return Err(ChangeRefusal::Unknown);
        }
        let (author, state, history) = (agent.to_owned(), ItemState::Open, Vec::new());
        self.items.push(Item { kind, author, body, needs, version: 0, state, history });
        Ok((index, self.change(index, now, agent, ItemChange::Posted)))
    }

    /// Checks that the item is not done, of this version, and not held by another agent.
    fn check(&self, index: usize, version: u64, agent: &str) -> Result<(), ChangeRefusal> {
        let item = self.items.get(index).ok_or(ChangeRefusal::Unknown)?;
        match &item.state {
            ItemState::Done => Err(ChangeRefusal::Done),
            ItemState::Claimed(by, _) if by != agent => Err(ChangeRefusal::ClaimedBy(by.clone())),
            ItemState::Open | ItemState::Claimed(..) if item.version == version => Ok(()),
            ItemState::Open | ItemState::Claimed(..) => Err(ChangeRefusal::Version(item.version)),
        }
    }

    fn check_claimed(&self, index: usize, version: u64, agent: &str) -> Result<(), ChangeRefusal> {
        self.check(index, version, agent)?;
        if self.is_claimed_by(index, agent) { Ok(()) } else { Err(ChangeRefusal::NotClaimed) }
    }
}
