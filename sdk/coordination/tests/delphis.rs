//! Delphi: courses of rounds, and properties over random answers.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_coordination::delphi::{
    Delphi, DelphiAction, DelphiEnd, DelphiEvent, DelphiOutcome, DelphiRules, ExpertAnswer,
    Figures, Value,
};
use proptest::prelude::*;

fn rules(experts: usize, is_number: bool) -> DelphiRules {
    let experts = (0..experts).map(name).collect();
    let (max_changes, tolerance, least, max_rounds) = (0, 0.5, 2, 4);
    let timeout_ms = Some(1_000);
    DelphiRules {
        experts,
        is_number,
        max_changes,
        tolerance,
        min_answers: least,
        max_rounds,
        timeout_ms,
    }
}

fn name(expert: usize) -> String {
    format!("expert-{expert}")
}

fn number(number: f64) -> ExpertAnswer {
    ExpertAnswer { value: Value::Number(number), reason: format!("because {number}") }
}

fn choice(choice: &str) -> ExpertAnswer {
    ExpertAnswer { value: Value::Choice(choice.to_owned()), reason: String::new() }
}

fn answered(expert: usize, round: u32, answer: ExpertAnswer) -> DelphiEvent {
    DelphiEvent::Answered(name(expert), round, answer)
}

fn finished(actions: &[DelphiAction]) -> Option<&DelphiOutcome> {
    match actions.last() {
        Some(DelphiAction::Finish(outcome)) => Some(outcome),
        Some(DelphiAction::Call(..) | DelphiAction::Wait(_) | DelphiAction::Cancel(..)) | None => {
            None
        }
    }
}

#[test]
fn rounds_end_when_answers_are_stable() {
    let mut state = Delphi::new(rules(3, true)).unwrap();
    state.step(0, DelphiEvent::Begun);
    state.step(1, answered(2, 1, number(10.0)));
    state.step(1, answered(0, 1, number(30.0)));
    let second = state.step(2, answered(1, 1, number(20.0)));
    let DelphiAction::Call(_, 2, Some(summary)) = &second[0] else { panic!("{second:?}") };
    assert_eq!(summary.figures, Figures::Quartiles(10.0, 20.0, 30.0));
    assert_eq!(summary.answers, [number(10.0), number(20.0), number(30.0)]);
    assert!(!format!("{summary:?}").contains("expert"), "a summary has no names");
    state.step(3, answered(0, 1, number(99.0)));
    for (expert, value) in [(0, 19.0), (1, 20.0)] {
        assert_eq!(state.step(4, answered(expert, 2, number(value))), []);
    }
    assert_eq!(state.step(4, answered(2, 2, number(21.0))).len(), 4, "the third round");
    for (expert, value) in [(0, 19.5), (1, 20.0)] {
        state.step(5, answered(expert, 3, number(value)));
    }
    let last = state.step(5, answered(2, 3, number(21.0)));
    let outcome = finished(&last).unwrap();
    assert_eq!((outcome.end, outcome.rounds), (DelphiEnd::Stable, 3));
    let figures = &outcome.summary.as_ref().unwrap().figures;
    assert_eq!(*figures, Figures::Quartiles(19.5, 20.0, 21.0));
}

#[test]
fn slow_and_unusable_answers_are_left_out() {
    let mut state = Delphi::new(rules(4, false)).unwrap();
    state.step(0, DelphiEvent::Begun);
    state.step(1, answered(0, 1, choice("b")));
    state.step(1, answered(1, 1, choice("a")));
    state.step(1, answered(2, 1, number(3.0)));
    let second = state.step(1_000, answered(3, 1, choice("c")));
    assert_eq!(second[0], DelphiAction::Cancel(name(3), 1));
    let DelphiAction::Call(_, 2, Some(summary)) = &second[1] else { panic!("{second:?}") };
    assert_eq!(summary.figures, Figures::Counts(vec![("a".to_owned(), 1), ("b".to_owned(), 1)]));
    for expert in 0..3 {
        state.step(1_001, DelphiEvent::Failed(name(expert), 2));
    }
    let last = state.step(1_002, answered(3, 2, choice("c")));
    assert_eq!(finished(&last).unwrap().end, DelphiEnd::NoQuorum);
}

#[test]
fn delphis_with_wrong_rules_are_refused() {
    assert!(Delphi::new(rules(0, true)).is_err());
    assert!(Delphi::new(DelphiRules { max_rounds: 0, ..rules(2, true) }).is_err());
    let why = Delphi::new(rules(1, true)).map(drop).unwrap_err();
    assert!(why.ends_with("has from 1 to 1 answers, and here `least` is 2"), "{why}");
}

/// Runs a Delphi in which experts answer by a table of rounds, in the order of `order`.
fn run(answers: &[Vec<Option<u8>>], max_changes: usize, order: &[usize]) -> (DelphiOutcome, usize) {
    let mut state = Delphi::new(DelphiRules { max_changes, ..rules(order.len(), true) }).unwrap();
    let mut actions = state.step(0, DelphiEvent::Begun);
    let mut calls = 0;
    for round in 1..100 {
        calls += actions.iter().filter(|action| matches!(action, DelphiAction::Call(..))).count();
        let of_round = &answers[(round - 1) % answers.len()];
        let round = u32::try_from(round).unwrap();
        let mut next = Vec::new();
        for &expert in order {
            next.extend(state.step(
                1,
                match of_round[expert] {
                    Some(value) => answered(expert, round, number(f64::from(value))),
                    None => DelphiEvent::Failed(name(expert), round),
                },
            ));
        }
        if let Some(outcome) = finished(&next) {
            return (outcome.clone(), calls);
        }
        actions = next;
    }
    panic!("it never ends");
}

proptest! {
    #[test]
    fn delphi_ends_whatever_order_answers_take(
        experts in 2..6_usize,
        answers in prop::collection::vec(
            prop::collection::vec(prop::option::weighted(0.9, 0..9_u8), 6), 1..6),
        max_changes in 0..3_usize,
        order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let listed: Vec<_> = (0..experts).collect();
        let order: Vec<_> = order.into_iter().filter(|it| *it < experts).collect();
        let (outcome, calls) = run(&answers, max_changes, &listed);
        prop_assert!(outcome.rounds <= 4);
        prop_assert_eq!(calls, experts * outcome.rounds as usize);
        prop_assert_eq!(outcome.end == DelphiEnd::Capped, outcome.rounds == 4 && outcome.end != DelphiEnd::Stable && outcome.end != DelphiEnd::NoQuorum);
        prop_assert_eq!(outcome, run(&answers, max_changes, &order).0);
    }
}
