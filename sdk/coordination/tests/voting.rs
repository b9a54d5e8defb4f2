//! Votes: a table of outcomes, and properties over random ballots.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use a2a_hub_coordination::vote::{
    Ballot, Poll, PollAction, PollDecision, PollEvent, PollOutcome, PollState, Rule,
};
use proptest::prelude::*;

fn poll(voters: usize, rule: Rule) -> Poll {
    let voters = (0..voters).map(|it| format!("v{it}")).collect();
    let choices = ["yes", "no", "later"].map(str::to_owned).to_vec();
    Poll { voters, choices, rule, timeout_ms: Some(1_000) }
}

fn ballot(choice: &str, confidence: f64) -> Ballot {
    Ballot { choice: choice.to_owned(), confidence, reason: format!("for {choice}") }
}

/// Event of the voter with this number: `None` is a failure.
fn event(voter: usize, answer: Option<(&str, f64)>) -> PollEvent {
    let name = format!("v{voter}");
    match answer {
        Some((choice, confidence)) => PollEvent::Voted(name, ballot(choice, confidence)),
        None => PollEvent::Failed(name, "gone".to_owned()),
    }
}

/// Runs a poll with these answers, and returns its only outcome.
fn run(poll: Poll, events: Vec<PollEvent>) -> PollOutcome {
    let mut state = PollState::new(poll).unwrap();
    let mut actions = state.step(0, PollEvent::Begun);
    for event in events {
        actions.extend(state.step(1, event));
    }
    actions.extend(state.step(1_000, PollEvent::Rang));
    let mut finished = actions.into_iter().filter_map(|action| match action {
        PollAction::Finish(outcome) => Some(outcome),
        PollAction::Call(_) | PollAction::Wait(_) | PollAction::Cancel(_) => None,
    });
    let outcome = finished.next().unwrap();
    assert_eq!(finished.next(), None, "a poll closes once");
    outcome
}

fn decided(choice: &str) -> PollDecision {
    PollDecision::Decided(choice.to_owned())
}

#[test]
fn each_rule_has_its_outcomes() {
    let (yes, no, later) = (Some(("yes", 0.5)), Some(("no", 0.5)), Some(("later", 0.5)));
    let sure = Some(("no", 1.0));
    let tie = PollDecision::Tie(vec!["yes".to_owned(), "no".to_owned()]);
    let weighted = || Rule::Weighted(BTreeMap::new());
    let by_record = Rule::Weighted(BTreeMap::from([("v0".to_owned(), 3.0)]));
    let table = [
        (Rule::Majority, vec![yes, yes, no], decided("yes")),
        (Rule::Majority, vec![yes, no, None], tie.clone()),
        (Rule::Majority, vec![yes, None, None], PollDecision::NoQuorum),
        (Rule::Majority, vec![yes, yes, no, later], PollDecision::None("yes".to_owned())),
        (Rule::Majority, vec![None; 3], PollDecision::NoQuorum),
        (weighted(), vec![yes, yes, sure], tie.clone()),
        (weighted(), vec![yes, no, sure], decided("no")),
        (weighted(), vec![Some(("yes", 0.0)), Some(("no", f64::NAN))], PollDecision::NoQuorum),
        (weighted(), vec![yes, Some(("no", 9e99))], decided("no")),
        (by_record, vec![yes, no, no], decided("yes")),
        (Rule::Quorum(2), vec![yes, yes, None], decided("yes")),
        (Rule::Quorum(2), vec![yes, no, None], PollDecision::NoQuorum),
        (Rule::Quorum(1), vec![yes, no, None], tie.clone()),
        (Rule::Quorum(3), vec![yes, yes, no, None], PollDecision::NoQuorum),
        (Rule::Quorum(1), vec![None, None, later], decided("later")),
        (Rule::Quorum(2), vec![yes, Some(("maybe", 1.0)), None], PollDecision::NoQuorum),
    ];
    for (rule, answers, decision) in table {
        let events = answers.iter().enumerate().map(|(voter, it)| event(voter, *it)).collect();
        let outcome = run(poll(answers.len(), rule.clone()), events);
        assert_eq!(outcome.decision, decision, "{rule:?}, {answers:?}");
    }
}

#[test]
fn dissent_and_failures_are_kept() {
    let events = vec![event(2, Some(("no", 0.9))), event(0, Some(("yes", 0.5))), event(1, None)];
    let outcome = run(poll(4, Rule::Quorum(1)), events);
    assert_eq!(outcome.ballots[1], ("v2".to_owned(), ballot("no", 0.9)));
    let failed = [("v1", "gone"), ("v3", "no answer in time")];
    assert_eq!(outcome.failed, failed.map(|(who, why)| (who.to_owned(), why.to_owned())));
    let tally = [("yes", 1.0), ("no", 1.0), ("later", 0.0)];
    assert_eq!(outcome.tally, tally.map(|(choice, count)| (choice.to_owned(), count)));
}

#[test]
fn late_second_and_foreign_ballots_are_ignored() {
    let mut state = PollState::new(poll(2, Rule::Majority)).unwrap();
    let begun = state.step(5, PollEvent::Begun);
    assert_eq!(begun.last(), Some(&PollAction::Wait(1_005)));
    assert_eq!(state.step(6, event(0, Some(("yes", 1.0)))), []);
    assert_eq!(state.step(7, event(0, Some(("no", 1.0)))), []);
    assert_eq!(state.step(8, event(9, Some(("no", 1.0)))), []);
    let actions = state.step(1_005, event(1, Some(("no", 1.0))));
    let [PollAction::Cancel(late), PollAction::Finish(outcome)] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    let first = ("v0".to_owned(), ballot("yes", 1.0));
    assert_eq!((late.as_str(), outcome.ballots.as_slice()), ("v1", [first].as_slice()));
    assert_eq!(state.step(1_006, event(1, Some(("no", 1.0)))), []);
}

#[test]
fn polls_that_cannot_be_held_are_refused() {
    let refusal = |poll: Poll| PollState::new(poll).map(drop).unwrap_err();
    assert_eq!(refusal(poll(0, Rule::Majority)), "a vote has at least one voter");
    let twice = Poll { choices: vec!["yes".into(), "yes".into()], ..poll(1, Rule::Majority) };
    assert_eq!(refusal(twice), "a vote has at least two choices");
    let why = "a quorum of 2 voters is from 1 to 2, and here is 3";
    assert_eq!(refusal(poll(2, Rule::Quorum(3))), why);
}

fn answers() -> impl Strategy<Value = Vec<Option<(usize, f64)>>> {
    prop::collection::vec(prop::option::weighted(0.8, (0..3_usize, 0.0..=1.0_f64)), 1..9)
}

fn rules() -> impl Strategy<Value = (u8, usize)> {
    (0..3_u8, 0..8_usize)
}

fn rule((kind, k): (u8, usize), voters: usize) -> Rule {
    match kind {
        0 => Rule::Majority,
        1 => Rule::Weighted(BTreeMap::from([("v0".to_owned(), 0.3), ("v2".to_owned(), 1.7)])),
        _ => Rule::Quorum(1 + k % voters),
    }
}

fn events(answers: &[Option<(usize, f64)>]) -> Vec<PollEvent> {
    let named = |(choice, sure): (usize, f64)| (["yes", "no", "later"][choice], sure);
    answers.iter().enumerate().map(|(voter, it)| event(voter, it.map(named))).collect()
}

proptest! {
    #[test]
    fn order_of_ballots_decides_nothing(
        (answers, shuffled) in answers().prop_flat_map(|it| {
            let events = events(&it);
            (Just(it), Just(events).prop_shuffle())
        }),
        kind in rules(),
    ) {
        let poll = poll(answers.len(), rule(kind, answers.len()));
        prop_assert_eq!(run(poll.clone(), events(&answers)), run(poll, shuffled));
    }

    #[test]
    fn quorum_tolerates_n_minus_k_failures(
        n in 1..9_usize,
        k in 1..9_usize,
        failing in prop::collection::vec(any::<bool>(), 9),
    ) {
        let k = 1 + k % n;
        let mut left = n - k;
        let answers = (0..n).map(|voter| {
            let fails = failing[voter] && left > 0;
            left -= usize::from(fails);
            event(voter, (!fails).then_some(("yes", 0.5)))
        });
        let outcome = run(poll(n, Rule::Quorum(k)), answers.collect());
        prop_assert_eq!(outcome.decision, decided("yes"));
        // One failure more than that is too many.
        let answers = (0..n).map(|voter| event(voter, (voter + 1 < k).then_some(("yes", 0.5))));
        let outcome = run(poll(n, Rule::Quorum(k)), answers.collect());
        prop_assert_eq!(outcome.decision, PollDecision::NoQuorum);
    }

    #[test]
    fn every_voter_has_ballot_or_failure(answers in answers(), kind in rules()) {
        let outcome = run(poll(answers.len(), rule(kind, answers.len())), events(&answers));
        prop_assert_eq!(outcome.ballots.len() + outcome.failed.len(), answers.len());
        if let PollDecision::Decided(choice) = &outcome.decision {
            let best = outcome.tally.iter().max_by(|one, other| one.1.total_cmp(&other.1));
            prop_assert_eq!(&best.unwrap().0, choice);
        }
    }
}
