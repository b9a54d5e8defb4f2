//! Tests of lines that differ from the recorded ones: another type in a member, half of a surrogate
//! pair, a line that breaks off.

use a2a_hub_sdk::cli::{Action, Driver as _, End, Job};
use a2a_hub_sdk::testing::{
    deciding_members, end, failure, metadata, streamed, unanswered_members,
};
use claude_code::driver::Claude;
use serde_json::{Value, json};

/// Actions of a run with one whole message, which ends with this line.
fn ended_by(last: &str) -> Vec<Action> {
    let mut driver = Claude::new(&Job::default());
    [
        r#"{"type":"system","subtype":"init","session_id":"s"}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"message"}]}}"#,
        last,
    ]
    .into_iter()
    .flat_map(|line| driver.line(line))
    .collect()
}

/// Result line with these members.
fn result(more: &Value) -> String {
    let mut line =
        json!({ "type": "result", "subtype": "success", "is_error": false, "result": "well done" });
    for (name, value) in more.as_object().into_iter().flatten() {
        line[name] = value.clone();
    }
    line.to_string()
}

#[test]
fn result_with_other_types_completes() {
    for (more, text) in [
        (json!({ "errors": null }), "well done"),
        (json!({ "errors": [{ "message": "x" }], "num_turns": "many" }), "well done"),
        (json!({ "usage": [], "total_cost_usd": {}, "terminal_reason": 1 }), "well done"),
        (json!({ "is_error": "false", "api_error_status": "none" }), "well done"),
        (json!({ "is_error": null }), "well done"),
        (json!({ "is_error": 0, "subtype": 7 }), "well done"),
        (json!({ "result": null }), "message"),
        (json!({ "result": { "a": 1 } }), "message"),
        (json!({ "result": { "text": "inner" } }), "inner"),
        (json!({ "result": 5 }), "5"),
    ] {
        let actions = ended_by(&result(&more));
        let End::Completed { text: said, .. } = end(&actions) else {
            panic!("{more}: {actions:?}")
        };
        assert_eq!(said, text, "{more}");
    }
    let spaced = r#"{ "result" : "spaced", "is_error" : false, "type" : "result" }"#;
    assert!(matches!(end(&ended_by(spaced)), End::Completed { text, .. } if text == "spaced"));
    let structured = Claude::new(&Job::default()).line(&result(&json!({ "result": { "a": 1 } })));
    assert!(matches!(end(&structured), End::Completed { text, .. } if text == r#"{"a":1}"#));
}

#[test]
fn numbers_are_read_from_text_and_float() {
    for turns in [json!(2), json!("2"), json!(2.0)] {
        let actions = ended_by(&result(&json!({ "num_turns": turns, "total_cost_usd": "0.5" })));
        let told = metadata(&actions);
        assert_eq!((&told["turns"], &told["cost_usd"]), (&json!(2), &json!(0.5)), "{turns}");
    }
}

#[test]
fn only_named_members_decide_completion() {
    for recording in [
        include_str!("transcripts/hello.jsonl"),
        include_str!("transcripts/resumed.jsonl"),
        include_str!("transcripts/thinking.jsonl"),
    ] {
        let deciding = deciding_members(recording, || Claude::new(&Job::default()));
        assert_eq!(deciding, ["result", "result/is_error", "result/type"]);
    }
}

#[test]
fn refusal_without_status_keeps_its_reason() {
    let refused = |more: &Value| failure(&ended_by(&result(more))).0;
    let text = |text: &str| json!({ "is_error": true, "result": text });
    for (more, reason) in [
        (text("API Error: Rate limit reached"), "rate_limited"),
        (text("Claude AI usage limit reached|1764230400"), "rate_limited"),
        (text("You've hit your limit · resets 3pm"), "rate_limited"),
        (text("API Error: 429 {\"type\":\"error\"}"), "rate_limited"),
        (text("API Error: Overloaded"), "overloaded"),
        (text("API Error: Connection error."), "api_error"),
        (text("the rate limit of the tested server is 429"), "agent_error"),
        (json!({ "is_error": true, "api_error_status": "429" }), "rate_limited"),
        (json!({ "is_error": true, "api_error_status": 529.0 }), "overloaded"),
        (json!({ "is_error": true, "subtype": "error_max_turns", "result": null }), "max_turns"),
    ] {
        assert_eq!(refused(&more), reason, "{more}");
    }
    let mut driver = Claude::new(&Job::default());
    driver.line(r#"{"type":"assistant","message":{"content":[]},"error":"rate_limit"}"#);
    let actions = driver.line(&result(&json!({ "is_error": true, "result": "no" })));
    assert_eq!(failure(&actions).0, "rate_limited");
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":"1","max_retries":null,"error":"rate_limit"}"#;
    let actions = driver.line(retry);
    let [Action::Retrying { status, end: End::Failed { reason, .. } }] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!((status.as_str(), reason.name()), ("retrying 1: rate limit", "rate_limited"));
}

#[test]
fn half_surrogate_costs_one_character() {
    let delta = |text: &str| {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{text}"}}}}}}"#
        )
    };
    let mut driver = Claude::new(&Job::default());
    let mut actions: Vec<_> = [r"party \ud83c", r"\udf89 time", r" all \ud83d"]
        .iter()
        .flat_map(|text| driver.line(&delta(text)))
        .collect();
    assert_eq!(streamed(&actions), "party 🎉 time all ");
    actions.extend(driver.line(r#"{"type":"result","is_error":false,"result":"cut \ud83d..."}"#));
    assert!(matches!(end(&actions), End::Completed { text, .. } if text == "cut \u{fffd}..."));

    let asked = driver.line(
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"content":"\ud83d"}}}"#,
    );
    let [Action::Ask(question)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(question.input["content"], "\u{fffd}");
}

#[test]
fn broken_off_line_is_never_silent() {
    let log = |action: &Action| matches!(action, Action::Log(_));
    for line in [
        r#"{"type":"result","is_error":false,"result":"well"#,
        r#"{"is_error":false,"type" : "result","result":{"a":"#,
    ] {
        assert_eq!(failure(&ended_by(line)).0, "broken_stream", "{line}");
    }
    let mut driver = Claude::new(&Job::default());
    let answered = driver.line(r#"{"type": "control_request","request_id":"r","request":{"sub"#);
    let [skipped, Action::Send(line)] = answered.as_slice() else { panic!("{answered:?}") };
    assert!(log(skipped));
    let answer: Value = serde_json::from_str(line).unwrap();
    assert_eq!(answer["response"]["request_id"], "r");
    for line in ["npm warn deprecated", r#"{"type":"assistant","message":{"content":[{"#] {
        let actions = driver.line(line);
        assert!(matches!(actions.as_slice(), [skipped] if log(skipped)), "{line}: {actions:?}");
    }
    assert_eq!(driver.line("  "), []);
}

#[test]
fn message_content_of_other_shapes_is_read() {
    for (content, text) in [
        (json!("plain"), "plain"),
        (
            json!([{ "type": "text", "text": null }, 5, { "type": "text", "text": "second" }]),
            "second",
        ),
        (json!([{ "text": "untyped" }, { "type": "text", "text": "typed" }]), "typed"),
        (json!(null), ""),
    ] {
        let mut driver = Claude::new(&Job::default());
        let message = json!({ "type": "assistant", "message": { "content": content } });
        driver.line(&message.to_string());
        let actions = driver.line(r#"{"type":"result","is_error":false,"errors":[]}"#);
        assert!(
            matches!(end(&actions), End::Completed { text: said, .. } if said == text),
            "{content}"
        );
    }
}

#[test]
fn request_of_any_shape_is_answered() {
    for recording in
        [include_str!("transcripts/permission.jsonl"), include_str!("transcripts/question.jsonl")]
    {
        let unanswered = unanswered_members(recording, || Claude::new(&Job::default()));
        assert_eq!(unanswered, ["control_request", "control_request/type"]);
    }
}
