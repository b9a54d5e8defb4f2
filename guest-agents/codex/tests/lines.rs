//! Tests of lines that differ from the recorded ones: another type in a member, half of a surrogate
//! pair, a line that breaks off.

use a2a_hub_sdk::cli::{Action, Driver as _, End, Job};
use a2a_hub_sdk::testing::{deciding_members, end, failure, streamed, unanswered_members};
use codex::driver::CodexDriver;
use serde_json::{Value, json};

/// Driver of a run whose thread has begun.
fn begun() -> CodexDriver {
    let mut driver = CodexDriver::new(&Job::default());
    driver.greet();
    driver.begin();
    driver.line(r#"{"id":3,"result":{"thread":{"id":"t"}}}"#);
    driver
}

fn sent(actions: &[Action]) -> Vec<Value> {
    let mut sent = Vec::new();
    for action in actions {
        if let Action::Send(line) = action {
            sent.push(serde_json::from_str(line).expect("a line to Codex is JSON"));
        }
    }
    sent
}

#[test]
fn only_named_members_decide_completion() {
    for recording in
        [include_str!("transcripts/hello.jsonl"), include_str!("transcripts/patches.jsonl")]
    {
        let deciding = deciding_members(recording, || CodexDriver::new(&Job::default()));
        assert_eq!(
            deciding,
            [
                "answer 2/result/requiresOpenaiAuth",
                "answer 3",
                "answer 3/id",
                "answer 3/result",
                "answer 3/result/thread",
                "answer 3/result/thread/id",
                "turn/completed",
                "turn/completed/method",
                "turn/completed/params",
                "turn/completed/params/threadId",
                "turn/completed/params/turn",
                "turn/completed/params/turn/status",
            ]
        );
    }
}

#[test]
fn halves_of_streamed_text_are_joined() {
    let mut driver = begun();
    let actions: Vec<_> = [r"party \ud83c", r"\udf89 time\ud83d", " all"]
        .iter()
        .flat_map(|text| {
            let params = format!(r#"{{"threadId":"t","delta":"{text}"}}"#);
            driver.line(&format!(r#"{{"method":"item/agentMessage/delta","params":{params}}}"#))
        })
        .collect();
    assert_eq!(streamed(&actions), "party 🎉 time\u{fffd} all");
}

#[test]
fn faulty_request_is_asked_or_answered() {
    let mut driver = begun();
    let asked = driver.line(
        r#"{"id":0,"method":"item/commandExecution/requestApproval","params":{"threadId":"t","command":"echo \ud83d","cwd":null}}"#,
    );
    let [Action::Ask(question)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(question.input["command"], "echo \u{fffd}");
    for line in [
        r#"{"id":"x","method":"item/commandExecution/requestApproval","params":{"command":"#,
        r#"{"id":"x","method":{},"params":{}}"#,
    ] {
        let answer = sent(&driver.line(line)).remove(0);
        assert_eq!(answer["id"], "x", "{line}");
        assert!(answer["error"]["message"].is_string(), "{line}");
    }
}

#[test]
fn broken_off_answer_ends_run() {
    for line in [
        r#"{"id":4,"result":{"turn":"#,
        r#"{"id":"4","result":{"turn":"#,
        r#"{"params":{"threadId":"t","turn":{"status":"completed"}},"method":"turn/completed","x"#,
    ] {
        assert_eq!(failure(&begun().line(line)).0, "broken_stream", "{line}");
    }
    let refused = begun().line(r#"{"id":null,"error":{"code":-32700,"message":"parse error"}}"#);
    assert_eq!(failure(&refused), ("agent_error", "parse error".to_owned()));
    let noise = begun().line("{\"method\":\"item/started\",\"params\":{");
    assert!(matches!(noise.as_slice(), [Action::Log(_)]), "{noise:?}");
}

#[test]
fn errors_of_other_shapes_keep_reason() {
    for (error, reason, text) in [
        (
            json!({ "message": "m", "codexErrorInfo": "serverOverloaded", "additionalDetails": 5 }),
            "overloaded",
            "m: 5",
        ),
        (
            json!({ "message": null, "codexErrorInfo": { "x": { "httpStatusCode": "429" } } }),
            "rate_limited",
            "",
        ),
        (json!({ "codexErrorInfo": { "x": { "httpStatusCode": 429.0 } } }), "rate_limited", ""),
    ] {
        let turn = json!({ "status": "failed", "error": error });
        let line =
            json!({ "method": "turn/completed", "params": { "threadId": "t", "turn": turn } });
        assert_eq!(failure(&begun().line(&line.to_string())), (reason, text.to_owned()), "{error}");
    }
}

/// The question shows a change that is not understood.
#[test]
fn patch_of_other_shape_is_shown() {
    let mut driver = begun();
    let changes = json!([{ "path": "a", "kind": "add", "diff": 1 }, "b.txt", { "file": "c" }]);
    let item = json!({ "type": "fileChange", "id": "i", "changes": changes, "status": null });
    let params = json!({ "threadId": "t", "item": item });
    driver.line(&json!({ "method": "item/started", "params": params }).to_string());
    let asked = driver.line(
        r#"{"id":1,"method":"item/fileChange/requestApproval","params":{"threadId":"t","itemId":"i"}}"#,
    );
    let [Action::Ask(question)] = asked.as_slice() else { panic!("{asked:?}") };
    let shown = question.description.as_deref().unwrap();
    assert_eq!(shown, r#"add a, update "b.txt", update {"file":"c"}"#);
}

#[test]
fn end_without_thread_counts() {
    let line = r#"{"method":"turn/completed","params":{"turn":{"status":"completed"}}}"#;
    assert!(matches!(end(&begun().line(line)), End::Completed { .. }));
    let other =
        r#"{"method":"turn/completed","params":{"threadId":"u","turn":{"status":"completed"}}}"#;
    assert_eq!(begun().line(other), []);
}

#[test]
fn request_of_any_shape_is_answered() {
    for (recording, method) in [
        (include_str!("transcripts/permission.jsonl"), "item/commandExecution/requestApproval"),
        (include_str!("transcripts/patch_asked.jsonl"), "item/fileChange/requestApproval"),
        (include_str!("transcripts/question.jsonl"), "item/tool/requestUserInput"),
    ] {
        let unanswered = unanswered_members(recording, || CodexDriver::new(&Job::default()));
        assert_eq!(
            unanswered,
            [method.to_owned(), format!("{method}/id"), format!("{method}/method")]
        );
    }
}
