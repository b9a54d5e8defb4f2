//! Elections: leaders by score, health and lease, and properties over random events.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use a2a_hub_coordination::election::{
    Election, ElectionAction, ElectionEvent, ElectionRules, Fence,
};
use proptest::prelude::*;

fn election(members: usize) -> Election {
    let members = (0..members).map(name).collect();
    let rules = ElectionRules { members, timeout_ms: 1_000, lease_ms: 5_000, last_term: 7 };
    Election::new(rules).unwrap()
}

fn name(member: usize) -> String {
    format!("m{member}")
}

fn report(member: usize, score: f64) -> ElectionEvent {
    ElectionEvent::Reported(name(member), score, true)
}

#[test]
fn healthy_member_with_best_score_leads() {
    let table = [
        ([Some(0.5), Some(0.9), Some(0.7)], "m1"),
        ([Some(0.5), None, Some(0.7)], "m2"),
        ([Some(0.7), Some(0.7), Some(0.7)], "m0"),
        ([Some(f64::NAN), Some(-1.0), Some(0.1)], "m2"),
    ];
    for (scores, leader) in table {
        let mut state = election(3);
        state.step(0, ElectionEvent::Begun);
        for (member, score) in scores.iter().enumerate() {
            state.step(
                1,
                ElectionEvent::Reported(name(member), score.unwrap_or(1.0), score.is_some()),
            );
        }
        assert_eq!(state.leader(), Some((leader, 8)), "{scores:?}");
    }
}

#[test]
fn term_of_silent_leader_is_refused() {
    let mut state = election(2);
    state.step(0, ElectionEvent::Begun);
    state.step(1, report(0, 0.9));
    let elected = state.step(1_000, ElectionEvent::Rang);
    assert_eq!(elected, [ElectionAction::Elect(name(0), 8), ElectionAction::Wait(6_000)]);
    assert_eq!(state.step(1_500, report(1, 1.0)), [], "a better one does not replace it");
    assert_eq!(
        state.step(2_000, ElectionEvent::Acted(name(0), 8)),
        [ElectionAction::Admit(name(0), 8)]
    );
    assert_eq!(state.step(3_000, report(0, 0.9)), [ElectionAction::Wait(8_000)]);
    // The act is late: the lease ends before it counts.
    let late = state.step(8_000, ElectionEvent::Acted(name(0), 8));
    assert_eq!(late[0], ElectionAction::Depose(name(0), 8));
    assert_eq!(late.last(), Some(&ElectionAction::Refuse(name(0), 8, 8)));
    state.step(8_001, report(1, 0.2));
    state.step(9_000, ElectionEvent::Rang);
    assert_eq!(state.leader(), Some(("m1", 9)));
    assert_eq!(
        state.step(9_001, ElectionEvent::Acted(name(0), 8)),
        [ElectionAction::Refuse(name(0), 8, 9)]
    );
    assert_eq!(
        state.step(9_001, ElectionEvent::Acted(name(0), 9)),
        [ElectionAction::Refuse(name(0), 9, 9)]
    );
    assert_eq!(
        state.step(9_001, ElectionEvent::Acted(name(1), 10)),
        [ElectionAction::Refuse(name(1), 10, 9)]
    );
}

#[test]
fn failed_leader_starts_next_term() {
    let mut state = election(2);
    state.step(0, ElectionEvent::Begun);
    state.step(1, report(0, 0.9));
    state.step(1, report(1, 0.5));
    let failed = state.step(2, ElectionEvent::Failed(name(0)));
    assert_eq!(failed[0], ElectionAction::Depose(name(0), 8));
    assert_eq!(state.leader(), None);
    state.step(3, report(1, 0.5));
    assert_eq!(state.leader(), Some(("m1", 9)));
    state.step(4, ElectionEvent::Failed(name(1)));
    state.step(5, ElectionEvent::Failed(name(0)));
    state.step(5_000, ElectionEvent::Rang);
    assert_eq!(state.leader(), None, "nobody is fit");
    state.step(5_001, report(0, 0.1));
    assert_eq!(state.leader(), Some(("m0", 10)), "a later report ends the wait");
}

#[test]
fn ranking_lists_fit_members_by_score() {
    let mut state = election(4);
    assert_eq!(state.ranking(), []);
    state.step(0, ElectionEvent::Begun);
    for (who, score) in [(3, 0.5), (0, 0.5), (1, 0.9)] {
        state.step(1, report(who, score));
    }
    state.step(1, ElectionEvent::Failed(name(2)));
    assert_eq!(state.ranking(), [("m1", 0.9), ("m0", 0.5), ("m3", 0.5)]);
    assert_eq!(state.leader(), Some(("m1", 8)));
    state.step(2, ElectionEvent::Failed(name(1)));
    assert_eq!(state.ranking(), [], "each election has its own");
}

#[test]
fn fence_refuses_lower_terms() {
    let mut fence = Fence::default();
    assert_eq!([3, 3, 2, 5, 4].map(|term| fence.admit(term)), [true, true, false, true, false]);
}

fn events() -> impl Strategy<Value = Vec<(u64, ElectionEvent)>> {
    let member = || (0..5_usize).prop_map(name);
    let event = prop_oneof![
        4 => (member(), 0.0..1.0_f64, any::<bool>())
            .prop_map(|(who, score, fit)| ElectionEvent::Reported(who, score, fit)),
        1 => member().prop_map(ElectionEvent::Failed),
        3 => (member(), 6..20_u64).prop_map(|(who, term)| ElectionEvent::Acted(who, term)),
        2 => Just(ElectionEvent::Rang),
    ];
    prop::collection::vec((0..2_000_u64, event), 1..80)
}

proptest! {
    #[test]
    fn only_leader_of_newest_term_acts(events in events()) {
        let mut state = election(4);
        let (mut leaders, mut fence, mut now) = (BTreeMap::new(), Fence::default(), 0);
        let mut all = state.step(0, ElectionEvent::Begun);
        for (ms, event) in events {
            now += ms;
            all.extend(state.step(now, event));
        }
        for action in all {
            match action {
                ElectionAction::Elect(who, term) => {
                    prop_assert_eq!(leaders.insert(term, who), None, "one leader a term");
                }
                ElectionAction::Admit(who, term) => {
                    prop_assert_eq!(leaders.get(&term), Some(&who));
                    prop_assert!(fence.admit(term), "an old term acts again");
                    prop_assert_eq!(leaders.keys().last(), Some(&term));
                }
                ElectionAction::Call(_) | ElectionAction::Wait(_) | ElectionAction::Depose(..) | ElectionAction::Refuse(..) => {}
            }
        }
    }

    #[test]
    fn order_of_reports_decides_nothing(
        reports in prop::collection::vec(prop::option::of(0.0..1.0_f64), 5)
            .prop_map(|all| all.into_iter().enumerate().collect::<Vec<_>>())
            .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
    ) {
        let leader = |reports: Vec<(usize, Option<f64>)>| {
            let mut state = election(5);
            state.step(0, ElectionEvent::Begun);
            for (who, score) in reports {
                let (score, fit) = (score.unwrap_or_default(), score.is_some());
                state.step(1, ElectionEvent::Reported(name(who), score, fit));
            }
            state.leader().map(|(who, term)| (who.to_owned(), term))
        };
        prop_assert_eq!(leader(reports.0), leader(reports.1));
    }
}
