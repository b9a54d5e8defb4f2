//! Memory that a step's agent gets before it begins.

use a2a_hub_coordination::flow::{
    ChildEnd, Definition, FlowAction, FlowEvent, FlowState, Id, Inheritance,
};
use serde_json::json;

const FLOW: &str = r#"
description = "Plans and works"
[[step]]
id = "plan"
agent = "planner"
inherit = { from = "caller", scope = "summary" }
prompt = "plan"
retry = { times = 1 }
next = [{ goto = "plan", max = 1, at_max = "continue" }]
[[step]]
id = "tests"
needs = ["plan"]
run = ["true"]
[[step]]
id = "work"
needs = ["tests"]
flow = "worker"
inherit = { from = "plan" }
"#;

/// Child and inheritance of the only call.
fn call(actions: &[FlowAction]) -> (Id, Option<Inheritance>) {
    let mut calls = actions.iter().filter_map(|action| match action {
        FlowAction::Call { id, inherit, .. } => Some((*id, inherit.clone())),
        FlowAction::Send { .. }
        | FlowAction::Ask { .. }
        | FlowAction::Wait { .. }
        | FlowAction::Cancel(_)
        | FlowAction::Say(_)
        | FlowAction::Finish(_) => None,
    });
    calls.next().unwrap_or_else(|| panic!("no call: {actions:?}"))
}

#[test]
fn step_inherits_from_last_child_of_other() {
    let definition = Definition::parse(FLOW).unwrap();
    assert!(definition.needs().memory, "the flow keeps what its caller passes on");
    let mut state = FlowState::new(definition, json!({}), "task-1");
    let (first, inherit) = call(&state.step(FlowEvent::Begun));
    assert_eq!(inherit, Some(Inheritance { from: None, scope: "summary".to_owned() }));
    let done = |exit: Option<i32>| ChildEnd {
        completed: true,
        data: exit.map(|exit| json!({ "exit": exit })),
        ..ChildEnd::default()
    };
    let (again, _) = call(&state.step(FlowEvent::Ended(first, done(None))));
    let (second, _) = call(&state.step(FlowEvent::Ended(again, ChildEnd::default())));
    assert_eq!((second.round, second.attempt), (2, 2));
    let (program, inherit) = call(&state.step(FlowEvent::Ended(second, done(None))));
    assert_eq!(inherit, None, "a program has no memory");
    let (_, inherit) = call(&state.step(FlowEvent::Ended(program, done(Some(0)))));
    let full = Inheritance { from: Some(second), scope: "full".to_owned() };
    assert_eq!(inherit, Some(full));
}

#[test]
fn wrong_inherit_names_line_and_way_out() {
    let table = [
        ("from = \"caller\", ", "", "line 6, column 11: `inherit` has a `from`"),
        (
            "\"summary\"",
            "\"sumary\"",
            "line 6, column 38: `scope` is one of full, minimal, summary; did you mean `summary`?",
        ),
        (
            "from = \"plan\"",
            "from = \"paln\"",
            "line 18, column 20: `from`: there is no step `paln`; did you mean `plan`?",
        ),
        ("from = \"plan\"", "from = \"work\"", "may not be over by then; add it to `needs`"),
        ("from = \"plan\"", "from = \"tests\"", "is no single task of an agent"),
        ("from = \"plan\"", "of = \"plan\"", "has no key `of`"),
        ("run = [\"true\"]", "run = [\"true\"]\ninherit = { from = \"plan\" }", "a key of a step"),
        ("id = \"tests\"", "id = \"caller\"", "rename the step"),
    ];
    for (from, to, why) in table {
        assert!(FLOW.contains(from), "{from}");
        let mut text = FLOW.replace(from, to);
        if to.contains("id =") {
            text = text.replace("needs = [\"tests\"]", "needs = [\"plan\"]");
        }
        let problems = Definition::parse(&text).unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|line| line.contains(why)), "{to}: {told:#?}");
    }
    let without = FLOW.replace("inherit = { from = \"caller\", scope = \"summary\" }\n", "");
    assert!(!Definition::parse(&without).unwrap().needs().memory);
}
