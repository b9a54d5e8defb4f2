//! Blackboards: claims, patterns and ends, and properties over random wishes.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_coordination::blackboard::{
    BlackboardRun, BoardAction, BoardEnd, BoardEvent, BoardRules, ChangeRefusal, Control,
    ItemChange, ItemState, Pattern, Wish,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn kind(kind: &str) -> Pattern {
    Pattern { kinds: vec![kind.to_owned()], authors: Vec::new() }
}

fn board(agents: &[(&str, Pattern)], control: Control) -> BlackboardRun {
    let agents = agents.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect();
    let goal = Some(kind("report"));
    BlackboardRun::new(BoardRules { agents, control, goal, lease_ms: 1_000, max_wakes: 9 }).unwrap()
}

fn wished(who: &str, wish: Wish) -> BoardEvent {
    BoardEvent::Wished(who.to_owned(), wish)
}

fn post(kind: &str, needs: &[usize]) -> Wish {
    Wish::Post(kind.to_owned(), json!("todo"), needs.to_vec())
}

fn wake(who: &str, item: usize) -> BoardAction {
    BoardAction::Wake(who.to_owned(), item)
}

fn applied(who: &str, item: usize, version: u64) -> BoardAction {
    BoardAction::Applied(who.to_owned(), item, version)
}

fn refused(who: &str, why: ChangeRefusal) -> BoardAction {
    BoardAction::Refused(who.to_owned(), why)
}

fn idle(who: &str) -> BoardEvent {
    BoardEvent::Idle(who.to_owned())
}

#[test]
fn items_reach_goal_in_order_of_needs() {
    let mut board = board(&[("a", kind("fact")), ("b", kind("report"))], Control::All);
    assert_eq!(board.step(0, wished("client", post("fact", &[]))), [applied("client", 0, 1)]);
    board.step(0, wished("client", post("report", &[0])));
    let circle = board.step(0, wished("client", post("report", &[2])));
    assert_eq!(circle, [refused("client", ChangeRefusal::Unknown)]);
    assert_eq!(board.step(1, BoardEvent::Begun), [wake("a", 0)]);
    assert_eq!(
        board.step(2, wished("client", post("x", &[]))),
        [refused("client", ChangeRefusal::Stranger)]
    );
    assert_eq!(
        board.step(2, wished("b", Wish::Claim(1, 1))),
        [refused("b", ChangeRefusal::NotReady)]
    );
    let claimed = board.step(3, wished("a", Wish::Claim(0, 1)));
    assert_eq!(claimed, [BoardAction::Wait(1_003), applied("a", 0, 2)]);
    let done = board.step(4, wished("a", Wish::Finish(0, 2, json!("42"))));
    assert_eq!(done, [applied("a", 0, 3), wake("b", 1)]);
    assert_eq!(board.items()[0].body, json!("42"));
    board.step(5, wished("b", Wish::Claim(1, 1)));
    let end = board.step(6, wished("b", Wish::Finish(1, 2, Value::Null)));
    let cancel = ["a", "b"].map(|who| BoardAction::Cancel(who.to_owned()));
    assert_eq!(end[1..3], cancel);
    assert_eq!(end[3], BoardAction::Finish(BoardEnd::Goal(1)));
    assert_eq!(board.step(7, wished("a", post("fact", &[]))), []);
}

#[test]
fn expired_lease_frees_item_and_refuses_holder() {
    let mut board = board(&[("a", Pattern::default()), ("b", Pattern::default())], Control::All);
    board.step(0, wished("client", post("fact", &[])));
    assert_eq!(board.step(0, BoardEvent::Begun), [wake("a", 0), wake("b", 0)]);
    board.step(1, wished("a", Wish::Claim(0, 1)));
    assert_eq!(
        board.step(2, wished("b", Wish::Claim(0, 2))),
        [refused("b", ChangeRefusal::ClaimedBy("a".into()))]
    );
    board.step(3, idle("b"));
    let renewed = board.step(500, wished("a", Wish::Claim(0, 2)));
    assert_eq!(renewed, [BoardAction::Wait(1_500), applied("a", 0, 3)]);
    assert_eq!(board.step(1_500, BoardEvent::Rang), [wake("b", 0)]);
    let late = board.step(1_501, wished("a", Wish::Finish(0, 3, json!("old"))));
    assert_eq!(late, [refused("a", ChangeRefusal::Version(4))]);
    assert_eq!(
        board.step(1_501, wished("a", Wish::Release(0, 4))),
        [refused("a", ChangeRefusal::NotClaimed)]
    );
    board.step(1_502, wished("b", Wish::Claim(0, 4)));
    board.step(1_503, wished("b", Wish::Write(0, 5, json!("new"))));
    assert_eq!(
        board.step(1_504, wished("b", Wish::Write(0, 5, json!("old")))),
        [refused("b", ChangeRefusal::Version(6))]
    );
    let changes: Vec<_> = board.items()[0].history.iter().map(|entry| entry.change).collect();
    use ItemChange::*;
    assert_eq!(changes, [Posted, Claimed, Claimed, Expired, Claimed, Written]);
}

#[test]
fn control_rule_chooses_next_agent() {
    let all = || [("a", Pattern::default()), ("b", Pattern::default())];
    let woken = |control| {
        let mut board = board(&all(), control);
        board.step(0, wished("client", post("fact", &[])));
        let mut woken = board.step(0, BoardEvent::Begun);
        // The first agent passes, and posts another item.
        woken.extend(board.step(1, wished("a", post("fact", &[]))));
        woken.extend(board.step(2, idle("a")));
        woken.retain(|action| matches!(action, BoardAction::Wake(..)));
        woken
    };
    assert_eq!(woken(Control::All), [wake("a", 0), wake("b", 0), wake("a", 1)]);
    assert_eq!(woken(Control::Listed), [wake("a", 0), wake("b", 1), wake("a", 1)][..2]);
    assert_eq!(woken(Control::LongestIdle)[..2], [wake("a", 0), wake("b", 1)]);
}

#[test]
fn quiet_board_ends_without_goal() {
    let mut board = board(&[("a", Pattern::default()), ("b", kind("x"))], Control::Listed);
    board.step(0, wished("client", post("fact", &[])));
    assert_eq!(board.step(0, BoardEvent::Begun), [wake("a", 0)]);
    board.step(1, wished("a", Wish::Claim(0, 1)));
    assert_eq!(board.step(2, idle("a")), [], "its claim runs");
    assert_eq!(board.step(1_001, BoardEvent::Rang), [wake("a", 0)]);
    assert_eq!(board.step(1_002, idle("a")), [BoardAction::Finish(BoardEnd::Quiescent)]);
    // An item that goes round is offered a limited number of times.
    let mut board = self::board(&[("a", Pattern::default())], Control::All);
    board.step(0, wished("client", post("fact", &[])));
    let mut actions = board.step(0, BoardEvent::Begun);
    for _ in 0..9 {
        let version = board.items()[0].version;
        board.step(1, wished("a", Wish::Claim(0, version)));
        board.step(1, wished("a", Wish::Release(0, version + 1)));
        actions.extend(board.step(1, idle("a")));
    }
    assert_eq!(actions.iter().filter(|it| **it == wake("a", 0)).count(), 9);
    assert_eq!(actions.last(), Some(&BoardAction::Finish(BoardEnd::Quiescent)));
}

#[test]
fn leaving_agent_releases_its_items() {
    let mut board = board(&[("a", Pattern::default()), ("b", Pattern::default())], Control::Listed);
    board.step(0, wished("client", post("fact", &[])));
    board.step(0, BoardEvent::Begun);
    board.step(1, wished("a", Wish::Claim(0, 1)));
    assert_eq!(board.step(2, BoardEvent::Departed("a".to_owned())), [wake("b", 0)]);
    assert_eq!(
        board.step(3, wished("a", Wish::Claim(0, 3))),
        [refused("a", ChangeRefusal::Stranger)]
    );
    let large = json!("x".repeat(70_000));
    assert_eq!(
        board.step(3, wished("b", Wish::Write(0, 3, large))),
        [refused("b", ChangeRefusal::Full)]
    );
    let why = BlackboardRun::new(BoardRules {
        agents: Vec::new(),
        control: Control::All,
        goal: None,
        lease_ms: 1,
        max_wakes: 1,
    });
    assert!(why.is_err());
}

/// Random wish: the item, a shift of its version, and the kind of wish.
type Sketch = (u64, usize, usize, u64, u8);

proptest! {
    #[test]
    fn item_has_one_holder_and_versions_rise(
        events in prop::collection::vec(
            (0..700_u64, 0..3_usize, 0..3_usize, 0..2_u64, 0..8_u8), 1..120),
        control in prop_oneof![Just(Control::All), Just(Control::Listed), Just(Control::LongestIdle)],
    ) {
        const AGENTS: [&str; 3] = ["a", "b", "c"];
        let mut board = board(&AGENTS.map(|name| (name, Pattern::default())), control);
        for needs in [vec![], vec![0], vec![]] {
            board.step(0, wished("client", post("fact", &needs)));
        }
        board.step(0, BoardEvent::Begun);
        let mut now = 0;
        // Holder and end of its lease of each item, by the answers of the board alone.
        let mut held: [Option<(&str, u64)>; 3] = [None; 3];
        let mut versions = [1; 3];
        for (ms, agent, item, old, what) in events as Vec<Sketch> {
            now += ms;
            let agent = AGENTS[agent];
            let version = board.items()[item].version.saturating_sub(old);
            let wish = match what {
                0..=2 => Wish::Claim(item, version),
                3 => Wish::Release(item, version),
                4 => Wish::Write(item, version, json!(now)),
                5 => Wish::Finish(item, version, json!(now)),
                _ => {
                    let event = if what == 6 { idle(agent) } else { BoardEvent::Rang };
                    board.step(now, event);
                    continue;
                }
            };
            let actions = board.step(now, wished(agent, wish.clone()));
            let before = held[item].filter(|(_, until)| now < *until);
            held[item] = before;
            if let Some(BoardAction::Applied(_, _, new)) = actions.iter().find(|it| matches!(it, BoardAction::Applied(..))) {
                prop_assert!(before.is_none_or(|(holder, _)| holder == agent), "{before:?}, {wish:?}");
                prop_assert!(*new > versions[item]);
                versions[item] = *new;
                match wish {
                    Wish::Claim(..) => held[item] = Some((agent, now + 1_000)),
                    Wish::Release(..) | Wish::Finish(..) => {
                        prop_assert!(before.is_some(), "only its holder ends an item");
                        held[item] = None;
                    }
                    Wish::Post(..) | Wish::Write(..) => {}
                }
            }
            for (item, held) in board.items().iter().zip(&held) {
                if let ItemState::Claimed(by, until) = &item.state {
                    prop_assert_eq!(Some((by.as_str(), *until)), *held);
                }
            }
        }
    }
}
