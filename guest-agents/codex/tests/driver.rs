//! Tests of the driver on recorded runs of the CLI (0.169.0, against a model that echoes).

use a2a_hub_sdk::cli::{Action, Decision, Driver as _, End, FileChange, Job, Question, Session};
use a2a_hub_sdk::cli::{Choices, Kind, Permissions};
use a2a_hub_sdk::testing::{end, failure, feed_reshaped, metadata, streamed};
use a2a_hub_sdk::{Exit, ExitStatus};
use codex::driver::CodexDriver;
use serde_json::{Value, json};

const THREAD: &str = "00000000-0000-4000-8000-000000000001";

fn job() -> Job {
    Job { prompt: "hello there".into(), directory: Some("/workspace".into()), ..Job::default() }
}

fn actions_of(job: &Job, transcript: &str) -> Vec<Action> {
    let mut driver = CodexDriver::new(job);
    transcript.lines().flat_map(|line| driver.line(line)).collect()
}

fn actions(transcript: &str) -> Vec<Action> {
    actions_of(&job(), transcript)
}

/// Actions that `pick` selects.
fn picked<'a, T>(actions: &'a [Action], pick: impl Fn(&'a Action) -> Option<T>) -> Vec<T> {
    actions.iter().filter_map(pick).collect()
}

fn said(actions: &[Action]) -> Vec<&str> {
    picked(actions, |action| {
        if let Action::Say(text)
        | Action::Report { text, .. }
        | Action::Retrying { status: text, .. } = action
        {
            Some(text.as_str()).filter(|text| !text.is_empty())
        } else {
            None
        }
    })
}

/// Messages to Codex, as JSON.
fn sent(actions: &[Action]) -> Vec<Value> {
    let json = |line: &String| serde_json::from_str(line).expect("a line to Codex is JSON");
    picked(actions, |action| if let Action::Send(line) = action { Some(json(line)) } else { None })
}

fn changes(actions: &[Action]) -> Vec<&FileChange> {
    picked(actions, |action| if let Action::Changed(change) = action { Some(change) } else { None })
}

fn question(actions: &[Action]) -> &Question {
    let asked =
        picked(actions, |action| if let Action::Ask(asked) = action { Some(asked) } else { None });
    asked.first().expect("a question")
}

#[test]
fn lines_of_unexpected_shapes_never_panic() {
    let mut fed = 0;
    for recording in [
        include_str!("transcripts/hello.jsonl"),
        include_str!("transcripts/patches.jsonl"),
        include_str!("transcripts/patch_asked.jsonl"),
        include_str!("transcripts/permission.jsonl"),
        include_str!("transcripts/question.jsonl"),
        include_str!("transcripts/rate_limited.jsonl"),
        include_str!("transcripts/lost.jsonl"),
    ] {
        fed += feed_reshaped(recording, || CodexDriver::new(&job()));
    }
    assert!(fed > 1_000, "{fed} lines");
}

/// Messages to Codex before it asks anything.
fn told(job: &Job) -> Vec<Value> {
    let mut driver = CodexDriver::new(&Job {
        choices: Choices { effort: Some("low".into()), ..Choices::default() },
        ..job.clone()
    });
    let mut actions = driver.greet();
    actions.extend(driver.begin());
    let hello = include_str!("transcripts/hello.jsonl");
    actions.extend(hello.lines().flat_map(|line| driver.line(line)));
    sent(&actions)
}

#[test]
fn run_starts_with_ordered_requests() {
    let told = told(&job());
    let methods: Vec<_> = told.iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(
        methods,
        ["initialize", "initialized", "account/read", "thread/start", "turn/start"]
    );
    assert_eq!(
        told[3]["params"],
        json!({
            "cwd": "/workspace",
            "sandbox": "read-only",
            "approvalPolicy": "on-request",
            "approvalsReviewer": "user",
        })
    );
    assert_eq!(
        told[4]["params"],
        json!({
            "threadId": THREAD,
            "input": [{ "type": "text", "text": "hello there" }],
            "approvalPolicy": "on-request",
            "sandboxPolicy": { "type": "readOnly" },
            "effort": "low",
        })
    );
}

#[test]
fn permissions_set_sandbox_of_turn_only() {
    for (permissions, policy, sandbox) in [
        (Permissions::Ask, "on-request", "readOnly"),
        (Permissions::ReadOnly, "never", "readOnly"),
        (Permissions::Edit, "on-request", "workspaceWrite"),
        (Permissions::Full, "never", "dangerFullAccess"),
    ] {
        let told = told(&Job { permissions, ..job() });
        assert_eq!(told[3]["params"]["sandbox"], "read-only", "{permissions:?}");
        assert_eq!(told[4]["params"]["approvalPolicy"], policy, "{permissions:?}");
        assert_eq!(told[4]["params"]["sandboxPolicy"]["type"], sandbox, "{permissions:?}");
    }
}

#[test]
fn additional_directories_are_named_and_writable() {
    let additional = vec!["/more".to_owned()];
    for (permissions, roots) in
        [(Permissions::Edit, json!(["/more"])), (Permissions::Ask, Value::Null)]
    {
        let told = told(&Job { permissions, additional: additional.clone(), ..job() });
        assert_eq!(told[4]["params"]["sandboxPolicy"]["writableRoots"], roots, "{permissions:?}");
        let said = told[3]["params"]["developerInstructions"].as_str().unwrap();
        assert!(said.ends_with(r#"in these directories: ["/more"]"#), "{said}");
    }
    assert_eq!(told(&job())[3]["params"]["developerInstructions"], Value::Null);
}

#[test]
fn answer_is_streamed_then_completed() {
    let actions = actions(include_str!("transcripts/hello.jsonl"));
    let kept = Session::new(THREAD);
    assert!(matches!(actions[..2], [Action::Settled, Action::Send(_)]));
    assert_eq!(actions[2], Action::Remember(kept));
    assert_eq!(actions[3], Action::Restart);
    assert_eq!(actions[4..7], ["ECHO: ", "hello ", "there"].map(|text| Action::Delta(text.into())));
    assert!(matches!(end(&actions), End::Completed { text, .. } if text == "ECHO: hello there"));
    assert_eq!(actions.len(), 9);
    assert_eq!(
        metadata(&actions),
        json!({
            "model": "mock-model",
            "usage": {
                "input_tokens": 10972,
                "cached_input_tokens": 0,
                "output_tokens": 4,
                "reasoning_output_tokens": 0,
            },
        })
    );
}

#[test]
fn resumed_thread_reports_usage_of_run() {
    let first = actions(include_str!("transcripts/hello.jsonl"));
    let Some(Action::Remember(session)) = first.iter().rev().nth(1) else { panic!("{first:?}") };
    let job = Job { session: Some(session.clone()), ..job() };
    let begun = sent(&CodexDriver::new(&job).begin());
    assert_eq!(begun[0]["method"], "thread/resume");
    assert_eq!(begun[0]["params"]["threadId"], THREAD);
    let actions = actions_of(&job, include_str!("transcripts/resumed.jsonl"));
    let usage = &metadata(&actions)["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(11057), &json!(2)));
}

#[test]
fn later_turn_starts_directly_with_own_usage() {
    let mut first = CodexDriver::new(&job());
    for line in include_str!("transcripts/hello.jsonl").lines() {
        first.line(line);
    }
    let left = first.idle().expect("it answered, and nothing is open");
    assert_eq!((left.session.id.as_str(), &left.state), (THREAD, &json!("mock-model")));

    let mut second = CodexDriver::new(&Job { prompt: "again".into(), ..job() });
    assert_eq!(second.idle(), None, "it has not answered");
    let told = sent(&second.again(&left).unwrap());
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (&told[0]["method"], &told[0]["params"]["threadId"]),
        (&json!("turn/start"), &json!(THREAD))
    );
    let resumed = include_str!("transcripts/resumed.jsonl").lines();
    let turn = resumed.filter(|line| !line.contains(r#""id":3"#));
    let actions: Vec<_> = turn.flat_map(|line| second.line(line)).collect();
    let usage = &metadata(&actions)["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(11057), &json!(2)));
    assert!(second.idle().is_some());
}

#[test]
fn lost_thread_differs_from_other_refusals() {
    let lost = include_str!("transcripts/lost.jsonl");
    let resuming = Job { session: Some(Session::new("gone")), ..job() };
    assert_eq!(*end(&actions_of(&resuming, lost)), End::SessionLost);
    assert_eq!(failure(&actions(lost)).0, "agent_error");
}

#[test]
fn command_question_relays_decision() {
    let actions = actions(include_str!("transcripts/permission.jsonl"));
    assert_eq!(said(&actions), ["running shell: touch made.txt && echo done"]);
    let question = question(&actions);
    assert_eq!(
        question.prompt("Codex").text(),
        "Codex wants to use shell in /workspace:\ntouch made.txt && echo done\n\
         Reason: It writes a file.\nAllow it? (yes or no)"
    );
    assert_eq!(question.input["reason"], "It writes a file.");
    for (decision, word) in [
        (Decision::Allow, "accept"),
        (Decision::AllowForSession, "acceptForSession"),
        (Decision::Deny("no".into()), "decline"),
    ] {
        let told = sent(&CodexDriver::new(&job()).decided(question, &decision));
        assert_eq!(told, [json!({ "id": 0, "result": { "decision": word } })]);
    }
}

#[test]
fn patch_question_contains_diff() {
    let actions = actions(include_str!("transcripts/patch_asked.jsonl"));
    let question = question(&actions);
    // Under `edit` the file would be outside of the workspace, so the permission does not cover it.
    assert_eq!(question.kind, Kind::Run);
    assert_eq!(question.description.as_deref(), Some("add /workspace/a.txt"));
    assert!(
        question.prompt("Codex").text().contains(
            "add /workspace/a.txt\n--- /dev/null\n+++ /workspace/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\nAllow"
        ),
        "{}",
        question.prompt("Codex").text()
    );
    let change = &question.input["changes"][0];
    assert_eq!(change["path"], "/workspace/a.txt");
    assert_eq!(
        change["diff"],
        "--- /dev/null\n+++ /workspace/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    );
    assert_eq!(changes(&actions).len(), 1);
}

#[test]
fn only_applied_patches_are_reported() {
    let patched = actions(include_str!("transcripts/patches.jsonl"));
    let told: Vec<_> = changes(&patched)
        .iter()
        .map(|change| (change.path.as_str(), change.diff.as_deref().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            (
                "/workspace/a.txt",
                "--- /workspace/a.txt\n+++ /workspace/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
            ),
            (
                "/workspace/b.txt",
                "--- /workspace/a.txt\n+++ /workspace/b.txt\n@@ -1,2 +1,2 @@\n one\n-three\n+four\n"
            ),
            (
                "/workspace/b.txt",
                "--- /workspace/b.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-four\n"
            ),
        ]
    );
    assert_eq!(said(&patched)[0], "running apply_patch: update /workspace/a.txt");
    let tools = picked(&patched, |action| {
        if let Action::Report { facts, .. } = action { Some(&facts["tool"]) } else { None }
    });
    assert_eq!(tools[0]["input"]["paths"], json!(["/workspace/a.txt"]));
    assert_eq!((&tools[0]["kind"], &tools[0]["name"]), (&json!("edit"), &json!("apply_patch")));
    assert_eq!((&tools[1]["id"], &tools[1]["status"]), (&tools[0]["id"], &json!("completed")));
    let declined = actions(include_str!("transcripts/patch_declined.jsonl"));
    assert!(changes(&declined).is_empty());
}

#[test]
fn plan_and_context_are_reported() {
    let mut driver = CodexDriver::new(&job());
    let mut line = |method: &str, params: Value| {
        driver.line(&json!({ "method": method, "params": params }).to_string())
    };
    let steps = json!([{ "step": "read", "status": "completed" }, { "step": "write", "status": "inProgress" }]);
    let told = line("turn/plan/updated", json!({ "plan": steps }));
    let [Action::Report { text, facts }] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(text, "plan, step 2 of 2: write");
    assert_eq!(facts["plan"][1], json!({ "content": "write", "status": "in_progress" }));
    let usage = json!({ "last": { "totalTokens": 70 }, "modelContextWindow": 900 });
    line("thread/tokenUsage/updated", json!({ "tokenUsage": usage }));
    line("thread/tokenUsage/updated", json!({ "tokenUsage": { "last": 7 } }));
    let ended = line("turn/completed", json!({ "turn": { "status": "completed" } }));
    assert_eq!(metadata(&ended)["context"], json!({ "used": 70, "size": 900 }));
}

#[test]
fn client_answers_models_question() {
    let actions = actions(include_str!("transcripts/question.jsonl"));
    let question = question(&actions);
    assert_eq!(question.prompt("Codex").text(), "Which colour? (red, blue)");
    let green = question.decision("green".into());
    let told = sent(&CodexDriver::new(&job()).decided(question, &green));
    let answers = json!({ "answers": { "colour": { "answers": ["green"] } } });
    assert_eq!(told, [json!({ "id": 0, "result": answers })]);
}

#[test]
fn unsupported_requests_get_response() {
    let mut driver = CodexDriver::new(&job());
    let told = sent(&driver.line(r#"{"id":7,"method":"item/tool/call","params":{}}"#));
    assert_eq!((&told[0]["id"], &told[0]["error"]["code"]), (&json!(7), &json!(-32601)));

    let form = json!({ "id": 8, "method": "mcpServer/elicitation/request", "params": {
        "serverName": "deploy", "message": "Who are you?",
        "requestedSchema": { "required": ["name"] },
    }});
    assert_eq!(sent(&driver.line(&form.to_string()))[0]["result"]["action"], "decline");
    let plain = json!({ "id": 9, "method": "mcpServer/elicitation/request", "params": {
        "serverName": "deploy", "message": "Deploy now?", "requestedSchema": { "properties": {} },
    }});
    let asked = driver.line(&plain.to_string());
    let told = sent(&driver.decided(question(&asked), &Decision::Allow));
    assert_eq!(told[0]["result"]["action"], "accept");

    let wanted = json!({ "network": { "enabled": true } });
    let more = json!({ "id": 10, "method": "item/permissions/requestApproval", "params": {
        "cwd": "/workspace", "permissions": wanted, "reason": "to fetch",
    }});
    let asked = driver.line(&more.to_string());
    for (decision, result) in [
        (Decision::Allow, json!({ "permissions": wanted, "scope": "turn" })),
        (Decision::Deny("no".into()), json!({ "permissions": {} })),
    ] {
        let told = sent(&driver.decided(question(&asked), &decision));
        assert_eq!(told[0]["result"], result);
    }
}

#[test]
fn missing_login_is_detected_at_start() {
    let actions = actions(include_str!("transcripts/not_logged_in.jsonl"));
    assert!(matches!(actions[0], Action::End(End::LoginNeeded(_))), "{actions:?}");
}

#[test]
fn second_login_refusal_needs_login() {
    let refused = include_str!("transcripts/login_refused.jsonl");
    let mut driver = CodexDriver::new(&job());
    let mut retries = 0;
    for line in refused.lines() {
        for action in driver.line(line) {
            if let Action::End(end) = action {
                assert!(
                    matches!(&end, End::LoginNeeded(text) if text.contains("401 Unauthorized"))
                );
                assert_eq!(retries, 1, "more tries end alike");
                return;
            }
            retries += u32::from(matches!(action, Action::Retrying { .. }));
        }
    }
    panic!("no end");
}

#[test]
fn missing_key_needs_login() {
    let actions = actions(include_str!("transcripts/no_key.jsonl"));
    let End::LoginNeeded(text) = end(&actions) else { panic!("{actions:?}") };
    assert_eq!(text, "Missing environment variable: `MOCK_KEY`.");
}

#[test]
fn failures_have_reason_and_vendor_text() {
    let limited = include_str!("transcripts/rate_limited.jsonl");
    let words = "exceeded retry limit, last status: 429 Too Many Requests";
    assert_eq!(failure(&actions(limited)), ("rate_limited", words.into()));
    let retries = actions(limited);
    assert_eq!(said(&retries)[0], format!("retrying: Reconnecting... 1/5: {words}"));
    let (reason, text) = failure(&actions(include_str!("transcripts/bad_request.jsonl")));
    assert_eq!((reason, text.as_str()), ("api_error", "mock error 400"));
    assert_eq!(failure(&actions(include_str!("transcripts/server_error.jsonl"))).0, "api_error");
    let (reason, text) = failure(&actions(include_str!("transcripts/broken_stream.jsonl")));
    assert_eq!(reason, "broken_stream");
    assert!(text.ends_with("mock mid-stream error"), "{text}");
}

#[test]
fn error_kinds_map_to_reasons() {
    for (info, reason) in [
        (json!("contextWindowExceeded"), "max_tokens"),
        (json!("usageLimitExceeded"), "rate_limited"),
        (json!("serverOverloaded"), "overloaded"),
        (json!({ "responseTooManyFailedAttempts": { "httpStatusCode": 503 } }), "overloaded"),
        (json!("cyberPolicy"), "refused"),
        (json!("a word of tomorrow"), "api_error"),
        (json!(null), "api_error"),
    ] {
        let hello = include_str!("transcripts/hello.jsonl");
        let failed = json!({ "method": "turn/completed", "params": { "threadId": THREAD, "turn": {
            "status": "failed", "error": { "message": "no", "codexErrorInfo": info },
        }}});
        let begun: Vec<_> = hello.lines().take(5).collect();
        assert_eq!(
            failure(&actions(&format!("{}\n{failed}", begun.join("\n")))),
            (reason, "no".into())
        );
    }
}

#[test]
fn used_up_window_names_reset() {
    let reset = |limits: Value| {
        let limits =
            json!({ "method": "account/rateLimits/updated", "params": { "rateLimits": limits } });
        let failed = json!({ "method": "turn/completed", "params": { "threadId": THREAD, "turn": {
            "status": "failed", "error": { "message": "no", "codexErrorInfo": "usageLimitExceeded" },
        }}});
        let begun: Vec<_> = include_str!("transcripts/hello.jsonl").lines().take(5).collect();
        let actions = actions(&format!("{}\n{limits}\n{failed}", begun.join("\n")));
        let End::Failed { metadata, .. } = end(&actions) else { panic!("{actions:?}") };
        metadata.get("quotaResetsAt").cloned().unwrap_or_default()
    };
    let window = |used: f64, resets: u64| json!({ "usedPercent": used, "resetsAt": resets });
    assert_eq!(reset(json!({ "primary": window(100.0, 7), "secondary": window(40.0, 9) })), 7);
    assert_eq!(reset(json!({ "primary": window(100.0, 7), "secondary": window(100.0, 9) })), 9);
    for none in [
        json!({ "primary": window(99.0, 7), "secondary": null }),
        json!({ "primary": { "usedPercent": 100, "resetsAt": -7 } }),
        json!({ "primary": { "usedPercent": "much", "resetsAt": 7 } }),
        json!([1]),
        json!(null),
    ] {
        assert_eq!(reset(none.clone()), Value::Null, "{none}");
    }
}

#[test]
fn retried_message_replaces_streamed_text() {
    let actions = actions(include_str!("transcripts/broken_stream.jsonl"));
    let restarts = actions.iter().filter(|action| **action == Action::Restart).count();
    assert!(restarts > 1, "{actions:?}");
    let retried = actions_of(&job(), include_str!("transcripts/retried.jsonl"));
    assert_eq!(streamed(&retried), "ECHO: [[error:429:1]] y");
}

#[test]
fn events_of_other_threads_are_ignored() {
    let mut driver = CodexDriver::new(&job());
    for line in include_str!("transcripts/hello.jsonl").lines().take(5) {
        driver.line(line);
    }
    let delta = json!({ "method": "item/agentMessage/delta", "params": {
        "threadId": "another", "itemId": "msg_1", "delta": "psst",
    }});
    assert!(driver.line(&delta.to_string()).is_empty());
}

#[test]
fn only_completed_turn_succeeds() {
    for (status, reason) in [
        (json!("interrupted"), "interrupted"),
        (json!("odd"), "broken_stream"),
        (json!(null), "broken_stream"),
    ] {
        let over = json!({ "method": "turn/completed", "params": {
            "threadId": THREAD, "turn": { "status": status },
        }});
        let transcript = include_str!("transcripts/hello.jsonl");
        let begun: Vec<_> = transcript.lines().take(5).collect();
        assert_eq!(failure(&actions(&format!("{}\n{over}", begun.join("\n")))).0, reason);
    }
    assert_eq!(
        failure(&actions(r#"{"method":"turn/completed","params":{"turn"#)).0,
        "broken_stream"
    );
    let ended = Exit { status: ExitStatus::Code(0), stderr: String::new() };
    let End::Failed { reason, text, .. } = CodexDriver::new(&job()).ended(&ended) else {
        panic!("an end without a turn is a failure");
    };
    assert_eq!(
        (reason.name(), text.as_str()),
        ("agent_error", "codex ended (exit code 0) before it was done")
    );
}

#[test]
fn noise_and_unknown_lines_are_ignored() {
    let mut driver = CodexDriver::new(&job());
    for line in ["", "[]", "null", "42", r#"{"method":"new/thing"}"#, r#"{"id":"x","result":1}"#] {
        assert!(driver.line(line).is_empty(), "{line}");
    }
    driver.line("Segmentation fault");
    let ended = Exit { status: ExitStatus::Signal(11), stderr: String::new() };
    let End::Failed { text, .. } = driver.ended(&ended) else { panic!("no failure") };
    assert!(text.ends_with("(signal 11) before it was done: Segmentation fault"), "{text}");
    let stderr = "warning: Codex's Linux sandbox uses bubblewrap".to_owned();
    let killed = Exit { status: ExitStatus::Signal(9), stderr };
    let End::Failed { reason, text, .. } = CodexDriver::new(&job()).ended(&killed) else {
        panic!("no failure")
    };
    assert_eq!(text, "codex ended (signal 9) before it was done");
    assert_eq!(reason.name(), "broken_stream", "nothing is wrong with the set-up");
}
