//! The working time of a flow: what counts, and what happens when it is used up.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_coordination::flow::{Definition, FlowAction, FlowEvent, FlowState, Id, Role};
use serde_json::json;

const FLOW: &str = r#"
description = "Works, asks and works again"
[budget]
minutes = 60
[[step]]
id = "first"
agent = "writer"
prompt = "write"
[[step]]
id = "ok"
needs = ["first"]
ask = "Go on?"
[[step]]
id = "pause"
needs = ["ok"]
wait = "3d"
[[step]]
id = "second"
needs = ["pause"]
agent = "writer"
prompt = "go on"
"#;

fn failures(second: &str, expect: &str) -> Vec<String> {
    let fakes = format!(
        "[answers]\nfirst = {{ text = \"a\", after = \"30m\" }}\nok = {{ text = \"yes\", after = \"9d\" }}\n\
         second = {{ text = \"b\", after = \"{second}\" }}\n[expect]\n{expect}\n"
    );
    Definition::parse(FLOW).unwrap().simulate(&fakes).unwrap().failures
}

#[test]
fn only_work_counts_for_minutes() {
    assert_eq!(failures("29m", "text = \"b\""), [""; 0]);
    let used = "reason = \"limit_exceeded\"\ntext = \"budget of 60 minutes of work is used up\"";
    assert_eq!(failures("32m", used), [""; 0]);
}

#[test]
fn parallel_children_count_once() {
    let flow = "description = \"Works\"\n[budget]\nminutes = 60\n[[step]]\nid = \"all\"\nfor_each = \"range(20)\"\nconcurrency = 20\nagent = \"writer\"\nprompt = \"write\"\n";
    let fakes = "[answers]\nall = { text = \"a\", after = \"50m\" }\n";
    let simulation = Definition::parse(flow).unwrap().simulate(fakes).unwrap();
    assert_eq!(simulation.failures, [""; 0], "{:#?}", simulation.transitions);
}

#[test]
fn child_that_waits_for_person_stops_timer() {
    let mut state = FlowState::new(Definition::parse(FLOW).unwrap(), json!({}), "task-1");
    let timers = |actions: &[FlowAction]| -> Vec<(u32, bool)> {
        let of_minutes = |id: &Id| id.role == Role::Minutes;
        let timer = |action: &FlowAction| match action {
            FlowAction::Wait { id, ms: 60_000 } if of_minutes(id) => Some((id.attempt, true)),
            FlowAction::Cancel(id) if of_minutes(id) => Some((id.attempt, false)),
            FlowAction::Wait { .. }
            | FlowAction::Cancel(_)
            | FlowAction::Call { .. }
            | FlowAction::Send { .. }
            | FlowAction::Ask { .. }
            | FlowAction::Say(_)
            | FlowAction::Finish(_) => None,
        };
        actions.iter().filter_map(timer).collect()
    };
    let child = Id { step: 0, round: 1, item: 0, attempt: 1, role: Role::Work };
    let part = |attempt| Id { step: usize::MAX, attempt, role: Role::Minutes, ..child };
    assert_eq!(timers(&state.step(FlowEvent::Begun)), [(1, true)]);
    assert_eq!(timers(&state.step(FlowEvent::Rang(part(1)))), [(2, true)]);
    assert_eq!(timers(&state.step(FlowEvent::Paused(child))), [(2, false)]);
    assert_eq!(timers(&state.step(FlowEvent::Paused(child))), [], "it waits already");
    assert_eq!(timers(&state.step(FlowEvent::Resumed(child))), [(2, true)]);
}

#[test]
fn minutes_are_whole_number_above_zero() {
    for wrong in ["0", "1.5", "\"10m\""] {
        let text = FLOW.replace("minutes = 60", &format!("minutes = {wrong}"));
        let problems = Definition::parse(&text).unwrap_err();
        let rule = "line 4, column 11: `minutes` is a whole number from 1 to 527040";
        assert!(problems.iter().any(|it| it.to_string() == rule), "{wrong}: {problems:#?}");
    }
}
