//! Tests of lines that differ from the recorded ones: another type in a member, half of a surrogate
//! pair, a line that breaks off.

use a2a_hub_sdk::cli::acp::Acp;
use a2a_hub_sdk::cli::{Action, Choices, Driver as _, End, Job};
use a2a_hub_sdk::testing::{deciding_members, end, failure, metadata, streamed};
use gemini::{Gemini, one_shot::OneShot};
use serde_json::json;

fn actions(lines: &[&str]) -> Vec<Action> {
    let mut driver = OneShot::new(&Job::default());
    lines.iter().flat_map(|line| driver.line(line)).collect()
}

#[test]
fn only_named_members_decide_one_shot() {
    for recording in [
        include_str!("transcripts/one_shot_hello.jsonl"),
        include_str!("transcripts/one_shot_tools.jsonl"),
    ] {
        let deciding = deciding_members(recording, || OneShot::new(&Job::default()));
        assert_eq!(deciding, ["result", "result/status", "result/type"]);
    }
}

#[test]
fn only_named_members_decide_acp() {
    let recording = include_str!("transcripts/hello.jsonl");
    let choices = Choices { model: Some("gemini-3.8-flash".to_owned()), ..Choices::default() };
    let job = Job { choices, ..Job::default() };
    let deciding = deciding_members(recording, || Acp::new(Gemini, job.clone(), "/workspace"));
    assert_eq!(
        deciding,
        [
            "answer 1",
            "answer 1/id",
            "answer 2",
            "answer 2/id",
            "answer 2/result",
            "answer 2/result/modes",
            "answer 2/result/modes/currentModeId",
            "answer 2/result/sessionId",
            "answer 3",
            "answer 3/id",
            "answer 4",
            "answer 4/id",
            "answer 4/result",
            "answer 4/result/_meta/quota/model_usage",
            "answer 4/result/stopReason",
        ]
    );
}

#[test]
fn halves_of_streamed_text_are_joined() {
    let actions = actions(&[
        r#"{"type":"message","role":"assistant","content":"party \ud83c","delta":true}"#,
        r#"{"type":"message","role":"assistant","content":"\udf89 time \ud83d","delta":true}"#,
        r#"{"type":"result","status":"success"}"#,
    ]);
    assert_eq!(streamed(&actions), "party 🎉 time ");
    let End::Completed { text, .. } = end(&actions) else { panic!("{actions:?}") };
    assert_eq!(text, "party 🎉 time \u{fffd}");
}

#[test]
fn result_of_other_types_is_read() {
    let stats = json!({ "input_tokens": "7", "output_tokens": 2.0, "models": { "m": { "total_tokens": "9" } } });
    let line = json!({ "type": "result", "status": "success", "stats": stats }).to_string();
    let told = metadata(&actions(&[&line]));
    assert_eq!(told, json!({ "model": "m", "usage": { "input_tokens": 7, "output_tokens": 2 } }));
    for (error, reason, text) in [
        (json!("boom"), "api_error", "boom"),
        (json!({ "message": { "text": "inner" } }), "api_error", "inner"),
        (
            json!({ "message": "[API Error: {\"error\":{\"code\":\"429\",\"message\":\"q\"}}]" }),
            "rate_limited",
            "q",
        ),
        (json!(null), "broken_stream", "Gemini CLI does not say why it failed"),
    ] {
        let line = json!({ "type": "result", "status": "error", "error": error }).to_string();
        assert_eq!(failure(&actions(&[&line])), (reason, text.to_owned()), "{error}");
    }
}

#[test]
fn unreadable_line_is_logged() {
    for line in ["Loading…", r#"{"type":"message","role":"assistant","content":"#] {
        let actions = actions(&[line]);
        assert!(matches!(actions.as_slice(), [Action::Log(_)]), "{line}: {actions:?}");
    }
}

/// The lines of 0.61.0 about a tool of the hub's server, whose name and input are elsewhere.
#[test]
fn hub_tool_question_names_agent() {
    let mut driver = Acp::new(Gemini, Job::default(), "/workspace");
    driver.greet();
    let asked = driver.line(
        r#"{"id":0,"method":"session/request_permission","params":{"options":[{"optionId":"proceed_once","kind":"allow_once"}],"toolCall":{"toolCallId":"mcp_a2a-hub_claude-code__mcp_a2a-hub_claude-code_1795754676756_0","status":"pending","title":"claude-code (a2a-hub MCP Server)","content":[{"type":"content","content":{"type":"text","text":"{\"message\":\"review the parser\"}"}}],"locations":[],"kind":"other"}}}"#,
    );
    let [Action::Ask(question)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(
        question.prompt("Gemini CLI").text(),
        "Gemini CLI wants to give a task to the agent claude-code (by mcp_a2a-hub_claude-code) in \
         /workspace:\nclaude-code (a2a-hub MCP Server)\nmessage: review the parser\nAllow it? (yes or no)"
    );
    assert_eq!(question.input, json!({ "message": "review the parser" }));
}
