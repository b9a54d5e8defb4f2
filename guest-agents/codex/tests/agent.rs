//! Tests of the whole adapter against a scripted CLI.

use a2a_hub_sdk::testing::{Program, ScriptedHost, ended_tool_calls, split_behind, task};
use a2a_hub_sdk::{Agent, Failure, HealthStatus, Message, Need, Outcome, Part, TaskState};
use codex::Codex;
use serde_json::{Value, json};

const HELLO: &str = include_str!("transcripts/hello.jsonl");
const THREAD: &str = "00000000-0000-4000-8000-000000000001";

/// Scripted Codex that has read the four lines with which a run begins.
fn codex(host: &ScriptedHost) -> Program {
    host.program("codex").reads().reads().reads().reads()
}

/// Splits a transcript after the line of Codex's question.
fn at_the_question(transcript: &str) -> (String, String) {
    split_behind(transcript, "/request")
}

fn input(program: &Program) -> Value {
    program.told()[4]["params"]["input"].take()
}

fn reason(outcome: &Outcome) -> Value {
    outcome.metadata()["reason"].take()
}

#[test]
fn answer_becomes_artifact_and_status() {
    let host = ScriptedHost::new();
    let program = codex(&host).stdout(HELLO).reads();
    let outcome = host.run::<Codex>("-x @/etc/passwd /status $skill").unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Completed));
    assert_eq!(outcome.text(), "ECHO: hello there");
    assert_eq!(host.artifact("answer").unwrap(), "ECHO: hello there");
    let text = json!([{ "type": "text", "text": "-x @/etc/passwd /status $skill" }]);
    assert_eq!(input(&program), text);
    assert_eq!(host.kept_programs().keys(), ["context/context-1"]);
    let args = host.spawned().remove(0).args;
    assert!(!args.iter().any(|arg| arg.contains("status")), "the prompt is no argument: {args:?}");
}

#[test]
fn next_task_of_context_resumes_thread() {
    let host = ScriptedHost::new();
    codex(&host).stdout(HELLO);
    host.run::<Codex>("hello there").unwrap();
    let program = codex(&host).stdout(include_str!("transcripts/resumed.jsonl"));
    let mut again = task("again");
    again.history = vec![Message::from("not told twice")];
    let outcome = Codex::run(&host.context(), &again).unwrap();
    assert_eq!(outcome.text(), "ECHO: again");
    assert_eq!(program.told()[3]["params"]["threadId"], THREAD);
    assert_eq!(input(&program)[0]["text"], "again");
}

#[test]
fn lost_thread_is_replaced_by_history() {
    let host = ScriptedHost::new();
    let ctx = host.context();
    ctx.remember("session/context-1", &json!({ "id": "gone" })).unwrap();
    codex(&host).stdout(include_str!("transcripts/lost.jsonl"));
    let program = codex(&host).stdout(HELLO);
    let mut task = task("and now?");
    task.history =
        vec![Message::user(vec![Part::text("my name is Ada")]), Message::from("hello Ada")];
    assert_eq!(Codex::run(&ctx, &task).unwrap().state(), Some(TaskState::Completed));
    let prompt = input(&program)[0]["text"].take();
    assert!(prompt.as_str().unwrap().contains("user: my name is Ada\nyou: hello Ada"), "{prompt}");
    assert!(host.said()[0].contains("beginning anew"));
    let kept: Value = ctx.recall("session/context-1").unwrap().unwrap();
    assert_eq!(kept["id"], THREAD);
}

#[test]
fn client_decides_about_command() {
    for (answer, decision) in [("yes", "accept"), ("no", "decline"), ("yes, but", "decline")] {
        let host = ScriptedHost::new();
        let (before, after) = at_the_question(include_str!("transcripts/permission.jsonl"));
        let program = codex(&host).stdout(&before).reads().reads().stdout(&after);
        host.answer(answer);
        host.run::<Codex>("make it").unwrap();
        assert_eq!(program.told()[5]["result"]["decision"], decision, "{answer}");
        assert_eq!(host.asked()[0].0, Need::Input);
    }
}

#[test]
fn operator_permissions_precede_client() {
    for (permissions, answer) in [("full", "accept"), ("read-only", "decline")] {
        let host = ScriptedHost::new();
        host.setting("permissions", permissions);
        let (before, after) = at_the_question(include_str!("transcripts/permission.jsonl"));
        let program = codex(&host).stdout(&before).reads().reads().stdout(&after);
        host.run::<Codex>("make it").unwrap();
        assert_eq!(program.told()[5]["result"]["decision"], answer);
        assert!(host.asked().is_empty());
    }
}

#[test]
fn changed_file_becomes_artifact() {
    let host = ScriptedHost::new();
    codex(&host).stdout(include_str!("transcripts/patches.jsonl"));
    host.run::<Codex>("change it").unwrap();
    let told = host.artifact("change:/workspace/a.txt").unwrap();
    assert!(told.ends_with("-two\n+three\n"), "{told}");
}

#[test]
fn picture_is_attached_to_turn() {
    let host = ScriptedHost::new();
    let program = codex(&host).stdout(HELLO);
    let mut task = task("look");
    task.message.parts.push(Part {
        filename: Some("x.png".into()),
        media_type: Some("image/png".into()),
        ..Part::new(a2a_hub_sdk::PartContent::Raw(vec![0x89, 0xff]))
    });
    Codex::run(&host.context(), &task).unwrap();
    let input = input(&program);
    assert_eq!(input[0], json!({ "type": "localImage", "path": host.files()[0].0 }));
    assert!(input[1]["text"].as_str().unwrap().starts_with("look"));
}

#[test]
fn program_reruns_after_login() {
    let host = ScriptedHost::new();
    codex(&host).stdout(include_str!("transcripts/not_logged_in.jsonl"));
    codex(&host).stdout(HELLO);
    host.answer("done");
    assert_eq!(host.run::<Codex>("hello").unwrap().text(), "ECHO: hello there");
    let (need, question) = host.asked().remove(0);
    assert_eq!(need, Need::Auth);
    assert!(question.text().contains("`codex login`"));
}

/// A login at the vendor does not help a provider of the user's own configuration.
#[test]
fn missing_key_names_variable_instead_of_login() {
    let host = ScriptedHost::new();
    codex(&host).stdout(include_str!("transcripts/no_key.jsonl"));
    codex(&host).stdout(HELLO);
    host.answer("done");
    host.run::<Codex>("hello").unwrap();
    assert_eq!(
        host.asked()[0].1.text(),
        "Missing environment variable: `MOCK_KEY`.\nOn the machine of the hub set `MOCK_KEY`, write \
         `env = [\"MOCK_KEY\"]` below `[agents.codex]` in the hub's configuration and run `a2a-hub \
         restart`, then answer this."
    );
}

#[test]
fn failures_carry_stable_reasons() {
    let host = ScriptedHost::new();
    codex(&host).stdout(include_str!("transcripts/rate_limited.jsonl"));
    let outcome = host.run::<Codex>("hello").unwrap();
    assert_eq!(
        (outcome.state(), reason(&outcome)),
        (Some(TaskState::Failed), json!("rate_limited"))
    );
    assert_eq!(host.said().len(), 5);

    host.program("codex").stderr("Error: config.toml:1:1: unknown\n").exit(1);
    let outcome = host.run::<Codex>("hello").unwrap();
    assert_eq!(reason(&outcome), "agent_error");
    assert!(outcome.text().ends_with("config.toml:1:1: unknown"));

    host.program("codex").refused(Failure::Unavailable("`codex` is not installed".into()));
    let outcome = host.run::<Codex>("hello").unwrap();
    assert_eq!(reason(&outcome), "not_installed");
    assert!(outcome.text().contains("npm install -g @openai/codex"));
}

#[test]
fn cancelled_task_ends_program() {
    let host = ScriptedHost::new();
    codex(&host).stdout(HELLO);
    host.cancel_after(1);
    assert_eq!(host.run::<Codex>("hello"), Err(Failure::Cancelled));
}

#[test]
fn health_reports_problem_with_fix() {
    let doctor = |credentials: Value| {
        let host = ScriptedHost::new();
        host.program("codex").args(&["--version"]).stdout("codex-cli 0.171.0\n");
        let report = json!({ "checks": { "auth.credentials": credentials } });
        let report = serde_json::to_string_pretty(&report).unwrap();
        host.program("codex").args(&["doctor", "--json"]).stdout(report).exit(1);
        host.health::<Codex>()
    };
    let health = doctor(json!({ "status": "ok", "details": { "stored auth mode": "chatgpt" } }));
    assert_eq!(
        (health.status, health.version.as_deref()),
        (HealthStatus::Healthy, Some("0.171.0"))
    );
    for credentials in [
        json!({ "status": "fail", "summary": "no Codex credentials were found" }),
        json!({ "status": "ok", "details": { "auth env vars present": "OPENAI_API_KEY" } }),
    ] {
        let health = doctor(credentials);
        assert_eq!(
            (health.status, health.fix.as_deref()),
            (HealthStatus::Degraded, Some("codex login"))
        );
    }
    let key = json!({ "status": "fail", "summary": "active model provider auth env var is missing",
        "details": { "provider auth env var": "MOCK_KEY (missing)" } });
    let health = doctor(key);
    assert_eq!(health.status, HealthStatus::Degraded);
    assert!(health.fix.as_deref().unwrap().starts_with("set `MOCK_KEY`"), "{health:?}");

    let host = ScriptedHost::new();
    host.program("codex").refused(Failure::Unavailable("`codex` is not installed".into()));
    let health = host.health::<Codex>();
    assert_eq!(health.status, HealthStatus::Unhealthy);
    assert_eq!(health.fix.as_deref(), Some("npm install -g @openai/codex"));
}

#[test]
fn manifest_covers_started_commands() {
    let host = ScriptedHost::new();
    codex(&host).stdout(HELLO);
    host.run::<Codex>("hello").unwrap();
    let command = host.spawned().remove(0);
    let form: Vec<String> = command.args.iter().map(|arg| format!("{arg:?}")).collect();
    let manifest = include_str!("../manifest.toml");
    let on_one_line = manifest.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(on_one_line.contains(&form.join(", ")), "{form:?}");
    for (name, _) in &command.env {
        assert!(manifest.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn too_long_prompt_is_refused_with_limit() {
    let host = ScriptedHost::new();
    let refused = host.run::<Codex>(&"ä".repeat(1_048_577)).unwrap_err();
    let Failure::Invalid(why) = refused else { panic!("{refused:?}") };
    assert!(why.contains("1048577 characters") && why.contains("takes 1048576"), "{why}");
    assert_eq!(host.spawned(), []);
    codex(&host).stdout(HELLO);
    host.run::<Codex>(&"ä".repeat(1_048_576)).unwrap();
}

#[test]
fn client_model_overrides_operators_default() {
    let host = ScriptedHost::new();
    host.setting("model", "the operator's");
    host.setting("effort", "low");
    let program = codex(&host).stdout(HELLO);
    let mut task = task("hello");
    task.message = task.message.with_metadata(&json!({ "model": "mine" }));
    Codex::run(&host.context(), &task).unwrap();
    assert_eq!(program.told()[3]["params"]["model"], "mine");
    assert_eq!(program.told()[4]["params"]["effort"], "low");
}

#[test]
fn thread_gets_instructions_and_servers() {
    let host = ScriptedHost::new();
    host.setting("system_prompt", "Answer in French.");
    let servers = r#"{"docs":{"command":"/d","args":["x"]},"web":{"type":"http","url":"http://localhost","headers":{"k":"v"}}}"#;
    host.setting("mcp_servers", servers);
    let program = codex(&host).stdout(HELLO);
    host.run::<Codex>("hello").unwrap();
    let params = program.told()[3]["params"].take();
    assert_eq!(params["developerInstructions"], "Answer in French.");
    let config = json!({ "mcp_servers": {
        "docs": { "command": "/d", "args": ["x"] },
        "web": { "url": "http://localhost", "http_headers": { "k": "v" } },
    } });
    assert_eq!(params["config"], config);
    assert_eq!(input(&program)[0]["text"], "hello", "the prompt is the client's");
}

#[test]
fn thread_config_contains_hub_server_and_socket() {
    let host = ScriptedHost::new();
    host.setting("hub_program", "/usr/bin/a2a-hub");
    host.setting("hub_socket", "/run/hub.sock");
    let program = codex(&host).stdout(HELLO);
    host.run::<Codex>("hello").unwrap();
    let config = json!({
        "mcp_servers": { "a2a-hub": {
            "command": "/usr/bin/a2a-hub", "args": ["--socket", "/run/hub.sock", "mcp"],
        } },
        "shell_environment_policy": { "inherit": "core", "set": { "A2A_HUB_SOCKET": "/run/hub.sock" } },
    });
    assert_eq!(program.told()[3]["params"]["config"], config);
}

#[test]
fn named_session_is_resumed_or_refused() {
    let host = ScriptedHost::new();
    let mut task = task("again");
    task.message = task.message.with_metadata(&json!({ "resume": THREAD }));
    let program = codex(&host).stdout(include_str!("transcripts/resumed.jsonl"));
    Codex::run(&host.context(), &task).unwrap();
    assert_eq!(program.told()[3]["params"]["threadId"], THREAD);
    let kept: Value = host.context().recall("session/context-1").unwrap().unwrap();
    assert_eq!(kept["id"], THREAD, "the conversation goes on with it");

    let lost = r#"{"id":3,"error":{"code":-32600,"message":"no rollout found for thread id x"}}"#;
    codex(&host).stdout(format!("{lost}\n"));
    let refused = Codex::run(&host.context(), &task).unwrap_err();
    let Failure::Invalid(why) = refused else { panic!("{refused:?}") };
    assert!(why.contains(&format!("the session `{THREAD}`")), "{why}");
}

#[test]
fn resolved_question_is_withdrawn() {
    let host = ScriptedHost::new();
    let (before, after) = at_the_question(include_str!("transcripts/permission.jsonl"));
    let gone = json!({ "method": "serverRequest/resolved", "params": { "threadId": THREAD, "requestId": 0 } });
    codex(&host).stdout(format!("{before}{gone}\n")).stdout(after);
    assert_eq!(host.run::<Codex>("make it").unwrap().state(), Some(TaskState::Completed));
    assert_eq!((host.asked().len(), host.withdrawn()), (1, 1));
}

/// All recordings: whatever the program leaves open, each call ends with its run.
#[test]
fn reported_tool_calls_are_unique_and_ended() {
    let mut ended = 0;
    for recording in [
        include_str!("transcripts/bad_request.jsonl"),
        include_str!("transcripts/broken_stream.jsonl"),
        include_str!("transcripts/denied.jsonl"),
        include_str!("transcripts/hello.jsonl"),
        include_str!("transcripts/login_refused.jsonl"),
        include_str!("transcripts/lost.jsonl"),
        include_str!("transcripts/no_key.jsonl"),
        include_str!("transcripts/not_logged_in.jsonl"),
        include_str!("transcripts/patch_asked.jsonl"),
        include_str!("transcripts/patch_declined.jsonl"),
        include_str!("transcripts/patches.jsonl"),
        include_str!("transcripts/permission.jsonl"),
        include_str!("transcripts/question.jsonl"),
        include_str!("transcripts/rate_limited.jsonl"),
        include_str!("transcripts/resumed.jsonl"),
        include_str!("transcripts/retried.jsonl"),
        include_str!("transcripts/server_error.jsonl"),
        include_str!("transcripts/thinking.jsonl"),
    ] {
        let host = ScriptedHost::new();
        host.setting("permissions", "full");
        codex(&host).stdout(recording);
        let _ = host.run::<Codex>("go");
        ended += ended_tool_calls(&host.events());
    }
    assert_eq!(ended, 7);
}

/// The interrupt ends the turn, and Codex takes the next prompt.
#[test]
fn cancelled_task_keeps_program() {
    let (before, _) = split_behind(HELLO, "item/agentMessage/delta");
    let (_, next) = split_behind(HELLO, "turn/started");
    let turn = json!({ "id": "00000000-0000-4000-8000-000000000002", "status": "interrupted" });
    let over =
        json!({ "method": "turn/completed", "params": { "threadId": THREAD, "turn": turn } });
    let host = ScriptedHost::new();
    let program = codex(&host).stdout(before).reads().reads().stdout(format!("{over}\n"));
    let program = program.reads().stdout(next).reads();
    host.cancel_after(1);
    assert_eq!(Codex::run(&host.context(), &task("hello there")), Err(Failure::Cancelled));
    assert_eq!(host.kept_programs().keys(), ["context/context-1"]);
    host.cancel_after(usize::MAX);
    assert_eq!(host.run::<Codex>("again").unwrap().text(), "ECHO: hello there");
    let sent = program.told();
    let methods: Vec<_> = sent.iter().rev().take(2).map(|line| line["method"].clone()).collect();
    assert_eq!(methods, ["turn/start", "turn/interrupt"]);
    assert_eq!(host.spawned().len(), 1);
}
