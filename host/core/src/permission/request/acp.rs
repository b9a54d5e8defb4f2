//! Requests of programs of the Agent Client Protocol: `session/request_permission`.
//!
//! The protocol leaves open what a tool call says about itself, so the hub reads only the calls of
//! programs that it knows.

use super::members::{ObjectForm, absolute, absolute_each, run};
use crate::permission::path;
use a2a_hub_protocol::permission::Action;
use serde_json::Value;

/// Names by which their driver calls these programs.
pub(super) const GEMINI: &str = "gemini";
pub(super) const VIBE: &str = "vibe";
pub(super) const OPENCODE: &str = "opencode";

const REQUEST: ObjectForm = ObjectForm::of(&["sessionId", "toolCall", "options"]);

/// Action of a request of the Gemini CLI, which shows the command of a shell only as a title.
pub(super) fn gemini(facts: &Value) -> Result<Action, String> {
    const CALL: ObjectForm =
        ObjectForm::of(&["toolCallId", "status", "title", "kind", "content", "locations"]);
    const DIFF: ObjectForm = ObjectForm::of(&["type", "path", "oldText", "newText", "_meta"]);
    const DIFF_META: ObjectForm = ObjectForm::of(&["kind"]);

    let call = tool_call(facts)?;
    if call["kind"] == "execute" {
        return Err("Gemini sends the title of a command for display, not the command".to_owned());
    }
    if call["kind"] != "edit" {
        return Err("the hub does not know this kind of tool".to_owned());
    }
    CALL.check(call)?;
    let content = call["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    for block in content {
        DIFF.check(block)?;
        if block["type"] != "diff" {
            return Err("it does not only show changes of files".to_owned());
        }
        if !block["_meta"].is_null() {
            let meta = DIFF_META.check(&block["_meta"])?;
            let kind = meta.get("kind").and_then(Value::as_str);
            if !matches!(kind, None | Some("add" | "modify")) {
                return Err("the hub does not know this kind of change".to_owned());
            }
        }
    }
    let paths = absolute_each(content.iter().map(|block| &block["path"]))?;
    if locations(call)? != paths {
        return Err("its changes and its locations name different files".to_owned());
    }
    Ok(Action::Edit { paths })
}

/// Tool of Vibe, by its name, its effect, and the kind of its call.
struct VibeTool {
    name: &'static str,
    effect: &'static str,
    kind: &'static str,
    input: ObjectForm,
}

const VIBE_TOOLS: &[VibeTool] = &[
    VibeTool {
        name: "bash",
        effect: "shell",
        kind: "execute",
        input: ObjectForm::of(&["command"]),
    },
    VibeTool {
        name: "write_file",
        effect: "file_write",
        kind: "edit",
        input: ObjectForm::of(&["filePath", "content"]),
    },
    VibeTool {
        name: "edit",
        effect: "file_edit",
        kind: "edit",
        input: ObjectForm::of(&["filePath", "changes"]),
    },
    VibeTool {
        name: "read_file",
        effect: "file_read",
        kind: "read",
        input: ObjectForm::of(&["filePath", "offset", "limit"]),
    },
];

/// Action of a request of Vibe, which names only the id of the call: the call itself was an update.
pub(super) fn vibe(facts: &Value) -> Result<Action, String> {
    const QUESTION: ObjectForm = ObjectForm::of(&["toolCallId"]);
    const CALL: ObjectForm = ObjectForm::of(&[
        "toolCallId",
        "title",
        "kind",
        "status",
        "content",
        "locations",
        "rawInput",
        "_meta",
        "sessionUpdate",
    ]);
    const META: ObjectForm = ObjectForm::of(&["tool_name", "effect_kind"]);

    QUESTION.check(tool_call(facts)?)?;
    let call = earlier_call(facts)?;
    CALL.check(call)?;
    META.check(&call["_meta"])?;
    let meta = &call["_meta"];
    let is_call = |tool: &&VibeTool| {
        meta["tool_name"] == tool.name
            && meta["effect_kind"] == tool.effect
            && call["kind"] == tool.kind
    };
    let tool = VIBE_TOOLS.iter().find(is_call).ok_or("the hub does not know this tool")?;
    let input = &call["rawInput"];
    tool.input.check(input)?;
    if tool.kind == "execute" {
        return run(&input["command"], &facts["directory"]);
    }
    let paths = vec![vibe_path(&input["filePath"], &facts["directory"])?];
    if locations(call)? != paths {
        return Err("its input and its locations name different files".to_owned());
    }
    Ok(if tool.kind == "read" { Action::Read { paths } } else { Action::Edit { paths } })
}

/// Path of a file, which Vibe resolves against the session's directory.
fn vibe_path(path: &Value, directory: &Value) -> Result<String, String> {
    let relative = path.as_str().filter(|path| !path.starts_with('/'));
    let joined = relative.zip(directory.as_str()).and_then(|(path, dir)| path::join(dir, path));
    joined.map_or_else(|| absolute(path), Ok)
}

/// Action of a request of OpenCode, which has the command or the path in its input.
pub(super) fn opencode(facts: &Value) -> Result<Action, String> {
    const CALL: ObjectForm = ObjectForm::of(&[
        "toolCallId",
        "status",
        "title",
        "kind",
        "content",
        "locations",
        "rawInput",
    ]);
    const EDIT: ObjectForm = ObjectForm::of(&["filepath", "diff"]);

    let subject = tool_call(facts)?;
    CALL.check(subject)?;
    let input = &subject["rawInput"];
    match subject["kind"].as_str() {
        Some("execute") => opencode_shell(input, earlier_call(facts)?),
        Some("edit") => {
            EDIT.check(input)?;
            let paths = vec![absolute(&input["filepath"])?];
            if locations(subject)? != paths {
                return Err("its input and its locations name different files".to_owned());
            }
            Ok(Action::Edit { paths })
        }
        Some("read") if subject["title"] == "read" => opencode_read(input, earlier_call(facts)?),
        Some(_) | None => Err("the hub does not know this kind of request".to_owned()),
    }
}

/// Run of a command in the directory of the call. The request lacks the directory, and the call has
/// it only once an update has told its whole input.
fn opencode_shell(input: &Value, call: &Value) -> Result<Action, String> {
    const QUESTION: ObjectForm = ObjectForm::of(&["command"]);
    const CALLED: ObjectForm =
        ObjectForm::of(&["command", "description", "timeout", "workdir", "cwd"]);

    QUESTION.check(input)?;
    let called = &call["rawInput"];
    CALLED.check(called)?;
    if call["kind"] != "execute" || called["command"] != input["command"] {
        return Err("the directory of its shell is not known yet".to_owned());
    }
    let directory = match (&called["workdir"], &called["cwd"]) {
        (Value::Null, cwd) => cwd,
        (workdir, Value::Null) => workdir,
        (workdir, cwd) if workdir == cwd => cwd,
        _ => return Err("it names two directories".to_owned()),
    };
    run(&input["command"], directory)
}

/// Reading of the file of the call: the request has an empty input.
fn opencode_read(input: &Value, call: &Value) -> Result<Action, String> {
    const NOTHING: ObjectForm = ObjectForm::of(&[]);
    const CALLED: ObjectForm = ObjectForm::of(&["filePath", "offset", "limit"]);

    NOTHING.check(input)?;
    CALLED.check(&call["rawInput"])?;
    if call["kind"] != "read" {
        return Err("its call is of another kind".to_owned());
    }
    Ok(Action::Read { paths: vec![absolute(&call["rawInput"]["filePath"])?] })
}

/// Tool call of the request.
fn tool_call(facts: &Value) -> Result<&Value, String> {
    REQUEST.check(&facts["request"])?;
    Ok(&facts["request"]["toolCall"])
}

/// Earlier updates of the call, which must be the one of the request and must not have ended.
fn earlier_call(facts: &Value) -> Result<&Value, String> {
    let call = &facts["call"];
    let id = call["toolCallId"].as_str().filter(|id| !id.is_empty());
    if id.is_none() || id != facts["request"]["toolCall"]["toolCallId"].as_str() {
        return Err("its tool call is not known".to_owned());
    }
    if !matches!(call["status"].as_str(), None | Some("pending" | "in_progress")) {
        return Err("its tool call has ended".to_owned());
    }
    Ok(call)
}

/// Absolute paths of the locations of a call.
fn locations(call: &Value) -> Result<Vec<String>, String> {
    let locations = call["locations"].as_array().into_iter().flatten();
    absolute_each(locations.map(|location| &location["path"]))
}
