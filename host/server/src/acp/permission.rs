//! Conversion of a task's permission question to `session/request_permission`, about the tool call
//! that the agent wants to make.
//!
//! An agent names that call in the data of its question: `toolCall` has the `id` under which it
//! reports the call as `tool`, with its `kind`, `title` and `locations`, and `changes` has the
//! files that the call changes, each with its `path` and unified `diff`. Without an id, the call is
//! the open one with the question's `tool` and `input`.

use super::{
    activity::{PermissionCall, TurnActivity, call_id, id_of, kind_of, line_of, locations_of},
    file_changes,
};
use a2a_hub_core::text::{plain_text, terminal};
use a2a_hub_protocol::{member, question::Question, task::Task};
use a2a_hub_rpc::question_view;
use serde_json::{Value, json};
use std::path::Path;

/// Method that asks the user.
pub(super) const METHOD: &str = "session/request_permission";

/// Maximum length of a title in characters.
const MAX_TITLE: usize = 200;

/// Maximum number of changed files that are shown.
const MAX_CHANGES: usize = 50;

/// A permission request.
#[derive(Debug)]
pub(super) struct AcpPermission {
    pub(super) call: PermissionCall,
    /// The `tool_call` that precedes the request, if the client does not know the call.
    pub(super) announced: Option<Value>,
    /// Parameters of the request.
    pub(super) params: Value,
}

/// Request for the permission that a task waits for. The client knows its call from then on.
pub(super) fn request(session: &str, task: &Task, calls: &mut TurnActivity) -> AcpPermission {
    let null = Value::Null;
    let data = question_view::data(task).unwrap_or(&null);
    let (named, input, prompt) = (&data["toolCall"], &data["input"], question_view::prompt(task));
    let call = permission_call(task, data, calls);
    let known = calls.get(&call.id);
    let changes: Vec<_> = changes(data).collect();
    let title = line_of(named, "title")
        .or_else(|| known.map(|known| known.title.clone()).filter(|title| !title.is_empty()))
        .unwrap_or_else(|| plain_text::line(&prompt, MAX_TITLE));
    let guessed = || {
        let is_command = input["command"].is_string() || input["command"].is_array();
        match (changes.is_empty(), is_command) {
            (false, _) => "edit",
            (true, true) => "execute",
            (true, false) => "other",
        }
    };
    let kind = kind_of(named).or(known.and_then(|known| known.kind)).unwrap_or_else(guessed);
    let input = Some(input).filter(|input| input.is_object());
    let input = input.or(known.and_then(|known| known.input.as_ref()));
    let mut about = json!({
        "toolCallId": call.id,
        "title": title,
        "kind": kind,
        "status": "pending",
        "content": content(&prompt, &changes),
    });
    let members = [
        ("name", line_of(data, "tool").map(Value::from)),
        ("rawInput", input.cloned()),
        ("locations", locations(named, &changes).map(Value::from)),
    ];
    for (name, value) in members {
        if let Some(value) = value {
            member::set(&mut about, name, value);
        }
    }
    let announced = known.is_none().then(|| {
        let mut announced = about.clone();
        member::set(&mut announced, "sessionUpdate", "tool_call");
        announced
    });
    calls.note_permission_call(&call.id, &title, kind);
    let options: Vec<_> =
        question_view::choices(task).iter().map(|choice| option(choice)).collect();
    let params = json!({ "sessionId": session, "toolCall": about, "options": options });
    AcpPermission { call, announced, params }
}

/// Tool call of the question. That of a descendant's task has an id that only the question uses:
/// the client knows the descendant as one call, and none of its calls.
fn permission_call(task: &Task, data: &Value, calls: &TurnActivity) -> PermissionCall {
    let question = Question::from_metadata(task.metadata.as_ref());
    let descendant = question.as_ref().and_then(|question| question.task.as_ref());
    if descendant.is_none() {
        if let Some(id) = id_of(&data["toolCall"]) {
            return PermissionCall { id: call_id(Some(&task.id), id), is_reported: true };
        }
        let name = data["tool"].as_str().unwrap_or_default();
        if let Some((id, _)) = calls.similar(&task.id, name, &data["input"]) {
            return PermissionCall { id: id.to_owned(), is_reported: true };
        }
    }
    let id = question.as_ref().map_or("question", |question| question.id.as_str());
    // No id of a reported call begins like this.
    let id = format!("{}#question-{id}", descendant.unwrap_or(&task.id));
    PermissionCall { id, is_reported: false }
}

/// Paths and unified diffs of the files that the call changes.
fn changes(data: &Value) -> impl Iterator<Item = (&str, Option<&str>)> {
    let changes = data["changes"].as_array().into_iter().flatten();
    changes
        .filter_map(|change| Some((change["path"].as_str()?, change["diff"].as_str())))
        .take(MAX_CHANGES)
}

/// Content of the call: the question without the diffs in it, and then the diffs.
fn content(prompt: &str, changes: &[(&str, Option<&str>)]) -> Vec<Value> {
    let mut text = terminal::clean(prompt).into_owned();
    let mut diffs = Vec::new();
    for (path, diff) in changes {
        let Some(diff) = diff else { continue };
        let shown = file_changes::diffs(path, diff);
        if !shown.is_empty() {
            text = text.replace(&format!("{}\n", diff.trim_end()), "");
        }
        diffs.extend(shown);
    }
    let text = json!({ "type": "content", "content": { "type": "text", "text": text } });
    std::iter::once(text).chain(diffs).collect()
}

/// Locations that the agent names, or else the changed files.
fn locations(named: &Value, changes: &[(&str, Option<&str>)]) -> Option<Vec<Value>> {
    locations_of(named).or_else(|| {
        let absolute = changes.iter().filter(|(path, _)| Path::new(path).is_absolute());
        let paths: Vec<_> = absolute.map(|(path, _)| json!({ "path": path })).collect();
        (!paths.is_empty()).then_some(paths)
    })
}

fn option(choice: &str) -> Value {
    let name = match choice {
        "allow" | "yes" => "Allow",
        "allow-session" | "always" => "Allow for this session",
        "deny" | "no" => "Deny",
        other => other,
    };
    let kind = match choice {
        "allow-session" | "always" => "allow_always",
        _ if is_denial(choice) => "reject_once",
        _ => "allow_once",
    };
    json!({ "optionId": choice, "name": plain_text::line(name, 80), "kind": kind })
}

/// True if this choice denies the permission.
pub(super) fn is_denial(choice: &str) -> bool {
    matches!(choice, "deny" | "no")
}

/// Option that the user selected; `None` if the turn was cancelled instead.
pub(super) fn chosen(answer: &Value) -> Option<&str> {
    let outcome = &answer["outcome"];
    (outcome["outcome"] == "selected").then(|| outcome["optionId"].as_str())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{acp_schema::AcpSchema, json_shapes::reshaped};
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        message::{Message, Metadata, Part, Role},
        question::QuestionKind,
        task::{TaskState, TaskStatus},
    };

    const DIFF: &str = "--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-one\n+two\n";

    fn task(data: &Value, below: Option<&str>) -> Task {
        let text = format!("X wants to use it in /w:\n{DIFF}Allow it? (yes or no)");
        let parts = vec![Part::text(text), Part::data(data.clone())];
        let mut question = Question::fresh(QuestionKind::Permission);
        question.task = below.map(TaskId::new);
        Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: TaskStatus {
                state: TaskState::InputRequired,
                message: Some(Message::new(Role::Agent, parts)),
                timestamp: String::new(),
            },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: Some(Metadata::from_iter([question.member()])),
        }
    }

    fn reported(calls: &mut TurnActivity, tool: &Value) {
        let facts = json!({ "tool": tool });
        calls.updates(Some(&TaskId::new("t")), facts.as_object());
    }

    fn checked(request: &AcpPermission) {
        let schema = AcpSchema::default();
        schema.check(&json!({ "jsonrpc": "2.0", "method": METHOD, "params": request.params }));
        if let Some(update) = &request.announced {
            let params = json!({ "sessionId": "s", "update": update });
            schema
                .check(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
        }
    }

    #[test]
    fn request_carries_named_tool_call() {
        let mut calls = TurnActivity::default();
        reported(
            &mut calls,
            &json!({ "id": "7", "title": "Edit a", "kind": "edit", "name": "Edit" }),
        );
        let asked = task(
            &json!({ "tool": "Edit", "input": { "file_path": "/w/a" }, "toolCall": { "id": "7" },
                "changes": [{ "path": "/w/a", "diff": DIFF }], "choices": ["allow", "allow-session", "deny"] }),
            None,
        );
        let request = request("s", &asked, &mut calls);
        checked(&request);
        assert_eq!(request.announced, None, "the client knows the call");
        let about = &request.params["toolCall"];
        let facts = [&about["toolCallId"], &about["kind"], &about["title"], &about["status"]];
        assert_eq!(facts, ["t/7", "edit", "Edit a", "pending"]);
        assert_eq!(about["locations"], json!([{ "path": "/w/a" }]));
        assert_eq!(
            about["content"][0]["content"]["text"],
            "X wants to use it in /w:\nAllow it? (yes or no)"
        );
        let diff =
            json!({ "type": "diff", "path": "/w/a", "oldText": "one\n", "newText": "two\n" });
        assert_eq!(about["content"][1], diff);
        let options = request.params["options"].as_array().unwrap();
        let kinds: Vec<_> = options.iter().map(|it| it["kind"].as_str()).collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"].map(Some));
        let allowed = calls.decided(&request.call, true).unwrap();
        assert_eq!(
            (&allowed["toolCallId"], &allowed["status"]),
            (&json!("t/7"), &json!("in_progress"))
        );
        assert_eq!(calls.end(false)[0]["toolCallId"], "t/7", "it ends with its turn");
    }

    /// Components of earlier SDKs name no call.
    #[test]
    fn call_without_id_is_recognised() {
        let shell = |id: &str, command: &str| json!({ "id": id, "title": command, "kind": "execute", "name": "Bash", "input": { "command": command } });
        for (reports, tool, input, wanted) in [
            (
                vec![shell("1", "ls"), shell("2", "pwd")],
                "Bash",
                json!({ "command": "ls" }),
                Some("t/1"),
            ),
            (
                vec![shell("1", "ls"), shell("2", "ls")],
                "Bash",
                json!({ "command": "ls" }),
                Some("t/2"),
            ),
            (vec![shell("1", "ls")], "Bash", json!({ "command": "ls", "why": "x" }), Some("t/1")),
            (vec![shell("1", "ls")], "Bash", json!({ "other": 1 }), Some("t/1")),
            (vec![shell("1", "ls"), shell("2", "pwd")], "Bash", json!({ "command": "id" }), None),
            (vec![shell("1", "ls")], "Read", json!({}), None),
        ] {
            let mut calls = TurnActivity::default();
            reports.iter().for_each(|report| reported(&mut calls, report));
            let asked = task(&json!({ "tool": tool, "input": input }), None);
            let request = request("s", &asked, &mut calls);
            checked(&request);
            let id = request.params["toolCall"]["toolCallId"].as_str().unwrap();
            assert_eq!(wanted.is_some(), request.announced.is_none(), "{input}");
            assert!(wanted.map_or(id.starts_with("t#question-"), |wanted| id == wanted), "{id}");
        }
    }

    #[test]
    fn unreported_call_ends_with_decision() {
        for (allowed, state) in [(true, "completed"), (false, "failed")] {
            let mut calls = TurnActivity::default();
            reported(&mut calls, &json!({ "id": "7", "name": "Edit" }));
            // The client knows no call of a descendant.
            let data = json!({ "tool": "Edit", "toolCall": { "id": "7" } });
            let request = request("s", &task(&data, Some("child")), &mut calls);
            checked(&request);
            let announced = request.announced.as_ref().unwrap();
            assert_eq!(announced["sessionUpdate"], "tool_call");
            assert!(request.call.id.starts_with("child#question-"), "{request:?}");
            let decided = calls.decided(&request.call, allowed).unwrap();
            assert_eq!(decided["status"], state);
            let left: Vec<_> = calls.end(true).iter().map(|it| it["toolCallId"].clone()).collect();
            assert_eq!(left, ["t/7"]);
        }
    }

    #[test]
    fn odd_question_data_is_asked_about() {
        let data = json!({ "tool": "Edit", "input": { "a": 1 }, "choices": ["deny"],
            "toolCall": { "id": "7", "title": "t", "kind": "edit", "locations": [{ "path": "/w/a", "line": 3 }] },
            "changes": [{ "path": "/w/a", "diff": DIFF }] });
        for odd in reshaped(&data) {
            checked(&request("s", &task(&odd, None), &mut TurnActivity::default()));
        }
        let selected = json!({ "outcome": { "outcome": "selected", "optionId": "deny" } });
        assert_eq!(chosen(&selected), Some("deny"));
        assert_eq!(chosen(&json!({ "outcome": { "outcome": "cancelled" } })), None);
        // Any other answer grants no permission.
        for other in reshaped(&selected).iter().filter(|other| **other != selected) {
            assert!(chosen(other).is_none_or(|choice| choice == "x"), "{other}");
        }
    }
}
