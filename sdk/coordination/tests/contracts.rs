//! Contract nets: rounds and reports in tables, and properties over random replies.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use a2a_hub_coordination::contract_net::{
    Action, Call, Event, Limits, Outcome, Proposal, Report, State, Weights, Why,
};
use proptest::prelude::*;
use serde_json::json;

fn call(participants: usize, awards: usize) -> Call {
    Call {
        participants: (0..participants).map(name).collect(),
        awards,
        weights: Weights { confidence: 1.0, time: 1.0, cost: 1.0 },
        limits: Limits::default(),
        max_rounds: 1,
        timeout_ms: Some(1_000),
        work_ms: Some(5_000),
    }
}

fn name(participant: usize) -> String {
    format!("p{participant}")
}

fn offer(confidence: f64, time_ms: u64, cost: u64) -> Proposal {
    Proposal { confidence, time_ms, cost }
}

fn proposed(participant: usize, proposal: Proposal) -> Event {
    Event::Proposed(name(participant), 1, proposal)
}

fn finished(actions: &[Action]) -> Option<&Outcome> {
    let mut found = actions.iter().filter_map(|action| match action {
        Action::Finish(outcome) => Some(outcome),
        Action::Call(..)
        | Action::Wait(_)
        | Action::Accept(_)
        | Action::Reject(..)
        | Action::Cancel(_) => None,
    });
    let outcome = found.next();
    assert_eq!(found.next(), None, "a contract net ends once");
    outcome
}

#[test]
fn weights_choose_the_contractors() {
    let offers = [offer(0.9, 100, 50), offer(0.5, 10, 50), offer(0.5, 100, 5), offer(0.5, 10, 50)];
    let table = [
        ((1.0, 0.0, 0.0), 1, vec!["p0"]),
        ((0.0, 1.0, 0.0), 1, vec!["p1"]),
        ((0.0, 1.0, 0.0), 2, vec!["p1", "p3"]),
        ((0.0, 0.0, 1.0), 1, vec!["p2"]),
        ((0.0, 0.0, 0.0), 1, vec!["p0"]),
        ((1.0, 1.0, 1.0), 9, vec!["p0", "p1", "p2", "p3"]),
        ((f64::NAN, -1.0, 2.0), 1, vec!["p2"]),
    ];
    for ((confidence, time, cost), awards, expected) in table {
        let weights = Weights { confidence, time, cost };
        let mut state = State::new(Call { weights, ..call(4, awards) }).unwrap();
        state.step(0, Event::Begun);
        let all = offers.iter().enumerate();
        let actions: Vec<_> = all.flat_map(|(who, it)| state.step(1, proposed(who, *it))).collect();
        let chosen = actions.iter().filter_map(|action| match action {
            Action::Accept(who) => Some(who.as_str()),
            Action::Call(..)
            | Action::Wait(_)
            | Action::Reject(..)
            | Action::Cancel(_)
            | Action::Finish(_) => None,
        });
        assert_eq!(chosen.collect::<Vec<_>>(), expected, "{weights:?}");
    }
}

#[test]
fn contractor_reports_once() {
    let mut state = State::new(call(3, 2)).unwrap();
    state.step(0, Event::Begun);
    state.step(1, Event::Refused(name(2), "busy".to_owned()));
    state.step(2, proposed(0, offer(0.5, 1, 1)));
    let awarded = state.step(3, proposed(1, offer(0.5, 1, 1)));
    assert_eq!(awarded, [Action::Accept(name(0)), Action::Accept(name(1)), Action::Wait(5_003)]);
    assert_eq!(state.step(4, Event::Reported(name(2), Report::Done)), [], "it has no contract");
    let result = Report::Result(json!({ "lines": 3 }));
    assert_eq!(state.step(5, Event::Reported(name(0), result.clone())), []);
    assert_eq!(state.step(6, Event::Reported(name(0), Report::Failure("x".to_owned()))), []);
    let actions = state.step(5_003, Event::Rang);
    assert_eq!(actions[0], Action::Cancel(name(1)));
    let outcome = finished(&actions).unwrap();
    let slow = Report::Failure("the work took too long".to_owned());
    assert_eq!(outcome.reports, [(name(0), result), (name(1), slow)]);
    assert_eq!(outcome.refused, [(name(2), "busy".to_owned())]);
    assert_eq!(state.step(6_000, Event::Reported(name(1), Report::Done)), []);
}

#[test]
fn late_proposal_is_rejected_with_that_reason() {
    let mut state = State::new(call(3, 1)).unwrap();
    state.step(0, Event::Begun);
    state.step(1, proposed(0, offer(0.5, 1, 1)));
    let late = |who| Action::Reject(name(who), Why::Late);
    let actions = state.step(1_000, proposed(1, offer(1.0, 0, 0)));
    assert_eq!(actions, [late(1), Action::Accept(name(0)), Action::Wait(6_000)]);
    state.step(1_001, Event::Reported(name(0), Report::Done));
    assert_eq!(state.step(1_002, proposed(2, offer(1.0, 0, 0))), [late(2)], "also after the end");
    assert_eq!(state.step(1_003, proposed(2, offer(1.0, 0, 0))), []);
    assert_eq!(state.step(1_003, proposed(9, offer(1.0, 0, 0))), []);
}

#[test]
fn proposals_beyond_limits_are_called_again() {
    let limits = Limits { cost: Some(10), ..Limits::default() };
    let mut state = State::new(Call { limits, max_rounds: 3, ..call(4, 2) }).unwrap();
    state.step(0, Event::Begun);
    state.step(1, Event::Refused(name(3), "no".to_owned()));
    state.step(1, proposed(0, offer(0.5, 1, 9)));
    state.step(1, proposed(1, offer(0.5, 1, 20)));
    let again = state.step(1_000, Event::Rang);
    assert_eq!(again, [Action::Call(name(1), 2), Action::Wait(2_000)]);
    assert_eq!(state.step(1_001, proposed(1, offer(0.5, 1, 9))), [], "a reply to the first call");
    let of_round = |round, cost| Event::Proposed(name(1), round, offer(0.5, 1, cost));
    let silent = state.step(1_001, proposed(2, offer(0.5, 1, 1)));
    assert_eq!(silent, [Action::Reject(name(2), Why::Late)]);
    let again = state.step(1_002, of_round(2, 15));
    assert_eq!(again, [Action::Call(name(1), 3), Action::Wait(2_002)]);
    let last = state.step(1_003, of_round(3, 11));
    let expected = [Action::Accept(name(0)), Action::Reject(name(1), Why::Limits)];
    assert_eq!(last[..2], expected, "the cap is three rounds");
}

#[test]
fn calls_that_award_nothing_are_refused() {
    assert!(State::new(call(0, 1)).is_err());
    assert!(State::new(call(1, 0)).is_err());
    assert!(State::new(Call { max_rounds: 0, ..call(1, 1) }).is_err());
    let mut state = State::new(call(1, 1)).unwrap();
    state.step(0, Event::Begun);
    let actions = state.step(1, Event::Refused(name(0), "no".to_owned()));
    assert_eq!(finished(&actions).unwrap().reports, [], "nobody wants it");
}

/// Reply of a participant: its time, and a proposal or a refusal.
type Reply = (u64, Option<(f64, u64, u64)>);

fn replies() -> impl Strategy<Value = Vec<Reply>> {
    let offer = (0.0..=1.0_f64, 0..50_u64, 0..50_u64);
    prop::collection::vec((0..2_000_u64, prop::option::weighted(0.8, offer)), 1..8)
}

fn event(who: usize, (_, reply): Reply) -> Event {
    match reply {
        Some((confidence, time, cost)) => proposed(who, offer(confidence, time, cost)),
        None => Event::Refused(name(who), "no".to_owned()),
    }
}

/// Runs a contract net with these events; contractors report `Done` after that.
fn run(call: Call, mut events: Vec<(u64, Event)>) -> Vec<Action> {
    let mut state = State::new(call).unwrap();
    let mut all = state.step(0, Event::Begun);
    events.push((1_000, Event::Rang));
    // The order of events at the same time is that of the list.
    events.sort_by_key(|(at, _)| *at);
    for (at, event) in events {
        all.extend(state.step(at, event));
    }
    for who in 0..call_size(&all) {
        all.extend(state.step(2_001, Event::Reported(name(who), Report::Done)));
    }
    all
}

fn call_size(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Call(..))).count()
}

proptest! {
    #[test]
    fn every_bidder_is_told_once(replies in replies(), awards in 1..4_usize) {
        let events = replies.iter().enumerate().map(|(who, it)| (it.0, event(who, *it)));
        let all = run(call(replies.len(), awards), events.collect());
        prop_assert!(finished(&all).is_some());
        let mut ends = BTreeMap::<String, Vec<Option<Why>>>::new();
        for action in &all {
            match action {
                Action::Accept(who) => ends.entry(who.clone()).or_default().push(None),
                Action::Reject(who, why) => ends.entry(who.clone()).or_default().push(Some(*why)),
                Action::Call(..) | Action::Wait(_) | Action::Cancel(_) | Action::Finish(_) => {}
            }
        }
        let mut accepted = 0;
        for (who, (at, reply)) in replies.iter().enumerate() {
            let told = ends.remove(&name(who)).unwrap_or_default();
            prop_assert_eq!(told.len(), usize::from(reply.is_some()), "{} of {:?}", who, all);
            if reply.is_some() {
                prop_assert_eq!(*at >= 1_000, told == [Some(Why::Late)]);
            }
            accepted += usize::from(told == [None]);
        }
        let in_time = replies.iter().filter(|(at, it)| *at < 1_000 && it.is_some()).count();
        prop_assert_eq!(accepted, awards.min(in_time), "no award twice, and none is lost");
    }

    #[test]
    fn order_of_replies_decides_nothing(
        (replies, shuffled) in replies().prop_flat_map(|it| {
            let events: Vec<_> = it.iter().enumerate().map(|(who, it)| (1, event(who, *it))).collect();
            (Just(events.clone()), Just(events).prop_shuffle())
        }),
        awards in 1..4_usize,
    ) {
        let call = call(replies.len(), awards);
        let (one, other) = (run(call.clone(), replies), run(call, shuffled));
        prop_assert_eq!(finished(&one), finished(&other));
    }
}
