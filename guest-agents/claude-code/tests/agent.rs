//! Tests of the whole adapter against a scripted CLI.

use a2a_hub_sdk::testing::{Program, ScriptedHost, ended_tool_calls, split_behind, task};
use a2a_hub_sdk::{Agent, Failure, HealthStatus, Message, Need, Outcome, Part, Task, TaskState};
use claude_code::ClaudeCode;
use serde_json::{Value, json};

const HELLO: &str = include_str!("transcripts/hello.jsonl");
const SESSION: &str = "00000000-0000-4000-8000-000000000001";

fn claude(host: &ScriptedHost) -> Program {
    host.program("claude").reads()
}

/// Splits a transcript after the line of the CLI's question.
fn at_the_question(transcript: &str) -> (String, String) {
    split_behind(transcript, r#""control_request""#)
}

fn prompt(program: &Program) -> Value {
    program.told()[0]["message"]["content"].take()
}

/// Answer to the CLI's question.
fn response(program: &Program) -> Value {
    program.told()[1]["response"]["response"].take()
}

fn reason(outcome: &Outcome) -> Value {
    outcome.metadata()["reason"].take()
}

#[test]
fn answer_becomes_artifact_and_status() {
    let host = ScriptedHost::new();
    let program = claude(&host).stdout(HELLO).reads();
    let outcome = host.run::<ClaudeCode>("hello there").unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Completed));
    assert_eq!(outcome.text(), "ECHO: hello there");
    assert_eq!(host.artifact("answer").unwrap(), "ECHO: hello there");
    assert_eq!(outcome.metadata()["vendorSession"], SESSION, "to continue it by hand");
    assert_eq!(prompt(&program), "hello there");
    assert!(!program.stdin_closed() && host.kept_programs().keys() == ["context/context-1"]);
    let args = host.spawned().remove(0).args;
    assert!(!args.iter().any(|arg| arg.contains("hello")), "the prompt is no argument: {args:?}");
}

#[test]
fn additional_directories_become_arguments() {
    let host = ScriptedHost::new();
    host.setting("workspace", "/w");
    claude(&host).stdout(HELLO);
    let mut asked = task("hello there");
    let facts = json!({ "additionalDirectories": ["/more", "/w/in", "/w", "/and more"] });
    asked.message.metadata = Some(facts.to_string());
    ClaudeCode::run(&host.context(), &asked).unwrap();
    let args = host.spawned().remove(0).args.join(" ");
    assert!(args.ends_with("--add-dir /more /and more"), "{args}");
    assert!(!args.contains("/w"), "it works there anyway: {args}");

    // A program with other directories is not reused.
    claude(&host).stdout(include_str!("transcripts/resumed.jsonl"));
    ClaudeCode::run(&host.context(), &task("again")).unwrap();
    let args = host.spawned()[1].args.join(" ");
    assert!(!args.contains("--add-dir") && args.contains("--resume"), "{args}");
}

#[test]
fn next_task_of_context_resumes_session() {
    let host = ScriptedHost::new();
    claude(&host).stdout(HELLO);
    host.run::<ClaudeCode>("hello there").unwrap();
    let program = claude(&host).stdout(include_str!("transcripts/resumed.jsonl"));
    let mut again = task("again");
    again.history = vec![Message::from("not told twice")];
    let outcome = ClaudeCode::run(&host.context(), &again).unwrap();
    assert_eq!(outcome.text(), "ECHO: again");
    assert!(host.spawned()[1].args.ends_with(&["--resume".into(), SESSION.into()]));
    assert_eq!(prompt(&program), "again");
}

#[test]
fn full_memory_does_not_fail_task() {
    let host = ScriptedHost::new();
    let ctx = host.context();
    let session = |used| json!({ "id": "x".repeat(400), "used": used });
    ctx.remember("session/old", &session(2)).unwrap();
    ctx.remember("session/older", &session(1)).unwrap();
    for (bytes, kept) in [(800, &["session/context-1", "session/old"][..]), (0, &[])] {
        host.memory_bytes(bytes);
        claude(&host).stdout(HELLO);
        let outcome = host.run::<ClaudeCode>("hello there").unwrap();
        assert_eq!(outcome.text(), "ECHO: hello there", "with {bytes} bytes");
        assert_eq!(ctx.remembered("").unwrap(), kept, "with {bytes} bytes");
        ctx.forget("session/context-1").unwrap();
    }
}

#[test]
fn lost_session_is_replaced_by_history() {
    let host = ScriptedHost::new();
    let ctx = host.context();
    ctx.remember("session/context-1", &json!({ "id": "gone" })).unwrap();
    claude(&host).stdout(include_str!("transcripts/lost_session.jsonl")).exit(1);
    let program = claude(&host).stdout(HELLO);
    let mut task = task("and now?");
    task.history =
        vec![Message::user(vec![Part::text("my name is Ada")]), Message::from("hello Ada")];
    assert_eq!(ClaudeCode::run(&ctx, &task).unwrap().state(), Some(TaskState::Completed));
    assert_eq!(
        prompt(&program),
        "The conversation so far:\nuser: my name is Ada\nyou: hello Ada\n\nGo on with this:\nand now?"
    );
    assert!(host.said()[0].contains("beginning anew"));
    assert!(!host.spawned()[1].args.contains(&"--resume".to_owned()));
    let kept: Value = ctx.recall("session/context-1").unwrap().unwrap();
    assert_eq!(kept["id"], SESSION);
}

#[test]
fn prompt_lists_other_agents_once_unless_disabled() {
    let host = ScriptedHost::new();
    let ctx = host.context();
    host.agent("codex", Vec::new());
    let told = |task: &Task, transcript: &str| {
        let program = claude(&host).stdout(transcript);
        ClaudeCode::run(&ctx, task).unwrap();
        prompt(&program).as_str().unwrap().to_owned()
    };
    let first = told(&task("hello"), HELLO);
    assert!(first.starts_with("Other agents work on this machine") && first.contains("- codex: "));
    assert!(first.ends_with("\n\nhello"), "{first}");
    let resumed = include_str!("transcripts/resumed.jsonl");
    assert_eq!(told(&task("again"), resumed), "again", "its session knows");

    ctx.forget("session/context-1").unwrap();
    let later = Task { history: vec![Message::from("hello")], ..task("again") };
    assert!(!told(&later, HELLO).contains("Other agents"), "once a conversation");
    ctx.forget("session/context-1").unwrap();
    host.setting("other_agents", "no");
    assert_eq!(told(&task("hello"), HELLO), "hello");
}

#[test]
fn client_decides_about_tool() {
    let yes = Message::from("Yes.");
    let allow = Message::agent(vec![Part::data(&json!({ "decision": "allow" }))]);
    let deny = Message::agent(vec![Part::data(&json!({ "decision": "deny" })), Part::text("yes")]);
    for (answer, behavior) in [
        (yes, "allow"),
        (allow, "allow"),
        (deny, "deny"),
        ("no".into(), "deny"),
        ("yes, but not there".into(), "deny"),
        ("".into(), "deny"),
    ] {
        let host = ScriptedHost::new();
        let (before, after) = at_the_question(include_str!("transcripts/permission.jsonl"));
        let program = claude(&host).stdout(&before).reads().stdout(&after);
        host.answer(answer.clone());
        host.run::<ClaudeCode>("make it").unwrap();
        let response = response(&program);
        assert_eq!(response["behavior"], behavior, "{answer:?}");
        if behavior == "allow" {
            assert_eq!(response["updatedInput"]["command"], "touch /workspace/made && echo done");
        }
        assert_eq!(host.asked()[0].0, Need::Input);
    }
}

#[test]
fn question_timeout_denies_and_cancellation_ends_task() {
    let (before, after) = at_the_question(include_str!("transcripts/permission.jsonl"));
    let host = ScriptedHost::new();
    let program = claude(&host).stdout(&before).reads().stdout(&after);
    host.fail_answer(Failure::Timeout);
    host.run::<ClaudeCode>("make it").unwrap();
    assert_eq!(response(&program)["message"], "nobody answered in time");

    let host = ScriptedHost::new();
    let program = claude(&host).stdout(&before).reads().stdout(&after);
    host.fail_answer(Failure::Cancelled);
    assert_eq!(host.run::<ClaudeCode>("make it"), Err(Failure::Cancelled));
    assert_eq!(program.stdin().lines().count(), 1);
}

#[test]
fn client_answers_models_question() {
    let host = ScriptedHost::new();
    let (before, after) = at_the_question(include_str!("transcripts/question.jsonl"));
    let program = claude(&host).stdout(&before).reads().stdout(&after);
    host.answer("green");
    host.run::<ClaudeCode>("paint it").unwrap();
    assert_eq!(host.asked()[0].1.text(), "Which colour? (red, blue)");
    let input = &response(&program)["updatedInput"];
    assert_eq!(input["answers"], json!({ "Which colour?": "green" }));
    assert_eq!(input["questions"][0]["header"], "Colour");
}

#[test]
fn program_reruns_after_login() {
    let host = ScriptedHost::new();
    claude(&host).stdout(include_str!("transcripts/not_logged_in.jsonl")).exit(1);
    claude(&host).stdout(HELLO);
    host.answer("done");
    assert_eq!(host.run::<ClaudeCode>("hello").unwrap().text(), "ECHO: hello there");
    let (need, question) = host.asked().remove(0);
    assert_eq!(need, Need::Auth);
    assert!(question.text().contains("`claude /login`"));
}

#[test]
fn third_refused_login_fails_task() {
    let host = ScriptedHost::new();
    for _ in 0..3 {
        claude(&host).stdout(include_str!("transcripts/login_refused.jsonl"));
        host.answer("done");
    }
    let outcome = host.run::<ClaudeCode>("hello").unwrap();
    assert_eq!(
        (outcome.state(), reason(&outcome)),
        (Some(TaskState::Failed), json!("not_logged_in"))
    );
    assert_eq!(host.asked().len(), 2);

    // The CLI has a key, so its own check cannot know that the vendor refuses it.
    let health = || {
        host.program("claude").args(&["--version"]).stdout("2.1.332 (Claude Code)\n");
        let status = json!({ "loggedIn": true }).to_string();
        host.program("claude").args(&["auth", "status"]).stdout(status);
        host.health::<ClaudeCode>()
    };
    let refused = health();
    assert_eq!(refused.status, HealthStatus::Degraded);
    assert!(refused.detail.as_deref().unwrap().starts_with("the latest task was refused: "));
    claude(&host).stdout(HELLO);
    host.run::<ClaudeCode>("hello").unwrap();
    assert_eq!(health().status, HealthStatus::Healthy, "a task worked");
}

#[test]
fn failures_carry_stable_reasons() {
    let host = ScriptedHost::new();
    claude(&host).stdout(include_str!("transcripts/rate_limited.jsonl")).exit(1);
    let outcome = host.run::<ClaudeCode>("hello").unwrap();
    assert_eq!(
        (outcome.state(), reason(&outcome)),
        (Some(TaskState::Failed), json!("rate_limited"))
    );
    assert_eq!(host.said(), ["retrying 1/1: rate limit"]);

    claude(&host).stderr("error: unknown option '--verbose'\n").exit(1);
    let outcome = host.run::<ClaudeCode>("hello").unwrap();
    assert_eq!(reason(&outcome), "broken_stream");
    assert!(outcome.text().ends_with("unknown option '--verbose'"));

    host.program("claude").refused(Failure::Unavailable("`claude` is not installed".into()));
    let outcome = host.run::<ClaudeCode>("hello").unwrap();
    assert_eq!(reason(&outcome), "not_installed");
    assert!(outcome.text().contains("npm install -g @anthropic-ai/claude-code"));
}

#[test]
fn silent_cli_fails_after_flushing_text() {
    let host = ScriptedHost::new();
    let lines: String = HELLO.lines().take(6).map(|line| format!("{line}\n")).collect();
    claude(&host).stdout(lines).pauses().pauses();
    assert_eq!(reason(&host.run::<ClaudeCode>("hello").unwrap()), "broken_stream");
    assert_eq!(host.artifact("answer").unwrap(), "ECHO: hello ");
}

#[test]
fn cancelled_task_ends_program() {
    let host = ScriptedHost::new();
    claude(&host).stdout(HELLO);
    host.cancel_after(1);
    assert_eq!(host.run::<ClaudeCode>("hello"), Err(Failure::Cancelled));
}

#[test]
fn special_prompts_are_plain_text() {
    let host = ScriptedHost::new();
    let program = claude(&host).stdout(HELLO);
    host.run::<ClaudeCode>("/context").unwrap();
    assert_eq!(prompt(&program), " /context");
    let env = host.spawned().remove(0).env;
    assert!(env.contains(&("CLAUDE_CODE_DISABLE_ATTACHMENTS".into(), "1".into())));
    assert!(matches!(host.run::<ClaudeCode>("  "), Err(Failure::Invalid(_))));
}

#[test]
fn health_reports_problem_with_fix() {
    let versions = |host: &ScriptedHost| {
        host.program("claude").args(&["--version"]).stdout("2.1.332 (Claude Code)\n");
    };
    let host = ScriptedHost::new();
    versions(&host);
    host.program("claude").args(&["auth", "status"]).stdout("{\n  \"loggedIn\": true\n}\n");
    let health = host.health::<ClaudeCode>();
    assert_eq!(
        (health.status, health.version.as_deref()),
        (HealthStatus::Healthy, Some("2.1.332"))
    );

    versions(&host);
    host.program("claude").args(&["auth", "status"]).stdout("{ \"loggedIn\": false }").exit(1);
    let health = host.health::<ClaudeCode>();
    assert_eq!(
        (health.status, health.fix.as_deref()),
        (HealthStatus::Degraded, Some("claude /login"))
    );

    host.program("claude").refused(Failure::Unavailable("`claude` is not installed".into()));
    let health = host.health::<ClaudeCode>();
    assert_eq!(health.status, HealthStatus::Unhealthy);
    assert_eq!(health.fix.as_deref(), Some("npm install -g @anthropic-ai/claude-code"));
}

#[test]
fn manifest_covers_started_commands() {
    let manifest = include_str!("../manifest.toml");
    let host = ScriptedHost::new();
    let ctx = host.context();
    ctx.remember("session/context-1", &json!({ "id": "s" })).unwrap();
    claude(&host).stdout(HELLO);
    let mut task = task("hello");
    task.message = task.message.with_metadata(&json!({ "model": "m", "effort": "low" }));
    ClaudeCode::run(&ctx, &task).unwrap();
    let command = host.spawned().remove(0);
    let (fixed, free) = command.args.split_at(command.args.len() - 6);
    assert_eq!(free, ["--model", "m", "--effort", "low", "--resume", "s"]);
    let form: Vec<String> = fixed.iter().map(|arg| format!("\"{arg}\"")).collect();
    let on_one_line = manifest.split_whitespace().collect::<Vec<_>>().join(" ");
    let optional = r#""[--tools Read,Glob,Grep]", "[--append-system-prompt-file {}]", "[--mcp-config {}]", "[--model {}]", "[--effort {}]", "[--resume {}]""#;
    let form = format!("{}, {optional}", form.join(", "));
    assert!(on_one_line.contains(&form), "{form}");
    for (name, _) in &command.env {
        assert!(manifest.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn read_only_agent_gets_reading_tools_only() {
    let host = ScriptedHost::new();
    host.setting("permissions", "read-only");
    let (before, after) = at_the_question(include_str!("transcripts/permission.jsonl"));
    let program = claude(&host).stdout(&before).reads().stdout(&after);
    host.run::<ClaudeCode>("make it").unwrap();
    assert_eq!(response(&program)["behavior"], "deny");
    assert_eq!(host.asked().len(), 0, "whatever the client says");
    assert!(host.said().iter().any(|said| said.starts_with("denied Bash")), "{:?}", host.said());
    assert!(host.spawned()[0].args.ends_with(&["--tools".into(), "Read,Glob,Grep".into()]));
}

#[test]
fn full_permissions_ask_no_client() {
    let host = ScriptedHost::new();
    host.setting("permissions", "full");
    let (before, after) = at_the_question(include_str!("transcripts/permission.jsonl"));
    let program = claude(&host).stdout(&before).reads().stdout(&after);
    host.run::<ClaudeCode>("make it").unwrap();
    assert_eq!((response(&program)["behavior"].as_str(), host.asked().len()), (Some("allow"), 0));
}

#[test]
fn allow_for_session_adds_session_rule() {
    let host = ScriptedHost::new();
    let (before, after) = at_the_question(include_str!("transcripts/permission.jsonl"));
    let program = claude(&host).stdout(&before).reads().stdout(&after);
    host.answer("always");
    host.run::<ClaudeCode>("make it").unwrap();
    let rules = &response(&program)["updatedPermissions"];
    assert_eq!(rules[0]["type"], "addRules");
    assert_eq!(rules[0]["destination"], "session");
}

#[test]
fn attached_files_are_inlined_or_written() {
    let host = ScriptedHost::new();
    let program = claude(&host).stdout(HELLO);
    let mut task = task("look");
    task.message.parts.extend([
        Part::file("notes \"1\".txt", "text/plain", b"remember".to_vec()),
        Part::file("shot.png", "image/png", vec![0x89, 0xff]),
        Part::file("big.log", "text/plain", vec![b'x'; 40_000]),
    ]);
    ClaudeCode::run(&host.context(), &task).unwrap();
    let content = prompt(&program);
    assert_eq!(content[0]["source"]["data"], "if8=");
    let text = content[1]["text"].as_str().unwrap();
    assert_eq!(
        text,
        "look\n<file name=\"notes 1.txt\">\nremember\n</file>\n\
         Attached: /files/1/shot.png\nAttached: /files/2/big.log"
    );
    assert_eq!(host.files()[1].1.len(), 40_000);
}

#[test]
fn changed_file_becomes_artifact() {
    let host = ScriptedHost::new();
    let changed = concat!(
        r#"{"type":"user","message":{"role":"user","content":[]},"tool_use_result":{"type":"create","#,
        r#""filePath":"/workspace/a","content":"x\n","structuredPatch":[],"originalFile":null}}"#,
        "\n"
    );
    claude(&host).stdout(changed).stdout(HELLO);
    host.run::<ClaudeCode>("make it").unwrap();
    assert_eq!(
        host.artifact("change:/workspace/a").unwrap(),
        "--- /dev/null\n+++ /workspace/a\n@@ -0,0 +1 @@\n+x\n"
    );
}

#[test]
fn instructions_and_servers_are_passed_as_files() {
    let host = ScriptedHost::new();
    host.setting("system_prompt", "-- Answer in French.");
    host.setting("mcp_servers", r#"{"docs":{"command":"/d","env":{"KEY":"secret"}}}"#);
    claude(&host).stdout(HELLO);
    host.run::<ClaudeCode>("hello").unwrap();
    let args = host.spawned().remove(0).args;
    let after = |flag: &str| args[args.iter().position(|arg| arg == flag).unwrap() + 1].clone();
    let [instructions, servers] = &host.files()[..] else { panic!("{:?}", host.files()) };
    assert_eq!(after("--append-system-prompt-file"), instructions.0);
    assert_eq!(instructions.1, b"-- Answer in French.");
    assert_eq!(after("--mcp-config"), servers.0);
    let told: Value = serde_json::from_slice(&servers.1).unwrap();
    assert_eq!(told["mcpServers"]["docs"]["env"]["KEY"], "secret");
}

#[test]
fn allowed_tool_runs_without_asking() {
    let host = ScriptedHost::new();
    let (before, after) = at_the_question(include_str!("transcripts/permission.jsonl"));
    host.setting("allowed_tools", "Bash, Write");
    let program = claude(&host).stdout(&before).reads().stdout(&after);
    let outcome = host.run::<ClaudeCode>("make it").unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Completed));
    assert_eq!(host.asked(), []);
    assert!(program.stdin().contains(r#""behavior":"allow""#), "{}", program.stdin());
}

#[test]
fn cancelled_question_is_withdrawn() {
    let host = ScriptedHost::new();
    let (before, after) = at_the_question(include_str!("transcripts/permission.jsonl"));
    let asked = before.lines().last().unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    let gone = json!({ "type": "control_cancel_request", "request_id": asked["request_id"] });
    claude(&host).stdout(format!("{before}{gone}\n")).stdout(&after);
    assert_eq!(host.run::<ClaudeCode>("make it").unwrap().state(), Some(TaskState::Completed));
    assert_eq!((host.asked().len(), host.withdrawn()), (1, 1));
}

/// All recordings: whatever the program leaves open, each call ends with its run.
#[test]
fn reported_tool_calls_are_unique_and_ended() {
    let mut ended = 0;
    for recording in [
        include_str!("transcripts/cut_and_retried.jsonl"),
        include_str!("transcripts/hello.jsonl"),
        include_str!("transcripts/login_refused.jsonl"),
        include_str!("transcripts/lost_session.jsonl"),
        include_str!("transcripts/max_turns.jsonl"),
        include_str!("transcripts/not_logged_in.jsonl"),
        include_str!("transcripts/permission.jsonl"),
        include_str!("transcripts/question.jsonl"),
        include_str!("transcripts/rate_limited.jsonl"),
        include_str!("transcripts/resumed.jsonl"),
        include_str!("transcripts/server_error.jsonl"),
        include_str!("transcripts/thinking.jsonl"),
    ] {
        let host = ScriptedHost::new();
        host.setting("permissions", "full");
        claude(&host).stdout(recording);
        let _ = host.run::<ClaudeCode>("go");
        ended += ended_tool_calls(&host.events());
    }
    assert_eq!(ended, 4);
}
