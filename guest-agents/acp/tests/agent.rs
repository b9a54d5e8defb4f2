//! Tests of the whole agent against scripted programs, with the lines that OpenCode 1.18 writes.

use a2a_hub_sdk::testing::{ScriptedHost, task};
use a2a_hub_sdk::{Agent, Event, Failure, Need, TaskState};
use acp::AnyAcp;
use serde_json::{Value, json};

const HELLO: &str = r#"> initialize
< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":[{"id":"in","name":"Log in","description":"Run `mine login`"}]}}
> session/new
"#;
const OPENED: &str = r#"< {"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}
> session/prompt
"#;
const ANSWERED: &str = r#"< {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
"#;

fn hub(permissions: &str) -> ScriptedHost {
    let host = ScriptedHost::new();
    host.setting("workspace", "/w");
    host.setting("permissions", permissions);
    host.setting(
        "acp",
        &json!({ "name": "Mine", "program": "mine", "login": "mine login" }).to_string(),
    );
    host
}

fn update(update: &Value) -> String {
    let params = json!({ "sessionId": "s1", "update": update });
    format!("< {}\n", json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
}

/// Question whether the program may write this file.
fn asks_to_write(path: &str) -> String {
    let diff = json!({ "type": "diff", "path": path, "oldText": "one\n", "newText": "two\n" });
    let call = json!({ "toolCallId": "1", "title": path, "kind": "edit", "locations": [{ "path": path }], "content": [diff] });
    let options = json!([{ "optionId": "once", "kind": "allow_once", "name": "Allow" },
        { "optionId": "reject", "kind": "reject_once", "name": "Reject" }]);
    let params = json!({ "sessionId": "s1", "toolCall": call, "options": options });
    let asked = json!({ "jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params });
    format!("< {asked}\n> answer\n")
}

fn error(id: u64, code: i64, text: &str, data: &Value) -> String {
    let error = json!({ "code": code, "message": text, "data": data });
    format!("< {}\n", json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

#[test]
fn approved_edit_becomes_diff_artifact() {
    let host = hub("edit");
    let ended = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed",
        "content": [{ "type": "content", "content": { "type": "text", "text": "Wrote it." } }] });
    let says = [HELLO, OPENED, &asks_to_write("/w/a.txt"), &update(&ended), ANSWERED].concat();
    let program = host.program("mine").plays(&says);
    let outcome = host.run::<AnyAcp>("go").unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Completed), "{}", outcome.text());
    assert!(host.asked().is_empty(), "an edit in the directory is allowed");
    assert_eq!(program.told()[3]["result"]["outcome"]["optionId"], "once");
    let diff = host.artifact("change:/w/a.txt").unwrap();
    assert!(diff.ends_with("@@ -1 +1 @@\n-one\n+two\n"), "{diff}");
}

/// A program that announces the capability gets the directories, and may edit there.
#[test]
fn announced_program_gets_additional_directories() {
    let can = json!({ "sessionCapabilities": { "additionalDirectories": {} } });
    let answer = |can: &Value| {
        let result = json!({ "protocolVersion": 1, "agentCapabilities": can });
        let line = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
        format!("> initialize\n< {line}\n> session/new\n")
    };
    let host = hub("edit");
    let mut asked = task("go");
    asked.message.metadata =
        Some(json!({ "additionalDirectories": ["/more", "/w/in"] }).to_string());
    let says = [&*answer(&can), OPENED, &asks_to_write("/more/a.txt"), ANSWERED].concat();
    let program = host.program("mine").plays(&says);
    let outcome = AnyAcp::run(&host.context(), &asked).unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Completed), "{}", outcome.text());
    assert_eq!(program.told()[1]["params"]["additionalDirectories"], json!(["/more"]));
    assert_eq!(program.told()[3]["result"]["outcome"]["optionId"], "once");

    for odd in [json!({}), json!({ "sessionCapabilities": { "additionalDirectories": null } })] {
        let host = hub("edit");
        host.program("mine").plays(&answer(&odd));
        let outcome = AnyAcp::run(&host.context(), &asked).unwrap();
        assert_eq!(outcome.state(), Some(TaskState::Failed));
        let why = outcome.text();
        assert!(why.contains("`sessionCapabilities.additionalDirectories`"), "{why}");
    }
}

#[test]
fn edit_outside_directory_asks_client() {
    let host = hub("edit");
    host.answer("no");
    let says = [HELLO, OPENED, &asks_to_write("/elsewhere/a.txt"), ANSWERED].concat();
    let program = host.program("mine").plays(&says);
    host.run::<AnyAcp>("go").unwrap();
    assert_eq!(host.asked().len(), 1);
    assert_eq!(program.told()[3]["result"]["outcome"]["optionId"], "reject");
    let changed = host.events().iter().any(|event| matches!(event, Event::Artifact(_)));
    assert!(!changed, "{:?}", host.events());
}

/// The answer to the request logs in; the next program then works.
#[test]
fn missing_login_is_asked_for() {
    let internal = json!({ "errorName": "APIError" });
    for (opened, refused) in [
        ("", error(2, -32000, "Authentication required", &Value::Null)),
        (OPENED, error(3, -32603, "Internal error: invalid api key", &internal)),
        (OPENED, error(3, -32603, "no", &json!({ "statusCode": 401 }))),
    ] {
        let host = hub("ask");
        host.answer("done");
        host.program("mine").plays(&[HELLO, opened, &refused].concat());
        host.program("mine").plays(&[HELLO, OPENED, ANSWERED].concat());
        let outcome = host.run::<AnyAcp>("go").unwrap();
        assert_eq!(outcome.state(), Some(TaskState::Completed), "{}", outcome.text());
        let asked = host.asked();
        let (need, prompt) = asked.first().unwrap();
        assert_eq!(*need, Need::Auth);
        let prompt = prompt.text();
        assert!(prompt.contains("(it offers: Log in: Run `mine login`)"), "{prompt}");
        assert!(prompt.contains("On the machine of the hub run `mine login`"), "{prompt}");
    }
}

#[test]
fn unmet_login_fails_with_reason() {
    let host = hub("ask");
    host.setting("login_method", "in");
    let refused = error(2, -32000, "Authentication required", &Value::Null);
    let failed = error(3, -32603, "no browser", &Value::Null);
    let says = [HELLO, &refused, "> authenticate\n", &failed].concat();
    for _ in 0..4 {
        host.answer("done");
        host.program("mine").plays(&says);
    }
    let outcome = host.run::<AnyAcp>("go").unwrap();
    assert_eq!(outcome.metadata()["reason"], "not_logged_in", "{}", outcome.text());
    assert!(outcome.text().contains("the login by `in` failed: no browser"), "{}", outcome.text());
}

#[test]
fn agent_without_program_names_setting() {
    let host = ScriptedHost::new();
    let Err(Failure::Invalid(why)) = AnyAcp::run(&host.context(), &task("go")) else { panic!() };
    assert!(why.contains("acp = "), "{why}");
}
