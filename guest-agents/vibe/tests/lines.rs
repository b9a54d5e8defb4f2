//! Tests of the Agent Client Protocol's driver with lines that differ from the recorded ones:
//! another type in a member, half of a surrogate pair, a line that breaks off.

use a2a_hub_sdk::cli::acp::Acp;
use a2a_hub_sdk::cli::{Action, Driver as _, End, Job, Permissions};
use a2a_hub_sdk::testing::{
    deciding_members, end, failure, fed, metadata, streamed, unanswered_members,
};
use serde_json::{Value, json};
use vibe::Vibe;

fn driver() -> Acp<Vibe> {
    Acp::new(Vibe, Job::default(), "/workspace")
}

/// Driver whose prompt is being answered, as its third request.
fn prompted() -> Acp<Vibe> {
    let mut driver = driver();
    driver.greet();
    driver.line(r#"{"id":1,"result":{}}"#);
    driver.line(r#"{"id":2,"result":{"sessionId":"s","modes":{"currentModeId":"ask"}}}"#);
    driver
}

fn chunk(content: &str) -> String {
    format!(
        r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"agent_message_chunk","content":{content}}}}}}}"#
    )
}

fn answer(actions: &[Action]) -> Value {
    let [.., Action::Send(line)] = actions else { panic!("{actions:?}") };
    serde_json::from_str(line).expect("a line to Vibe is JSON")
}

#[test]
fn only_named_members_decide_completion() {
    let recording = include_str!("transcripts/hello.jsonl");
    let deciding = deciding_members(recording, driver);
    assert_eq!(
        deciding,
        [
            "answer 1",
            "answer 1/id",
            "answer 2",
            "answer 2/id",
            "answer 2/result",
            "answer 2/result/modes",
            "answer 2/result/modes/availableModes",
            "answer 2/result/modes/availableModes/0",
            "answer 2/result/modes/availableModes/0/id",
            "answer 2/result/sessionId",
            "answer 3",
            "answer 3/id",
            "answer 4",
            "answer 4/id",
            "answer 4/result",
            "answer 4/result/stopReason",
        ]
    );
}

#[test]
fn halves_of_successive_chunks_are_joined() {
    let mut driver = prompted();
    let mut actions: Vec<_> = [r#""party \ud83c""#, r#""\udf89 time""#, r#"" all \ud83d""#]
        .iter()
        .flat_map(|text| driver.line(&chunk(&format!(r#"{{"type":"text","text":{text}}}"#))))
        .collect();
    assert_eq!(streamed(&actions), "party 🎉 time all ");
    actions.extend(fed(&mut driver, r#"{"id":3,"result":{"stopReason":"end_turn"}}"#));
    let End::Completed { text, .. } = end(&actions) else { panic!("{actions:?}") };
    assert_eq!(text, "party 🎉 time all \u{fffd}");
}

#[test]
fn question_with_half_surrogate_is_asked() {
    let asked = prompted().line(
        r#"{"id":900,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"t","title":"write \ud83d","kind":"execute"},"options":[]}}"#,
    );
    let [Action::Ask(question)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(question.description.as_deref(), Some("write \u{fffd}"));
}

/// A reused program that has the wanted mode gets the next prompt at once.
#[test]
fn reused_program_gets_mode_if_different() {
    let mut driver = prompted();
    fed(&mut driver, r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
    let left = driver.idle().expect("it has answered");
    let next = |left: &_, permissions| {
        let job = Job { permissions, prompt: "again".into(), ..Job::default() };
        let mut driver = Acp::new(Vibe, job, "/workspace");
        let first = driver.again(left).expect("it can be reused");
        (driver, answer(&first))
    };
    let (mut same, told) = next(&left, Permissions::Ask);
    assert_eq!((&told["id"], &told["method"]), (&json!(4), &json!("session/prompt")));
    let refused = r#"{"id":4,"error":{"code":-32602,"message":"Session not found: s"}}"#;
    assert_eq!(*end(&same.line(refused)), End::SessionLost);

    let (mut other, told) = next(&left, Permissions::Edit);
    assert_eq!(told["params"]["modeId"], "accept-edits");
    assert_eq!(answer(&other.line(r#"{"id":4,"result":{}}"#))["method"], "session/prompt");
    fed(&mut other, r#"{"id":5,"result":{"stopReason":"end_turn"}}"#);
    let (_, told) = next(&other.idle().unwrap(), Permissions::Edit);
    assert_eq!(told["method"], "session/prompt");

    // The program changed its mode itself.
    let mut changed = prompted();
    changed.line(
        r#"{"method":"session/update","params":{"update":{"sessionUpdate":"current_mode_update","currentModeId":"auto-approve"}}}"#,
    );
    fed(&mut changed, r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
    let (_, told) = next(&changed.idle().unwrap(), Permissions::Ask);
    assert_eq!(told["params"]["modeId"], "ask");
}

/// The lines of 3.0.2 about a tool of the hub's server.
#[test]
fn hub_tool_question_names_agent() {
    let mut driver = prompted();
    driver.line(
        r#"{"method":"session/update","params":{"update":{"toolCallId":"e","title":"mcp_a2a_hub.claude_code","kind":"other","status":"in_progress","rawInput":{"message":"review the parser"},"_meta":{"tool_name":"mcp_a2a_hub.claude_code","effect_kind":"tool"},"sessionUpdate":"tool_call"}}}"#,
    );
    let asked = driver.line(
        r#"{"id":0,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"e"},"options":[{"optionId":"allow_once","kind":"allow_once"}]}}"#,
    );
    let [Action::Ask(question)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(
        question.prompt("Mistral Vibe").text(),
        "Mistral Vibe wants to give a task to the agent claude-code (by mcp_a2a_hub.claude_code) in \
         /workspace:\nmessage: review the parser\nAllow it? (yes or no)"
    );
}

#[test]
fn cancelled_turn_answers_open_question() {
    let mut driver = prompted();
    let asks = |id: u32| {
        format!(
            r#"{{"id":{id},"method":"session/request_permission","params":{{"toolCall":{{"toolCallId":"t"}},"options":[]}}}}"#
        )
    };
    driver.line(&asks(7));
    let lines = |actions: &[Action]| -> Vec<Value> {
        let line = |action: &Action| {
            let Action::Send(line) = action else { panic!("{action:?}") };
            serde_json::from_str(line).expect("a line to Vibe is JSON")
        };
        actions.iter().map(line).collect()
    };
    let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
    let sent = lines(&driver.interrupt());
    assert_eq!(
        (&sent[0]["method"], &sent[0]["params"]["sessionId"]),
        (&json!("session/cancel"), &json!("s"))
    );
    assert_eq!((&sent[1]["id"], &sent[1]["result"]), (&json!(7), &cancelled));
    assert_eq!(lines(&driver.line(&asks(8)))[0]["result"], cancelled);
    assert_eq!(driver.idle(), None, "its turn has not ended");
    driver.line(r#"{"id":3,"result":{"stopReason":"cancelled"}}"#);
    assert!(driver.idle().is_some());
    assert_eq!(driver.interrupt(), [], "a cancel between turns would stop the next one");
}

#[test]
fn misunderstood_request_is_answered() {
    for line in [
        r#"{"id":900,"method":"session/request_permission","params":{"toolCall":{"#,
        r#"{"id":900,"method":5,"params":{}}"#,
        r#"{"id":900,"method":"fs/read_text_file","params":null}"#,
    ] {
        let told = answer(&prompted().line(line));
        assert_eq!(told["id"], 900, "{line}");
        assert!(told["error"]["code"].is_i64(), "{line}");
    }
}

#[test]
fn unreadable_answer_ends_run() {
    for line in [r#"{"id":3,"result":{"stopReason":"#, r#"{"id":"3","result":{"stopReason":"#] {
        assert_eq!(failure(&prompted().line(line)).0, "broken_stream", "{line}");
    }
    let refused = prompted().line(r#"{"id":null,"error":{"code":-32700,"message":"no JSON"}}"#);
    assert_eq!(failure(&refused), ("agent_error", "no JSON".to_owned()));
    for line in ["Loading…", r#"{"method":"session/update","params":{"update":{"#] {
        let actions = prompted().line(line);
        assert!(matches!(actions.as_slice(), [Action::Log(_)]), "{line}: {actions:?}");
    }
    assert_eq!(prompted().line("\r"), []);
}

#[test]
fn members_of_other_types_are_read() {
    for (content, text) in [
        (r#"{"type":"text","text":"a"}"#, "a"),
        (r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, "ab"),
        (r#""plain""#, "plain"),
        (r#"{"text":7}"#, "7"),
    ] {
        assert_eq!(streamed(&prompted().line(&chunk(content))), text, "{content}");
    }
    let mut driver = prompted();
    driver.line(r#"{"method":"session/update","params":{"update":{"sessionUpdate":"usage_update","cost":{"currency":"USD","amount":"0.5"}}}}"#);
    let usage = r#"{"id":"3","result":{"stopReason":"end_turn","usage":{"inputTokens":"7","outputTokens":2.0}},"error":null}"#;
    let told = metadata(&fed(&mut driver, usage));
    assert_eq!(told["usage"], json!({ "input_tokens": 7, "output_tokens": 2 }));
    assert_eq!(told["cost_usd"], 0.5);
    let refused = prompted().line(r#"{"id":3,"error":{"code":"-31001","message":["too","fast"]}}"#);
    assert_eq!(failure(&refused), ("rate_limited", "toofast".to_owned()));
}

#[test]
fn request_of_any_shape_is_answered() {
    for (recording, method) in [
        (include_str!("transcripts/command.jsonl"), "session/request_permission"),
        (include_str!("transcripts/question.jsonl"), "elicitation/create"),
    ] {
        let unanswered = unanswered_members(recording, driver);
        assert_eq!(
            unanswered,
            [method.to_owned(), format!("{method}/id"), format!("{method}/method")]
        );
    }
}
