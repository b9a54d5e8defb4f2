//! Tests of the decisions of notifiers.

use super::*;
use a2a_hub_protocol::id::{QuestionId, TaskId};
use proptest::prelude::*;

const AFTER_MS: i64 = 30_000;

fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

fn rules(kinds: &[NotifyKind]) -> NotifyRules {
    let kinds = kinds.iter().copied().collect();
    NotifyRules { kinds, agents: BTreeSet::new(), after_ms: AFTER_MS }
}

fn all() -> NotifyRules {
    rules(&NotifyKind::ALL)
}

fn question(id: &str, at_ms: i64) -> AttentionItem {
    AttentionItem {
        id: AttentionId::Question(QuestionId::new(id)),
        kind: NotifyKind::Permission,
        agent: agent("codex"),
        path: vec![agent("lead"), agent("codex")],
        task: TaskId::new("t"),
        title: String::new(),
        text: String::new(),
        at_ms,
        is_expiring: false,
        is_set_aside: false,
    }
}

fn notice(number: u64, at_ms: i64) -> AttentionItem {
    let (id, kind) = (AttentionId::Notice(number), NotifyKind::Failed);
    AttentionItem { id, kind, path: Vec::new(), ..question("", at_ms) }
}

/// Ids of the items of a message; none for another step.
fn composed(step: &NotifyStep<'_>) -> Option<Vec<(NotifyKind, String)>> {
    let NotifyStep::Compose(due) = step else { return None };
    Some(due.iter().map(|due| (due.kind, due.item.key())).collect())
}

fn message() -> NotifyMessage {
    NotifyMessage::test("m1".to_owned(), "phone", "2026".to_owned())
}

/// Writes and delivers the message that is due now.
fn deliver(state: &mut NotifierState, items: &[AttentionItem], now_ms: i64) {
    let step = state.clone();
    let NotifyStep::Compose(due) = step.step(&all(), items, now_ms, None) else {
        panic!("no message is due")
    };
    state.begin_delivery(message(), &due, true, now_ms);
    state.delivered("2026".to_owned());
}

#[test]
fn item_is_due_after_its_time() {
    let state = NotifierState::default();
    let due = AFTER_MS + BUNDLE_MS;
    let items = [question("a", 0)];
    for (now, expected) in [
        (0, NotifyStep::Wait(Some(due))),
        (AFTER_MS, NotifyStep::Wait(Some(due))),
        (due - 1, NotifyStep::Wait(Some(due))),
    ] {
        assert_eq!(state.step(&all(), &items, now, None), expected, "{now}");
    }
    let expected = vec![(NotifyKind::Permission, "q:a".to_owned())];
    assert_eq!(composed(&state.step(&all(), &items, due, None)), Some(expected));
    assert_eq!(state.step(&all(), &[], due, None), NotifyStep::Wait(None), "answered meanwhile");
}

#[test]
fn items_within_moment_are_bundled() {
    let mut state = NotifierState::default();
    let items = [notice(7, 1_500), question("b", 1_900), question("a", 0), question("c", 2_500)];
    let step = state.step(&all(), &items, AFTER_MS + BUNDLE_MS, None);
    let expected = [
        (NotifyKind::Permission, "q:a"),
        (NotifyKind::Permission, "q:b"),
        (NotifyKind::Failed, "n:7"),
    ];
    let expected = expected.map(|(kind, key)| (kind, key.to_owned())).to_vec();
    assert_eq!(composed(&step), Some(expected));
    deliver(&mut state, &items, AFTER_MS + BUNDLE_MS);
    let next = AFTER_MS + 2_500 + BUNDLE_MS;
    assert_eq!(
        state.step(&all(), &items, AFTER_MS + BUNDLE_MS, None),
        NotifyStep::Wait(Some(next))
    );
}

#[test]
fn rules_select_kinds_and_agents() {
    let late = 100_000;
    let step = |rules: &NotifyRules, items: &[AttentionItem]| {
        composed(&NotifierState::default().step(rules, items, late, None)).map(|due| due.len())
    };
    let items = [question("a", 0), notice(1, 0)];
    assert_eq!(step(&all(), &items), Some(2));
    assert_eq!(step(&rules(&[NotifyKind::Failed]), &items), Some(1));
    assert_eq!(step(&rules(&[NotifyKind::Login]), &items), None);
    let of = |name: &str| NotifyRules { agents: [agent(name)].into(), ..all() };
    assert_eq!(step(&of("codex"), &items), Some(2));
    assert_eq!(step(&of("lead"), &items), Some(1), "it relays the question");
    assert_eq!(step(&of("vibe"), &items), None);
}

#[test]
fn quiet_hours_delay_until_their_end() {
    let mut state = NotifierState::default();
    let items = [question("a", 0)];
    let end = 8 * 60 * 60 * 1000;
    assert_eq!(state.step(&all(), &items, 60_000, Some(end)), NotifyStep::Wait(Some(end)));
    assert!(composed(&state.step(&all(), &items, end, None)).is_some(), "still open");
    assert_eq!(state.step(&all(), &[], end, None), NotifyStep::Wait(None));
    let NotifyStep::Compose(due) = NotifierState::default().step(&all(), &items, end, None).clone()
    else {
        panic!("it is due")
    };
    state.begin_delivery(message(), &due, true, end);
    let waits = NotifyStep::Wait(Some(2 * end));
    assert_eq!(state.step(&all(), &items, end, Some(2 * end)), waits, "a retry is quiet as well");
}

#[test]
fn expiring_question_is_sent_once_more() {
    let mut state = NotifierState::default();
    let open = [question("a", 0)];
    deliver(&mut state, &open, 100_000);
    assert_eq!(state.step(&all(), &open, 200_000, None), NotifyStep::Wait(None));
    let near = [AttentionItem { is_expiring: true, ..question("a", 0) }];
    let expected = vec![(NotifyKind::Expiring, "q:a".to_owned())];
    assert_eq!(composed(&state.step(&all(), &near, 200_000, None)), Some(expected.clone()));
    let unwanted = rules(&[NotifyKind::Permission]);
    assert_eq!(state.step(&unwanted, &near, 200_000, None), NotifyStep::Wait(None));
    deliver(&mut state, &near, 200_000);
    assert_eq!(state.step(&all(), &near, 300_000, None), NotifyStep::Wait(None));
    // The warning takes the place of the message about the question itself.
    let mut new = NotifierState::default();
    assert_eq!(composed(&new.step(&all(), &near, 200_000, None)), Some(expected));
    deliver(&mut new, &near, 200_000);
    assert_eq!(new.step(&all(), &near, 300_000, None), NotifyStep::Wait(None));
}

#[test]
fn set_aside_question_is_due_again() {
    let mut state = NotifierState::default();
    let open = [question("a", 0)];
    deliver(&mut state, &open, 100_000);
    assert!(!state.reconcile(&open));
    let aside = [AttentionItem { is_set_aside: true, ..question("a", 0) }];
    assert!(state.reconcile(&aside) && !state.reconcile(&aside));
    assert_eq!(state.step(&all(), &aside, 200_000, None), NotifyStep::Wait(None));
    assert!(composed(&state.step(&all(), &open, 300_000, None)).is_some(), "its time is over");
}

#[test]
fn new_notifier_skips_old_notices() {
    let items = [question("a", 0), notice(1, 0)];
    let state = NotifierState::new(&items);
    let due = composed(&state.step(&all(), &items, 100_000, None)).unwrap();
    assert_eq!(due, [(NotifyKind::Permission, "q:a".to_owned())]);
    let later = [notice(1, 0), notice(2, 0)];
    let due = composed(&state.step(&all(), &later, 100_000, None)).unwrap();
    assert_eq!(due, [(NotifyKind::Failed, "n:2".to_owned())]);
}

/// A kill between any two steps keeps both promises: the stored state is all that is left.
#[test]
fn kill_repeats_repeatable_messages_only() {
    let items = [question("a", 0)];
    for (is_repeatable, expected) in [(true, NotifyStep::Deliver), (false, NotifyStep::Wait(None))]
    {
        let mut state = NotifierState::default();
        let before = state.clone();
        let NotifyStep::Compose(due) = before.step(&all(), &items, 50_000, None) else {
            panic!("it is due")
        };
        state.begin_delivery(message(), &due, is_repeatable, 50_000);
        let stored = serde_json::to_string(&state).unwrap();
        let state: NotifierState = serde_json::from_str(&stored).unwrap();
        assert_eq!(state.step(&all(), &items, 50_000, None), expected);
        let id = state.pending.as_ref().map(|pending| pending.message.id.as_str());
        assert_eq!(id, is_repeatable.then_some("m1"));
        let answered = if is_repeatable { NotifyStep::Drop } else { NotifyStep::Wait(None) };
        assert_eq!(state.step(&all(), &[], 50_000, None), answered);
    }
}

#[test]
fn failed_delivery_waits_and_is_given_up() {
    let items = [question("a", 0), question("b", 0)];
    let mut state = NotifierState::default();
    let before = state.clone();
    let NotifyStep::Compose(due) = before.step(&all(), &items, 50_000, None) else {
        panic!("they are due")
    };
    state.begin_delivery(message(), &due, true, 50_000);
    state.failed("no route".to_owned(), "1".to_owned(), Some(60_000));
    assert_eq!(state.step(&all(), &items, 50_000, None), NotifyStep::Wait(Some(60_000)));
    assert_eq!(state.step(&all(), &items[1..], 60_000, None), NotifyStep::Deliver);
    let clock_set_back = state.step(&all(), &items, -100_000_000, None);
    assert_eq!(clock_set_back, NotifyStep::Wait(Some(-100_000_000 + MAX_PAUSE_MS)));
    state.failed("410".to_owned(), "2".to_owned(), None);
    let failure = NotifierFailure { since: "1".to_owned(), error: "410".to_owned(), lost: 1 };
    assert_eq!((&state.pending, &state.failure), (&None, &Some(failure)));
    assert_eq!(state.step(&all(), &items, 70_000, None), NotifyStep::Wait(None));
    state.delivered("3".to_owned());
    assert_eq!((state.failure, state.sent), (None, 1));
}

#[test]
fn answered_items_are_forgotten_within_limit() {
    let mut state = NotifierState::default();
    let open = question("open", 0);
    for round in 0..5 {
        let mut items: Vec<_> = (0..200).map(|n| question(&format!("{round}-{n}"), 0)).collect();
        items.push(open.clone());
        deliver(&mut state, &items, 100_000);
        state.reconcile(&items[200..]);
    }
    assert_eq!(state.handled.len(), REMEMBERED + 1);
    assert_eq!(state.step(&all(), &[open], 100_000, None), NotifyStep::Wait(None));
}

/// Unknown members and a state of another version are no reason to stop.
#[test]
fn stored_state_is_read_leniently() {
    let state: NotifierState = serde_json::from_str(r#"{"later":1,"handled":["q:a"]}"#).unwrap();
    assert_eq!(state.handled, ["q:a"]);
}

proptest! {
    /// No item is in two messages, and every item that stays open is in one, after any events.
    #[test]
    fn open_items_are_sent_exactly_once(
        asked in proptest::collection::vec((0_i64..60_000, 1_i64..120_000), 1..20),
        looks in proptest::collection::vec(1_i64..5_000, 1..60),
    ) {
        let (mut state, mut now, mut sent) = (NotifierState::default(), 0, Vec::new());
        let end = asked.iter().map(|(at, _)| at).max().unwrap() + AFTER_MS + BUNDLE_MS;
        let looks = looks.into_iter().chain([200_000, 200_000]);
        for pause in looks {
            now += pause;
            let items: Vec<_> = asked.iter().enumerate()
                .filter(|(_, (at, open_for))| *at <= now && (*open_for > 60_000 || at + open_for > now))
                .map(|(n, (at, _))| question(&n.to_string(), *at))
                .collect();
            state.reconcile(&items);
            let current = state.clone();
            if let NotifyStep::Compose(due) = current.step(&all(), &items, now, None) {
                prop_assert!(!due.is_empty());
                for due in &due {
                    prop_assert!(now >= due.item.at_ms + AFTER_MS);
                    sent.push(due.item.key());
                }
                state.begin_delivery(message(), &due, true, now);
                state.delivered(String::new());
            }
        }
        prop_assert!(now > end);
        let mut unique = sent.clone();
        unique.sort();
        unique.dedup();
        prop_assert_eq!(unique.len(), sent.len());
        for (n, (_, open_for)) in asked.iter().enumerate() {
            let is_sent = sent.contains(&format!("q:{n}"));
            prop_assert!(*open_for <= 60_000 || is_sent);
        }
    }
}
