//! Tests of the adapter against recorded runs of `gemini --acp` (0.61.0, against a model that
//! echoes).

use a2a_hub_sdk::cli::{Job, acp::Acp};
use a2a_hub_sdk::testing::{
    Program, ScriptedHost, acp_recorded, acp_told, ended_tool_calls, feed_reshaped, split_behind,
    task,
};
use a2a_hub_sdk::{Agent, Failure, HealthStatus, Message, Need, Outcome, Part, TaskState};
use gemini::Gemini;
use serde_json::{Value, json};

macro_rules! recording {
    ($name:literal) => {
        include_str!(concat!("transcripts/", $name, ".jsonl"))
    };
}

/// Model that the recordings' client set, as ours must.
const MODEL: &str = "gemini-3.8-flash";

fn hub() -> ScriptedHost {
    let host = ScriptedHost::new();
    host.setting("workspace", "/workspace");
    host.setting("model", MODEL);
    host
}

fn gemini(host: &ScriptedHost, recording: &str) -> Program {
    host.program("gemini").plays(recording)
}

/// Runs the adapter on the recording's prompt, and checks that it sends what the recording's client
/// sent.
fn replay(host: &ScriptedHost, recording: &str) -> Outcome {
    let wanted = acp_recorded(recording);
    let prompt = wanted.iter().find(|message| message["method"] == "session/prompt");
    let text = prompt.expect("a prompt")["params"]["prompt"][0]["text"]
        .as_str()
        .expect("as it was recorded");
    let program = gemini(host, recording);
    let outcome = host.run::<Gemini>(text).expect("as it was recorded");
    assert_eq!(acp_told(&program), wanted);
    outcome
}

/// Reason and text of a failed task.
fn failure(outcome: &Outcome) -> (Value, String) {
    assert_eq!(outcome.state(), Some(TaskState::Failed));
    (outcome.metadata()["reason"].take(), outcome.text())
}

#[test]
fn lines_of_unexpected_shapes_never_panic() {
    let mut fed = 0;
    for recording in
        [recording!("hello"), recording!("command"), recording!("edit"), recording!("rate_limited")]
    {
        fed += feed_reshaped(recording, || Acp::new(Gemini, Job::default(), "/workspace"));
    }
    assert!(fed > 1_000, "{fed} lines");
}

#[test]
fn answer_becomes_artifact_and_status() {
    let host = hub();
    let program = gemini(&host, recording!("hello"));
    let mut asked = task("hello there");
    let picture = b"\x89PNG\r\n\xff";
    asked.message.parts.push(Part::file("p.png", "image/png", picture.to_vec()));
    let outcome = Gemini::run(&host.context(), &asked).unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Completed));
    assert_eq!(outcome.text(), "ECHO: hello there");
    assert_eq!(host.artifact("answer").unwrap(), "ECHO: hello there");
    assert_eq!(
        outcome.metadata(),
        json!({ "model": MODEL, "usage": { "input_tokens": 10080, "output_tokens": 4 } })
    );
    let told = acp_told(&program);
    assert_eq!(told[..3], acp_recorded(recording!("hello"))[..3]);
    let picture = &told[3]["params"]["prompt"][1];
    assert_eq!(
        picture,
        &json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0K/w==" })
    );
    assert_eq!(host.spawned().remove(0).args, ["--acp"], "the prompt is no argument");
}

#[test]
fn additional_directories_become_arguments() {
    let host = hub();
    let mut asked = task("hello there");
    let mut run = |named: &str| {
        asked.message.metadata =
            Some(json!({ "additionalDirectories": ["/a", named] }).to_string());
        Gemini::run(&host.context(), &asked)
    };
    gemini(&host, recording!("hello"));
    run("/more").unwrap();
    assert_eq!(host.spawned().remove(0).args, ["--include-directories", "/a,/more", "--acp"]);
    for unfit in ["/a,b", "/a "] {
        let why = run(unfit).unwrap_err();
        assert!(matches!(&why, Failure::Invalid(why) if why.contains(unfit)), "{why:?}");
    }
}

#[test]
fn blackboard_turn_allows_its_tools() {
    let host = hub();
    for (setting, value) in [
        ("permissions", "read-only"),
        ("hub_program", "/usr/bin/a2a-hub"),
        ("hub_socket", "/run/hub.sock"),
    ] {
        host.setting(setting, value);
    }
    let mut turn = task("hello there");
    turn.message.metadata = Some(json!({ "blackboard": true }).to_string());
    gemini(&host, recording!("read_only"));
    let _ = Gemini::run(&host.context(), &turn);
    let tools = "mcp_a2a-hub_read_blackboard,mcp_a2a-hub_add_item,mcp_a2a-hub_claim_item,\
                 mcp_a2a-hub_finish_item,mcp_a2a-hub_release_item";
    assert_eq!(host.spawned().remove(0).args, ["--acp", "--allowed-tools", tools]);
    let form = format!("[--allowed-tools {tools}]");
    assert!(include_str!("../manifest.toml").contains(&form), "the hub refuses other arguments");
}

#[test]
fn new_program_gets_history_in_prompt() {
    let host = hub();
    gemini(&host, recording!("hello"));
    host.run::<Gemini>("hello there").unwrap();
    let program = gemini(&host, recording!("hello"));
    let mut again = task("and again");
    again.history = vec![Message::user(vec![Part::text("hello there")])];
    Gemini::run(&host.context(), &again).unwrap();
    let prompt = acp_told(&program)[3]["params"]["prompt"][0]["text"].clone();
    assert!(prompt.as_str().unwrap().contains("user: hello there"), "{prompt}");
    assert_eq!(host.said(), Vec::<String>::new());
}

#[test]
fn session_of_other_mode_is_replaced() {
    let host = hub();
    let ctx = host.context();
    ctx.remember("session/context-1", &json!({ "id": "one-shot's" })).unwrap();
    host.program("gemini");
    let program = gemini(&host, recording!("hello"));
    let mut again = task("and again");
    again.history = vec![Message::user(vec![Part::text("hello there")])];
    Gemini::run(&ctx, &again).unwrap();
    assert!(host.said()[0].contains("beginning anew"), "{:?}", host.said());
    assert!(program.stdin().contains("user: hello there"));
}

#[test]
fn client_decides_about_command() {
    let host = hub();
    host.answer("yes");
    replay(&host, recording!("command"));
    let (need, question) = host.asked().remove(0);
    assert_eq!(need, Need::Input);
    let data = question.data().unwrap();
    assert_eq!(data["tool"], "execute");
    assert_eq!(data["input"]["command"], "touch made && echo done");
    assert_eq!(data["directory"], "/workspace");
    assert_eq!(data["choices"], json!(["allow", "allow-session", "deny"]));
    assert_eq!(host.said(), ["execute: touch made && echo done"]);
}

#[test]
fn applied_change_becomes_artifact() {
    let host = hub();
    host.answer("yes");
    host.answer("yes");
    replay(&host, recording!("edit"));
    let diff =
        "--- /workspace/a.txt\n+++ /workspace/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    let changes = host.artifact("change:/workspace/a.txt").unwrap();
    assert!(changes.starts_with(diff) && changes.contains("\n-three\n+3\n"), "{changes}");
    assert_eq!(host.asked().len(), 2, "each edit is asked for");
    let choices = host.asked()[0].1.data().unwrap()["choices"].clone();
    assert_eq!(choices, json!(["allow", "deny"]), "the program keeps no approval of edits");
    assert!(host.asked()[0].1.text().contains(diff), "the client sees what it allows");

    let host = hub();
    host.answer("no");
    replay(&host, recording!("edit_denied"));
    assert!(host.artifact("change:/workspace/a.txt").is_none(), "a change that did not happen");

    let host = hub();
    host.answer("yes");
    replay(&host, recording!("write"));
    assert!(host.artifact("change:/workspace/b.txt").unwrap().starts_with("--- /dev/null\n"));
}

#[test]
fn permissions_decide_without_client() {
    for permissions in ["edit", "full"] {
        let host = hub();
        host.setting("permissions", permissions);
        replay(&host, recording!("write"));
        assert!(host.asked().is_empty());
    }
    let host = hub();
    host.setting("permissions", "read-only");
    replay(&host, recording!("read_only"));
    assert!(host.asked().is_empty());
    assert!(host.said()[0].starts_with("edit failed: Access denied"), "{:?}", host.said());
}

#[test]
fn cut_answer_fails_task() {
    let host = hub();
    let (reason, text) = failure(&replay(&host, recording!("cut")));
    assert_eq!(reason, "broken_stream");
    assert_eq!(text, "Gemini CLI ended in the middle of its answer");
}

#[test]
fn missing_login_is_requested() {
    let host = hub();
    gemini(&host, recording!("no_key"));
    gemini(&host, recording!("login_refused"));
    gemini(&host, recording!("hello"));
    host.answer("done");
    host.answer("done");
    assert_eq!(host.run::<Gemini>("hello").unwrap().text(), "ECHO: hello there");
    let said: Vec<_> = host.asked().into_iter().map(|(need, text)| (need, text.text())).collect();
    assert_eq!(said[0].0, Need::Auth);
    assert!(said[0].1.starts_with("Gemini API key is missing"), "{said:?}");
    assert!(said[1].1.starts_with("mock error 401\n"), "{said:?}");
    assert!(said[1].1.contains("`gemini`"), "{said:?}");
}

#[test]
fn failures_carry_vendor_text() {
    let host = hub();
    let (reason, text) = failure(&replay(&host, recording!("bad_request")));
    assert_eq!((reason, text.as_str()), (json!("api_error"), "mock error 400"));

    let host = hub();
    host.setting("model", "gemini-1.5-flash");
    let (reason, text) = failure(&replay(&host, recording!("rate_limited")));
    assert_eq!((reason, text.as_str()), (json!("rate_limited"), "mock error 429"));

    host.program("gemini").refused(Failure::Unavailable("`gemini` is not installed".into()));
    let (reason, text) = failure(&host.run::<Gemini>("hello").unwrap());
    assert_eq!(reason, "not_installed");
    assert!(text.contains("npm install -g @google/gemini-cli"), "{text}");
}

#[test]
fn program_remark_is_not_in_answer() {
    let host = hub();
    let remark = r#""content": {"type": "text", "text": "[MODE_UPDATE] autoEdit"}"#;
    let changed =
        recording!("hello").replacen(r#""content": {"type": "text", "text": "ECHO: "}"#, remark, 1);
    gemini(&host, &changed);
    assert_eq!(host.run::<Gemini>("hello").unwrap().text(), "hello there");
}

#[test]
fn special_prompts_are_plain_text() {
    for (prompt, told_as) in [
        ("/about", "\u{2060}/about"),
        (" $x", "\u{2060} $x"),
        ("--help @/etc/hostname", "--help @/etc/hostname"),
    ] {
        let host = hub();
        let program = gemini(&host, recording!("hello"));
        host.run::<Gemini>(prompt).unwrap();
        assert_eq!(acp_told(&program)[3]["params"]["prompt"][0]["text"], told_as);
    }
}

#[test]
fn health_reports_problem_with_fix() {
    let host = hub();
    gemini(&host, recording!("no_key"));
    let health = host.health::<Gemini>();
    assert_eq!((health.status, health.fix.as_deref()), (HealthStatus::Degraded, Some("gemini")));

    let host = hub();
    gemini(&host, recording!("hello"));
    let health = host.health::<Gemini>();
    assert_eq!((health.status, health.version.as_deref()), (HealthStatus::Healthy, Some("0.61.0")));
}

#[test]
fn thinking_is_reported_once() {
    let host = hub();
    replay(&host, recording!("thinking"));
    assert_eq!(host.said(), ["thinking"]);
}

#[test]
fn unsupported_effort_is_reported() {
    let host = hub();
    host.setting("effort", "high");
    gemini(&host, recording!("hello"));
    host.run::<Gemini>("hello there").unwrap();
    let told = "Gemini CLI lets nobody choose an effort: `high` is left out";
    assert_eq!(host.said().first().map(String::as_str), Some(told));
}

#[test]
fn possibly_ignored_servers_are_reported() {
    let host = hub();
    host.setting("mcp_servers", r#"{"docs":{"command":"/usr/bin/docs"}}"#);
    gemini(&host, recording!("hello"));
    host.run::<Gemini>("hello there").unwrap();
    let told = "Gemini CLI starts servers of MCP only in a directory that its user trusts";
    assert_eq!(host.said().first().map(String::as_str), Some(told));
}

#[test]
fn retry_is_reported_until_timeout() {
    let host = hub();
    host.setting("retry_timeout", "0");
    let log = "[2026-11-21T19:56:47.251Z] [WARN] Attempt 1 failed with status 429. Retrying with backoff... _ApiError: \
               {\"error\":{\"code\":429,\"message\":\"too many\"}}\n    at retryWithBackoff (chunk.js)\n";
    let (before, _) = split_behind(recording!("hello"), "session/prompt");
    host.program("gemini").plays(&before).stderr(log).pauses();
    let outcome = host.run::<Gemini>("hello there").unwrap();
    assert_eq!(host.said(), ["retrying after attempt 1: too many"]);
    assert_eq!(outcome.metadata()["reason"], "rate_limited");
    assert!(outcome.text().starts_with("too many (Gemini CLI tried again"), "{}", outcome.text());
    let env = host.spawned().remove(0).env;
    assert!(env.contains(&("GEMINI_DEBUG_LOG_FILE".into(), "/dev/stderr".into())));
}

/// The CLI cannot load a session, so only a new program gets the conversation.
#[test]
fn next_turn_continues_same_session() {
    let again = || {
        let mut again = task("and again");
        again.history = vec![Message::from("my name is Ada")];
        again
    };
    let host = hub();
    let answer = |id: u64, result: &Value| {
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    };
    let update = json!({
        "jsonrpc": "2.0", "method": "session/update",
        "params": { "sessionId": "s", "update": {
            "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "ECHO: and again" },
        } },
    });
    let program = gemini(&host, recording!("hello"))
        // Output of the program between two turns.
        .stdout(format!("{}\n", json!({ "method": "session/update", "params": { "update": { "sessionUpdate": "available_commands_update" } } })))
        .reads()
        .stdout(answer(5, &json!({})))
        .reads()
        .stdout(format!("{update}\n"))
        .stdout(answer(6, &json!({ "stopReason": "end_turn" })))
        .reads();
    host.run::<Gemini>("hello there").unwrap();
    assert_eq!(host.kept_programs().keys(), ["context/context-1"]);
    let outcome = Gemini::run(&host.context(), &again()).unwrap();
    assert_eq!(
        (outcome.state(), outcome.text()),
        (Some(TaskState::Completed), "ECHO: and again".into())
    );
    let told = acp_told(&program);
    let [.., mode, prompt] = &told[..] else { panic!("{told:?}") };
    assert_eq!(
        (&mode["method"], &mode["params"]["modeId"]),
        (&json!("session/set_mode"), &json!("default"))
    );
    assert_eq!(prompt["params"]["prompt"][0]["text"], "and again");
    assert_eq!(prompt["params"]["sessionId"], told[2]["params"]["sessionId"]);
    assert_eq!(host.spawned().len(), 1);

    host.kept_programs().end("context/context-1");
    let another = gemini(&host, recording!("hello"));
    Gemini::run(&host.context(), &again()).unwrap();
    let told = acp_told(&another).pop().unwrap()["params"]["prompt"][0]["text"].take();
    assert!(told.as_str().unwrap().contains("my name is Ada"), "{told}");
}

/// The mode confines the program, so a program that refuses to return to it is killed.
#[test]
fn program_refusing_mode_is_replaced() {
    let host = hub();
    gemini(&host, recording!("hello"))
        .reads()
        .stdout("{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32602,\"message\":\"no such session\"}}\n")
        .reads();
    host.run::<Gemini>("hello there").unwrap();
    let another = gemini(&host, recording!("hello"));
    let outcome = Gemini::run(&host.context(), &task("hello there")).unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Completed));
    assert_eq!((acp_told(&another).len(), host.spawned().len()), (4, 2));
}

/// All recordings: whatever the program leaves open, each call ends with its run.
#[test]
fn reported_tool_calls_are_unique_and_ended() {
    let mut ended = 0;
    for recording in [
        recording!("bad_request"),
        recording!("command"),
        recording!("cut"),
        recording!("edit"),
        recording!("edit_denied"),
        recording!("hello"),
        recording!("login_refused"),
        recording!("no_key"),
        recording!("rate_limited"),
        recording!("read_only"),
        recording!("thinking"),
        recording!("write"),
    ] {
        let host = hub();
        host.setting("permissions", "full");
        gemini(&host, recording);
        let _ = host.run::<Gemini>("go");
        ended += ended_tool_calls(&host.events());
    }
    assert_eq!(ended, 4);
}
