//! Tests of reused and prestarted programs, with the whole adapter and a scripted CLI.

use a2a_hub_sdk::testing::{Program, ScriptedHost, split_behind, task};
use a2a_hub_sdk::{Agent as _, Failure, Message, Outcome, Part, Task, TaskState};
use claude_code::ClaudeCode;
use serde_json::{Value, json};

const HELLO: &str = include_str!("transcripts/hello.jsonl");
const RESUMED: &str = include_str!("transcripts/resumed.jsonl");
const KEY: &str = "context/context-1";
const SESSION: &str = "00000000-0000-4000-8000-000000000001";

/// Rest of a program's script.
type Script = fn(Program) -> Program;

/// Event between two turns.
type Change = fn(&ScriptedHost);

/// Program that answers one turn and waits for the next.
fn claude(host: &ScriptedHost) -> Program {
    host.program("claude").reads().stdout(HELLO)
}

fn again() -> Task {
    let history =
        vec![Message::user(vec![Part::text("hello there")]), Message::from("ECHO: hello there")];
    Task { history, ..task("again") }
}

fn run(host: &ScriptedHost, task: &Task) -> Outcome {
    let outcome = ClaudeCode::run(&host.context(), task).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(outcome.state(), Some(TaskState::Completed), "{outcome:?}");
    outcome
}

fn prompts(program: &Program) -> Vec<Value> {
    let lines = program.told().into_iter().filter(|line| line["type"] == "user");
    lines.map(|mut line| line["message"]["content"].take()).collect()
}

#[test]
fn next_turn_reuses_parked_program() {
    let host = ScriptedHost::new();
    let program = claude(&host).reads().stdout(RESUMED).reads();
    run(&host, &task("hello there"));
    assert_eq!(host.kept_programs().keys(), [KEY]);
    let outcome = run(&host, &again());
    assert_eq!(outcome.text(), "ECHO: again");
    assert_eq!(prompts(&program), ["hello there", "again"], "the history is known");
    assert_eq!(host.spawned().len(), 1);
    assert_eq!(host.kept_programs().keys(), [KEY]);
    assert!(!program.stdin_closed());
}

#[test]
fn unusable_program_is_replaced_and_resumed() {
    let gone = |host: &ScriptedHost| host.kept_programs().end(KEY);
    let there = |_: &ScriptedHost| {};
    let cases: [(&str, Script, Change); 5] = [
        ("ended by the hub", |program| program.reads(), gone),
        ("dies of the prompt", |program| program.reads().exit(1), there),
        ("hangs", |program| program.reads().reads(), there),
        ("found something to do", |program| program.stdout(HELLO).reads(), there),
        (
            "lost its login",
            |program| {
                program.reads().stdout(include_str!("transcripts/not_logged_in.jsonl")).reads()
            },
            there,
        ),
    ];
    for (name, then, meanwhile) in cases {
        let host = ScriptedHost::new();
        then(claude(&host));
        run(&host, &task("hello there"));
        assert_eq!(host.kept_programs().keys(), [KEY], "{name}");
        meanwhile(&host);
        let second = host.program("claude").reads().stdout(RESUMED).reads();
        let outcome = run(&host, &again());
        assert_eq!(
            (outcome.text(), prompts(&second)),
            ("ECHO: again".into(), vec![json!("again")]),
            "{name}"
        );
        assert!(host.spawned()[1].args.contains(&"--resume".to_owned()), "{name}");
        assert_eq!((host.asked().len(), host.said().len()), (0, 0), "nobody notices: {name}");
        assert_eq!(host.kept_programs().keys(), [KEY], "{name}");
    }
}

/// The program's output counts: the client may have seen it.
#[test]
fn program_exit_during_turn_fails_task() {
    let host = ScriptedHost::new();
    let (begun, _) = split_behind(RESUMED, "message_start");
    claude(&host).reads().stdout(begun).exit(1);
    run(&host, &task("hello there"));
    let outcome = ClaudeCode::run(&host.context(), &again()).unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Failed));
    assert_eq!(outcome.metadata()["reason"], "broken_stream");
    assert_eq!((host.spawned().len(), host.kept_programs().keys().len()), (1, 0));
}

#[test]
fn changed_terms_start_new_program() {
    let metadata = |json: Value| {
        let task = again();
        Task { message: task.message.clone().with_metadata(&json), ..task }
    };
    let other: [(&str, Change, Task); 4] = [
        ("model", |_| {}, metadata(json!({ "model": "large" }))),
        ("directory", |_| {}, Task { working_directory: Some("/elsewhere".into()), ..again() }),
        ("permissions", |host| host.setting("permissions", "edit"), again()),
        ("instructions", |host| host.setting("system_prompt", "Be brief."), again()),
    ];
    for (name, change, task_then) in other {
        let host = ScriptedHost::new();
        claude(&host).reads();
        run(&host, &task("hello there"));
        change(&host);
        host.program("claude").reads().stdout(RESUMED).reads();
        run(&host, &task_then);
        assert_eq!(host.spawned().len(), 2, "{name}");
        assert_eq!(host.kept_programs().keys(), [KEY], "the first was ended: {name}");
    }
}

/// The files are those of the turn that started the program; with other content the command
/// differs.
#[test]
fn unchanged_instructions_reuse_program_and_files() {
    let host = ScriptedHost::new();
    host.setting("system_prompt", "Be brief.");
    let program = claude(&host).reads().stdout(RESUMED).reads();
    run(&host, &task("hello there"));
    run(&host, &again());
    assert_eq!((prompts(&program).len(), host.files().len()), (2, 1));
}

#[test]
fn session_approval_prevents_parking() {
    let host = ScriptedHost::new();
    let (asks, then) =
        split_behind(include_str!("transcripts/permission.jsonl"), r#""control_request""#);
    for (decision, kept) in [("allow", 1), ("allow-session", 0)] {
        host.program("claude").reads().stdout(asks.clone()).reads().stdout(then.clone()).reads();
        host.answer(Message::user(vec![Part::data(&json!({ "decision": decision }))]));
        let conversation = Task { context_id: decision.into(), ..task("do it") };
        run(&host, &conversation);
        let ours = format!("context/{decision}");
        let keys = host.kept_programs().keys();
        assert_eq!(keys.iter().filter(|key| **key == ours).count(), kept, "{decision}");
    }
}

#[test]
fn refused_parking_does_not_fail_turn() {
    let host = ScriptedHost::new();
    host.kept_programs().refuse(Failure::Exhausted("keep a program: none".into()));
    claude(&host).reads();
    run(&host, &task("hello there"));
    let second = host.program("claude").reads().stdout(RESUMED).reads();
    run(&host, &again());
    assert_eq!(prompts(&second), ["again"]);
}

#[test]
fn warm_setting_starts_program_ahead() {
    let host = ScriptedHost::new();
    host.setting("warm", "1");
    claude(&host).reads();
    let ahead = claude(&host).reads();
    let first = run(&host, &task("hello there"));
    assert_eq!(first.text(), "ECHO: hello there");
    assert_eq!(host.spawned().len(), 2);
    assert_eq!(host.kept_programs().keys(), [KEY, "ahead/"]);
    assert_eq!(prompts(&ahead), [] as [Value; 0]);

    let next = claude(&host).reads();
    run(&host, &Task { context_id: "another".into(), ..task("hello there") });
    assert_eq!(prompts(&ahead), ["hello there"]);
    assert_eq!(prompts(&next), [] as [Value; 0], "the next is ahead");
    assert_eq!(host.kept_programs().keys(), [KEY, "context/another", "ahead/"]);
}

#[test]
fn dead_prestarted_program_is_replaced() {
    let host = ScriptedHost::new();
    host.setting("warm", "1");
    claude(&host).reads();
    host.program("claude").reads().exit(1);
    run(&host, &task("hello there"));
    let cold = claude(&host).reads();
    host.program("claude").reads();
    run(&host, &Task { context_id: "another".into(), ..task("hello there") });
    assert_eq!(prompts(&cold), ["hello there"]);
    assert_eq!(host.said(), [] as [String; 0]);
}

/// A session takes one writer: its program in one conversation is killed before another
/// conversation resumes the session.
#[test]
fn resuming_elsewhere_ends_first_program() {
    let host = ScriptedHost::new();
    claude(&host).reads();
    run(&host, &task("hello there"));
    assert_eq!(host.kept_programs().keys(), [KEY]);
    host.program("claude").reads().stdout(RESUMED).reads();
    let named = json!({ "resume": SESSION });
    let there = Task { context_id: "context-2".into(), ..again() };
    let there = Task { message: there.message.clone().with_metadata(&named), ..there };
    run(&host, &there);
    assert_eq!(host.kept_programs().keys(), ["context/context-2"], "the first is gone");
    let args = &host.spawned()[1].args;
    assert!(args.ends_with(&["--resume".into(), SESSION.into()]), "{args:?}");
}

/// The interrupt ends the turn, and the CLI takes the next prompt.
#[test]
fn cancelled_task_keeps_program() {
    let (before, _) = split_behind(HELLO, "text_delta");
    let aborted = json!({ "type": "result", "subtype": "error_during_execution", "is_error": true,
        "terminal_reason": "aborted_streaming", "session_id": SESSION, "total_cost_usd": 0.1 });
    let host = ScriptedHost::new();
    let program = host.program("claude").reads().stdout(before).reads();
    let program = program.stdout(format!("{aborted}\n")).reads().stdout(RESUMED).reads();
    host.cancel_after(1);
    let cancelled = ClaudeCode::run(&host.context(), &task("hello there"));
    assert_eq!(cancelled, Err(Failure::Cancelled));
    assert_eq!(host.kept_programs().keys(), [KEY]);
    host.cancel_after(usize::MAX);
    assert_eq!(run(&host, &again()).text(), "ECHO: again");
    assert_eq!(prompts(&program), ["hello there", "again"]);
    assert_eq!(program.told()[1]["request"]["subtype"], "interrupt");
    assert_eq!(host.spawned().len(), 1);
}
