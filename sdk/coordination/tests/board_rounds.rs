//! Blackboards in rounds: contributions, leases and ends, and properties over random answers.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use a2a_hub_coordination::blackboard::{
    ChangeRefusal, Item, ItemChange, ItemState,
    rounds::{
        Contribution, ContributionRefusal, NewItem, RefusedContribution, RoundsAction, RoundsEnd,
        RoundsEvent, RoundsOutcome, RoundsRules, RoundsState, TurnOrder,
    },
};
use proptest::prelude::*;

const AGENTS: [&str; 3] = ["a", "b", "c"];

fn rules(control: TurnOrder) -> RoundsRules {
    RoundsRules {
        agents: AGENTS.map(str::to_owned).to_vec(),
        control,
        lease: 1,
        max_rounds: 9,
        max_items: 5,
        max_bytes: 1_000,
        timeout_ms: None,
    }
}

fn item(id: &str, needs: &[&str]) -> NewItem {
    let needs = needs.iter().map(|it| (*it).to_owned()).collect();
    NewItem { id: id.to_owned(), kind: "task".to_owned(), text: format!("do {id}"), needs }
}

fn add(id: &str, needs: &[&str]) -> Contribution {
    Contribution::Add(item(id, needs))
}

fn claim(id: &str, version: u64) -> Contribution {
    Contribution::Claim(id.to_owned(), version)
}

fn finish(id: &str, version: u64) -> Contribution {
    Contribution::Finish(id.to_owned(), version, format!("{id} is done"))
}

/// Board with the calls that are open.
struct Run {
    state: RoundsState,
    round: u32,
    /// Called agents, each with what was refused of its last answer.
    calls: Vec<(String, Vec<RefusedContribution>)>,
    outcome: Option<RoundsOutcome>,
}

impl Run {
    fn begin(rules: RoundsRules, items: &[NewItem]) -> Self {
        let mut state = RoundsState::new(rules).unwrap();
        for item in items {
            state.post("client", item.clone()).unwrap();
        }
        let mut run = Self { state, round: 0, calls: Vec::new(), outcome: None };
        run.step(RoundsEvent::Begun);
        run
    }

    fn step(&mut self, event: RoundsEvent) {
        for action in self.state.step(0, event) {
            match action {
                RoundsAction::Call(who, round, refusals) => {
                    self.round = round;
                    self.calls.push((who, refusals));
                }
                RoundsAction::Finish(outcome) => self.outcome = Some(outcome),
                RoundsAction::Wait(_) | RoundsAction::Cancel(..) => {
                    panic!("the board has no time limit")
                }
            }
        }
    }

    fn give(&mut self, who: &str, list: Vec<Contribution>) {
        let at = self.calls.iter().position(|(name, _)| name == who);
        self.calls.remove(at.unwrap_or_else(|| panic!("{who} is not called")));
        self.step(RoundsEvent::Contributed(who.to_owned(), self.round, list));
    }

    fn fail(&mut self, who: &str) {
        self.calls.retain(|(name, _)| name != who);
        self.step(RoundsEvent::Failed(who.to_owned(), self.round, "no tokens".to_owned()));
    }

    /// Gives nothing for all other agents of the round.
    fn rest(&mut self) {
        let round = self.round;
        while self.round == round && self.outcome.is_none() {
            let who = self.calls[0].0.clone();
            self.give(&who, Vec::new());
        }
    }

    fn called(&self) -> Vec<&str> {
        self.calls.iter().map(|(who, _)| who.as_str()).collect()
    }

    fn refusals(&self, who: &str) -> Vec<ContributionRefusal> {
        let call = self.calls.iter().find(|(name, _)| name == who).unwrap();
        call.1.iter().map(|refusal| refusal.why.clone()).collect()
    }

    fn item(&self, id: &str) -> &Item {
        self.state.items().find(|(name, _)| *name == id).unwrap().1
    }

    fn end(&self) -> Option<RoundsEnd> {
        self.outcome.as_ref().map(|outcome| outcome.end)
    }
}

#[test]
fn agents_finish_all_items_of_board() {
    let mut run = Run::begin(rules(TurnOrder::All), &[item("plan", &[]), item("build", &["plan"])]);
    assert_eq!(run.called(), AGENTS);
    run.give("c", vec![claim("build", 1)]);
    run.give("a", vec![claim("plan", 1), finish("plan", 1), add("test", &["build"])]);
    assert_eq!(run.item("plan").version, 1, "answers count when all are in");
    run.give("b", vec![claim("plan", 1)]);
    // The first of round 1 is `a`: the others come after it.
    assert_eq!(run.item("plan").body["result"], "plan is done");
    assert_eq!(run.refusals("b"), [ContributionRefusal::Rule(ChangeRefusal::Done)]);
    assert_eq!(run.refusals("c"), [], "what it needs was done before it");
    assert_eq!(run.item("build").state, ItemState::Claimed("c".to_owned(), 3));
    run.give("c", vec![finish("build", 2)]);
    run.give("b", vec![claim("test", 1)]);
    run.give("a", Vec::new());
    assert_eq!(
        run.refusals("b"),
        [ContributionRefusal::Rule(ChangeRefusal::NotReady)],
        "b is first in round 2"
    );
    run.give("b", vec![claim("test", 1), finish("test", 1)]);
    run.rest();
    let outcome = run.outcome.as_ref().unwrap();
    assert_eq!((outcome.end, outcome.rounds, outcome.refused.len()), (RoundsEnd::Goal, 3, 2));
    let changes: Vec<_> = run.item("build").history.iter().map(|it| (it.at, it.change)).collect();
    assert_eq!(changes, [(0, ItemChange::Posted), (1, ItemChange::Claimed), (2, ItemChange::Done)]);
}

#[test]
fn stale_or_held_item_is_refused() {
    let mut run = Run::begin(rules(TurnOrder::All), &[item("x", &[])]);
    run.give("a", vec![claim("x", 1)]);
    run.give("b", vec![claim("x", 1), add("x", &[]), add("y y", &[]), add("z", &["w"])]);
    run.rest();
    let missing = ContributionRefusal::Missing("w".to_owned());
    let held = ContributionRefusal::Rule(ChangeRefusal::ClaimedBy("a".to_owned()));
    assert_eq!(
        run.refusals("b"),
        [held, ContributionRefusal::Taken, ContributionRefusal::Name, missing]
    );
    run.give("a", vec![finish("x", 1), Contribution::Release("x".to_owned(), 2)]);
    run.give("b", vec![add("n", &["n"]), claim("nowhere", 1)]);
    run.rest();
    assert_eq!(
        run.refusals("a"),
        [ContributionRefusal::Rule(ChangeRefusal::Version(2))],
        "it names an old version"
    );
    assert_eq!(
        run.refusals("b"),
        [ContributionRefusal::Needs, ContributionRefusal::Missing("nowhere".to_owned())]
    );
    assert_eq!(run.item("x").state, ItemState::Open);
    let many = (0..40).map(|_| claim("nowhere", 1)).collect();
    run.give("a", many);
    run.rest();
    let refusals = run.refusals("a");
    assert_eq!((refusals.len(), refusals.last()), (33, Some(&ContributionRefusal::LimitReached)));
}

#[test]
fn turns_show_changes_of_those_before() {
    let mut run = Run::begin(rules(TurnOrder::Turns), &[]);
    assert_eq!(run.called(), ["a"]);
    run.give("a", vec![add("x", &[])]);
    assert_eq!((run.called(), run.round), (vec!["b"], 1));
    run.give("b", vec![claim("x", 1)]);
    run.give("c", Vec::new());
    assert_eq!((run.called(), run.round), (vec!["a"], 2));
    run.give("a", Vec::new());
    run.give("b", vec![finish("x", 2)]);
    assert_eq!(run.end(), Some(RoundsEnd::Goal), "c is not asked any more");
}

#[test]
fn lease_frees_item_of_silent_agent() {
    let mut run = Run::begin(rules(TurnOrder::All), &[item("x", &[])]);
    run.give("a", vec![claim("x", 1)]);
    run.rest();
    assert_eq!(run.round, 2);
    run.rest();
    // Nobody contributed, and `a` held the item.
    assert_eq!((run.end(), run.round), (None, 3));
    assert_eq!((&run.item("x").state, run.item("x").version), (&ItemState::Open, 3));
    run.give("a", vec![finish("x", 2)]);
    run.give("b", vec![claim("x", 3), finish("x", 3)]);
    run.rest();
    assert_eq!(run.end(), Some(RoundsEnd::Goal));
    let by: Vec<_> = run.item("x").history.iter().map(|it| it.by.as_str()).collect();
    assert_eq!(by, ["client", "a", "a", "b", "b"]);
}

#[test]
fn failing_agent_leaves_after_second_failure() {
    let mut run = Run::begin(RoundsRules { lease: 5, ..rules(TurnOrder::All) }, &[item("x", &[])]);
    run.give("a", vec![claim("x", 1)]);
    run.rest();
    run.fail("a");
    run.rest();
    assert_eq!(run.called(), AGENTS, "one failure is no end");
    assert_eq!(run.item("x").state, ItemState::Claimed("a".to_owned(), 7));
    run.fail("a");
    run.give("b", vec![add("y", &[])]);
    run.rest();
    assert_eq!(run.called(), ["b", "c"]);
    assert_eq!(run.item("x").state, ItemState::Open);
    run.rest();
    assert_eq!(run.end(), Some(RoundsEnd::Quiescent));
    assert_eq!(run.outcome.unwrap().departed, [("a".to_owned(), "no tokens".to_owned())]);
}

#[test]
fn board_ends_at_its_limits() {
    let mut run = Run::begin(RoundsRules { max_rounds: 2, ..rules(TurnOrder::All) }, &[]);
    for _ in 0..2 {
        for agent in AGENTS {
            let ids = ["q", "w"].map(|id| add(&format!("{id}{agent}{}", run.round), &[]));
            run.give(agent, ids.to_vec());
        }
    }
    assert_eq!((run.end(), run.state.items().count()), (Some(RoundsEnd::Capped), 5));
    let full = ContributionRefusal::Rule(ChangeRefusal::Full);
    assert!(run.outcome.unwrap().refused.iter().all(|(_, _, it)| it.why == full));
    let mut run = Run::begin(rules(TurnOrder::Turns), &[]);
    for who in ["a", "b", "c", "a", "b", "c"] {
        run.fail(who);
    }
    assert_eq!(run.end(), Some(RoundsEnd::NoAgents));
    let mut state =
        RoundsState::new(RoundsRules { max_bytes: 10, ..rules(TurnOrder::All) }).unwrap();
    assert_eq!(
        state.post("client", item("long", &[])),
        Err(ContributionRefusal::Rule(ChangeRefusal::Full))
    );
    for agents in [vec![], vec!["a".to_owned(), "a".to_owned()]] {
        assert!(RoundsState::new(RoundsRules { agents, ..rules(TurnOrder::All) }).is_err());
    }
}

#[test]
fn greedy_agent_leaves_half_of_board() {
    let limits = RoundsRules { max_items: 10, max_bytes: 1_000, ..rules(TurnOrder::All) };
    let mut run = Run::begin(limits.clone(), &[item("x", &[])]);
    run.give("a", (0..9).map(|n| add(&format!("a{n}"), &[])).collect());
    run.give("b", (0..4).map(|n| add(&format!("b{n}"), &[])).collect());
    run.rest();
    assert_eq!(run.refusals("a"), vec![ContributionRefusal::ShareReached; 4]);
    assert_eq!(run.refusals("b"), []);
    assert_eq!(run.state.items().count(), 10, "the item of the file is in nobody's share");

    // Results are in the share of the agent that finishes, and its refused one keeps the item.
    let mut run = Run::begin(limits.clone(), &[item("x", &[]), item("y", &[])]);
    let long = |id: &str, version| Contribution::Finish(id.to_owned(), version, "r".repeat(400));
    run.give("a", vec![claim("x", 1), long("x", 1), claim("y", 1), long("y", 1), finish("y", 1)]);
    run.rest();
    assert_eq!(run.outcome.as_ref().unwrap().refused.len(), 1);
    assert_eq!(run.item("y").body["result"], "y is done");
    assert_eq!(run.end(), Some(RoundsEnd::Goal));

    // An agent alone takes nothing from others.
    let mut run = Run::begin(RoundsRules { agents: vec!["a".to_owned()], ..limits }, &[]);
    run.give("a", (0..10).map(|n| add(&format!("a{n}"), &[])).collect());
    assert_eq!(run.state.items().count(), 10);
}

#[test]
fn slow_agents_miss_their_round() {
    let mut state =
        RoundsState::new(RoundsRules { timeout_ms: Some(10), ..rules(TurnOrder::All) }).unwrap();
    assert!(state.step(0, RoundsEvent::Begun).contains(&RoundsAction::Wait(10)));
    state.step(1, RoundsEvent::Contributed("a".to_owned(), 1, vec![add("x", &[])]));
    assert_eq!(state.step(9, RoundsEvent::Rang), []);
    let actions = state.step(10, RoundsEvent::Rang);
    let cancel = ["b", "c"].map(|who| RoundsAction::Cancel(who.to_owned(), 1));
    assert_eq!(actions[..2], cancel);
    assert!(actions.contains(&RoundsAction::Call("b".to_owned(), 2, Vec::new())));
    let late = RoundsEvent::Contributed("b".to_owned(), 1, vec![add("y", &[])]);
    assert_eq!(state.step(11, late), [], "an answer of an old round is refused");
    assert_eq!(state.items().count(), 1);
}

#[test]
fn early_claim_counts_before_answers() {
    let mut run = Run::begin(rules(TurnOrder::All), &[item("x", &[]), item("y", &["x"])]);
    let stranger = Err(ContributionRefusal::Rule(ChangeRefusal::Stranger));
    assert_eq!(run.state.change("client", claim("x", 1)), stranger, "it has no turn");
    run.give("a", vec![claim("x", 1), finish("x", 1)]);
    assert_eq!(run.state.change("a", claim("x", 1)), stranger, "its turn is over");
    assert_eq!(run.state.change("c", claim("x", 1)), Ok(0));
    let held = Err(ContributionRefusal::Rule(ChangeRefusal::ClaimedBy("c".to_owned())));
    assert_eq!(run.state.change("b", claim("x", 1)), held, "the second claim is late");
    assert_eq!(
        run.state.change("b", claim("y", 1)),
        Err(ContributionRefusal::Rule(ChangeRefusal::NotReady))
    );
    assert_eq!(run.state.change("b", add("z", &[])), Ok(2));
    assert_eq!(run.state.change("c", finish("x", 2)), Ok(0));
    // The version that `b` saw is that of its addition, and the one that it saw of `y` still is.
    run.give("b", vec![claim("y", 1), finish("y", 1), claim("z", 1)]);
    run.give("c", Vec::new());
    assert_eq!(
        run.refusals("a"),
        [
            ContributionRefusal::Rule(ChangeRefusal::Done),
            ContributionRefusal::Rule(ChangeRefusal::Done)
        ]
    );
    assert_eq!(run.refusals("b"), []);
    assert_eq!(run.item("z").state, ItemState::Claimed("b".to_owned(), 3));
    let by: Vec<_> = run.item("x").history.iter().map(|it| it.by.as_str()).collect();
    assert_eq!(by, ["client", "c", "c"]);
}

#[test]
fn early_changes_of_turn_are_bounded() {
    let mut run = Run::begin(rules(TurnOrder::All), &[item("x", &[])]);
    assert_eq!(run.state.change("a", claim("x", 1)), Ok(0));
    for _ in 1..32 {
        assert_eq!(
            run.state.change("a", claim("x", 9)),
            Err(ContributionRefusal::Rule(ChangeRefusal::Version(2)))
        );
    }
    assert_eq!(run.state.change("a", finish("x", 2)), Err(ContributionRefusal::LimitReached));
    assert_eq!(run.state.change("b", add("y", &[])), Ok(1), "each agent has its own limit");
    run.rest();
    assert_eq!(run.end(), None, "changes before the answers are contributions");
    assert_eq!(run.state.change("a", finish("x", 2)), Ok(0), "the next turn has its own limit");
    run.rest();
    assert_eq!(run.end(), None);
}

/// Answer of an agent: a failure, or contributions to items by number, with a shift of the version.
type Sketch = Option<Vec<(u8, u8, u64)>>;

fn contributions(state: &RoundsState, sketch: &[(u8, u8, u64)]) -> Vec<Contribution> {
    let one = |&(what, which, old): &(u8, u8, u64)| {
        let id = format!("i{which}");
        let version = state.items().find(|(name, _)| *name == id).map_or(1, |(_, it)| it.version);
        let version = version.saturating_sub(old);
        match what {
            0 => add(&id, &[]),
            1 if which > 0 => add(&id, &[&format!("i{}", which - 1)]),
            1..=3 => claim(&id, version),
            4 | 5 => finish(&id, version),
            _ => Contribution::Release(id, version),
        }
    };
    sketch.iter().map(one).collect()
}

fn round() -> impl Strategy<Value = (Vec<Sketch>, Vec<usize>)> {
    let list = prop::collection::vec((0..7_u8, 0..6_u8, 0..2_u64), 0..5);
    let sketch = prop_oneof![1 => Just(None), 6 => list.prop_map(Some)];
    let order = Just((0..AGENTS.len()).collect::<Vec<_>>()).prop_shuffle();
    (prop::collection::vec(sketch, AGENTS.len()), order)
}

/// Items, and the outcome, for comparisons.
fn shown(run: &Run) -> String {
    let items: Vec<_> = run.state.items().collect();
    format!("{items:?} {:?} {:?} {:?}", run.outcome, run.calls, run.round)
}

/// Answers of a round in this order.
fn play(run: &mut Run, sketches: &[Sketch], order: &[usize]) {
    let before = run.state.clone();
    for &at in order {
        if run.calls.iter().all(|(who, _)| who != AGENTS[at]) {
            continue;
        }
        match &sketches[at] {
            None => run.fail(AGENTS[at]),
            Some(sketch) => run.give(AGENTS[at], contributions(&before, sketch)),
        }
    }
}

proptest! {
    /// The order in which the answers of a round arrive decides nothing.
    #[test]
    fn order_of_arrival_decides_nothing(rounds in prop::collection::vec(round(), 1..12)) {
        let mut run = Run::begin(rules(TurnOrder::All), &[item("i0", &[])]);
        let mut other = Run::begin(rules(TurnOrder::All), &[item("i0", &[])]);
        for (sketches, order) in rounds {
            if run.outcome.is_some() {
                break;
            }
            play(&mut run, &sketches, &order);
            play(&mut other, &sketches, &[0, 1, 2]);
            prop_assert_eq!(shown(&run), shown(&other));
        }
    }

    /// Changes in the middle of turns may be replayed before all answers of their round.
    #[test]
    fn early_changes_replay_before_answers(
        rounds in prop::collection::vec((round(), prop::collection::vec((0..3_usize, 0..7_u8, 0..6_u8, 0..2_u64), 0..8)), 1..12),
    ) {
        let mut run = Run::begin(rules(TurnOrder::All), &[item("i0", &[])]);
        let mut replayed = Run::begin(rules(TurnOrder::All), &[item("i0", &[])]);
        for ((sketches, order), early) in rounds {
            if run.outcome.is_some() {
                break;
            }
            let before = run.state.clone();
            let mut early: std::collections::VecDeque<_> = early.into();
            let (mut changes, mut answered) = (Vec::new(), Vec::new());
            for &at in &order {
                // Some changes come before each answer; the agents that have answered make none.
                for _ in 0..2 {
                    let Some((who, what, which, old)) = early.pop_front() else { break };
                    let is_called = run.calls.iter().any(|(name, _)| name == AGENTS[who]);
                    if !is_called || answered.contains(&who) {
                        continue;
                    }
                    for one in contributions(&run.state, &[(what, which, old)]) {
                        let result = run.state.change(AGENTS[who], one.clone());
                        changes.push((AGENTS[who], one, result));
                    }
                }
                answered.push(at);
                if run.calls.iter().any(|(who, _)| who == AGENTS[at]) {
                    match &sketches[at] {
                        None => run.fail(AGENTS[at]),
                        Some(sketch) => run.give(AGENTS[at], contributions(&before, sketch)),
                    }
                }
            }
            for (who, one, result) in changes {
                prop_assert_eq!(replayed.state.change(who, one), result);
            }
            for at in 0..AGENTS.len() {
                if replayed.calls.iter().any(|(who, _)| who == AGENTS[at]) {
                    match &sketches[at] {
                        None => replayed.fail(AGENTS[at]),
                        Some(sketch) => replayed.give(AGENTS[at], contributions(&before, sketch)),
                    }
                }
            }
            prop_assert_eq!(shown(&run), shown(&replayed));
        }
    }

    /// An item has one holder, versions rise by one a change, a done item stays done, and items are
    /// done after those that they need.
    #[test]
    fn item_has_one_holder_in_rounds(
        rounds in prop::collection::vec(round(), 1..12),
        turns in any::<bool>(),
    ) {
        let control = if turns { TurnOrder::Turns } else { TurnOrder::All };
        let mut run = Run::begin(rules(control), &[item("i0", &[])]);
        for (sketches, order) in rounds {
            if run.outcome.is_some() {
                break;
            }
            let order = if turns { vec![0, 1, 2] } else { order };
            play(&mut run, &sketches, &order);
            let mut done_at = BTreeMap::new();
            for (index, (_, item)) in run.state.items().enumerate() {
                prop_assert_eq!(item.version, u64::try_from(item.history.len()).unwrap());
                let mut holder = None;
                for (at, entry) in item.history.iter().enumerate() {
                    let by = Some(entry.by.as_str());
                    match entry.change {
                        ItemChange::Posted => prop_assert_eq!(at, 0),
                        ItemChange::Claimed => {
                            prop_assert!(holder.is_none() || holder == by, "{:?}", item.history);
                            holder = by;
                        }
                        ItemChange::Released | ItemChange::Expired => {
                            prop_assert_eq!(holder, by);
                            holder = None;
                        }
                        ItemChange::Done => {
                            prop_assert_eq!(holder, by);
                            prop_assert_eq!(at + 1, item.history.len());
                            done_at.insert(index, entry.at);
                        }
                        ItemChange::Written => prop_assert!(false),
                    }
                }
                match &item.state {
                    ItemState::Claimed(by, until) => {
                        prop_assert_eq!(holder, Some(by.as_str()));
                        prop_assert!(*until > u64::from(run.round));
                    }
                    ItemState::Open => prop_assert_eq!(holder, None),
                    ItemState::Done => {
                        prop_assert!(item.needs.iter().all(|need| done_at[need] <= done_at[&index]));
                    }
                }
            }
        }
        prop_assert!(run.round <= 9);
    }

    /// The same events give the same state, whatever prefix of them was replayed before.
    #[test]
    fn prefix_of_events_replays_to_state(rounds in prop::collection::vec(round(), 1..6)) {
        let mut run = Run::begin(rules(TurnOrder::All), &[]);
        let mut events: Vec<RoundsEvent> = Vec::new();
        for (sketches, order) in rounds {
            let before = run.state.clone();
            for at in order {
                let (who, round) = (AGENTS[at].to_owned(), run.round);
                let event = match &sketches[at] {
                    None => RoundsEvent::Failed(who, round, "no tokens".to_owned()),
                    Some(sketch) => RoundsEvent::Contributed(who, round, contributions(&before, sketch)),
                };
                run.calls.retain(|(name, _)| name != AGENTS[at]);
                run.step(event.clone());
                events.push(event);
                let mut replayed = Run::begin(rules(TurnOrder::All), &[]);
                for event in &events {
                    replayed.step(event.clone());
                }
                prop_assert_eq!(format!("{:?}", replayed.state), format!("{:?}", run.state));
            }
        }
    }
}
