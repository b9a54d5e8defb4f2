//! Contract nets: rounds and reports in tables, and properties over random replies.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use a2a_hub_coordination::contract_net::{
    CallForProposals, ContractNet, ContractNetAction, ContractNetEvent, ContractNetOutcome,
    ContractorReport, Proposal, ProposalLimits, ProposalRejection, Weights,
};
use proptest::prelude::*;
use serde_json::json;

fn call(participants: usize, awards: usize) -> CallForProposals {
    CallForProposals {
        participants: (0..participants).map(name).collect(),
        awards,
        weights: Weights { confidence: 1.0, time: 1.0, cost: 1.0 },
        limits: ProposalLimits::default(),
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

fn proposed(participant: usize, proposal: Proposal) -> ContractNetEvent {
    ContractNetEvent::Proposed(name(participant), 1, proposal)
}

fn finished(actions: &[ContractNetAction]) -> Option<&ContractNetOutcome> {
    let mut found = actions.iter().filter_map(|action| match action {
        ContractNetAction::Finish(outcome) => Some(outcome),
        ContractNetAction::Call(..)
        | ContractNetAction::Wait(_)
        | ContractNetAction::Accept(_)
        | ContractNetAction::Reject(..)
        | ContractNetAction::Cancel(_) => None,
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
        let mut state = ContractNet::new(CallForProposals { weights, ..call(4, awards) }).unwrap();
        state.step(0, ContractNetEvent::Begun);
        let all = offers.iter().enumerate();
        let actions: Vec<_> = all.flat_map(|(who, it)| state.step(1, proposed(who, *it))).collect();
        let chosen = actions.iter().filter_map(|action| match action {
            ContractNetAction::Accept(who) => Some(who.as_str()),
            ContractNetAction::Call(..)
            | ContractNetAction::Wait(_)
            | ContractNetAction::Reject(..)
            | ContractNetAction::Cancel(_)
            | ContractNetAction::Finish(_) => None,
        });
        assert_eq!(chosen.collect::<Vec<_>>(), expected, "{weights:?}");
    }
}

#[test]
fn contractor_reports_once() {
    let mut state = ContractNet::new(call(3, 2)).unwrap();
    state.step(0, ContractNetEvent::Begun);
    state.step(1, ContractNetEvent::Refused(name(2), "busy".to_owned()));
    state.step(2, proposed(0, offer(0.5, 1, 1)));
    let awarded = state.step(3, proposed(1, offer(0.5, 1, 1)));
    assert_eq!(
        awarded,
        [
            ContractNetAction::Accept(name(0)),
            ContractNetAction::Accept(name(1)),
            ContractNetAction::Wait(5_003)
        ]
    );
    assert_eq!(
        state.step(4, ContractNetEvent::Reported(name(2), ContractorReport::Done)),
        [],
        "it has no contract"
    );
    let result = ContractorReport::Result(json!({ "lines": 3 }));
    assert_eq!(state.step(5, ContractNetEvent::Reported(name(0), result.clone())), []);
    assert_eq!(
        state.step(
            6,
            ContractNetEvent::Reported(name(0), ContractorReport::Failure("x".to_owned()))
        ),
        []
    );
    let actions = state.step(5_003, ContractNetEvent::Rang);
    assert_eq!(actions[0], ContractNetAction::Cancel(name(1)));
    let outcome = finished(&actions).unwrap();
    let slow = ContractorReport::Failure("the work took too long".to_owned());
    assert_eq!(outcome.reports, [(name(0), result), (name(1), slow)]);
    assert_eq!(outcome.refused, [(name(2), "busy".to_owned())]);
    assert_eq!(state.step(6_000, ContractNetEvent::Reported(name(1), ContractorReport::Done)), []);
}

#[test]
fn late_proposal_is_rejected_with_that_reason() {
    let mut state = ContractNet::new(call(3, 1)).unwrap();
    state.step(0, ContractNetEvent::Begun);
    state.step(1, proposed(0, offer(0.5, 1, 1)));
    let late = |who| ContractNetAction::Reject(name(who), ProposalRejection::Late);
    let actions = state.step(1_000, proposed(1, offer(1.0, 0, 0)));
    assert_eq!(
        actions,
        [late(1), ContractNetAction::Accept(name(0)), ContractNetAction::Wait(6_000)]
    );
    state.step(1_001, ContractNetEvent::Reported(name(0), ContractorReport::Done));
    assert_eq!(state.step(1_002, proposed(2, offer(1.0, 0, 0))), [late(2)], "also after the end");
    assert_eq!(state.step(1_003, proposed(2, offer(1.0, 0, 0))), []);
    assert_eq!(state.step(1_003, proposed(9, offer(1.0, 0, 0))), []);
}

#[test]
fn proposals_beyond_limits_are_called_again() {
    let limits = ProposalLimits { cost: Some(10), ..ProposalLimits::default() };
    let mut state =
        ContractNet::new(CallForProposals { limits, max_rounds: 3, ..call(4, 2) }).unwrap();
    state.step(0, ContractNetEvent::Begun);
    state.step(1, ContractNetEvent::Refused(name(3), "no".to_owned()));
    state.step(1, proposed(0, offer(0.5, 1, 9)));
    state.step(1, proposed(1, offer(0.5, 1, 20)));
    let again = state.step(1_000, ContractNetEvent::Rang);
    assert_eq!(again, [ContractNetAction::Call(name(1), 2), ContractNetAction::Wait(2_000)]);
    assert_eq!(state.step(1_001, proposed(1, offer(0.5, 1, 9))), [], "a reply to the first call");
    let of_round = |round, cost| ContractNetEvent::Proposed(name(1), round, offer(0.5, 1, cost));
    let silent = state.step(1_001, proposed(2, offer(0.5, 1, 1)));
    assert_eq!(silent, [ContractNetAction::Reject(name(2), ProposalRejection::Late)]);
    let again = state.step(1_002, of_round(2, 15));
    assert_eq!(again, [ContractNetAction::Call(name(1), 3), ContractNetAction::Wait(2_002)]);
    let last = state.step(1_003, of_round(3, 11));
    let expected = [
        ContractNetAction::Accept(name(0)),
        ContractNetAction::Reject(name(1), ProposalRejection::Limits),
    ];
    assert_eq!(last[..2], expected, "the cap is three rounds");
}

#[test]
fn calls_that_award_nothing_are_refused() {
    assert!(ContractNet::new(call(0, 1)).is_err());
    assert!(ContractNet::new(call(1, 0)).is_err());
    assert!(ContractNet::new(CallForProposals { max_rounds: 0, ..call(1, 1) }).is_err());
    let mut state = ContractNet::new(call(1, 1)).unwrap();
    state.step(0, ContractNetEvent::Begun);
    let actions = state.step(1, ContractNetEvent::Refused(name(0), "no".to_owned()));
    assert_eq!(finished(&actions).unwrap().reports, [], "nobody wants it");
}

/// Reply of a participant: its time, and a proposal or a refusal.
type Reply = (u64, Option<(f64, u64, u64)>);

fn replies() -> impl Strategy<Value = Vec<Reply>> {
    let offer = (0.0..=1.0_f64, 0..50_u64, 0..50_u64);
    prop::collection::vec((0..2_000_u64, prop::option::weighted(0.8, offer)), 1..8)
}

fn event(who: usize, (_, reply): Reply) -> ContractNetEvent {
    match reply {
        Some((confidence, time, cost)) => proposed(who, offer(confidence, time, cost)),
        None => ContractNetEvent::Refused(name(who), "no".to_owned()),
    }
}

/// Runs a contract net with these events; contractors report `Done` after that.
fn run(call: CallForProposals, mut events: Vec<(u64, ContractNetEvent)>) -> Vec<ContractNetAction> {
    let mut state = ContractNet::new(call).unwrap();
    let mut all = state.step(0, ContractNetEvent::Begun);
    events.push((1_000, ContractNetEvent::Rang));
    // The order of events at the same time is that of the list.
    events.sort_by_key(|(at, _)| *at);
    for (at, event) in events {
        all.extend(state.step(at, event));
    }
    for who in 0..call_size(&all) {
        all.extend(
            state.step(2_001, ContractNetEvent::Reported(name(who), ContractorReport::Done)),
        );
    }
    all
}

fn call_size(actions: &[ContractNetAction]) -> usize {
    actions.iter().filter(|action| matches!(action, ContractNetAction::Call(..))).count()
}

proptest! {
    #[test]
    fn every_bidder_is_told_once(replies in replies(), awards in 1..4_usize) {
        let events = replies.iter().enumerate().map(|(who, it)| (it.0, event(who, *it)));
        let all = run(call(replies.len(), awards), events.collect());
        prop_assert!(finished(&all).is_some());
        let mut ends = BTreeMap::<String, Vec<Option<ProposalRejection>>>::new();
        for action in &all {
            match action {
                ContractNetAction::Accept(who) => ends.entry(who.clone()).or_default().push(None),
                ContractNetAction::Reject(who, why) => ends.entry(who.clone()).or_default().push(Some(*why)),
                ContractNetAction::Call(..) | ContractNetAction::Wait(_) | ContractNetAction::Cancel(_) | ContractNetAction::Finish(_) => {}
            }
        }
        let mut accepted = 0;
        for (who, (at, reply)) in replies.iter().enumerate() {
            let told = ends.remove(&name(who)).unwrap_or_default();
            prop_assert_eq!(told.len(), usize::from(reply.is_some()), "{} of {:?}", who, all);
            if reply.is_some() {
                prop_assert_eq!(*at >= 1_000, told == [Some(ProposalRejection::Late)]);
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
