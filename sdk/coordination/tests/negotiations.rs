//! Negotiations: courses of offers, and properties over random answers.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_coordination::negotiation::{Action, Event, Outcome, Proposal, Rules, State, Why};
use proptest::prelude::*;

fn negotiation(parties: usize, max_proposals: u32) -> State {
    let parties = (0..parties).map(name).collect();
    State::new(Rules { parties, max_proposals, timeout_ms: Some(1_000) }).unwrap()
}

fn name(party: usize) -> String {
    format!("p{party}")
}

fn proposed(party: usize, to: u32, terms: &str) -> Event {
    Event::Proposed(name(party), to, terms.to_owned())
}

fn proposal(number: u32, by: usize, terms: &str) -> Proposal {
    Proposal { number, by: name(by), terms: terms.to_owned() }
}

fn finished(actions: &[Action]) -> Option<Outcome> {
    match actions.last() {
        Some(Action::Finish(outcome)) => Some(outcome.clone()),
        Some(Action::Call(..) | Action::Wait(_) | Action::Cancel(_) | Action::Tell(..)) | None => {
            None
        }
    }
}

#[test]
fn all_parties_sign_same_terms() {
    let mut state = negotiation(3, 5);
    let begun = state.step(0, Event::Begun);
    assert_eq!(begun, [Action::Wait(1_000), Action::Call(name(0), None)]);
    let first = Some(proposal(1, 0, "half"));
    assert_eq!(state.step(1, proposed(0, 0, "half")), [Action::Call(name(1), first.clone())]);
    assert_eq!(state.step(2, Event::Accepted(name(2), 1)), [], "it has not the turn");
    assert_eq!(state.step(2, Event::Accepted(name(1), 1)), [Action::Call(name(2), first)]);
    let terms = proposal(2, 2, "a third");
    let second = Some(terms.clone());
    assert_eq!(state.step(3, proposed(2, 1, "a third")), [Action::Call(name(0), second.clone())]);
    assert_eq!(state.step(4, Event::Accepted(name(0), 1)), [], "it means the old proposal");
    assert_eq!(state.step(4, Event::Accepted(name(0), 2)), [Action::Call(name(1), second.clone())]);
    let actions = state.step(5, Event::Accepted(name(1), 2));
    let signed = vec![name(0), name(1), name(2)];
    let agreed = Outcome::Agreed { proposal: terms, signed };
    let mut expected: Vec<_> = (0..3).map(|it| Action::Tell(name(it), agreed.clone())).collect();
    expected.push(Action::Finish(agreed));
    assert_eq!(actions, expected);
    assert_eq!(state.step(6, Event::Departed(name(0), "late".to_owned())), []);
}

#[test]
fn deadline_cap_and_leaving_end_without_agreement() {
    let open = |max| {
        let mut state = negotiation(2, max);
        state.step(0, Event::Begun);
        state.step(1, proposed(0, 0, "half"));
        state
    };
    let failed = |why| {
        let last = Some(proposal(1, 0, "half"));
        Some(Outcome::Failed { why, last, accepted: vec![name(0)] })
    };
    let late = open(5).step(1_000, Event::Accepted(name(1), 1));
    assert_eq!(finished(&late), failed(Why::Deadline));
    assert_eq!(late[0], Action::Cancel(name(1)));
    let capped = open(1).step(2, proposed(1, 1, "all"));
    assert_eq!(finished(&capped), failed(Why::Cap(name(1))));
    let left = open(5).step(2, Event::Departed(name(1), "busy".to_owned()));
    assert_eq!(finished(&left), failed(Why::Departed(name(1), "busy".to_owned())));
    assert_eq!(left[0], Action::Tell(name(0), finished(&left).unwrap()), "nobody is cancelled");
}

#[test]
fn negotiations_with_wrong_rules_are_refused() {
    let told = |parties: &[&str], max_proposals| {
        let parties = parties.iter().map(|&it| it.to_owned()).collect();
        State::new(Rules { parties, max_proposals, timeout_ms: None }).map(drop).unwrap_err()
    };
    assert_eq!(told(&["a"], 1), "a negotiation has at least two parties");
    assert_eq!(told(&["a", "b", "a"], 1), "the party `a` is listed twice");
    assert_eq!(told(&["a", "b"], 0), "a negotiation has at least one proposal");
}

proptest! {
    #[test]
    fn every_course_ends_and_all_sign(
        parties in 2..5_usize,
        cap in 1..6_u32,
        // Bit by bit: who answers, and whether it accepts.
        answers in prop::collection::vec((0..5_usize, any::<bool>(), 0..7_u32), 0..200),
    ) {
        let mut state = negotiation(parties, cap);
        let mut asked = None;
        let (mut given, mut outcome) = (Vec::<(String, u32)>::new(), None);
        let mut todo = state.step(0, Event::Begun);
        let mut answers = answers.into_iter();
        for turn in 0..1_000 {
            for action in std::mem::take(&mut todo) {
                match action {
                    Action::Call(who, on) => asked = Some((who, on.map_or(0, |it| it.number))),
                    Action::Finish(end) => outcome = Some(end),
                    Action::Wait(_) | Action::Cancel(_) | Action::Tell(..) => {}
                }
            }
            if outcome.is_some() {
                break;
            }
            // Strangers and old answers first, then the party that is asked.
            if let Some((who, accepts, to)) = answers.next() {
                let stray = asked.as_ref() != Some(&(name(who), to));
                if stray && who < parties {
                    let actions = state.step(1, Event::Accepted(name(who), to));
                    prop_assert_eq!(actions, vec![]);
                }
                let (who, to) = asked.clone().unwrap();
                let event = if accepts && to > 0 {
                    given.push((who.clone(), to));
                    Event::Accepted(who, to)
                } else {
                    given.push((who.clone(), to + 1));
                    Event::Proposed(who, to, format!("terms {turn}"))
                };
                todo = state.step(1, event);
            } else {
                todo = state.step(1_000, Event::Rang);
            }
        }
        match outcome.unwrap() {
            Outcome::Agreed { proposal, signed } => {
                prop_assert!(proposal.number <= cap);
                for who in &signed {
                    prop_assert!(given.contains(&(who.clone(), proposal.number)), "{}", who);
                }
                prop_assert_eq!(signed.len(), parties);
            }
            Outcome::Failed { accepted, .. } => prop_assert!(accepted.len() < parties),
        }
    }
}
