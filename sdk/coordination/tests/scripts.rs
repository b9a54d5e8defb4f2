//! Steps that run programs: what they are given, how they end, and what a file may say.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_coordination::flow::{
    ChildEnd, Definition, Finish, FlowAction, FlowEvent, FlowState, Id, Role,
};
use serde_json::{Value, json};

const TESTS: &str = r#"
description = "Writes until the tests pass"

[input]
task = { type = "string" }
tries = { type = "integer", default = 3 }

[[step]]
id = "write"
agent = "writer"
permissions = "edit"
prompt = "{{ input.task }}{% if previous.tests %} {{ previous.tests.text | data }}{% endif %}"

[[step]]
id = "tests"
needs = ["write"]
run = ["cargo", "test", "$A2A_INPUT_TASK"]
on_exit = { nonzero = { goto = "write", max = 2 } }

[[step]]
id = "report"
needs = ["tests"]
agent = "writer"
prompt = "exit {{ steps.tests.exit }}"
"#;

/// Run of a flow, and its open actions.
struct Run {
    state: FlowState,
    actions: Vec<FlowAction>,
}

fn begin(text: &str) -> Run {
    let definition = Definition::parse(text).unwrap_or_else(|why| panic!("{why:#?}"));
    let input = definition.with_defaults(json!({ "task": "a\0b; rm -r ~" })).unwrap();
    let mut state = FlowState::new(definition, input, "task-1");
    let actions = state.step(FlowEvent::Begun);
    Run { state, actions }
}

impl Run {
    /// Name, agent, data and permissions of the only call.
    fn call(&self) -> (Id, String, Option<Value>, Option<String>) {
        let mut calls = self.actions.iter().filter_map(|action| match action {
            FlowAction::Call { id, agent, data, permissions, .. } => {
                Some((*id, agent.clone(), data.clone(), permissions.clone()))
            }
            FlowAction::Send { .. }
            | FlowAction::Ask { .. }
            | FlowAction::Wait { .. }
            | FlowAction::Cancel(_)
            | FlowAction::Say(_)
            | FlowAction::Finish(_) => None,
        });
        calls.next().unwrap_or_else(|| panic!("no call: {:?}", self.actions))
    }

    fn end(mut self, end: ChildEnd) -> Self {
        let (id, ..) = self.call();
        self.actions = self.state.step(FlowEvent::Ended(id, end));
        self
    }

    fn finish(&self) -> &Finish {
        let last = self.actions.last();
        let Some(FlowAction::Finish(finish)) = last else { panic!("no end: {:?}", self.actions) };
        finish
    }
}

fn done(text: &str) -> ChildEnd {
    ChildEnd { completed: true, text: text.to_owned(), ..ChildEnd::default() }
}

fn exit(code: i32, text: &str) -> ChildEnd {
    ChildEnd { data: Some(json!({ "exit": code })), ..done(text) }
}

fn failed(reason: &str) -> ChildEnd {
    ChildEnd { text: "gone".to_owned(), reason: reason.to_owned(), ..ChildEnd::default() }
}

#[test]
fn values_reach_program_as_environment_only() {
    let run = begin(TESTS).end(done("$(touch x)"));
    let (_, agent, data, _) = run.call();
    let data = data.unwrap();
    assert_eq!(agent, "script");
    assert_eq!(data["run"], json!(["cargo", "test", "$A2A_INPUT_TASK"]));
    let env = json!({
        "A2A_INPUT_TASK": "ab; rm -r ~", "A2A_INPUT_TRIES": "3", "A2A_STEP_WRITE_TEXT": "$(touch x)",
    });
    assert_eq!(data["env"], env);
    let long = begin(TESTS).end(done(&"x".repeat(1 << 20)));
    let value = long.call().2.unwrap()["env"]["A2A_STEP_WRITE_TEXT"].as_str().unwrap().len();
    assert!(value <= 32 << 10, "{value}");
}

#[test]
fn exit_code_goes_back_until_cap() {
    let run = begin(TESTS).end(done("one")).end(exit(101, "1 failed"));
    assert_eq!(run.call().1, "writer", "it writes again");
    let run = run.end(done("two")).end(exit(0, "ok"));
    let run = run.end(done("fine"));
    assert_eq!((run.finish().completed, run.finish().text.as_str()), (true, "fine"));
    let mut run = begin(TESTS).end(done("one"));
    for _ in 0..2 {
        run = run.end(exit(1, "no")).end(done("again"));
    }
    let run = run.end(exit(1, "no"));
    assert_eq!(run.finish().reason, "flow_cap");
}

#[test]
fn nonzero_exit_fails_step_without_on_exit() {
    let strict = TESTS.replace("on_exit = { nonzero = { goto = \"write\", max = 2 } }\n", "");
    let run = begin(&strict).end(done("one")).end(exit(2, "oh\nno"));
    let finish = run.finish();
    assert_eq!(finish.reason, "exit_nonzero");
    assert_eq!(finish.text, "tests: the program ended with 2\noh\nno");
    let lenient = TESTS.replace("{ goto = \"write\", max = 2 }", "\"continue\"");
    let run = begin(&lenient).end(done("one")).end(exit(2, "oh"));
    assert_eq!(run.call().1, "writer");
    let missing = begin(&strict).end(done("one")).end(done("no code"));
    assert_eq!(missing.finish().reason, "exit_nonzero");
}

#[test]
fn interrupted_program_follows_on_restart() {
    let with = |rule: &str| begin(&TESTS.replace("on_exit", &format!("{rule}on_exit")));
    let cut = |rule: &str| with(rule).end(done("one")).end(failed("hub_restarted"));
    let retried = cut("on_restart = \"retry\"\n");
    let (id, agent, ..) = retried.call();
    assert_eq!((agent.as_str(), id.attempt), ("script", 2), "another attempt, with its own key");
    assert_eq!(cut("on_restart = \"fail\"\n").finish().reason, "hub_restarted");
    for (answer, runs) in [("Yes", true), ("no", false), ("perhaps", false)] {
        let mut run = cut("");
        let [FlowAction::Ask { id, text }] = run.actions.as_slice() else {
            panic!("{:?}", run.actions)
        };
        assert_eq!(id.role, Role::Restart);
        assert!(text.contains("the step tests was cut off"), "{text}");
        run.actions = run.state.step(FlowEvent::Answered(*id, answer.to_owned()));
        match runs {
            true => assert_eq!(run.call().1, "script"),
            false => assert_eq!(run.finish().reason, "hub_restarted"),
        }
    }
    let stopped = begin(TESTS).end(done("one")).end(failed("hub_stopped"));
    assert!(matches!(stopped.actions[..], [FlowAction::Ask { .. }]), "a shutdown counts as well");
    let other = begin(TESTS).end(done("one")).end(failed("timeout"));
    assert_eq!(other.finish().reason, "timeout", "only restarts are asked about");
}

#[test]
fn needs_name_commands_and_elevated_agents() {
    let needs = Definition::parse(TESTS).unwrap().needs();
    assert_eq!(needs.run.len(), 1);
    assert_eq!(needs.run[0].command, ["cargo", "test", "$A2A_INPUT_TASK"]);
    let variables: Vec<_> = needs.run[0].variables.iter().map(String::as_str).collect();
    assert_eq!(variables, ["A2A_INPUT_TASK", "A2A_INPUT_TRIES", "A2A_STEP_WRITE_TEXT"]);
    assert_eq!(
        needs.permissions.into_iter().collect::<Vec<_>>(),
        [("writer".into(), "edit".into())]
    );
    // A step without `permissions` does not get those of another step with the same agent.
    let run = begin(TESTS);
    assert_eq!(run.call().3.as_deref(), Some("edit"));
    let run = run.end(done("one")).end(exit(0, ""));
    assert_eq!((run.call().1.as_str(), run.call().3.as_deref()), ("writer", Some("ask")));
}

#[test]
fn wrong_command_names_way_out() {
    let table = [
        ("[\"cargo\", \"test\", \"$A2A_INPUT_TASK\"]", "[]", "a program and its arguments"),
        ("\"$A2A_INPUT_TASK\"", "\"{{ input.task }}\"", "reads values from its environment"),
        ("\"cargo\"", "\"./check.sh\"", "write [\"sh\", \"./FILE\"]"),
        ("\"cargo\"", "\"-c\"", "the name of a program on the hub's PATH"),
        ("\"test\"", "\"{}*\"", "does not end in {}"),
        ("\"test\"", "\"--since={}\"", "does not end in {}"),
        ("\"test\"", "\"[-v]\"", "is not in brackets"),
        ("goto = \"write\", ", "", "names the step to go back to"),
        (", max = 2", "", "a `goto` has a cap"),
        ("nonzero", "zero", "has no key `zero`"),
        ("tries =", "TASK =", "differ in case only"),
        (
            "needs = [\"write\"]\nrun",
            "needs = [\"write\"]\npermissions = \"edit\"\nrun",
            "`permissions` is a key of a step with `agent`",
        ),
        (
            "on_exit =",
            "on_restart = \"again\"\non_exit =",
            "`on_restart` is one of retry, ask, fail",
        ),
        (
            "prompt = \"exit",
            "on_restart = \"retry\"\nprompt = \"exit",
            "`on_restart` is a key of a step with `run`",
        ),
    ];
    for (from, to, why) in table {
        assert!(TESTS.contains(from), "{from}");
        let problems = Definition::parse(&TESTS.replace(from, to)).unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|line| line.contains(why)), "{to}: {told:#?}");
    }
}

#[test]
fn simulated_program_has_exit_code() {
    let fakes = "[input]\ntask = \"x\"\n[answers]\nwrite = \"code\"\ntests = [{ exit = 1, text = \"no\" }, \"ok\"]\nreport = \"fine\"\n[expect]\nsteps = [\"write\", \"tests\", \"write\", \"tests\", \"report\"]\n";
    let simulation = Definition::parse(TESTS).unwrap().simulate(fakes).unwrap();
    assert_eq!(simulation.failures, [""; 0], "{:#?}", simulation.transitions);
    let failed = "      0s    <- tests: completed (exit 1): no";
    assert!(simulation.transitions.iter().any(|line| line == failed), "{simulation:#?}");
}
