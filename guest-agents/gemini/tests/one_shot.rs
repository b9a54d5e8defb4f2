//! Tests of the mode without questions, against recorded runs of `gemini -o stream-json` (0.61.0).

use a2a_hub_sdk::cli::Job;
use a2a_hub_sdk::testing::{Program, ScriptedHost, ended_tool_calls, feed_reshaped, task};
use a2a_hub_sdk::{Agent, Message, Need, TaskState};
use gemini::{Gemini, one_shot::OneShot};
use serde_json::json;

const SESSION: &str = "00000000-0000-4000-8000-000000000001";

macro_rules! recording {
    ($name:literal) => {
        include_str!(concat!("transcripts/one_shot_", $name, ".jsonl"))
    };
}

fn hub() -> ScriptedHost {
    let host = ScriptedHost::new();
    host.setting("mode", "one-shot");
    host
}

fn gemini(host: &ScriptedHost, recording: &str) -> Program {
    host.program("gemini").reads().plays(recording)
}

#[test]
fn prompt_on_stdin_returns_answer() {
    let host = hub();
    let program = gemini(&host, recording!("hello"));
    let outcome = host.run::<Gemini>("/first -turn\nof two").unwrap();
    assert_eq!(outcome.text(), "ECHO: first turn");
    assert_eq!(host.artifact("answer").unwrap(), "ECHO: first turn");
    assert_eq!(program.stdin(), "\u{2060}/first -turn\nof two\n");
    assert!(program.stdin_closed());
    assert_eq!(outcome.metadata()["usage"], json!({ "input_tokens": 9820, "output_tokens": 4 }));
}

#[test]
fn lines_of_unexpected_shapes_never_panic() {
    for recording in [recording!("hello"), recording!("tools"), recording!("rate_limited")] {
        assert!(feed_reshaped(recording, || OneShot::new(&Job::default())) > 100);
    }
}

#[test]
fn api_errors_of_any_shape_keep_text() {
    for (inner, reason, words) in [
        (r#"{"error":{"code":429,"message":"quota"}}"#, "rate_limited", "quota"),
        (r#"{"error":{"code":429}}"#, "rate_limited", r#"{"error":{"code":429}}"#),
        (r#"{"error":"no"}"#, "api_error", r#"{"error":"no"}"#),
        ("429", "rate_limited", "[API Error: 429]"),
        ("1.5", "api_error", "[API Error: 1.5]"),
        ("true", "api_error", "[API Error: true]"),
        (r#""terminated""#, "api_error", "terminated"),
        ("no route", "api_error", "no route"),
        ("[]", "api_error", "[]"),
        ("{}", "api_error", "{}"),
        ("null", "api_error", "null"),
    ] {
        let host = hub();
        let error = json!({ "type": "Error", "message": format!("[API Error: {inner}]") });
        let result = json!({ "type": "result", "status": "error", "error": error, "stats": {} });
        host.program("gemini").reads().stdout(format!("{result}\n"));
        let outcome = host.run::<Gemini>("go").unwrap();
        assert_eq!(outcome.state(), Some(TaskState::Failed), "{inner}");
        let told = (outcome.metadata()["reason"].clone(), outcome.text());
        assert_eq!(told, (json!(reason), words.to_owned()), "{inner}");
    }
}

#[test]
fn next_task_of_context_resumes_session() {
    let host = hub();
    gemini(&host, recording!("hello"));
    host.run::<Gemini>("first turn").unwrap();
    let program = gemini(&host, recording!("resumed"));
    let mut again = task("second turn");
    again.history = vec![Message::from("not told twice")];
    assert_eq!(Gemini::run(&host.context(), &again).unwrap().text(), "ECHO: second turn");
    assert_eq!(program.stdin(), "second turn\n");
    assert!(host.spawned()[1].args.ends_with(&["--resume".into(), SESSION.into()]));
}

#[test]
fn lost_session_is_replaced_by_history() {
    let host = hub();
    host.context().remember("session/context-1", &json!({ "id": "gone" })).unwrap();
    host.program("gemini")
        .stderr("Error resuming session: Invalid session identifier \"gone\".\n")
        .exit(42);
    let program = gemini(&host, recording!("hello"));
    let mut again = task("and now?");
    again.history = vec![Message::from("hello Ada")];
    assert_eq!(Gemini::run(&host.context(), &again).unwrap().state(), Some(TaskState::Completed));
    assert!(program.stdin().contains("you: hello Ada"));
    assert!(host.said()[0].contains("beginning anew"));
}

#[test]
fn tools_and_changes_are_reported() {
    let host = hub();
    gemini(&host, recording!("tools"));
    let outcome = host.run::<Gemini>("use tools").unwrap();
    assert!(outcome.text().starts_with("ECHO: use "), "{}", outcome.text());
    assert_eq!(host.said()[0], "running shell: echo from-bash; pwd");
    assert!(host.said()[1].starts_with("failed: Tool \"shell\" not found"), "{:?}", host.said());

    gemini(&host, recording!("edit"));
    host.run::<Gemini>("write").unwrap();
    assert!(host.artifact("change:/workspace/c.txt").is_some());
}

#[test]
fn only_reported_success_completes_task() {
    for (recording, code, reason, words) in [
        (recording!("rate_limited"), 173, "rate_limited", "mock error 429"),
        (recording!("cut"), 0, "broken_stream", "Model stream ended without a finish reason."),
        ("", 0, "broken_stream", "(exit code 0)"),
        ("", 53, "max_turns", ""),
    ] {
        let host = hub();
        gemini(&host, recording).exit(code);
        let outcome = host.run::<Gemini>("hello").unwrap();
        assert_eq!(outcome.state(), Some(TaskState::Failed), "{reason}");
        assert_eq!(outcome.metadata()["reason"], reason);
        assert!(outcome.text().contains(words), "{}", outcome.text());
    }
}

#[test]
fn missing_login_is_requested() {
    let host = hub();
    gemini(&host, "").stderr("Please set an Auth method in your settings.json\n").exit(41);
    gemini(&host, recording!("login_refused")).exit(145);
    gemini(&host, recording!("hello"));
    host.answer("done");
    host.answer("done");
    assert_eq!(host.run::<Gemini>("hello").unwrap().text(), "ECHO: first turn");
    assert!(host.asked().iter().all(|(need, _)| *need == Need::Auth));
    assert!(host.asked()[1].1.text().starts_with("mock error 401\n"));
}

#[test]
fn permissions_map_to_cli_modes() {
    let manifest = include_str!("../manifest.toml");
    for (permissions, mode) in
        [("ask", "default"), ("read-only", "default"), ("edit", "auto_edit"), ("full", "yolo")]
    {
        let host = hub();
        host.setting("permissions", permissions);
        gemini(&host, recording!("hello"));
        host.run::<Gemini>("hello").unwrap();
        let command = host.spawned().remove(0);
        assert_eq!(command.args, ["-o", "stream-json", "--approval-mode", mode]);
        assert!(manifest.contains(&format!(
            "\"--approval-mode\", \"{mode}\", \"[--model {{}}]\", \"[--resume {{}}]\""
        )));
        for (name, _) in command.env {
            assert!(manifest.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}

/// This mode asks no questions that a list of tools could answer. If the permissions would ask, the
/// list is refused rather than ignored.
#[test]
fn ignored_allowed_tools_are_refused() {
    for (permissions, is_refused) in
        [("ask", true), ("edit", true), ("read-only", false), ("full", false)]
    {
        let host = hub();
        host.setting("permissions", permissions);
        host.setting("allowed_tools", "run_shell_command, write_file");
        let program = gemini(&host, recording!("hello"));
        let outcome = host.run::<Gemini>("hello");
        if !is_refused {
            assert_eq!(outcome.unwrap().state(), Some(TaskState::Completed), "{permissions}");
            continue;
        }
        let why = outcome.unwrap_err().text().to_owned();
        for way_out in ["`allowed_tools`", "`mode = \"acp\"`", "`allowedTools`"] {
            assert!(why.contains(way_out), "{permissions}: {why}");
        }
        assert_eq!(program.stdin(), "", "it was not started");
    }
    // A client can drop the list, and its task then runs.
    let host = hub();
    host.setting("allowed_tools", "run_shell_command");
    gemini(&host, recording!("hello"));
    let mut without = task("hello");
    without.message = without.message.with_metadata(&json!({ "allowedTools": [] }));
    let outcome = Gemini::run(&host.context(), &without).unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Completed));
}

#[test]
fn unknown_mode_is_refused() {
    let host = hub();
    host.setting("mode", "telepathy");
    let why = host.run::<Gemini>("hello").unwrap_err();
    assert!(why.text().contains("`acp` or `one-shot`"), "{why:?}");
}

/// Result of a run that reached the operator's `model.maxSessionTurns`, with exit code 53.
#[test]
fn turn_limit_has_own_reason() {
    let host = hub();
    let result = r#"{"type":"result","status":"error","error":{"type":"FatalTurnLimitedError","message":"Reached max session turns for this session."},"stats":{}}"#;
    host.program("gemini").reads().stdout(format!("{result}\n")).exit(53);
    let outcome = host.run::<Gemini>("go on and on").unwrap();
    assert_eq!(outcome.metadata()["reason"], "max_turns");
    assert!(outcome.text().starts_with("Reached max session turns"), "{}", outcome.text());

    host.program("gemini").reads().stderr("Reached max session turns.\n").exit(53);
    let outcome = host.run::<Gemini>("go on and on").unwrap();
    assert_eq!(outcome.metadata()["reason"], "max_turns");
}

/// All recordings: whatever the program leaves open, each call ends with its run.
#[test]
fn reported_tool_calls_are_unique_and_ended() {
    let mut ended = 0;
    for recording in [
        recording!("cut"),
        recording!("edit"),
        recording!("hello"),
        recording!("login_refused"),
        recording!("rate_limited"),
        recording!("resumed"),
        recording!("tools"),
    ] {
        let host = hub();
        host.setting("permissions", "full");
        gemini(&host, recording);
        let _ = host.run::<Gemini>("go");
        ended += ended_tool_calls(&host.events());
    }
    assert_eq!(ended, 3);
}
