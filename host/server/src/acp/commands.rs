//! Commands of an agent's program, such as `/compact`: those that the agent reports as `commands`,
//! and the one that a prompt calls.
//!
//! The metadata of an agent's status has `commands`, a list of `{"name", "description", "hint"}`:
//! the names have no slash, and `hint` describes the text behind the name, if the command takes
//! one. A command with `callable: false` is one that the agent lists only: editors offer every
//! command that they know, so the hub leaves it out. The metadata of a message that calls a command
//! has `command`, `{"name", "input"}`; its text stays as it was written.

use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::message::Metadata;
use serde_json::{Value, json};

/// Metadata member of a status, with the commands that the agent's program knows.
pub(super) const COMMANDS: &str = "commands";

/// Metadata member of a message that calls a command.
pub(super) const COMMAND: &str = "command";

/// Kind of the update with the commands.
pub(super) const UPDATE: &str = "available_commands_update";

/// Maximum number of commands, and maximum length of their texts in characters.
const MAX_COMMANDS: usize = 300;
const MAX_NAME: usize = 80;
const MAX_TEXT: usize = 300;

/// Update with the callable commands that the metadata of a status or a task reports; `None`
/// without a list.
pub(super) fn update(facts: &Metadata) -> Option<Value> {
    let commands = facts.get(COMMANDS)?.as_array()?.iter().filter_map(described);
    let commands: Vec<_> = commands.take(MAX_COMMANDS).collect();
    Some(json!({ "sessionUpdate": UPDATE, "availableCommands": commands }))
}

/// Update without commands.
pub(super) fn none() -> Value {
    json!({ "sessionUpdate": UPDATE, "availableCommands": [] })
}

/// ACP's description of a command; `None` if its name is no word, or nobody can call it.
fn described(command: &Value) -> Option<Value> {
    let name = command["name"].as_str()?;
    let name = name.strip_prefix('/').unwrap_or(name);
    let is_word = !name.is_empty()
        && name.chars().count() <= MAX_NAME
        && plain_text::is_plain_line(name)
        && !name.contains(char::is_whitespace);
    let text = |text: &Value| Some(plain_text::line(text.as_str()?, MAX_TEXT));
    let described = || {
        let description = text(&command["description"]).unwrap_or_default();
        let input = text(&command["hint"]).map(|hint| json!({ "hint": hint }));
        let mut described = json!({ "name": name, "description": description });
        if let (Some(input), Some(described)) = (input, described.as_object_mut()) {
            described.insert("input".to_owned(), input);
        }
        described
    };
    let is_callable = command["callable"] != false;
    (is_word && is_callable).then(described)
}

/// Names of the commands of an update.
pub(super) fn names(update: &Value) -> Vec<String> {
    let commands = update["availableCommands"].as_array().into_iter().flatten();
    commands.filter_map(|command| command["name"].as_str().map(str::to_owned)).collect()
}

/// Value of [`COMMAND`] for a prompt that begins with a slash and one of these commands.
pub(super) fn called(known: &[String], parts: &[Value]) -> Option<Value> {
    let text = parts.first()?["text"].as_str()?.strip_prefix('/')?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (name, input) = text.split_at_checked(end)?;
    let is_known = known.iter().any(|known| known == name);
    is_known.then(|| json!({ "name": name, "input": input.trim() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::json_shapes::reshaped;

    #[test]
    fn reported_commands_become_update() {
        let facts = json!({ "commands": [
            { "name": "/compact", "description": "Shorten\nthe conversation", "hint": "what to keep" },
            { "name": "init", "callable": true },
            { "name": "extensions", "description": "Install one", "callable": false },
            { "name": "two words" }, { "name": "" }, { "name": "\u{1b}[2J" }, 7,
        ] });
        let update = update(facts.as_object().unwrap()).unwrap();
        let commands = json!([
            { "name": "compact", "description": "Shorten the conversation", "input": { "hint": "what to keep" } },
            { "name": "init", "description": "" },
        ]);
        assert_eq!(update, json!({ "sessionUpdate": UPDATE, "availableCommands": commands }));
        assert_eq!(names(&update), ["compact", "init"]);
        for odd in reshaped(&facts) {
            if let Some(update) = odd.as_object().and_then(super::update) {
                assert!(update["availableCommands"].is_array(), "{odd}");
            }
        }
    }

    #[test]
    fn only_known_command_is_called() {
        let known = ["compact".to_owned(), "mcp:list".to_owned()];
        let called = |text: &str| called(&known, &[json!({ "kind": "text", "text": text })]);
        let command = |name: &str, input: &str| Some(json!({ "name": name, "input": input }));
        assert_eq!(called("/compact"), command("compact", ""));
        assert_eq!(called("/compact  the rest\nof it "), command("compact", "the rest\nof it"));
        assert_eq!(called("/mcp:list x"), command("mcp:list", "x"));
        for text in ["/compactly", "compact", " /compact", "/", "", "/etc/passwd", "/Compact"] {
            assert_eq!(called(text), None, "{text:?}");
        }
        assert_eq!(super::called(&known, &[json!({ "kind": "file", "file": {} })]), None);
    }
}
