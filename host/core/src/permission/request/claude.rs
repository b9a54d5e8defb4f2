//! Requests of Claude Code: `can_use_tool` of its control protocol.
//!
//! `blocked_path` is the file that a command would change, or that a link leads to. A command that
//! stays in its directory says the same without it; others are read by people.
//! A subagent (`agent_id`) may have another directory than the shell that the driver follows.

use super::members::{ObjectForm, absolute, run};
use crate::permission::path;
use a2a_hub_protocol::permission::Action;
use serde_json::Value;

/// Name by which its driver calls the program.
pub(super) const VENDOR: &str = "claude";

const REQUEST: ObjectForm = ObjectForm {
    known: &[
        "subtype",
        "tool_name",
        "display_name",
        "title",
        "input",
        "description",
        "permission_suggestions",
        "decision_reason",
        "decision_reason_type",
        "tool_use_id",
        "agent_id",
        "blocked_path",
    ],
    widening: &["requires_user_interaction"],
};

/// Reasons for which Claude asks about an ordinary action. Others say that its mode, its settings
/// or a hook want a person to decide, or that Claude believes the action to be unsafe.
const ORDINARY_REASONS: &[&str] = &["other", "subcommandResults", "workingDir"];

const SHELL: &str = "Bash";

const SHELL_INPUT: ObjectForm = ObjectForm {
    known: &["command", "description", "timeout"],
    widening: &["dangerouslyDisableSandbox", "run_in_background"],
};

/// Tool that acts on one file.
struct FileTool {
    name: &'static str,
    /// Member with the path.
    path: &'static str,
    is_reading: bool,
    input: ObjectForm,
}

const FILE_TOOLS: &[FileTool] = &[
    FileTool {
        name: "Write",
        path: "file_path",
        is_reading: false,
        input: ObjectForm::of(&["file_path", "content"]),
    },
    FileTool {
        name: "Edit",
        path: "file_path",
        is_reading: false,
        input: ObjectForm::of(&["file_path", "old_string", "new_string", "replace_all"]),
    },
    FileTool {
        name: "MultiEdit",
        path: "file_path",
        is_reading: false,
        input: ObjectForm::of(&["file_path", "edits"]),
    },
    FileTool {
        name: "NotebookEdit",
        path: "notebook_path",
        is_reading: false,
        input: ObjectForm::of(&[
            "notebook_path",
            "cell_id",
            "cell_type",
            "edit_mode",
            "new_source",
        ]),
    },
    FileTool {
        name: "Read",
        path: "file_path",
        is_reading: true,
        input: ObjectForm::of(&["file_path", "offset", "limit", "pages"]),
    },
    FileTool {
        name: "NotebookRead",
        path: "notebook_path",
        is_reading: true,
        input: ObjectForm::of(&["notebook_path", "cell_id"]),
    },
];

/// Action of a request, or the reason why the hub cannot read it exactly.
pub(super) fn action(facts: &Value) -> Result<Action, String> {
    let request = &facts["request"];
    if request["subtype"] != "can_use_tool" {
        return Err("it is no request to use a tool".to_owned());
    }
    let tool = request["tool_name"].as_str().unwrap_or_default();
    let file_tool = FILE_TOOLS.iter().find(|known| known.name == tool);
    if file_tool.is_none() && tool != SHELL {
        return Err("the hub does not know this tool".to_owned());
    }
    if !names_harmless_path(facts, tool) {
        return Err("Claude names a file outside of the directory (`blocked_path`)".to_owned());
    }
    REQUEST.check(request)?;
    let reason = &request["decision_reason_type"];
    let is_ordinary = |reason: &str| ORDINARY_REASONS.contains(&reason);
    if !reason.is_null() && !reason.as_str().is_some_and(is_ordinary) {
        return Err("Claude's mode, settings or safety checks want a person to decide".to_owned());
    }
    match file_tool {
        Some(tool) => file(tool, &request["input"]),
        None if !request["agent_id"].is_null() => {
            Err("a subagent asks, and its directory is not known".to_owned())
        }
        None => shell(&request["input"], &facts["directory"]),
    }
}

fn shell(input: &Value, directory: &Value) -> Result<Action, String> {
    SHELL_INPUT.check(input)?;
    run(&input["command"], directory)
}

fn file(tool: &FileTool, input: &Value) -> Result<Action, String> {
    tool.input.check(input)?;
    let paths = vec![absolute(&input[tool.path])?];
    Ok(if tool.is_reading { Action::Read { paths } } else { Action::Edit { paths } })
}

/// True if the request names no blocked path, or is a command's that stays below its directory.
fn names_harmless_path(facts: &Value, tool: &str) -> bool {
    let blocked = &facts["request"]["blocked_path"];
    let directory = facts["directory"].as_str();
    let is_inside = |path: &str| directory.is_some_and(|it| path::relative(path, it).is_some());
    blocked.is_null() || (tool == SHELL && blocked.as_str().is_some_and(is_inside))
}
