//! Tests of the whole adapter against recorded runs of `vibe-acp` (3.0.2, against a model that
//! echoes).

use a2a_hub_sdk::cli::{Job, acp::Acp};
use a2a_hub_sdk::testing::{
    Program, ScriptedHost, acp_recorded, acp_told, ended_tool_calls, feed_reshaped, split_behind,
    task,
};
use a2a_hub_sdk::{
    Agent, Event, Failure, HealthStatus, Message, Need, Outcome, Part, Role, TaskState,
};
use serde_json::{Value, json};
use vibe::Vibe;

const SESSION: &str = "00000000-0000-4000-8000-000000000001";

macro_rules! recording {
    ($name:literal) => {
        include_str!(concat!("transcripts/", $name, ".jsonl"))
    };
}

fn hub() -> ScriptedHost {
    let host = ScriptedHost::new();
    host.setting("workspace", "/workspace");
    host
}

fn vibe(host: &ScriptedHost, recording: &str) -> Program {
    host.program("vibe-acp").plays(recording)
}

/// Runs the adapter on the recording's prompt, and checks that it sends what the recording's client
/// sent.
fn replay(host: &ScriptedHost, recording: &str) -> Outcome {
    let wanted = acp_recorded(recording);
    let prompt = wanted.iter().find(|message| message["method"] == "session/prompt");
    let text = prompt.map_or("hello", |prompt| {
        prompt["params"]["prompt"][0]["text"].as_str().expect("as it was recorded")
    });
    let program = vibe(host, recording);
    let outcome = host.run::<Vibe>(text).expect("as it was recorded");
    assert_eq!(acp_told(&program), wanted);
    outcome
}

/// State, reason and text of a failure.
fn failure(outcome: &Outcome) -> (Option<TaskState>, Value, String) {
    (outcome.state(), outcome.metadata()["reason"].take(), outcome.text())
}

#[test]
fn lines_of_unexpected_shapes_never_panic() {
    let mut fed = 0;
    for recording in [
        recording!("hello"),
        recording!("command"),
        recording!("edit"),
        recording!("question"),
        recording!("resumed"),
        recording!("rate_limited"),
    ] {
        fed += feed_reshaped(recording, || Acp::new(Vibe, Job::default(), "/workspace"));
    }
    assert!(fed > 1_000, "{fed} lines");
}

#[test]
fn answer_becomes_artifact_and_status() {
    let host = hub();
    let outcome = replay(&host, recording!("hello"));
    assert_eq!(outcome.state(), Some(TaskState::Completed));
    assert_eq!(outcome.text(), "ECHO: hello there");
    assert_eq!(host.artifact("answer").unwrap(), "ECHO: hello there");
    assert_eq!(outcome.metadata()["usage"], json!({ "input_tokens": 9129, "output_tokens": 4 }));
    let command = host.spawned().remove(0);
    assert!(command.args.is_empty(), "the prompt is no argument: {:?}", command.args);
    assert!(command.env.contains(&("VIBE_ENABLE_TELEMETRY".into(), "false".into())));
}

#[test]
fn additional_directories_go_to_session() {
    let host = hub();
    let program = vibe(&host, recording!("hello"));
    let mut asked = task("hello there");
    asked.message.metadata = Some(json!({ "additionalDirectories": ["/more"] }).to_string());
    Vibe::run(&host.context(), &asked).unwrap();
    let opened = acp_told(&program).remove(1);
    assert_eq!(opened["method"], "session/new");
    assert_eq!(opened["params"]["additionalDirectories"], json!(["/more"]));
}

#[test]
fn next_task_of_context_resumes_session() {
    let host = hub();
    replay(&host, recording!("hello"));
    let program = vibe(&host, recording!("resumed"));
    let mut again = task("and again");
    again.history = vec![Message::from("not told twice")];
    let outcome = Vibe::run(&host.context(), &again).unwrap();
    assert_eq!(outcome.text(), "ECHO: and again", "what came before is not told again");
    let loaded = acp_told(&program).remove(1);
    assert_eq!(
        (&loaded["method"], &loaded["params"]["sessionId"]),
        (&json!("session/load"), &json!(SESSION))
    );
    assert_eq!(acp_told(&program).last().unwrap()["params"]["prompt"][0]["text"], "and again");
    let used = outcome.metadata()["usage"]["input_tokens"].as_u64().unwrap();
    assert!(used < 10_000, "only what this run used, not the sum: {used}");
}

#[test]
fn lost_session_is_replaced_by_history() {
    let host = hub();
    let ctx = host.context();
    ctx.remember("session/context-1", &json!({ "id": "gone", "totals": { "input_tokens": 1.0 } }))
        .unwrap();
    vibe(&host, recording!("unknown_session"));
    let program = vibe(&host, recording!("hello"));
    let mut asked = task("and now?");
    asked.history = vec![Message::user(vec![Part::text("my name is Ada")])];
    assert_eq!(Vibe::run(&ctx, &asked).unwrap().state(), Some(TaskState::Completed));
    let prompt = acp_told(&program).last().unwrap()["params"]["prompt"][0]["text"].clone();
    assert!(prompt.as_str().unwrap().contains("user: my name is Ada"), "{prompt}");
    assert!(host.said()[0].contains("beginning anew"), "{:?}", host.said());
    let kept: Value = ctx.recall("session/context-1").unwrap().unwrap();
    assert_eq!(kept["id"], SESSION);
}

#[test]
fn client_decides_about_command() {
    for (answer, recording) in
        [("yes", recording!("command")), ("no", recording!("command_denied"))]
    {
        let host = hub();
        host.answer(answer);
        let outcome = replay(&host, recording);
        assert_eq!(outcome.state(), Some(TaskState::Completed));
        let (need, question) = host.asked().remove(0);
        assert_eq!(need, Need::Input);
        let data = question.data().unwrap();
        assert_eq!(data["tool"], "bash");
        assert_eq!(data["directory"], "/workspace");
        assert_eq!(data["choices"], json!(["allow", "allow-session", "deny"]));
        assert!(data["input"]["command"].as_str().unwrap().starts_with("touch made"));
        assert!(host.said()[0].starts_with("execute: bash: touch made"), "{:?}", host.said());
    }
}

/// `$/cancel_request` withdraws a request of the program.
#[test]
fn cancelled_question_is_withdrawn_unanswered() {
    let host = hub();
    let (before, after) = split_behind(recording!("command"), "session/request_permission");
    let asked = before.lines().last().and_then(|line| line.strip_prefix("< ")).unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    // An unknown id withdraws nothing, nor does the same number as a string.
    let cancel = |id: Value| json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } });
    let strangers = [json!(99), json!(asked["id"].to_string()), json!(null)].map(cancel);
    let gone = cancel(asked["id"].clone());
    let strangers = strangers.map(|it| format!("< {it}\n")).concat();
    // The recording's client answered; this one sends no answer.
    let after: String = after
        .lines()
        .filter(|line| line.starts_with('<'))
        .map(|line| format!("{line}\n"))
        .collect();
    let program = vibe(&host, &format!("{before}{strangers}< {gone}\n{after}"));
    let outcome = host.run::<Vibe>("touch it").unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Completed));
    assert_eq!((host.asked().len(), host.withdrawn()), (1, 1));
    let answers = program.told().into_iter().filter(|told| told.get("result").is_some());
    assert_eq!(answers.count(), 0, "{}", program.stdin());
}

#[test]
fn applied_change_becomes_artifact() {
    let host = hub();
    host.answer(Message::agent(vec![Part::data(&json!({ "decision": "allow-session" }))]));
    replay(&host, recording!("edit"));
    assert_eq!(
        host.artifact("change:/workspace/a.txt").unwrap(),
        "--- /workspace/a.txt\n+++ /workspace/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    );
    let question = host.asked()[0].1.text();
    assert!(question.contains("-two") && question.contains("+2"), "what it allows: {question}");
}

#[test]
fn permissions_decide_without_client() {
    let host = hub();
    host.setting("permissions", "edit");
    replay(&host, recording!("write_unasked"));
    assert!(host.artifact("change:/workspace/b.txt").unwrap().contains("+hello\n"));
    assert!(host.asked().is_empty());

    // Permission to edit ends at the task's directory.
    let host = hub();
    host.setting("permissions", "edit");
    host.answer("no");
    replay(&host, recording!("outside"));
    assert_eq!(host.asked().len(), 1);

    let host = hub();
    host.setting("permissions", "read-only");
    replay(&host, recording!("command_denied"));
    assert!(host.asked().is_empty());
    assert!(host.said().iter().any(|said| said.starts_with("denied bash:")), "{:?}", host.said());
}

#[test]
fn client_answers_models_question() {
    for answer in [
        Message::from("green"),
        Message::agent(vec![Part::data(&json!({ "Which colour?": "green" }))]),
    ] {
        let host = hub();
        host.answer(answer);
        replay(&host, recording!("question"));
        assert_eq!(host.asked()[0].1.text(), "Which colour? (red, blue)");
    }
}

#[test]
fn unanswered_question_is_denied() {
    let host = hub();
    host.fail_answer(Failure::Timeout);
    replay(&host, recording!("command_denied"));
    let host = hub();
    let program = vibe(&host, recording!("command_denied"));
    host.fail_answer(Failure::Cancelled);
    assert_eq!(host.run::<Vibe>("make it"), Err(Failure::Cancelled));
    assert!(
        acp_told(&program).last().unwrap()["method"] == "session/prompt",
        "no answer is made up"
    );
}

#[test]
fn missing_login_is_requested() {
    let host = hub();
    vibe(&host, recording!("no_key"));
    vibe(&host, recording!("login_refused"));
    vibe(&host, recording!("hello"));
    host.answer("done");
    host.answer("done");
    assert_eq!(host.run::<Vibe>("hello").unwrap().text(), "ECHO: hello there");
    for (need, question) in host.asked() {
        assert_eq!(need, Need::Auth);
        assert!(question.text().contains("`vibe --setup`"), "{}", question.text());
    }
    assert_eq!(host.asked().len(), 2);
}

#[test]
fn failures_carry_vendor_text() {
    for (recording, reason, words) in [
        (recording!("rate_limited"), "rate_limited", "Rate limit exceeded"),
        (recording!("server_error"), "api_error", "mock error 500"),
        (recording!("cut_and_retried"), "broken_stream", "ended without a finish reason"),
    ] {
        let host = hub();
        let (state, told, text) = failure(&replay(&host, recording));
        assert_eq!((state, told), (Some(TaskState::Failed), json!(reason)));
        assert!(text.contains(words), "{text}");
        assert!(host.said()[0].starts_with("retrying: "), "{:?}", host.said());
    }
}

#[test]
fn cut_stream_restarts_answer() {
    let host = hub();
    replay(&host, recording!("cut_and_retried"));
    assert_eq!(host.artifact("answer").unwrap(), "w1 w2 w3 ", "not what came before the retry too");
}

#[test]
fn exited_or_silent_program_fails_task() {
    let host = hub();
    let (begun, _) = recording!("hello").split_once("agent_message_chunk").unwrap();
    let begun = &begun[..begun.rfind('\n').unwrap()];
    vibe(&host, begun).stderr("noise\nNo module named vibe\n").exit(0);
    let (state, reason, text) = failure(&host.run::<Vibe>("hello").unwrap());
    assert_eq!(
        (state, reason),
        (Some(TaskState::Failed), json!("broken_stream")),
        "code 0 is no success"
    );
    assert!(text.ends_with("(exit code 0): No module named vibe"), "{text}");

    vibe(&host, begun).pauses();
    let (_, reason, text) = failure(&host.run::<Vibe>("hello").unwrap());
    assert_eq!(reason, "broken_stream");
    assert!(text.contains("silent"), "{text}");

    vibe(&host, "< not json\n< {\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n< []").exit(1);
    assert_eq!(failure(&host.run::<Vibe>("hello").unwrap()).1, "broken_stream");

    host.program("vibe-acp").refused(Failure::Unavailable("`vibe-acp` is not installed".into()));
    let (_, reason, text) = failure(&host.run::<Vibe>("hello").unwrap());
    assert_eq!(reason, "not_installed");
    assert!(text.contains("uv tool install mistral-vibe"), "{text}");
}

/// Vibe itself uses another model without an error.
#[test]
fn unknown_model_fails_task() {
    let host = hub();
    let _program = vibe(&host, recording!("model"));
    let mut asked = task("hello");
    asked.message = asked.message.with_metadata(&json!({ "model": "gpt" }));
    let (_, reason, text) = failure(&Vibe::run(&host.context(), &asked).unwrap());
    assert_eq!(reason, "api_error");
    assert_eq!(text, "Mistral Vibe has no model `gpt`; it has mock, mistral-medium-3.5");
}

#[test]
fn model_and_pictures_are_passed() {
    let host = hub();
    let program = vibe(&host, recording!("model"));
    let mut asked = task("hello");
    asked.message = asked.message.with_metadata(&json!({ "model": "mistral-medium-3.5" }));
    let picture = b"\x89PNG\r\n\xff";
    asked.message.parts.push(Part::file("p.png", "image/png", picture.to_vec()));
    let outcome = Vibe::run(&host.context(), &asked).unwrap();
    assert_eq!(outcome.metadata()["model"], "mistral-medium-3.5");
    let told = acp_told(&program);
    let picture = &told[3]["params"]["prompt"][1];
    assert_eq!(
        picture,
        &json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0K/w==" })
    );
}

#[test]
fn special_prompts_are_plain_text() {
    for (prompt, told_as) in [
        ("/help me", "\u{2060}/help me"),
        (" \n/help me", "\u{2060} \n/help me"),
        ("-x --help", "-x --help"),
        ("see @/etc/x.png", "see @ /etc/x.png"),
        ("@~/x.png and @'/a b.png'", "@ ~/x.png and @ '/a b.png'"),
        ("(@../x.png)", "(@ ../x.png)"),
        ("@scope/package a@/b.c @", "@scope/package a@/b.c @"),
    ] {
        let host = hub();
        let program = vibe(&host, recording!("hello"));
        host.run::<Vibe>(prompt).unwrap();
        assert_eq!(acp_told(&program).last().unwrap()["params"]["prompt"][0]["text"], told_as);
    }
    let host = hub();
    assert!(matches!(host.run::<Vibe>("  "), Err(Failure::Invalid(_))));
}

#[test]
fn missing_ask_mode_fails_task() {
    let host = hub();
    let changed = recording!("hello").replace(r#"{"id": "ask","#, r#"{"id": "careful","#);
    vibe(&host, &changed);
    let (_, reason, text) = failure(&host.run::<Vibe>("hello").unwrap());
    assert_eq!(
        (reason, text.as_str()),
        (json!("agent_error"), "Mistral Vibe has no mode `ask`, which keeps it in bounds")
    );
}

#[test]
fn missing_directory_is_refused() {
    let host = ScriptedHost::new();
    let Err(Failure::Invalid(why)) = host.run::<Vibe>("hello") else { panic!("no refusal") };
    assert!(why.contains("--workspace"), "{why}");
}

#[test]
fn thinking_is_reported_once() {
    let host = hub();
    replay(&host, recording!("thinking"));
    assert_eq!(host.said(), ["thinking"]);
    assert!(!host.artifact("answer").unwrap().contains("thinking about"));
}

#[test]
fn health_reports_problem_with_fix() {
    let host = hub();
    vibe(&host, recording!("no_key"));
    let health = host.health::<Vibe>();
    assert_eq!(
        (health.status, health.fix.as_deref()),
        (HealthStatus::Degraded, Some("vibe --setup"))
    );

    let host = hub();
    let program = vibe(&host, recording!("hello"));
    let health = host.health::<Vibe>();
    assert_eq!((health.status, health.version.as_deref()), (HealthStatus::Healthy, Some("3.0.2")));
    assert!(!program.stdin().contains("session/prompt"), "a check costs nothing");
    // A second check is not made at once.
    assert_eq!(host.health::<Vibe>().status, HealthStatus::Healthy);
    // A replaced program is checked again, and a missing one is unhealthy despite the earlier
    // check.
    host.program_is("vibe-acp", "another one");
    vibe(&host, recording!("no_key"));
    assert_eq!(host.health::<Vibe>().status, HealthStatus::Degraded);
    host.program_is("vibe-acp", "");
    let health = host.health::<Vibe>();
    assert_eq!(health.status, HealthStatus::Unhealthy);
    assert_eq!(health.fix.as_deref(), Some("uv tool install mistral-vibe"));

    let host = hub();
    vibe(&host, "").pauses();
    let health = host.health::<Vibe>();
    assert_eq!(health.status, HealthStatus::Unhealthy);
    assert!(health.fix.is_some_and(|fix| !fix.contains("install")), "it is there, and slow");

    let host = hub();
    host.program("vibe-acp").refused(Failure::Unavailable("`vibe-acp` is not installed".into()));
    let health = host.health::<Vibe>();
    assert_eq!(
        (health.status, health.fix.as_deref()),
        (HealthStatus::Unhealthy, Some("uv tool install mistral-vibe"))
    );
}

#[test]
fn manifest_covers_set_variables() {
    let host = hub();
    replay(&host, recording!("hello"));
    let manifest = include_str!("../manifest.toml");
    for (name, _) in host.spawned().remove(0).env {
        assert!(manifest.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn chunks_precede_whole_artifact() {
    let host = hub();
    host.answer("yes");
    replay(&host, recording!("command"));
    let events = host.events();
    let artifacts = events.iter().filter(|event| matches!(event, Event::Artifact(_))).count();
    assert!(artifacts >= 2, "provisional chunks and the whole text: {events:?}");
    assert_eq!(host.asked()[0].1.role, Role::Agent);
}

#[test]
fn instructions_begin_prompt_and_servers_session() {
    let host = hub();
    host.setting("system_prompt", "Answer in French.");
    let servers = r#"{"docs":{"command":"/d","env":{"A":"b"}},"web":{"url":"http://localhost"}}"#;
    host.setting("mcp_servers", servers);
    let program = vibe(&host, recording!("hello"));
    host.run::<Vibe>("hello there").unwrap();
    let told = acp_told(&program);
    let servers = json!([
        { "name": "docs", "command": "/d", "args": [], "env": [{ "name": "A", "value": "b" }] },
        { "type": "http", "name": "web", "url": "http://localhost", "headers": [] },
    ]);
    assert_eq!(told[1]["params"]["mcpServers"], servers);
    let prompt = told.iter().find(|message| message["method"] == "session/prompt").unwrap();
    assert_eq!(prompt["params"]["prompt"][0]["text"], "Answer in French.\n\nhello there");
}

#[test]
fn effort_is_set_before_prompt() {
    let host = hub();
    host.setting("effort", "high");
    let program = vibe(&host, recording!("hello"));
    host.run::<Vibe>("hello there").unwrap();
    let told = acp_told(&program);
    let chosen = told.iter().position(|message| message["params"]["value"] == "high").unwrap();
    assert_eq!(told[chosen]["method"], "session/set_config_option");
    assert_eq!(told[chosen + 1]["method"], "session/prompt");
}

/// All recordings: whatever the program leaves open, each call ends with its run.
#[test]
fn reported_tool_calls_are_unique_and_ended() {
    let mut ended = 0;
    for recording in [
        recording!("command"),
        recording!("command_denied"),
        recording!("cut_and_retried"),
        recording!("edit"),
        recording!("hello"),
        recording!("login_refused"),
        recording!("model"),
        recording!("no_key"),
        recording!("outside"),
        recording!("question"),
        recording!("rate_limited"),
        recording!("resumed"),
        recording!("server_error"),
        recording!("thinking"),
        recording!("unknown_session"),
        recording!("write_unasked"),
    ] {
        let host = hub();
        host.setting("permissions", "full");
        vibe(&host, recording);
        let _ = host.run::<Vibe>("go");
        ended += ended_tool_calls(&host.events());
    }
    assert_eq!(ended, 4);
}
