//! Measured record: what counts for an agent, and how a vote weighs it.

use std::collections::BTreeMap;

use a2a_hub_coordination::{
    flow::{ChildChanges, ChildEnd, Definition, FlowAction, FlowEvent, FlowState, Id},
    record::{Record, RunResults, VoteResults, records},
};
use proptest::prelude::*;
use serde_json::json;

const FLOW: &str = r#"
description = "Tries, judges and votes"

[[step]]
id = "try"
agents = ["a", "b", "c"]
worktree = "new"
allow_failures = 2
prompt = "Do it."

[[step]]
id = "judge"
needs = ["try"]
run = ["cargo", "test"]
worktree = "try"
on_exit = { nonzero = "continue" }

[[step]]
id = "best"
needs = ["judge"]
pick = { from = "try", judges = ["judge"] }

[[step]]
id = "decide"
needs = ["best"]
prompt = "Is it good?"
vote = { agents = ["a", "b"], choices = ["yes", "no"], rule = "record" }
"#;

/// Runs the flow: `c` fails, the judge refuses `b`, and the voters disagree.
fn run(definition: Definition) -> FlowState {
    let mut state = FlowState::new(definition, json!({}), "task-1");
    let mut actions = state.step(FlowEvent::Begun);
    while let Some(action) = actions.pop() {
        let FlowAction::Call { id, agent, .. } = action else { continue };
        actions.extend(state.step(FlowEvent::Ended(id, end(id, &agent))));
    }
    state
}

fn end(id: Id, agent: &str) -> ChildEnd {
    let done = ChildEnd { completed: true, text: "done".to_owned(), ..ChildEnd::default() };
    let changes = ChildChanges { files: 1, insertions: 1, ..ChildChanges::default() };
    match (id.step, agent) {
        (0, "c") => ChildEnd { completed: false, text: "no tokens".to_owned(), ..done },
        (0, _) => ChildEnd { worktree: Some(changes), ..done },
        (1, _) => ChildEnd { data: Some(json!({ "exit": i64::from(id.item == 1) })), ..done },
        (_, who) => {
            let choice = if who == "a" { "yes" } else { "no" };
            let ballot = json!({ "choice": choice, "confidence": 1, "reason": "so" });
            ChildEnd { text: ballot.to_string(), ..done }
        }
    }
}

#[test]
fn judged_candidates_and_ballots_count() {
    let results = run(Definition::parse(FLOW).unwrap()).results();
    // Nobody judged `c`, which failed before.
    assert_eq!(results.judged, [("a".to_owned(), true), ("b".to_owned(), false)]);
    let ballots = BTreeMap::from([("a".to_owned(), 0), ("b".to_owned(), 1)]);
    let choices = ["yes", "no"].map(str::to_owned).to_vec();
    let vote = VoteResults { choices, ballots, right: None };
    assert_eq!(results.votes, BTreeMap::from([("decide".to_owned(), vote)]));
    assert_eq!(RunResults::of_json(&results.to_json()), results);
}

#[test]
fn flow_without_record_has_no_results() {
    let flow = FLOW.replace("rule = \"record\"", "rule = \"weighted\"");
    let definition = Definition::parse(&flow).unwrap();
    assert!(!definition.uses_record() && !definition.needs().memory);
    assert!(run(definition).results().is_empty());
    assert!(Definition::parse(FLOW).unwrap().needs().memory);
}

#[test]
fn wrong_rules_name_way_out() {
    for (wrong, why) in [
        ("rule = \"recrd\"", "did you mean `record`?"),
        ("rule = \"record\", weights = { a = 2 }", "`rule = \"weighted\"`"),
    ] {
        let flow = FLOW.replace("rule = \"record\"", wrong);
        let problems = Definition::parse(&flow).unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|it| it.contains(why)), "{wrong}: {told:?}");
    }
}

proptest! {
    /// A weight lies between 0 and 2, is 1 without a result, and grows with each right one.
    #[test]
    fn right_results_raise_weight(right in 0_u32..10_000, wrong in 0_u32..10_000) {
        let weight = |right, wrong| Record { right, wrong }.weight();
        prop_assert!(weight(right, wrong) > 0.0 && weight(right, wrong) < 2.0);
        prop_assert!(weight(right + 1, wrong) > weight(right, wrong));
        prop_assert!(weight(right, wrong + 1) < weight(right, wrong));
        prop_assert!((weight(right, right) - 1.0).abs() < 1e-9);
    }

    /// Only confirmed votes count, each ballot once.
    #[test]
    fn confirmed_ballots_count_once(ballots in proptest::collection::vec(0_usize..3, 1..20), right in proptest::option::of(0_usize..3)) {
        let ballots: BTreeMap<_, _> = ballots.into_iter().enumerate().map(|(n, choice)| (n.to_string(), choice)).collect();
        let choices = ["x", "y", "z"].map(str::to_owned).to_vec();
        let mut run = RunResults::default();
        run.votes.insert("v".to_owned(), VoteResults { choices: choices.clone(), ballots: ballots.clone(), right: None });
        if let Some(right) = right {
            run.confirm(None, &choices[right]).unwrap();
            run.confirm(Some("v"), &choices[right]).unwrap();
        }
        let counted = records([&run]);
        prop_assert_eq!(counted.len(), if right.is_some() { ballots.len() } else { 0 });
        for (agent, Record { right: was_right, wrong }) in counted {
            prop_assert_eq!(was_right + wrong, 1);
            prop_assert_eq!(was_right == 1, Some(ballots[&agent]) == right);
        }
    }
}

/// What was stored by somebody else is read as far as it fits.
#[test]
fn strange_json_is_left_out() {
    let strange = json!({
        "judged": [["a", true], ["b"], 7, { "c": true }],
        "votes": { "v": { "choices": ["x", 3], "ballots": { "a": 0, "b": 9, "c": "x" }, "right": 5 }, "w": 1 },
    });
    let read = RunResults::of_json(&strange);
    assert_eq!(read.judged, [("a".to_owned(), true)]);
    assert_eq!(read.votes["v"].ballots, BTreeMap::from([("a".to_owned(), 0)]));
    assert_eq!((read.votes["v"].right, read.votes["w"].choices.len()), (None, 0));
    assert_eq!(RunResults::of_json(&json!("text")), RunResults::default());
}
