//! Tests of the driver on recorded runs of the CLI (2.1.329, against a model that echoes).

use a2a_hub_sdk::cli::{Action, Driver as _, End, FailureReason, Idle, Job, Session};
use a2a_hub_sdk::cli::{Decision, Question};
use a2a_hub_sdk::testing::{end, failure, feed_reshaped, metadata, shapes, streamed};
use a2a_hub_sdk::{Exit, ExitStatus};
use a2a_hub_sdk::{Message, Part};
use claude_code::driver::Claude;
use serde_json::{Value, json};

const SESSION: &str = "00000000-0000-4000-8000-000000000001";

/// Session with this cost so far.
fn after(dollars: f64) -> Session {
    let totals = [("cost_usd".to_owned(), dollars)].into();
    Session { totals, ..Session::new(SESSION) }
}

fn actions(transcript: &str) -> Vec<Action> {
    let mut driver = Claude::new(&Job::default());
    transcript.lines().flat_map(|line| driver.line(line)).collect()
}

fn said(actions: &[Action]) -> Vec<&str> {
    let mut said = Vec::new();
    for action in actions {
        if let Action::Say(text)
        | Action::Report { text, .. }
        | Action::Retrying { status: text, .. } = action
            && !text.is_empty()
        {
            said.push(text.as_str());
        }
    }
    said
}

#[test]
fn answer_is_streamed_then_completed() {
    let actions = actions(include_str!("transcripts/hello.jsonl"));
    let kept = Session::new(SESSION);
    assert_eq!(actions[0], Action::Settled);
    assert_eq!(actions[1], Action::Restart);
    assert_eq!(actions[2], Action::Remember(kept.clone()));
    assert_eq!(actions[3..6], ["ECHO: ", "hello ", "there"].map(|text| Action::Delta(text.into())));
    assert_eq!(actions[6], Action::Remember(after(0.063856)));
    assert!(matches!(end(&actions), End::Completed { text, .. } if text == "ECHO: hello there"));
    assert_eq!(actions.len(), 8);
    assert_eq!(
        metadata(&actions),
        json!({
            "model": "claude-opus-5-5",
            "cost_usd": 0.063856,
            "turns": 1,
            "usage": {
                "input_tokens": 15944,
                "output_tokens": 4,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        })
    );
}

#[test]
fn lines_of_unexpected_shapes_never_panic() {
    let mut fed = 0;
    for recording in [
        include_str!("transcripts/hello.jsonl"),
        include_str!("transcripts/permission.jsonl"),
        include_str!("transcripts/question.jsonl"),
        include_str!("transcripts/rate_limited.jsonl"),
        include_str!("transcripts/cut_and_retried.jsonl"),
    ] {
        fed += feed_reshaped(recording, || Claude::new(&Job::default()));
    }
    assert!(fed > 1_000, "{fed} lines");
}

/// Driver with a question of `AskUserQuestion`.
fn asked() -> (Claude, Question) {
    let mut driver = Claude::new(&Job::default());
    let input = json!({ "questions": [{ "question": "Which?", "options": [{ "label": "a" }] }] });
    let request =
        json!({ "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": input });
    let line = json!({ "type": "control_request", "request_id": "r", "request": request });
    let actions = driver.line(&line.to_string());
    let [Action::Ask(question)] = &actions[..] else { panic!("{actions:?}") };
    (driver, Question::clone(question))
}

#[test]
fn write_question_shows_new_content() {
    let mut driver = Claude::new(&Job::default());
    driver.line(r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w"}"#);
    let actions = driver.line(
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Write","display_name":"Write","input":{"file_path":"/w/bidi.txt","content":"one\ntwo"},"description":"bidi.txt","permission_suggestions":[]}}"#,
    );
    let [Action::Ask(question)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(
        question.prompt("Claude Code").text(),
        "Claude Code wants to use Write in /w:\n+++ /w/bidi.txt\n+one\n+two\nAllow it? (yes or no)"
    );
}

#[test]
fn answer_of_any_shape_is_accepted() {
    let (mut driver, question) = asked();
    let mut answered = |data: Value| {
        let said = Decision::Answer(Box::new(Message::user(vec![Part::data(&data)])));
        let actions = driver.decided(&question, &said);
        let [Action::Send(line)] = &actions[..] else { panic!("{actions:?}") };
        let told: Value = serde_json::from_str(line).unwrap();
        let allowed = &told["response"]["response"];
        assert_eq!(allowed["behavior"], "allow", "{told}");
        allowed["updatedInput"]["answers"]["Which?"].clone()
    };
    assert_eq!(answered(json!({ "answers": { "Which?": "a" } })), "a");
    for shape in shapes() {
        let words = shape.as_str().map_or_else(|| shape.to_string(), str::to_owned);
        assert_eq!(answered(shape), *words);
    }
}

#[test]
fn resumed_session_reports_cost_of_run() {
    let mut driver = Claude::new(&Job { session: Some(after(0.062)), ..Job::default() });
    let transcript = include_str!("transcripts/resumed.jsonl");
    let actions: Vec<_> = transcript.lines().flat_map(|line| driver.line(line)).collect();
    let cost = metadata(&actions)["cost_usd"].as_f64().unwrap();
    assert!((cost - 0.062232).abs() < 1e-9, "{cost}");
    let total = Action::Remember(after(0.124232));
    assert_eq!(actions[actions.len() - 2], total);
}

/// In one process, too, the CLI reports the cost as the sum of the turns, and the tokens of each
/// turn.
#[test]
fn later_turn_reports_its_own_cost() {
    let mut first = Claude::new(&Job::default());
    first.begin();
    assert_eq!(first.idle(), None, "it has not answered");
    for line in include_str!("transcripts/hello.jsonl").lines() {
        first.line(line);
    }
    let left = first.idle().expect("it answered, and nothing is open");
    let state = json!({ "shellMoved": false });
    assert_eq!(left, Idle { session: after(0.063856), state });

    let mut second = Claude::new(&Job { prompt: "again".into(), ..Job::default() });
    let told = second.again(&left).unwrap();
    let [Action::Send(line)] = &told[..] else { panic!("{told:?}") };
    assert!(line.contains(r#""content":"again""#), "{line}");
    let transcript = include_str!("transcripts/resumed.jsonl");
    let actions: Vec<_> = transcript.lines().flat_map(|line| second.line(line)).collect();
    assert!(!actions.contains(&Action::Settled), "what runs now may be the task's");
    let cost = metadata(&actions)["cost_usd"].as_f64().unwrap();
    let total = second.idle().unwrap().session.totals["cost_usd"];
    assert!((cost - (total - 0.063856)).abs() < 1e-9, "{cost} of {total}");
}

#[test]
fn failed_turn_leaves_no_idle_program() {
    for transcript in [
        include_str!("transcripts/max_turns.jsonl"),
        include_str!("transcripts/server_error.jsonl"),
        include_str!("transcripts/lost_session.jsonl"),
    ] {
        let mut driver = Claude::new(&Job::default());
        for line in transcript.lines() {
            driver.line(line);
        }
        assert_eq!(driver.idle(), None, "{transcript}");
    }
}

#[test]
fn text_before_tool_question_becomes_status() {
    let actions = actions(include_str!("transcripts/permission.jsonl"));
    assert_eq!(
        said(&actions),
        ["Calling a tool.", "running Bash: touch /workspace/made && echo done"]
    );
    let asked = actions.iter().find(|action| matches!(action, Action::Ask(_)));
    let Some(Action::Ask(question)) = asked else { panic!("no question: {actions:?}") };
    let prompt = question.prompt("Claude Code");
    assert_eq!(
        prompt.text(),
        "Claude Code wants to use Bash in /workspace:\ntouch /workspace/made && echo done\n\
         Allow it? (yes or no)"
    );
    assert_eq!(
        prompt.data().unwrap(),
        json!({
            "tool": "Bash",
            "input": {
                "command": "touch /workspace/made && echo done",
                "description": "mock: run a command",
            },
            "directory": "/workspace",
            "toolCall": { "id": "toolu_2" },
            "choices": ["allow", "allow-session", "deny"],
        })
    );
    assert!(streamed(&actions).starts_with("ECHO: do"), "the last message only");
}

#[test]
fn cut_answer_is_restarted() {
    let actions = actions(include_str!("transcripts/cut_and_retried.jsonl"));
    assert_eq!(said(&actions), ["retrying 1/2: unknown"]);
    assert_eq!(streamed(&actions), "ECHO: x [[drop]] ", "once, not twice");
    assert!(matches!(end(&actions), End::Completed { text, .. } if text == "ECHO: x [[drop]] y"));
}

#[test]
fn thinking_is_not_in_answer() {
    let actions = actions(include_str!("transcripts/thinking.jsonl"));
    assert_eq!(streamed(&actions), "ECHO: x [[think]] y");
}

#[test]
fn missing_or_refused_login_is_reported() {
    let not_logged_in = actions(include_str!("transcripts/not_logged_in.jsonl"));
    let text = "Not logged in · Please run /login";
    assert_eq!(end(&not_logged_in), &End::LoginNeeded(text.into()));

    // The second refusal ends the run, long before the last retry.
    let mut driver = Claude::new(&Job::default());
    let mut lines = include_str!("transcripts/login_refused.jsonl").lines();
    let mut next = || driver.line(lines.next().unwrap());
    assert_eq!((next(), next()), (vec![Action::Settled], vec![]));
    assert_eq!(said(&next()), ["retrying 1/2: authentication failed"]);
    assert!(matches!(end(&next()), End::LoginNeeded(_)));
}

#[test]
fn failures_have_stable_reasons_and_vendor_text() {
    let (reason, text) = failure(&actions(include_str!("transcripts/server_error.jsonl")));
    assert_eq!(reason, "api_error");
    assert!(text.starts_with("API Error: 500 mock error 500"), "{text}");

    let (reason, text) = failure(&actions(include_str!("transcripts/rate_limited.jsonl")));
    assert_eq!(reason, "rate_limited");
    assert_eq!(text, "API Error: Request rejected (429) · mock error 429");

    let (reason, text) = failure(&actions(include_str!("transcripts/max_turns.jsonl")));
    assert_eq!(reason, "max_turns");
    assert_eq!(text, "Reached maximum number of turns (2)");
}

/// The session is stored before the failure, so that a later run continues it.
#[test]
fn used_up_quota_names_reset_and_session() {
    let limit = |status: &str, resets: Value| {
        let info = json!({ "status": status, "resetsAt": resets, "rateLimitType": "five_hour" });
        json!({ "type": "rate_limit_event", "rate_limit_info": info, "session_id": SESSION })
    };
    let reset = |events: &[Value]| {
        let mut driver = Claude::new(&Job::default());
        let hello = include_str!("transcripts/hello.jsonl").lines();
        let begun = hello.take_while(|line| !line.contains(r#""type":"result""#));
        let mut actions: Vec<_> = begun.flat_map(|line| driver.line(line)).collect();
        actions.extend(events.iter().flat_map(|event| driver.line(&event.to_string())));
        let result = json!({ "type": "result", "subtype": "success", "is_error": true,
            "result": "You've hit your limit · resets 3pm (Europe/Berlin)" });
        actions.extend(driver.line(&result.to_string()));
        assert_eq!(failure(&actions).0, "rate_limited");
        let stored = |action: &Action| matches!(action, Action::Remember(it) if it.id == SESSION);
        assert!(actions.iter().any(stored), "{actions:?}");
        let End::Failed { metadata, .. } = end(&actions) else { panic!("{actions:?}") };
        metadata.get("quotaResetsAt").cloned().unwrap_or_default()
    };
    let time = 1_764_230_400_u64;
    let rejected = limit("rejected", json!(time));
    assert_eq!(reset(&[]), Value::Null);
    assert_eq!(reset(&[limit("allowed_warning", json!(time))]), Value::Null);
    assert_eq!(reset(std::slice::from_ref(&rejected)), time);
    assert_eq!(reset(&[rejected.clone(), limit("allowed", json!(time))]), Value::Null);
    for odd in [json!(null), json!(-1), json!("soon"), json!([]), json!(1.5)] {
        assert_eq!(reset(&[limit("rejected", odd)]), Value::Null);
    }
    let bare = json!({ "type": "rate_limit_event", "rate_limit_info": [7] });
    assert_eq!(reset(&[bare]), Value::Null);
}

#[test]
fn lost_session_is_detected_from_both_outputs() {
    let lost = actions(include_str!("transcripts/lost_session.jsonl"));
    assert_eq!(end(&lost), &End::SessionLost);

    let stderr = "No conversation found with session ID: x".into();
    let exit = Exit { status: ExitStatus::Code(1), stderr };
    assert_eq!(Claude::new(&Job::default()).ended(&exit), End::SessionLost);
}

#[test]
fn exit_without_result_is_failure() {
    let mut driver = Claude::new(&Job::default());
    let transcript = include_str!("transcripts/hello.jsonl");
    transcript.lines().take(5).for_each(|line| drop(driver.line(line)));
    let exit = Exit { status: ExitStatus::Code(0), stderr: String::new() };
    let text = "claude ended (exit code 0) before it was done";
    assert_eq!(driver.ended(&exit), End::failed(FailureReason::BrokenStream, text));
    driver.line("Segmentation fault");
    let text = "claude ended (exit code 0) before it was done: Segmentation fault";
    assert_eq!(driver.ended(&exit), End::failed(FailureReason::BrokenStream, text));
}

#[test]
fn unknown_lines_are_ignored_and_requests_refused() {
    let mut driver = Claude::new(&Job::default());
    for line in [
        "",
        "[]",
        r#"{"type":"weather","sunny":true}"#,
        r#"{"type":"system","subtype":"hook_started"}"#,
        r#"{"type":"stream_event","event":{"type":"ping"}}"#,
        r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"new"}}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"hologram"}]}}"#,
    ] {
        assert_eq!(driver.line(line), [], "{line}");
    }
    let actions = driver.line(r#"{"type":"result","is_error":"maybe"}"#);
    assert!(matches!(end(&actions), End::Failed { reason: FailureReason::BrokenStream, .. }));
    let actions = driver.line(
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"hook_callback"}}"#,
    );
    let [Action::Send(line)] = actions.as_slice() else { panic!("{actions:?}") };
    let answer: Value = serde_json::from_str(line).unwrap();
    assert_eq!(answer["response"]["subtype"], "error");
    assert_eq!(answer["response"]["request_id"], "r");
}

#[test]
fn subagent_tools_are_reported_without_text() {
    let mut driver = Claude::new(&Job::default());
    let actions = driver.line(
        r#"{"type":"assistant","parent_tool_use_id":"toolu_1","message":{"content":[
            {"type":"text","text":"hm"},{"type":"tool_use","name":"Read","input":{"file_path":"a.rs"}}]}}"#,
    );
    assert_eq!(actions, [Action::Say("running Read: a.rs".into())]);
    let delta = r#"{"type":"stream_event","parent_tool_use_id":"toolu_1",
        "event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"hm"}}}"#;
    assert_eq!(driver.line(delta), []);
}
