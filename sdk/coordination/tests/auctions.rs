//! Auctions: awards and prices in a table, and properties over random bids.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use a2a_hub_coordination::auction::{
    Auction, AuctionAction, AuctionEvent, AuctionOutcome, BidRejection, Lot, Price, Side, Tie,
};
use proptest::prelude::*;

fn lot(bidders: usize, side: Side, price: Price, reserve: Option<u64>) -> Lot {
    let bidders = (0..bidders).map(|it| format!("b{it}")).collect();
    let (timeout_ms, work_ms) = (Some(1_000), Some(5_000));
    Lot { bidders, side, price, reserve, tie: Tie::Listed, timeout_ms, work_ms }
}

fn bid(bidder: usize, amount: u64) -> AuctionEvent {
    AuctionEvent::Bid(format!("b{bidder}"), amount)
}

/// Runs an auction in which the bidders of `failing` fail at the work; all actions.
fn run(lot: Lot, events: Vec<AuctionEvent>, failing: &[String]) -> Vec<AuctionAction> {
    let mut state = Auction::new(lot).unwrap();
    let mut all = state.step(0, AuctionEvent::Begun);
    for event in events {
        all.extend(state.step(1, event));
    }
    all.extend(state.step(1_000, AuctionEvent::Rang));
    let mut at = 0;
    while at < all.len() {
        if let AuctionAction::Award(who, _) = &all[at] {
            let event = match failing.contains(who) {
                true => AuctionEvent::Failed(who.clone(), "broken".to_owned()),
                false => AuctionEvent::Done(who.clone()),
            };
            let more = state.step(1_001, event);
            all.extend(more);
        }
        at += 1;
    }
    all
}

fn outcome(actions: &[AuctionAction]) -> AuctionOutcome {
    let mut found = actions.iter().filter_map(|action| match action {
        AuctionAction::Finish(outcome) => Some(outcome.clone()),
        AuctionAction::Call(_)
        | AuctionAction::Wait(_)
        | AuctionAction::Award(..)
        | AuctionAction::Reject(..)
        | AuctionAction::Cancel(_) => None,
    });
    let outcome = found.next().unwrap();
    assert_eq!(found.next(), None, "an auction ends once");
    outcome
}

#[test]
fn winner_pays_price_of_the_rule() {
    use {Price::*, Side::*};
    let table = [
        (Sell, First, None, vec![3, 9, 7], Some(("b1", 9))),
        (Sell, Second, None, vec![3, 9, 7], Some(("b1", 7))),
        (Sell, Second, Some(8), vec![3, 9, 7], Some(("b1", 8))),
        (Sell, Second, None, vec![3], Some(("b0", 0))),
        (Sell, First, Some(10), vec![3, 9, 7], None),
        (Sell, Second, None, vec![5, 5], Some(("b0", 5))),
        (Buy, First, None, vec![3, 9, 7], Some(("b0", 3))),
        (Buy, Second, Some(8), vec![3, 9, 7], Some(("b0", 7))),
        (Buy, Second, Some(5), vec![3, 9, 7], Some(("b0", 5))),
        (Buy, First, Some(2), vec![3, 9, 7], None),
    ];
    for (side, price, reserve, bids, winner) in table {
        let events = bids.iter().enumerate().map(|(who, amount)| bid(who, *amount)).collect();
        let found = outcome(&run(lot(bids.len(), side, price, reserve), events, &[]));
        let winner = winner.map(|(who, price)| (who.to_owned(), price));
        assert_eq!(found.winner, winner, "{side:?} {price:?} {reserve:?} {bids:?}");
    }
}

#[test]
fn next_best_gets_lot_of_failed_winner() {
    let lot = lot(4, Side::Sell, Price::First, Some(2));
    let events = vec![bid(0, 5), bid(1, 9), bid(2, 7), bid(3, 1)];
    let actions = run(lot, events, &["b1".to_owned()]);
    let sent =
        actions.iter().filter(|it| !matches!(it, AuctionAction::Call(_) | AuctionAction::Wait(_)));
    let name = |who: &str| who.to_owned();
    let expected = [
        AuctionAction::Reject(name("b3"), BidRejection::Reserve),
        AuctionAction::Award(name("b1"), 9),
        AuctionAction::Award(name("b2"), 7),
        AuctionAction::Reject(name("b0"), BidRejection::Outbid),
    ];
    assert_eq!(sent.take(4).cloned().collect::<Vec<_>>(), expected);
    let outcome = outcome(&actions);
    assert_eq!(outcome.winner, Some((name("b2"), 7)));
    assert_eq!(outcome.failed, [(name("b1"), name("broken"))]);
}

#[test]
fn slow_winner_and_late_bid_lose() {
    let mut state = Auction::new(lot(3, Side::Sell, Price::First, None)).unwrap();
    state.step(0, AuctionEvent::Begun);
    state.step(1, bid(0, 5));
    state.step(2, bid(1, 4));
    let name = |who: &str| who.to_owned();
    let closed = state.step(1_000, bid(2, 9));
    let late = AuctionAction::Reject(name("b2"), BidRejection::Late);
    assert_eq!(closed, [late, AuctionAction::Award(name("b0"), 5), AuctionAction::Wait(6_000)]);
    assert_eq!(state.step(1_001, bid(2, 9)), [], "it is told once");
    let slow = state.step(6_000, AuctionEvent::Rang);
    assert_eq!(slow[..2], [AuctionAction::Cancel(name("b0")), AuctionAction::Award(name("b1"), 4)]);
    assert_eq!(state.step(6_001, AuctionEvent::Done(name("b0"))), [], "it is no longer awarded");
    state.step(6_002, AuctionEvent::Failed(name("b1"), "x".to_owned()));
    assert_eq!(state.step(6_003, AuctionEvent::Done(name("b1"))), []);
}

#[test]
fn bidder_that_left_is_passed_over() {
    let mut state = Auction::new(lot(3, Side::Sell, Price::Second, Some(1))).unwrap();
    state.step(0, AuctionEvent::Begun);
    for (who, amount) in [(0, 9), (1, 7), (2, 5)] {
        state.step(1, bid(who, amount));
    }
    let left = |who: &str| AuctionEvent::Failed(who.to_owned(), "gone".to_owned());
    assert_eq!(state.step(2, left("b1")), [], "it was not awarded");
    let next = state.step(3, left("b0"));
    assert_eq!(next, [AuctionAction::Award("b2".to_owned(), 1), AuctionAction::Wait(5_003)]);
    let done = state.step(4, AuctionEvent::Done("b2".to_owned()));
    assert_eq!(outcome(&done).winner, Some(("b2".to_owned(), 1)));
}

#[test]
fn buyer_at_second_price_needs_reserve() {
    let why = Auction::new(lot(1, Side::Buy, Price::Second, None)).map(drop).unwrap_err();
    assert!(why.contains("sets a `reserve`"), "{why}");
    assert!(Auction::new(lot(0, Side::Sell, Price::First, None)).is_err());
}

#[test]
fn draw_depends_on_its_number_only() {
    let winner = |seed| {
        let lot = Lot { tie: Tie::Drawn(seed), ..lot(4, Side::Sell, Price::First, None) };
        outcome(&run(lot, (0..4).map(|who| bid(who, 5)).collect(), &[])).winner.unwrap().0
    };
    let winners: std::collections::BTreeSet<_> = (0..64).map(winner).collect();
    assert_eq!(winners.len(), 4, "each bidder wins some draw");
    assert_eq!(winner(7), winner(7));
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Buy), Just(Side::Sell)]
}

proptest! {
    #[test]
    fn lying_gains_nothing_at_second_price(
        side in side(),
        others in prop::collection::vec(0..30_u64, 0..6),
        value in 0..30_u64,
        lie in 0..30_u64,
        reserve in 0..30_u64,
        tie in prop_oneof![Just(Tie::Listed), any::<u64>().prop_map(Tie::Drawn)],
    ) {
        let gain = |amount: u64| {
            let lot = lot(others.len() + 1, side, Price::Second, Some(reserve));
            let mut events = vec![bid(0, amount)];
            events.extend(others.iter().enumerate().map(|(who, amount)| bid(who + 1, *amount)));
            let outcome = outcome(&run(Lot { tie, ..lot }, events, &[]));
            let price = outcome.winner.filter(|(who, _)| who == "b0").map(|(_, price)| price);
            price.map_or(0, |price| {
                let (value, price) = (i64::try_from(value).unwrap(), i64::try_from(price).unwrap());
                if side == Side::Sell { value - price } else { price - value }
            })
        };
        prop_assert!(gain(lie) <= gain(value), "{} by a lie, {} by truth", gain(lie), gain(value));
        prop_assert!(gain(value) >= 0, "truth costs nothing");
    }

    #[test]
    fn each_bidder_is_told_once(
        side in side(),
        bids in prop::collection::vec(0..9_u64, 1..7),
        failing in prop::collection::vec(any::<bool>(), 7),
        late in 0..7_usize,
        order in any::<u64>(),
    ) {
        let name = |who: usize| format!("b{who}");
        let failing: Vec<_> = (0..7).filter(|who| failing[*who]).map(name).collect();
        let late = late % bids.len();
        let lot = lot(bids.len(), side, Price::First, Some(4));
        let mut events: Vec<_> =
            (0..bids.len()).filter(|who| *who != late).map(|who| bid(who, bids[who])).collect();
        let place = usize::try_from(order % 64).unwrap() % events.len().max(1);
        events.rotate_left(place);
        // A second bid changes nothing.
        events.extend((0..bids.len()).filter(|who| *who != late).map(|who| bid(who, 4)));
        let mut all = run(lot.clone(), events.clone(), &failing);
        let mut state = Auction::new(lot).unwrap();
        state.step(0, AuctionEvent::Begun);
        for event in events {
            state.step(1, event);
        }
        all.extend(state.step(1_001, bid(late, 4)).into_iter().filter(|action| {
            matches!(action, AuctionAction::Reject(..))
        }).filter(|action| *action == AuctionAction::Reject(name(late), BidRejection::Late)));
        let (mut ends, mut holder) = (BTreeMap::<String, usize>::new(), None::<String>);
        for action in &all {
            match action {
                AuctionAction::Award(who, _) => {
                    if let Some(before) = holder.replace(who.clone()) {
                        prop_assert!(failing.contains(&before), "{} still holds it", before);
                    }
                    *ends.entry(who.clone()).or_default() += 1;
                }
                AuctionAction::Reject(who, _) => *ends.entry(who.clone()).or_default() += 1,
                AuctionAction::Call(_) | AuctionAction::Wait(_) | AuctionAction::Cancel(_) | AuctionAction::Finish(_) => {}
            }
        }
        prop_assert!((0..bids.len()).all(|who| ends.get(&name(who)) == Some(&1)), "{:?}", all);
    }
}
