//! `plugin list`: lists the plug-ins of a running hub.

use crate::{
    Exit, Global, ask,
    commands::status::rejected_text,
    ui::{
        render::{list as elements, text},
        table::{Cell, Table},
        text::{Text, style_of},
    },
};
use serde_json::{Value, json};

/// Number of digits of a digest that are shown.
const SHORT: usize = 12;

pub(super) fn list(global: &Global) -> anyhow::Result<Exit> {
    let plugins = ask(global, "hub/plugins/list", json!({}))?;
    global.show(&plugins, || {
        let status = ask(global, "hub/status", json!({}))?;
        let columns = global.console().columns();
        let mut out = plugins_text(elements(&plugins), columns);
        rejected_text(&mut out, &nameless(&plugins, &status["rejectedPlugins"]), columns);
        Ok(out)
    })?;
    Ok(Exit::Done)
}

/// Returns the rejected files that are no valid agent name and therefore have no row.
fn nameless(plugins: &Value, rejected: &Value) -> Value {
    let is_listed = |file: &Value| {
        let name = text(&file["file"]).trim_end_matches(".wasm");
        elements(plugins).iter().any(|plugin| plugin["agentId"] == name)
    };
    elements(rejected).iter().filter(|file| !is_listed(file)).cloned().collect()
}

/// Renders plug-ins as a table; below each row its grants, its missing grants and a pending update.
fn plugins_text(plugins: &[Value], columns: Option<usize>) -> Text {
    if plugins.is_empty() {
        return "there are no plug-ins; `a2a-hub plugin add FILE` adds one\n".into();
    }
    let mut table = Table::new(["PLUGIN", "STATE", "VERSION", "SHA256", "SIGNED BY"]);
    for plugin in plugins {
        let [id, digest] = ["agentId", "sha256"].map(|name| text(&plugin[name]));
        let (word, style) = state(plugin);
        let short = digest.get(..SHORT).unwrap_or(digest);
        let version = text(&plugin["version"]);
        let signed = text(&plugin["signedBy"]);
        let state = Cell::styled(style_of(style), word);
        table.row([
            Cell::named(id, id),
            state,
            version.into(),
            Cell::named(digest, short),
            signed.into(),
        ]);
        add_details(&mut table, plugin, id);
    }
    table.text(columns)
}

fn state(plugin: &Value) -> (&'static str, &'static str) {
    let lacks = !elements(&plugin["notGranted"]).is_empty();
    if !plugin["heldBack"].is_null() {
        ("update held back", "degraded")
    } else if plugin["compiling"].is_object()
        || plugin["joined"] != true && plugin["error"].is_null()
    {
        ("compiling", "degraded")
    } else if plugin["joined"] != true {
        ("not loaded", "unhealthy")
    } else if plugin["installation"].is_null() && lacks {
        ("granted nothing", "degraded")
    } else if lacks {
        ("granted in part", "degraded")
    } else {
        ("granted", "healthy")
    }
}

fn add_details(table: &mut Table, plugin: &Value, id: &str) {
    if let Some(description) = plugin["description"].as_str() {
        table.add_note(description);
    }
    for note in [
        ("dev", "any component in its file keeps the grant (`--dev`)"),
        ("fromConfiguration", "its grant follows the configuration"),
    ] {
        if plugin["installation"][note.0] == true {
            table.add_note(note.1);
        }
    }
    if let Some(why) = plugin["error"].as_str() {
        table.add_note(why);
    }
    if let (true, Some(since)) = (plugin["joined"] == true, plugin["compiling"]["since"].as_str()) {
        table.add_note(format!("its new component is being compiled, since {since}"));
    }
    let pending = &plugin["heldBack"];
    let is_new = plugin["installation"].is_null();
    for lack in elements(&plugin["notGranted"]) {
        let reason = lack["reason"].as_str().map(|why| format!(" (\"{why}\")")).unwrap_or_default();
        table.add_note(format!("may not {}{reason}", text(&lack["what"])));
        if let Some(way) = way_to(id, lack, is_new || !pending.is_null()) {
            table.add_note(way);
        }
    }
    if pending.is_null() {
        if is_new && elements(&plugin["notGranted"]).iter().any(|lack| lack["command"].is_string())
        {
            table.add_note(format!("grant it with: a2a-hub plugin grant {id}"));
        }
        return;
    }
    let serves = if pending["serves"] == true { "; the granted one stays in use" } else { "" };
    let digest = text(&pending["sha256"]);
    table.add_note(format!(
        "{} waits for your approval{serves}",
        digest.get(..SHORT).unwrap_or(digest)
    ));
    for change in elements(&pending["changes"]) {
        table.add_note(text(change));
    }
    table.add_note(format!("approve it with: a2a-hub plugin grant {id} --sha256 {digest}"));
}

/// Returns the way to grant what is missing, unless `plugin grant` without arguments grants it.
fn way_to(id: &str, lack: &Value, is_granted_anew: bool) -> Option<String> {
    if let Some(command) = lack["command"].as_str() {
        return (!is_granted_anew).then(|| format!("grant it with: {command}"));
    }
    // A request for an unspecified set, such as all tools of a server, must be narrowed by the
    // operator.
    let (capability, setting) = (text(&lack["capability"]), lack["setting"].as_str()?);
    Some(match capability.split_once('.') {
        Some(("tools", server)) => {
            format!("name what it may call: a2a-hub plugin grant {id} --tool {server}:TOOL")
        }
        None if capability == "tools" => {
            format!("name what it may call: a2a-hub plugin grant {id} --tool SERVER:TOOL")
        }
        Some(_) | None => format!("grant it in the configuration: agents.{id}.grant.{setting}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_file_name_is_listed_below() {
        let plugins = json!([{ "agentId": "broken" }]);
        let rejected = json!([
            { "file": "broken.wasm", "error": "it is not WebAssembly" },
            { "file": "Not A Name.wasm", "error": "`Not A Name` cannot name an agent" },
        ]);
        assert_eq!(nameless(&plugins, &rejected), json!([rejected[1]]));
    }

    #[test]
    fn plugin_table_shows_missing_and_pending() {
        let digest = "ab".repeat(32);
        let plugins = json!([
            { "agentId": "notes", "joined": true, "sha256": digest, "version": "1.0", "description": "Keeps notes.",
              "installation": { "dev": false, "fromConfiguration": true }, "notGranted": [],
              "heldBack": { "sha256": "cd".repeat(32), "serves": true, "changes": ["+ run `sh`"] } },
            { "agentId": "stranger", "joined": true, "sha256": digest,
              "notGranted": [{ "what": "run `git`", "reason": "to read", "setting": "process.git = {}", "command": "a2a-hub plugin grant stranger --program git" }] },
            { "agentId": "tools", "joined": true, "sha256": digest, "installation": { "dev": false }, "notGranted": [
              { "what": "remember 9 bytes", "setting": "memory = 9", "command": "a2a-hub plugin grant tools --memory=9" },
              { "what": "call the tools of `web`", "capability": "tools.web", "setting": "tools.web = [\"TOOL\"]" }] },
            { "agentId": "broken", "joined": false, "notGranted": [], "error": "it is not WebAssembly" },
        ]);
        let plugins = elements(&plugins);
        let lines = plugins_text(plugins, Some(70)).words();
        let lines: Vec<_> = lines.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        PLUGIN    STATE             VERSION  SHA256        SIGNED BY
        notes     update held back  1.0      abababababab
            Keeps notes.
            its grant follows the configuration
            cdcdcdcdcdcd waits for your approval; the granted one stays in use
            + run `sh`
            approve it with: a2a-hub plugin grant notes --sha256
            cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd
        stranger  granted nothing            abababababab
            may not run `git` ("to read")
            grant it with: a2a-hub plugin grant stranger
        tools     granted in part            abababababab
            may not remember 9 bytes
            grant it with: a2a-hub plugin grant tools --memory=9
            may not call the tools of `web`
            name what it may call: a2a-hub plugin grant tools --tool web:TOOL
        broken    not loaded
            it is not WebAssembly
        "#);
        assert!(plugins_text(&[], None).words().contains("plugin add"));
    }
}
