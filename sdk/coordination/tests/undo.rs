//! Programs that undo completed steps when a flow fails.

use a2a_hub_coordination::flow::{
    ChildEnd, Definition, FlowAction, FlowEvent, FlowState, Id, Role,
};
use serde_json::{Value, json};

const FLOW: &str = r#"
description = "Deploys"
[input]
place = { type = "string" }
[[step]]
id = "deploy"
agent = "deployer"
prompt = "deploy"
compensate = { run = ["kubectl", "rollout", "undo"] }
[[step]]
id = "check"
needs = ["deploy"]
run = ["check"]
"#;

/// State of a flow that failed after its first step, and the actions that followed.
fn failing(text: &str) -> (FlowState, Vec<FlowAction>) {
    let definition = Definition::parse(text).unwrap_or_else(|why| panic!("{why:#?}"));
    let mut state = FlowState::new(definition, json!({ "place": "home" }), "task-1");
    let begun = state.step(FlowEvent::Begun);
    let deployed = ChildEnd { completed: true, text: "v2".to_owned(), ..ChildEnd::default() };
    let checked = state.step(FlowEvent::Ended(call(&begun).0, deployed));
    let actions = state.step(FlowEvent::Ended(call(&checked).0, exit(1, "it is down")));
    (state, actions)
}

fn exit(code: i32, text: &str) -> ChildEnd {
    let (text, data) = (text.to_owned(), Some(json!({ "exit": code })));
    ChildEnd { completed: true, text, data, ..ChildEnd::default() }
}

fn cut_off() -> ChildEnd {
    ChildEnd { reason: "hub_restarted".to_owned(), ..ChildEnd::default() }
}

/// Child, agent and data of the only call.
fn call(actions: &[FlowAction]) -> (Id, String, Option<Value>) {
    let mut calls = actions.iter().filter_map(|action| match action {
        FlowAction::Call { id, agent, data, .. } => Some((*id, agent.clone(), data.clone())),
        FlowAction::Send { .. }
        | FlowAction::Ask { .. }
        | FlowAction::Wait { .. }
        | FlowAction::Cancel(_)
        | FlowAction::Say(_)
        | FlowAction::Finish(_) => None,
    });
    calls.next().unwrap_or_else(|| panic!("no call: {actions:?}"))
}

/// Texts of the actions, and the reason of the end.
fn told(actions: &[FlowAction]) -> (Vec<&str>, Option<&str>) {
    let mut said = (Vec::new(), None);
    for action in actions {
        match action {
            FlowAction::Say(text) => said.0.push(text.as_str()),
            FlowAction::Finish(finish) => said.1 = Some(finish.reason.as_str()),
            FlowAction::Call { .. }
            | FlowAction::Send { .. }
            | FlowAction::Ask { .. }
            | FlowAction::Wait { .. }
            | FlowAction::Cancel(_) => {}
        }
    }
    said
}

#[test]
fn program_undoes_step_of_failed_flow() {
    let needs = Definition::parse(FLOW).unwrap().needs();
    let undo = needs.run.iter().find(|it| it.command[0] == "kubectl").unwrap();
    let variables: Vec<_> = undo.variables.iter().map(String::as_str).collect();
    assert_eq!(variables, ["A2A_INPUT_PLACE", "A2A_STEP_DEPLOY_TEXT"], "its trust is asked for");
    let (mut state, actions) = failing(FLOW);
    let (id, agent, data) = call(&actions);
    assert_eq!((id.role, agent.as_str()), (Role::Compensation, "script"));
    assert_eq!(told(&actions).0, ["deploy: is undone by kubectl rollout undo"]);
    let env = json!({ "A2A_INPUT_PLACE": "home", "A2A_STEP_DEPLOY_TEXT": "v2" });
    assert_eq!(data.unwrap(), json!({ "run": ["kubectl", "rollout", "undo"], "env": env }));
    let actions = state.step(FlowEvent::Ended(id, exit(0, "")));
    assert_eq!(told(&actions), (vec![], Some("exit_nonzero")), "the flow's own reason");
    let (mut state, actions) = failing(FLOW);
    let actions = state.step(FlowEvent::Ended(call(&actions).0, exit(3, "no cluster\nat all")));
    let why = "deploy: cannot be undone: its program ended with 3: no cluster";
    assert_eq!(told(&actions), (vec![why], Some("exit_nonzero")));
}

#[test]
fn interrupted_undo_follows_on_restart() {
    let with = |rule: &str| {
        let undo = format!("\"undo\"], on_restart = \"{rule}\"");
        failing(&FLOW.replace("\"undo\"]", &undo))
    };
    let (mut state, actions) = with("retry");
    let (id, agent, _) = call(&state.step(FlowEvent::Ended(call(&actions).0, cut_off())));
    assert_eq!((id.attempt, agent.as_str()), (2, "script"));
    let (mut state, actions) = with("fail");
    let actions = state.step(FlowEvent::Ended(call(&actions).0, cut_off()));
    assert_eq!(told(&actions), (vec!["deploy: cannot be undone: "], Some("exit_nonzero")));
    for (answer, repeats) in [("yes", true), ("no", false)] {
        let (mut state, actions) = failing(FLOW);
        let asked = state.step(FlowEvent::Ended(call(&actions).0, cut_off()));
        let [FlowAction::Ask { id, text }] = asked.as_slice() else { panic!("{asked:?}") };
        assert!(text.starts_with("The program that undoes the step deploy was cut off"), "{text}");
        let actions = state.step(FlowEvent::Answered(*id, answer.to_owned()));
        match repeats {
            true => assert_eq!(call(&actions).0.attempt, 2),
            false => assert_eq!(told(&actions).1, Some("exit_nonzero")),
        }
    }
}

#[test]
fn wrong_undo_is_refused_with_rule() {
    let run = "run = [\"kubectl\", \"rollout\", \"undo\"]";
    let table = [
        (format!("{run}, agent = \"a\""), "`agent` is a key of a `compensate` without `run`"),
        ("run = [\"./undo.sh\"]".to_owned(), "write [\"sh\", \"./FILE\"]"),
        ("run = [\"undo\", \"{{ input.place }}\"]".to_owned(), "from its environment"),
        (format!("{run}, on_exit = \"continue\""), "has no key `on_exit`"),
        ("agent = \"a\"".to_owned(), "has an `agent` and a `prompt`, or `run`"),
        (
            "agent = \"a\", prompt = \"p\", on_restart = \"ask\"".to_owned(),
            "`on_restart` is a key of a `compensate` with `run`",
        ),
    ];
    for (to, why) in table {
        let problems = Definition::parse(&FLOW.replace(run, &to)).unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|line| line.contains(why)), "{to}: {told:#?}");
    }
}
