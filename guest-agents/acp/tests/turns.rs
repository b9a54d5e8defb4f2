//! Tests of turns with the whole agent: the end of an answer, other content, long answers, the
//! history of loaded sessions, and cancelled tasks.

use a2a_hub_sdk::testing::{Program, ScriptedHost, ended_tool_calls, task};
use a2a_hub_sdk::{Agent, Artifact, Event, Failure, Outcome, PartContent, TaskState};
use acp::AnyAcp;
use serde_json::{Value, json};

/// Lines up to the prompt, for a program with these capabilities and a mode.
fn opening(version: &Value, loads: bool) -> String {
    let modes = json!({ "currentModeId": "ask", "availableModes": [{ "id": "ask" }] });
    let hello =
        json!({ "protocolVersion": version, "agentCapabilities": { "loadSession": loads } });
    let opened = json!({ "sessionId": "s1", "modes": modes });
    format!(
        "> initialize\n{}> session\n{}> session/prompt\n",
        answer(1, &hello),
        answer(2, &opened)
    )
}

fn answer(id: u64, result: &Value) -> String {
    format!("< {}\n", json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn ended(id: u64) -> String {
    answer(id, &json!({ "stopReason": "end_turn" }))
}

fn update(update: &Value) -> String {
    let params = json!({ "sessionId": "s1", "update": update });
    format!("< {}\n", json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
}

fn chunk(id: Option<&str>, content: &Value) -> String {
    let mut chunk = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    if let Some(id) = id {
        chunk["messageId"] = id.into();
    }
    update(&chunk)
}

fn text(id: Option<&str>, text: &str) -> String {
    chunk(id, &json!({ "type": "text", "text": text }))
}

fn tool(kind: &str, id: &str, status: &str) -> String {
    update(&json!({ "sessionUpdate": kind, "toolCallId": id, "title": "build", "status": status }))
}

fn hub() -> ScriptedHost {
    let host = ScriptedHost::new();
    host.setting("workspace", "/w");
    host.setting("acp", &json!({ "name": "Mine", "program": "mine" }).to_string());
    host
}

fn mine(host: &ScriptedHost, lines: &[String]) -> Program {
    host.program("mine").plays(&lines.concat())
}

/// Outcome of one turn of a program that writes these lines behind the prompt.
fn turn(lines: &[String]) -> (ScriptedHost, Outcome) {
    let host = hub();
    mine(&host, &[&[opening(&json!(1), false)], lines].concat());
    let outcome = host.run::<AnyAcp>("go").expect("the turn ends");
    (host, outcome)
}

#[test]
fn every_chunk_of_answer_counts() {
    let begun = || tool("tool_call", "bg", "in_progress");
    let output = || tool("tool_call_update", "bg", "in_progress");
    let (a, b) = (Some("a"), Some("b"));
    for (lines, wanted) in [
        (vec![text(a, "hello "), output(), text(a, "world"), ended(3)], "hello world"),
        (
            vec![begun(), text(None, "hello "), output(), text(None, "world"), ended(3)],
            "hello world",
        ),
        (
            vec![text(None, "first part"), ended(3), text(None, " and the tail")],
            "first part and the tail",
        ),
        (vec![ended(3), output(), text(b, "late")], "late"),
        (vec![text(a, "Let me look."), begun(), text(b, "Done."), ended(3)], "Done."),
        (vec![text(None, "Let me look."), begun(), text(None, "Done."), ended(3)], "Done."),
    ] {
        let (host, outcome) = turn(&lines);
        assert_eq!(
            (outcome.state(), outcome.text().as_str()),
            (Some(TaskState::Completed), wanted)
        );
        assert_eq!(host.artifact("answer").as_deref(), Some(wanted));
        let has_status = host.said().iter().any(|status| status == "Let me look.");
        assert_eq!(has_status, wanted == "Done.", "an earlier message is a status");
        ended_tool_calls(&host.events());
    }
}

#[test]
fn other_content_becomes_artifacts() {
    let picture = json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" });
    let link =
        json!({ "type": "resource_link", "uri": "https://a.b/report.pdf", "name": "report.pdf" });
    let odd = json!({ "type": "audio", "mimeType": "audio/wav", "data": "?" });
    let lines =
        [chunk(None, &picture), text(None, "done"), chunk(None, &json!([link, odd])), ended(3)];
    let (host, outcome) = turn(&lines);
    assert_eq!(outcome.text(), "done");
    let artifacts: Vec<Artifact> = host
        .events()
        .into_iter()
        .filter_map(|event| if let Event::Artifact(it) = event { Some(it.artifact) } else { None })
        .filter(|artifact| artifact.id.starts_with("content:"))
        .collect();
    let names: Vec<_> = artifacts.iter().map(|it| (it.id.as_str(), it.name.as_deref())).collect();
    assert_eq!(names, [("content:1", Some("image.png")), ("content:2", Some("report.pdf"))]);
    assert_eq!(artifacts[0].parts[0].content, PartContent::Raw(b"\x89PNG\r\n\x1a\n".to_vec()));
    let statuses = host.said();
    assert!(
        statuses[0].starts_with("Mine sent a block `audio` that cannot be read: "),
        "{statuses:?}"
    );
}

/// The hub takes a status of 1 MiB.
#[test]
fn long_answer_completes_task() {
    let long = "x".repeat(1_200_000);
    let (host, outcome) = turn(&[text(None, &long), ended(3)]);
    assert_eq!(outcome.state(), Some(TaskState::Completed));
    assert!(
        outcome.text().len() < 10_000 && outcome.text().ends_with("`answer` has the whole text")
    );
    assert_eq!(host.artifact("answer").map(|text| text.len()), Some(long.len()));
}

#[test]
fn other_protocol_version_is_refused() {
    for (version, is_refused) in [
        (json!(2), true),
        (json!("99"), true),
        (json!(0), true),
        (json!("1"), false),
        (json!(null), false),
    ] {
        let host = hub();
        mine(&host, &[opening(&version, false), text(None, "fine"), ended(3)]);
        let outcome = host.run::<AnyAcp>("go").unwrap();
        assert_eq!(outcome.state() == Some(TaskState::Failed), is_refused, "{version}");
        let text = outcome.text();
        assert_eq!(
            text.contains("this hub speaks version 1: install a release"),
            is_refused,
            "{text}"
        );
    }
    let host = hub();
    mine(&host, &[opening(&json!(2), false)]);
    let health = host.health::<AnyAcp>();
    assert!(health.detail.is_some_and(|why| why.contains("version 2")), "the check says so, too");
}

/// `gemini --experimental-acp` sends the history after its answer to `session/load`.
#[test]
fn replayed_history_is_not_answer() {
    let host = hub();
    host.context().remember("session/context-1", &json!({ "id": "s1" })).unwrap();
    let changed = json!({ "sessionUpdate": "tool_call", "toolCallId": "old", "title": "write", "kind": "edit", "status": "completed",
        "content": [{ "type": "diff", "path": "/w/old", "oldText": "1\n", "newText": "2\n" }] });
    let opening = opening(&json!(1), true);
    let (before, _) = opening.split_once("> session/prompt").unwrap();
    let history = [text(None, "an old answer"), update(&changed), text(None, "another")].concat();
    let program = mine(
        &host,
        &[before.to_owned(), history, "> session/prompt\n".into(), text(None, "new"), ended(3)],
    );
    let outcome = host.run::<AnyAcp>("go").unwrap();
    assert_eq!(program.told()[1]["method"], "session/load");
    assert_eq!((outcome.text().as_str(), host.said()), ("new", Vec::new()));
    assert_eq!(
        (host.artifact("answer").as_deref(), host.artifact("change:/w/old")),
        (Some("new"), None)
    );
}

/// The next turn goes to the running program, which saves its start.
#[test]
fn cancelled_task_keeps_program() {
    let host = hub();
    let cancelled = answer(3, &json!({ "stopReason": "cancelled" }));
    let program = mine(
        &host,
        &[
            opening(&json!(1), false),
            tool("tool_call", "1", "in_progress"),
            "> session/cancel\n".into(),
            text(None, "stopping"),
            cancelled,
            "> session/set_mode\n".into(),
            answer(4, &json!({})),
            "> session/prompt\n".into(),
            text(None, "again"),
            ended(5),
        ],
    );
    host.cancel_after(1);
    assert_eq!(AnyAcp::run(&host.context(), &task("go")), Err(Failure::Cancelled));
    assert_eq!(host.kept_programs().keys(), ["context/context-1"]);
    host.cancel_after(usize::MAX);
    assert_eq!(host.run::<AnyAcp>("go on").unwrap().text(), "again");
    let methods: Vec<_> = program.told().into_iter().map(|it| it["method"].clone()).collect();
    let wanted = [
        "initialize",
        "session/new",
        "session/prompt",
        "session/cancel",
        "session/set_mode",
        "session/prompt",
    ];
    assert_eq!(methods, wanted);
    assert_eq!(host.spawned().len(), 1);
}

/// A program that does not end its turn in time, or fails, is killed.
#[test]
fn program_that_ignores_cancel_is_killed() {
    let refused =
        json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": -32603, "message": "no" } });
    for lines in
        ["> session/cancel\n".to_owned(), format!("> session/cancel\n< {refused}\n> next\n")]
    {
        let host = hub();
        let begun = tool("tool_call", "1", "in_progress");
        mine(&host, &[opening(&json!(1), false), begun, lines, "> next\n".into()]);
        host.cancel_after(1);
        assert_eq!(AnyAcp::run(&host.context(), &task("go")), Err(Failure::Cancelled));
        assert_eq!(host.kept_programs().keys(), Vec::<String>::new());
    }
}
