//! `plugin inspect`, and the text in which all commands show what a component asks for.

use super::component;
use crate::{
    Exit, Global,
    ui::{
        render::{list, size, text},
        text::{FAINT, PLAIN, Text},
        width::wrapped,
    },
};
use a2a_hub_authoring::Component;
use a2a_hub_protocol::id::AgentId;
use serde_json::Value;
use std::path::Path;

pub(super) fn inspect(global: &Global, target: &str) -> anyhow::Result<Exit> {
    // An existing file takes precedence over a plug-in of the same name.
    let component = match AgentId::parse(target) {
        Ok(id) if !Path::new(target).is_file() => component::of_plugin(global, &id)?,
        Ok(_) | Err(_) => Component::read(Path::new(target))?,
    };
    let details = component::to_json(&component);
    let columns = global.console().columns();
    global.show(&details, || Ok(component_text(&details, columns)))?;
    Ok(Exit::Done)
}

/// Formats a component for people: its description, and what it asks for with the reasons.
pub(super) fn component_text(details: &Value, columns: Option<usize>) -> Text {
    let mut out = Text::new();
    let mut line = |word: &str, value: &str| {
        if !value.is_empty() {
            out.push(FAINT, &format!("{word:<13}"));
            out.push(PLAIN, &format!("{value}\n"));
        }
    };
    line("file", text(&details["file"]));
    line("sha256", text(&details["sha256"]));
    let bytes = details["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
    line("size", &bytes.map(size).unwrap_or_default());
    for word in ["id", "version", "publisher", "description", "signed"] {
        line(word, text(&details[word]));
    }
    push_capabilities(&mut out, list(&details["asks"]), columns);
    out
}

/// Formats what is asked for, one capability per paragraph, with the publisher's words in quotes.
pub(super) fn push_capabilities(out: &mut Text, asks: &[Value], columns: Option<usize>) {
    if asks.is_empty() {
        return out.push(
            PLAIN,
            "It asks for no permissions: it only receives messages and answers them.\n",
        );
    }
    out.push(PLAIN, "It asks to\n");
    for one in asks {
        paragraph(out, "- ", text(&one["what"]), columns);
        if let Some(reason) = one["reason"].as_str() {
            paragraph(out, "  its publisher says: ", &format!("\"{reason}\""), columns);
        }
        for detail in list(&one["details"]) {
            paragraph(out, "    ", text(detail), columns);
        }
    }
}

/// True if a component asks for no capability.
pub(super) fn asks_for_nothing(details: &Value) -> bool {
    list(&details["asks"]).is_empty()
}

fn paragraph(out: &mut Text, mark: &str, text: &str, columns: Option<usize>) {
    let width = columns.map(|columns| columns.saturating_sub(mark.len() + 2).max(20));
    let lines = width.map_or_else(|| vec![text.to_owned()], |width| wrapped(text, width));
    for (at, line) in lines.iter().enumerate() {
        let mark = if at == 0 { mark.to_owned() } else { " ".repeat(mark.len()) };
        out.push(PLAIN, &format!("  {mark}{line}\n"));
    }
}

/// Parses a plug-in's name and reads its component from the plugins folder.
pub(super) fn plugin(global: &Global, id: &str) -> anyhow::Result<(AgentId, Component)> {
    let id = component::name(id)?;
    let component = component::of_plugin(global, &id)?;
    Ok((id, component))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requested_capabilities_are_shown_with_reasons() {
        let told = json!({ "file": "notes.wasm", "sha256": "abc", "bytes": 70_000, "id": "notes", "version": "1.2",
            "publisher": null, "description": "Keeps notes.", "asks": [
            { "capability": "process.git", "what": "run `git`", "reason": "to read the history", "details": ["run `git` with `log`"] },
            { "capability": "memory", "what": "remember up to 4096 bytes", "reason": null, "details": [] }] });
        insta::assert_snapshot!(component_text(&told, Some(60)).words(), @r#"
        file         notes.wasm
        sha256       abc
        size         68 KiB
        id           notes
        version      1.2
        description  Keeps notes.
        It asks to
          - run `git`
            its publisher says: "to read the history"
              run `git` with `log`
          - remember up to 4096 bytes
        "#);
        let nothing = json!({ "file": "echo.wasm", "asks": [] });
        insta::assert_snapshot!(component_text(&nothing, None).words(), @"
        file         echo.wasm
        It asks for no permissions: it only receives messages and answers them.
        ");
    }
}
