//! Requests of Codex for approval, and their answers.

use std::collections::BTreeMap;

use a2a_hub_sdk::cli::{Decision, Kind, Question, answer_text, cut};
use serde_json::{Map, Value, json};

use crate::item::{PatchedFile, files};

/// Maximum size of a diff in a question, which people read before they approve.
const MAX_DIFF: usize = 16 * 1024;

const COMMAND: &str = "shell";
const PATCH: &str = "apply_patch";
const PERMISSIONS: &str = "request_permissions";
const INPUT: &str = "request_user_input";

/// Reaction to a request.
pub(crate) enum ApprovalAnswer {
    Ask(Box<Question>),
    Tell(String),
}

/// Question of a request, or the answer to a request that needs no decision.
///
/// Codex asks about operations that its sandbox would refuse. So each is of kind [`Kind::Run`],
/// also a change of a file: under `edit` it concerns a file outside of the workspace.
pub(crate) fn question(
    id: &Value,
    method: &str,
    params: &Value,
    patches: &BTreeMap<String, Vec<PatchedFile>>,
) -> ApprovalAnswer {
    let text = |member: &str| params[member].as_str().map(ToOwned::to_owned);
    let question = |tool: &str, input: Value, description: Option<String>| Question {
        id: id.clone(),
        kind: Kind::Run,
        tool: tool.to_owned(),
        input,
        description,
        changes: Vec::new(),
        directory: text("cwd"),
        for_session: true,
        vendor_options: Vec::new(),
        tool_call: text("itemId").map(|id| json!({ "id": id })),
        facts: Some(json!({ "vendor": "codex", "method": method, "request": params })),
    };
    let ask = |question| ApprovalAnswer::Ask(Box::new(question));
    match method {
        "item/commandExecution/requestApproval" => {
            let mut input = json!({ "command": plain_command(params) });
            for (theirs, ours) in [("reason", "reason"), ("networkApprovalContext", "network")] {
                if !params[theirs].is_null() {
                    input[ours] = params[theirs].clone();
                }
            }
            ask(question(COMMAND, input, text("reason")))
        }
        "item/fileChange/requestApproval" => {
            let item = params["itemId"].as_str().unwrap_or_default();
            let changes = patches.get(item).map(Vec::as_slice).unwrap_or_default();
            let mut input = json!({ "changes": changes.iter().map(file_data).collect::<Vec<_>>() });
            for member in ["reason", "grantRoot"] {
                if !params[member].is_null() {
                    input[member] = params[member].clone();
                }
            }
            let root = text("grantRoot").map(|root| format!("allows writing below {root}"));
            let words = [Some(files(changes)), text("reason"), root];
            let words: Vec<_> = words.into_iter().flatten().collect();
            let question = question(PATCH, input, Some(words.join("\n")));
            let paths: Vec<_> = changes.iter().flat_map(PatchedFile::paths).collect();
            let facts = json!({
                "vendor": "codex", "method": method, "request": params, "paths": paths,
            });
            let changes = changes.iter().map(PatchedFile::change).collect();
            ask(Question { changes, facts: Some(facts), ..question })
        }
        "item/permissions/requestApproval" => {
            ask(question(PERMISSIONS, params["permissions"].clone(), text("reason")))
        }
        "mcpServer/elicitation/request" if wants_no_form(params) => {
            let server = params["serverName"].as_str().unwrap_or("MCP");
            let tool = format!("{MCP}{server}");
            let meta = &params["_meta"];
            let input = if meta["tool_params"].is_object() { &meta["tool_params"] } else { meta };
            ask(question(&tool, input.clone(), text("message")))
        }
        "mcpServer/elicitation/request" => {
            ApprovalAnswer::Tell(json!({ "id": id, "result": { "action": "decline" } }).to_string())
        }
        "item/tool/requestUserInput" => ask(open(id, params)),
        // Codex treats a missing method as denied and goes on.
        method => {
            let error = json!({ "code": -32601, "message": format!("the hub has no {method}") });
            ApprovalAnswer::Tell(json!({ "id": id, "error": error }).to_string())
        }
    }
}

const MCP: &str = "mcp:";

/// Line that sends the decision to Codex.
pub(crate) fn response(question: &Question, decision: &Decision) -> String {
    let allowed = matches!(decision, Decision::Allow | Decision::AllowForSession);
    let result = match question.tool.as_str() {
        INPUT => json!({ "answers": answers(question, decision) }),
        PERMISSIONS if allowed => {
            let scope = if *decision == Decision::Allow { "turn" } else { "session" };
            json!({ "permissions": question.input, "scope": scope })
        }
        PERMISSIONS => json!({ "permissions": {} }),
        server if server.starts_with(MCP) && allowed => {
            json!({ "action": "accept", "content": {} })
        }
        server if server.starts_with(MCP) => json!({ "action": "decline" }),
        _ => json!({ "decision": match decision {
            Decision::Allow => "accept",
            Decision::AllowForSession => "acceptForSession",
            Decision::Deny(_) | Decision::Answer(_) | Decision::Chosen(_) => "decline",
        }}),
    };
    json!({ "id": question.id, "result": result }).to_string()
}

/// Command as the model wrote it, or else with the shell around it.
fn plain_command(params: &Value) -> Value {
    let actions = params["commandActions"].as_array().map(Vec::as_slice).unwrap_or_default();
    match actions {
        [one] if one["command"].is_string() => one["command"].clone(),
        _ => params["command"].clone(),
    }
}

/// Changed file, as data of the question.
fn file_data(file: &PatchedFile) -> Value {
    let diff = file.change().diff.unwrap_or_default();
    json!({ "path": file.path, "diff": diff[..diff.floor_char_boundary(MAX_DIFF)] })
}

/// True if the server only wants a yes. The client has no form for further fields.
fn wants_no_form(params: &Value) -> bool {
    let required = params["requestedSchema"]["required"].as_array();
    params["url"].is_null() && required.is_none_or(Vec::is_empty)
}

/// Open question of the model: one line per question, with its options.
fn open(id: &Value, params: &Value) -> Question {
    let questions = params["questions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |question: &Value| {
        let text = question["question"].as_str().unwrap_or_default();
        let options = question["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let labels: Vec<_> = options.iter().filter_map(|option| option["label"].as_str()).collect();
        if labels.is_empty() { cut(text) } else { format!("{} ({})", cut(text), labels.join(", ")) }
    };
    let lines: Vec<_> = questions.iter().map(line).collect();
    Question {
        id: id.clone(),
        kind: Kind::Open,
        tool: INPUT.to_owned(),
        input: json!({ "questions": questions }),
        description: Some(lines.join("\n")),
        changes: Vec::new(),
        directory: None,
        for_session: false,
        vendor_options: Vec::new(),
        tool_call: None,
        facts: None,
    }
}

/// Answers by question: from data by the question's id, or else the client's text for each.
fn answers(question: &Question, decision: &Decision) -> Map<String, Value> {
    let Decision::Answer(message) = decision else { return Map::new() };
    let (data, text) = (message.data().unwrap_or_default(), answer_text(message));
    let questions = question.input["questions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ids = questions.iter().filter_map(|question| question["id"].as_str());
    let answer = |id: &str| {
        let words = data[id].as_str().unwrap_or(&text);
        (id.to_owned(), json!({ "answers": [words] }))
    };
    ids.map(answer).collect()
}
