//! Auctions: sealed bids for one lot, such as a task or a place to work.
//!
//! ```text
//!   new ── Begun ──► open ── all bid or passed, or the deadline passed ──► ranked
//!
//!   ranked ──► awarded ── Done ──────────► over (the winner and its price)
//!                 │  ▲
//!                 └──┘ Failed, or too slow: the next best bid
//!   ranked, awarded ── no bid is left ──► over (no winner)
//! ```
//!
//! A bid is sealed: no action carries it to another bidder. It binds until the auction is over;
//! only then the other bidders are rejected. With [`Price::Second`], to bid the true value is a
//! best strategy (Vickrey, "Counterspeculation, Auctions, and Competitive Sealed Tenders", 1961),
//! as long as bidders do not count on the failure of others.

use std::{cmp::Reverse, collections::BTreeMap};

/// Side of the market on which the auctioneer stands. Amounts are whole numbers of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The auctioneer buys work: the lowest bid wins, and the reserve is the most that is paid.
    Buy,
    /// The auctioneer sells: the highest bid wins, and the reserve is the least that is taken.
    Sell,
}

/// Price for the winner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    /// The winner's own bid.
    First,
    /// The next bid behind the winner's, or the reserve.
    Second,
}

/// Order of equal bids. The time of a bid does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The bidder that is listed first.
    Listed,
    /// A draw by this number, which the auctioneer chooses at random before the bids.
    Drawn(u64),
}

/// Lot and rules of an auction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lot {
    /// Names of the bidders.
    pub bidders: Vec<String>,
    /// Side of the auctioneer.
    pub side: Side,
    /// Price for the winner.
    pub price: Price,
    /// Limit of acceptable bids.
    pub reserve: Option<u64>,
    /// Order of equal bids.
    pub tie: Tie,
    /// Time for the bids; none waits for ever.
    pub timeout_ms: Option<u64>,
    /// Time for the winner's work; none waits for ever.
    pub work_ms: Option<u64>,
}

/// Event of an auction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuctionEvent {
    /// The auction begins.
    Begun,
    /// A bidder's bid; its first one counts.
    Bid(String, u64),
    /// A bidder does not bid.
    Passed(String),
    /// The winner did its work.
    Done(String),
    /// A bidder failed or left, for this reason.
    Failed(String, String),
    /// Time passed.
    Rang,
}

/// Reason of a rejected bid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BidRejection {
    /// The bid came after the deadline.
    Late,
    /// The bid is beyond the reserve.
    Reserve,
    /// Another bid won.
    Outbid,
}

/// Action of an auction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuctionAction {
    /// Ask a bidder for its bid.
    Call(String),
    /// Send [`AuctionEvent::Rang`] at this time.
    Wait(u64),
    /// Give the lot to this bidder at this price.
    Award(String, u64),
    /// Tell a bidder that its bid does not win.
    Reject(String, BidRejection),
    /// Withdraw the call or the work of a bidder that is too slow.
    Cancel(String),
    /// End the auction.
    Finish(AuctionOutcome),
}

/// Outcome of an auction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuctionOutcome {
    /// Winner that did the work, and its price.
    pub winner: Option<(String, u64)>,
    /// Acceptable bids, the best first.
    pub bids: Vec<(String, u64)>,
    /// Bidders that were awarded the lot and failed, and the reason.
    pub failed: Vec<(String, String)>,
}

/// One auction.
#[derive(Clone, Debug)]
pub struct Auction {
    lot: Lot,
    phase: AuctionPhase,
    deadline: Option<u64>,
    /// Replies: the amount, or none from those that passed.
    replies: BTreeMap<String, Option<u64>>,
    /// Acceptable bids, the best first.
    ranking: Vec<(String, u64)>,
    /// Bidders that left after the ranking.
    withdrawn: Vec<String>,
    failed: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AuctionPhase {
    New,
    Open,
    /// The lot is with the bidder of this rank.
    Awarded(usize),
    Over,
}

impl Auction {
    /// Creates an auction. A bidder that is named twice counts once.
    ///
    /// # Errors
    ///
    /// If nobody bids, or a buyer at the second price has no reserve: a single bidder could then
    /// name any price.
    pub fn new(mut lot: Lot) -> Result<Self, String> {
        let mut unique = Vec::new();
        for bidder in std::mem::take(&mut lot.bidders) {
            if !unique.contains(&bidder) {
                unique.push(bidder);
            }
        }
        lot.bidders = unique;
        if lot.bidders.is_empty() {
            return Err("an auction has at least one bidder".to_owned());
        }
        if lot.side == Side::Buy && lot.price == Price::Second && lot.reserve.is_none() {
            let why = "who buys at the second price sets a `reserve`: the price of a single bid";
            return Err(why.to_owned());
        }
        Ok(Self {
            lot,
            phase: AuctionPhase::New,
            deadline: None,
            replies: BTreeMap::new(),
            ranking: Vec::new(),
            withdrawn: Vec::new(),
            failed: Vec::new(),
        })
    }

    /// Takes an event at a time in milliseconds, and returns what to do.
    pub fn step(&mut self, now: u64, event: AuctionEvent) -> Vec<AuctionAction> {
        let mut actions = Vec::new();
        let is_late = self.deadline.is_some_and(|deadline| now >= deadline);
        match (self.phase, event) {
            (AuctionPhase::New, AuctionEvent::Begun) => {
                self.phase = AuctionPhase::Open;
                actions.extend(self.lot.bidders.iter().cloned().map(AuctionAction::Call));
                self.wait(now, self.lot.timeout_ms, &mut actions);
            }
            (AuctionPhase::Open, AuctionEvent::Bid(bidder, amount)) if !is_late => {
                self.reply(bidder, Some(amount));
            }
            (
                AuctionPhase::Open,
                AuctionEvent::Passed(bidder) | AuctionEvent::Failed(bidder, _),
            ) => {
                self.reply(bidder, None);
            }
            (
                AuctionPhase::Open | AuctionPhase::Awarded(_) | AuctionPhase::Over,
                AuctionEvent::Bid(bidder, _),
            ) => {
                self.reject_late(bidder, &mut actions);
            }
            (AuctionPhase::Awarded(rank), AuctionEvent::Done(bidder))
                if self.ranking[rank].0 == bidder =>
            {
                self.finish(Some(rank), &mut actions);
            }
            (AuctionPhase::Awarded(rank), AuctionEvent::Failed(bidder, why)) => {
                if self.ranking[rank].0 == bidder {
                    self.failed.push((bidder, why));
                    self.award(now, rank + 1, &mut actions);
                } else {
                    self.withdrawn.push(bidder);
                }
            }
            (AuctionPhase::Awarded(rank), AuctionEvent::Rang) if is_late => {
                let bidder = self.ranking[rank].0.clone();
                actions.push(AuctionAction::Cancel(bidder.clone()));
                self.failed.push((bidder, "the work took too long".to_owned()));
                self.award(now, rank + 1, &mut actions);
            }
            (
                AuctionPhase::New
                | AuctionPhase::Open
                | AuctionPhase::Awarded(_)
                | AuctionPhase::Over,
                _,
            ) => {}
        }
        let is_complete = self.replies.len() == self.lot.bidders.len();
        if self.phase == AuctionPhase::Open && (is_complete || is_late) {
            self.rank(&mut actions);
            self.award(now, 0, &mut actions);
        }
        actions
    }

    fn wait(&mut self, now: u64, ms: Option<u64>, actions: &mut Vec<AuctionAction>) {
        self.deadline = ms.map(|ms| now.saturating_add(ms));
        actions.extend(self.deadline.map(AuctionAction::Wait));
    }

    fn reply(&mut self, bidder: String, amount: Option<u64>) {
        if self.lot.bidders.contains(&bidder) {
            self.replies.entry(bidder).or_insert(amount);
        }
    }

    /// Rejects a late bid, once for each bidder.
    fn reject_late(&mut self, bidder: String, actions: &mut Vec<AuctionAction>) {
        if self.lot.bidders.contains(&bidder) && !self.replies.contains_key(&bidder) {
            self.replies.insert(bidder.clone(), None);
            actions.push(AuctionAction::Reject(bidder, BidRejection::Late));
        }
    }

    fn rank(&mut self, actions: &mut Vec<AuctionAction>) {
        let Lot { bidders, side, reserve, tie, .. } = &self.lot;
        let mut bids = Vec::new();
        for (index, bidder) in bidders.iter().enumerate() {
            let is_acceptable = |amount: u64| match side {
                Side::Buy => reserve.is_none_or(|reserve| amount <= reserve),
                Side::Sell => reserve.is_none_or(|reserve| amount >= reserve),
            };
            match self.replies.get(bidder) {
                Some(Some(amount)) if is_acceptable(*amount) => bids.push((index, bidder, *amount)),
                Some(Some(_)) => {
                    actions.push(AuctionAction::Reject(bidder.clone(), BidRejection::Reserve));
                }
                Some(None) => {}
                None => actions.push(AuctionAction::Cancel(bidder.clone())),
            }
        }
        let drawn = |index: usize, bidder: &str| match tie {
            Tie::Listed => (0, index),
            Tie::Drawn(seed) => (mixed(*seed, bidder), index),
        };
        match side {
            Side::Buy => {
                bids.sort_by_key(|(index, bidder, amount)| (*amount, drawn(*index, bidder)));
            }
            Side::Sell => {
                bids.sort_by_key(|(index, bidder, amount)| {
                    (Reverse(*amount), drawn(*index, bidder))
                });
            }
        }
        self.ranking =
            bids.into_iter().map(|(_, bidder, amount)| (bidder.clone(), amount)).collect();
    }

    /// Awards the lot to the first bidder from this rank on that is still there.
    fn award(&mut self, now: u64, from: usize, actions: &mut Vec<AuctionAction>) {
        let is_there = |rank: &usize| !self.withdrawn.contains(&self.ranking[*rank].0);
        let Some(rank) = (from..self.ranking.len()).find(is_there) else {
            return self.finish(None, actions);
        };
        self.phase = AuctionPhase::Awarded(rank);
        actions.push(AuctionAction::Award(self.ranking[rank].0.clone(), self.price(rank)));
        self.wait(now, self.lot.work_ms, actions);
    }

    fn price(&self, rank: usize) -> u64 {
        match self.lot.price {
            Price::First => self.ranking[rank].1,
            Price::Second => {
                let next = self.ranking.get(rank + 1).map(|(_, amount)| *amount);
                next.or(self.lot.reserve).unwrap_or_default()
            }
        }
    }

    fn finish(&mut self, winner: Option<usize>, actions: &mut Vec<AuctionAction>) {
        self.phase = AuctionPhase::Over;
        if let Some(rank) = winner {
            let others = self.ranking[rank + 1..].iter();
            actions
                .extend(others.map(|(bidder, _)| {
                    AuctionAction::Reject(bidder.clone(), BidRejection::Outbid)
                }));
        }
        actions.push(AuctionAction::Finish(AuctionOutcome {
            winner: winner.map(|rank| (self.ranking[rank].0.clone(), self.price(rank))),
            bids: self.ranking.clone(),
            failed: std::mem::take(&mut self.failed),
        }));
    }
}

/// Number of a name in a draw: FNV-1a, and then the finalizer of `SplitMix64`.
pub(crate) fn mixed(seed: u64, name: &str) -> u64 {
    let mut mixed = seed ^ 0xcbf2_9ce4_8422_2325;
    for byte in name.bytes() {
        mixed = (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
