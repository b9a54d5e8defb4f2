//! Negotiations: courses of offers, and properties over random answers.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_coordination::negotiation::{
    Negotiation, NegotiationAction, NegotiationEvent, NegotiationOutcome, NegotiationRules,
    NoAgreementReason, ProposedTerms,
};
use proptest::prelude::*;

fn negotiation(parties: usize, max_proposals: u32) -> Negotiation {
    let parties = (0..parties).map(name).collect();
    Negotiation::new(NegotiationRules { parties, max_proposals, timeout_ms: Some(1_000) }).unwrap()
}

fn name(party: usize) -> String {
    format!("p{party}")
}

fn proposed(party: usize, to: u32, terms: &str) -> NegotiationEvent {
    NegotiationEvent::Proposed(name(party), to, terms.to_owned())
}

fn proposal(number: u32, by: usize, terms: &str) -> ProposedTerms {
    ProposedTerms { number, by: name(by), terms: terms.to_owned() }
}

fn finished(actions: &[NegotiationAction]) -> Option<NegotiationOutcome> {
    match actions.last() {
        Some(NegotiationAction::Finish(outcome)) => Some(outcome.clone()),
        Some(
            NegotiationAction::Call(..)
            | NegotiationAction::Wait(_)
            | NegotiationAction::Cancel(_)
            | NegotiationAction::Tell(..),
        )
        | None => None,
    }
}

#[test]
fn all_parties_sign_same_terms() {
    let mut state = negotiation(3, 5);
    let begun = state.step(0, NegotiationEvent::Begun);
    assert_eq!(begun, [NegotiationAction::Wait(1_000), NegotiationAction::Call(name(0), None)]);
    let first = Some(proposal(1, 0, "half"));
    assert_eq!(
        state.step(1, proposed(0, 0, "half")),
        [NegotiationAction::Call(name(1), first.clone())]
    );
    assert_eq!(state.step(2, NegotiationEvent::Accepted(name(2), 1)), [], "it has not the turn");
    assert_eq!(
        state.step(2, NegotiationEvent::Accepted(name(1), 1)),
        [NegotiationAction::Call(name(2), first)]
    );
    let terms = proposal(2, 2, "a third");
    let second = Some(terms.clone());
    assert_eq!(
        state.step(3, proposed(2, 1, "a third")),
        [NegotiationAction::Call(name(0), second.clone())]
    );
    assert_eq!(
        state.step(4, NegotiationEvent::Accepted(name(0), 1)),
        [],
        "it means the old proposal"
    );
    assert_eq!(
        state.step(4, NegotiationEvent::Accepted(name(0), 2)),
        [NegotiationAction::Call(name(1), second.clone())]
    );
    let actions = state.step(5, NegotiationEvent::Accepted(name(1), 2));
    let signed = vec![name(0), name(1), name(2)];
    let agreed = NegotiationOutcome::Agreed { proposal: terms, signed };
    let mut expected: Vec<_> =
        (0..3).map(|it| NegotiationAction::Tell(name(it), agreed.clone())).collect();
    expected.push(NegotiationAction::Finish(agreed));
    assert_eq!(actions, expected);
    assert_eq!(state.step(6, NegotiationEvent::Departed(name(0), "late".to_owned())), []);
}

#[test]
fn deadline_cap_and_leaving_end_without_agreement() {
    let open = |max| {
        let mut state = negotiation(2, max);
        state.step(0, NegotiationEvent::Begun);
        state.step(1, proposed(0, 0, "half"));
        state
    };
    let failed = |why| {
        let last = Some(proposal(1, 0, "half"));
        Some(NegotiationOutcome::Failed { why, last, accepted: vec![name(0)] })
    };
    let late = open(5).step(1_000, NegotiationEvent::Accepted(name(1), 1));
    assert_eq!(finished(&late), failed(NoAgreementReason::Deadline));
    assert_eq!(late[0], NegotiationAction::Cancel(name(1)));
    let capped = open(1).step(2, proposed(1, 1, "all"));
    assert_eq!(finished(&capped), failed(NoAgreementReason::Cap(name(1))));
    let left = open(5).step(2, NegotiationEvent::Departed(name(1), "busy".to_owned()));
    assert_eq!(finished(&left), failed(NoAgreementReason::Departed(name(1), "busy".to_owned())));
    assert_eq!(
        left[0],
        NegotiationAction::Tell(name(0), finished(&left).unwrap()),
        "nobody is cancelled"
    );
}

#[test]
fn negotiations_with_wrong_rules_are_refused() {
    let told = |parties: &[&str], max_proposals| {
        let parties = parties.iter().map(|&it| it.to_owned()).collect();
        Negotiation::new(NegotiationRules { parties, max_proposals, timeout_ms: None })
            .map(drop)
            .unwrap_err()
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
        let mut todo = state.step(0, NegotiationEvent::Begun);
        let mut answers = answers.into_iter();
        for turn in 0..1_000 {
            for action in std::mem::take(&mut todo) {
                match action {
                    NegotiationAction::Call(who, on) => asked = Some((who, on.map_or(0, |it| it.number))),
                    NegotiationAction::Finish(end) => outcome = Some(end),
                    NegotiationAction::Wait(_) | NegotiationAction::Cancel(_) | NegotiationAction::Tell(..) => {}
                }
            }
            if outcome.is_some() {
                break;
            }
            // Strangers and old answers first, then the party that is asked.
            if let Some((who, accepts, to)) = answers.next() {
                let stray = asked.as_ref() != Some(&(name(who), to));
                if stray && who < parties {
                    let actions = state.step(1, NegotiationEvent::Accepted(name(who), to));
                    prop_assert_eq!(actions, vec![]);
                }
                let (who, to) = asked.clone().unwrap();
                let event = if accepts && to > 0 {
                    given.push((who.clone(), to));
                    NegotiationEvent::Accepted(who, to)
                } else {
                    given.push((who.clone(), to + 1));
                    NegotiationEvent::Proposed(who, to, format!("terms {turn}"))
                };
                todo = state.step(1, event);
            } else {
                todo = state.step(1_000, NegotiationEvent::Rang);
            }
        }
        match outcome.unwrap() {
            NegotiationOutcome::Agreed { proposal, signed } => {
                prop_assert!(proposal.number <= cap);
                for who in &signed {
                    prop_assert!(given.contains(&(who.clone(), proposal.number)), "{}", who);
                }
                prop_assert_eq!(signed.len(), parties);
            }
            NegotiationOutcome::Failed { accepted, .. } => prop_assert!(accepted.len() < parties),
        }
    }
}
