//! Text of a permission question: the action, its place and its change, for people. The question's
//! data holds the same for programs.

use serde_json::{Value, json};

use super::activity::short;
use super::hub::Hub;
use super::{FileChange, Kind, Question, VendorOption, cut};
use crate::{Message, Part};

/// Maximum size of a question's details, which people read in a terminal before they decide.
const MAX_LINES: usize = 100;
const MAX_BYTES: usize = 8 * 1024;

/// Maximum size of a tool's input as JSON in a question's data, and of the diffs together. The hub
/// takes a question of 1 MiB.
const MAX_INPUT: usize = 256 * 1024;
const MAX_DIFFS: usize = 256 * 1024;

/// Members of a tool's input that another line of the text shows.
const SHOWN_ELSEWHERE: [&str; 3] = ["command", "description", "reason"];

impl Question {
    /// Prompt to the client: a text for people, data for programs.
    pub fn prompt(&self, agent: &str) -> Message {
        let is_short = self.input.to_string().len() <= MAX_INPUT;
        let input = if is_short { self.input.clone() } else { short(&self.input) };
        let mut data = json!({ "tool": self.tool, "input": input });
        if let Some(directory) = &self.directory {
            data["directory"] = directory.as_str().into();
        }
        if self.kind == Kind::Open {
            let text = self.description.clone().unwrap_or_else(|| members(&self.input));
            let prompt = Message::from(text).with(Part::data(&data));
            // The text says it all, so clients that show it to people can leave out the data.
            return prompt.with_metadata(&json!({ "question": { "kind": "input" } }));
        }
        data["choices"] = json!(["allow", "allow-session", "deny"]);
        if !self.for_session {
            data["choices"] = json!(["allow", "deny"]);
        }
        if !self.vendor_options.is_empty() {
            let option = |choice: &VendorOption| {
                let mut option = json!({ "id": choice.id, "name": choice.name });
                if let Some(kind) = choice.kind.name() {
                    option["kind"] = kind.into();
                }
                option
            };
            let options: Vec<_> = self.vendor_options.iter().map(option).collect();
            if let Some(members) = data.as_object_mut() {
                members.insert("options".to_owned(), options.into());
            }
        }
        let changes = changes(&self.changes);
        if let Some(members) = data.as_object_mut() {
            let call = self.tool_call.iter().map(|call| ("toolCall".to_owned(), call.clone()));
            members.extend(call);
            if !changes.is_empty() {
                members.insert("changes".to_owned(), changes.into());
            }
        }
        let prompt = Message::from(request(self, agent)).with(Part::data(&data));
        // An answer that arrives after the program's exit must not permit anything else.
        prompt.with_metadata(&json!({ "question": { "kind": "permission" } }))
    }
}

/// Request of `agent` to use the question's tool.
fn request(question: &Question, agent: &str) -> String {
    let tool = &question.tool;
    let location =
        question.directory.as_ref().map(|directory| format!(" in {directory}")).unwrap_or_default();
    let action = match Hub::callee(tool, &question.input) {
        Some(callee) => format!("give a task to the agent {callee} (by {tool}){location}"),
        None => format!("use {tool}{location}"),
    };
    let details = limited(&details(question));
    let end = if details.is_empty() { "." } else { ":\n" };
    let options: Vec<String> = question.vendor_options.iter().map(option_text).collect();
    let options = match options.is_empty() {
        true => String::new(),
        false => format!("; the program's own answers: {}", options.join(", ")),
    };
    format!("{agent} wants to {action}{end}{details}\nAllow it? (yes or no{options})")
}

/// Choice of the program: its name in quotes, and its effect, which the name need not tell.
fn option_text(option: &VendorOption) -> String {
    let name: String =
        cut(&option.name).chars().filter(|char| !char.is_control() && *char != '"').collect();
    format!("\"{name}\" {}", option.kind.text())
}

/// Changes of files with their diffs, as far as they fit into the question's data.
fn changes(changes: &[FileChange]) -> Vec<Value> {
    let mut bytes = 0;
    let change = |FileChange { path, diff }: &FileChange| {
        bytes += diff.as_ref().map_or(0, String::len);
        match diff.as_ref().filter(|_| bytes <= MAX_DIFFS) {
            Some(diff) => json!({ "path": path, "diff": diff }),
            None => json!({ "path": path }),
        }
    };
    changes.iter().map(change).collect()
}

/// Members of a tool's input, one per line; members of members are indented.
fn members(input: &Value) -> String {
    let mut lines = Vec::new();
    push_members(&mut lines, input, "", &[]);
    lines.join("\n")
}

/// Planned action: the command, the changes of files, or else the tool's input.
fn details(question: &Question) -> String {
    let mut lines = Vec::new();
    let description = question.description.as_deref().unwrap_or_default();
    if let Some(command) = command(&question.input) {
        // A title may be the command itself, with the tool's name before it.
        if !description.is_empty() && !description.contains(&command) {
            lines.push(format!("Reason: {description}"));
        }
        lines.insert(0, command);
        push_members(&mut lines, &question.input, "", &SHOWN_ELSEWHERE);
        return lines.join("\n");
    }
    let is_known = |line: &str| {
        line == question.tool || question.changes.iter().any(|change| change.path.ends_with(line))
    };
    let mut shown: Vec<&str> = description.lines().collect();
    lines.extend(shown.iter().filter(|line| !is_known(line)).map(|line| (*line).to_owned()));
    if question.changes.is_empty() {
        shown.extend(SHOWN_ELSEWHERE);
        push_members(&mut lines, &question.input, "", &shown);
    }
    let diffs = question.changes.iter().map(|FileChange { path, diff }| {
        diff.as_deref().map_or_else(|| path.clone(), |diff| diff.trim_end().to_owned())
    });
    lines.extend(diffs);
    lines.join("\n")
}

/// Command of a tool's input: a line for a shell, or a list of words.
fn command(input: &Value) -> Option<String> {
    match &input["command"] {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Appends the members of `value`, without those whose name or text is in `shown`.
fn push_members(lines: &mut Vec<String>, value: &Value, indent: &str, shown: &[&str]) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !shown.contains(&name.as_str()))
            .map(|(name, value)| (format!("{name}:"), value))
            .collect(),
        Value::Array(items) => items.iter().map(|item| ("-".to_owned(), item)).collect(),
        Value::Null => Vec::new(),
        Value::String(_) | Value::Bool(_) | Value::Number(_) => vec![(String::new(), value)],
    };
    for (name, value) in members {
        let deeper = format!("{indent}  ");
        match value {
            Value::Null => {}
            Value::String(text) if shown.contains(&text.as_str()) => {}
            Value::String(text) if text.lines().nth(1).is_some() => {
                lines.push(format!("{indent}{name}"));
                lines.extend(text.lines().map(|line| format!("{deeper}{line}")));
            }
            Value::String(text) => lines.push(format!("{indent}{name} {text}").trim_end().into()),
            Value::Bool(_) | Value::Number(_) => lines.push(format!("{indent}{name} {value}")),
            Value::Array(_) | Value::Object(_) => {
                lines.push(format!("{indent}{name}"));
                push_members(lines, value, &deeper, &[]);
            }
        }
    }
}

/// First lines of `text` within the limits, and the number of lines that are left out.
fn limited(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_BYTES);
    let (all, shown) = (text.lines().count(), text[..end].lines().take(MAX_LINES));
    let mut shown: Vec<&str> = shown.collect();
    let is_cut = end < text.len() || shown.len() < all;
    let omitted = match all - shown.len() {
        0 => "… the last line goes on; the question's data has all of it".to_owned(),
        lines => format!("… {lines} more lines; the question's data has all of them"),
    };
    if is_cut {
        shown.push(&omitted);
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(tool: &str, input: Value) -> Question {
        Question {
            id: json!(1),
            kind: Kind::Run,
            tool: tool.into(),
            input,
            description: None,
            changes: Vec::new(),
            directory: Some("/w".into()),
            for_session: true,
            vendor_options: Vec::new(),
            tool_call: None,
            facts: None,
        }
    }

    /// The hub refuses a question above 1 MiB, and a program would hear that nobody can be asked.
    #[test]
    fn question_with_large_input_fits() {
        let input = json!({ "file_path": "/w/a", "content": "x".repeat(2 << 20) });
        let change = FileChange::between("/w/a", None, &"x".repeat(300 << 10));
        let call = json!({ "id": "7", "kind": "edit" });
        let asked = Question {
            changes: vec![change, FileChange::between("/w/b", Some("1\n"), "2\n")],
            tool_call: Some(call.clone()),
            ..question("Write", input)
        };
        let prompt = asked.prompt("Claude Code");
        let data = prompt.data().unwrap();
        assert!(prompt.text().len() + data.to_string().len() < 600 << 10);
        assert_eq!((&data["input"], &data["toolCall"]), (&json!({ "file_path": "/w/a" }), &call));
        assert_eq!(data["changes"][0], json!({ "path": "/w/a" }));
        let asked = Question { changes: asked.changes[1..].to_vec(), ..asked };
        let data = asked.prompt("Claude Code").data().unwrap();
        assert_eq!(data["changes"][0]["diff"], *asked.changes[0].diff.as_ref().unwrap());
    }

    #[test]
    fn question_shows_command_with_reason() {
        let input = json!({ "command": ["rm", "-r", "x"], "reason": "y", "timeout": 9, "z": null });
        let asked = Question { description: Some("It is old.".into()), ..question("shell", input) };
        assert_eq!(
            request(&asked, "Codex"),
            "Codex wants to use shell in /w:\nrm -r x\nReason: It is old.\ntimeout: 9\n\
             Allow it? (yes or no)"
        );
        let titled = Question {
            description: Some("bash: ls".into()),
            ..question("bash", json!({ "command": "ls" }))
        };
        assert_eq!(
            request(&titled, "Vibe"),
            "Vibe wants to use bash in /w:\nls\nAllow it? (yes or no)"
        );
    }

    #[test]
    fn question_shows_changes_instead_of_input() {
        let change = FileChange::between("/w/a.txt", Some("one\n"), "two\n");
        let input = json!({ "file_path": "/w/a.txt", "old_string": "one", "new_string": "two" });
        let asked = Question {
            description: Some("a.txt\nIt leads elsewhere.".into()),
            changes: vec![change],
            ..question("Edit", input)
        };
        assert_eq!(
            request(&asked, "Claude Code"),
            "Claude Code wants to use Edit in /w:\nIt leads elsewhere.\n--- /w/a.txt\n+++ /w/a.txt\n\
             @@ -1 +1 @@\n-one\n+two\nAllow it? (yes or no)"
        );
    }

    #[test]
    fn question_shows_input_without_json() {
        let input = json!({ "body": "a\nb", "deep": { "list": [1, { "x": true }], "none": null },
            "title": "t" });
        let asked = Question { description: Some("t".into()), ..question("mcp.post", input) };
        assert_eq!(
            request(&asked, "Vibe"),
            "Vibe wants to use mcp.post in /w:\nt\nbody:\n  a\n  b\ndeep:\n  list:\n    - 1\n    -\n      \
             x: true\nAllow it? (yes or no)"
        );
        let bare = Question { directory: None, ..question("think", json!({})) };
        assert_eq!(request(&bare, "Vibe"), "Vibe wants to use think.\nAllow it? (yes or no)");
    }

    #[test]
    fn question_names_called_agent_and_message() {
        for tool in
            ["mcp_a2a_hub.claude_code", "mcp_a2a-hub_claude-code", "mcp__a2a-hub__claude-code"]
        {
            let asked = question(tool, json!({ "message": "Review the parser." }));
            assert_eq!(
                request(&asked, "Vibe"),
                format!(
                    "Vibe wants to give a task to the agent claude-code (by {tool}) in /w:\n\
                     message: Review the parser.\nAllow it? (yes or no)"
                )
            );
        }
        let answer = question("mcp_a2a_hub.answer_task", json!({ "message": "yes" }));
        assert!(request(&answer, "Vibe").starts_with("Vibe wants to use mcp_a2a_hub.answer_task"));
    }

    #[test]
    fn long_question_reports_left_out_lines() {
        let long = |command: String| request(&question("Bash", json!({ "command": command })), "C");
        let lines = long("echo\n".repeat(MAX_LINES + 7));
        assert!(
            lines.ends_with(
                "… 7 more lines; the question's data has all of them\nAllow it? (yes or no)"
            ),
            "{lines}"
        );
        let line = long("ä".repeat(MAX_BYTES));
        assert!(line.contains("… the last line goes on;") && line.len() < MAX_BYTES + 200);
    }
}
