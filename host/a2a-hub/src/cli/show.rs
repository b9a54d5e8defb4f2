//! `status` and `agents`: what the hub tells of itself.

use super::{
    Exit, Global, ask,
    fit::wrapped,
    render::{duration, list, text},
    text::{PLAIN, Text, style_of},
};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What stands before what is said below a line.
const INDENT: &str = "    ";

pub(super) fn status(global: &Global) -> anyhow::Result<Exit> {
    let status = ask(global, "hub/status", json!({}))?;
    global.show(&status, || {
        let socket = global.socket_path()?.display().to_string();
        Ok(status_text(&status, &socket, global.console().columns())?)
    })?;
    Ok(Exit::Done)
}

pub(super) fn agents(global: &Global, health: bool) -> anyhow::Result<Exit> {
    let agents = ask(global, "hub/agents/list", json!({ "includeHealth": health }))?;
    global.show(&agents, || {
        let status = ask(global, "hub/status", json!({}))?;
        Ok(agents_text(&agents, &status["rejectedPlugins"], global.console().columns())?)
    })?;
    Ok(Exit::Done)
}

fn status_text(
    status: &Value,
    socket: &str,
    columns: Option<usize>,
) -> Result<Text, std::fmt::Error> {
    let mut out = Text::new();
    let seconds = status["uptime"].as_u64().unwrap_or_default() / 1000;
    writeln!(out, "hub {} on {socket}, up for {}", text(&status["version"]), duration(seconds))?;
    if status["stopping"] == true {
        writeln!(out, "it is going down, and takes no new tasks")?;
    }
    for warning in list(&status["warnings"]) {
        out.push(style_of("degraded"), "warning");
        writeln!(out, " {}", text(warning))?;
    }
    storage_text(&mut out, &status["storage"])?;
    writeln!(out, "tasks   {} active, {} in all", status["activeTasks"], status["totalTasks"])?;
    if let waiting @ 1.. = status["waitingTasks"].as_u64().unwrap_or_default() {
        writeln!(
            out,
            "        {waiting} of them wait for an answer: `a2a-hub tasks --state input-required`"
        )?;
    }
    writeln!(
        out,
        "agents  {} healthy, {} degraded, {} unhealthy, {} not asked yet",
        status["healthy"], status["degraded"], status["unhealthy"], status["unknown"]
    )?;
    for agent in list(&status["agents"]) {
        let (id, status) = (text(&agent["id"]), text(&agent["status"]));
        write!(out, "  {id:<20} ")?;
        out.push(style_of(status), &format!("{status:<10}"));
        writeln!(out, " {}", text(&agent["name"]))?;
        breaker_text(&mut out, &agent["breaker"], columns);
    }
    rejected_text(&mut out, &status["rejectedPlugins"])?;
    Ok(out)
}

/// What is wrong with the store, if anything is.
fn storage_text(out: &mut Text, storage: &Value) -> std::fmt::Result {
    if storage["status"] != "failing" {
        return Ok(());
    }
    write!(out, "storage ")?;
    out.push(style_of("unhealthy"), "failing");
    writeln!(out, " since {}: {}", text(&storage["since"]), text(&storage["error"]))?;
    writeln!(
        out,
        "        nothing can be stored, so that no task begins or goes on; tried again until it can"
    )?;
    writeln!(out, "        fix: {}", text(&storage["fix"]))
}

/// The agents, and what of the plugins folder is not one.
pub(super) fn agents_text(
    agents: &Value,
    rejected: &Value,
    columns: Option<usize>,
) -> Result<Text, std::fmt::Error> {
    let mut out = Text::new();
    if list(agents).is_empty() {
        writeln!(
            out,
            "This hub has no agents. It was built without them: `cargo xtask install` builds one that has.\n\
             Components copied into the plugins folder of its data directory join at once."
        )?;
    }
    for agent in list(agents) {
        let health = &agent["health"];
        let version = health["version"].as_str().map(|v| format!(" ({v})")).unwrap_or_default();
        let (status, source) = (text(&health["status"]), text(&agent["source"]));
        let pad = 24_usize.saturating_sub(status.len());
        write!(out, "{:<18} ", text(&agent["id"]))?;
        out.push(style_of(status), status);
        writeln!(out, "{version:<pad$} {source}")?;
        below(&mut out, text(&agent["card"]["description"]), columns);
        for said in [&health["errorMessage"], &health["detail"]] {
            if let Some(said) = said.as_str() {
                below(&mut out, said, columns);
            }
        }
        if let Some(fix) = health["fix"].as_str() {
            below(&mut out, &format!("fix: {fix}"), columns);
        }
        breaker_text(&mut out, &agent["breaker"], columns);
        for program in list(&agent["notGranted"]) {
            let (program, id) = (text(program), text(&agent["id"]));
            let said = format!(
                "asks to run `{program}`, which is not granted; `[agents.{id}.grant.process.{program}]` in the configuration \
                 allows it"
            );
            below(&mut out, &said, columns);
        }
    }
    rejected_text(&mut out, rejected)?;
    Ok(out)
}

fn breaker_text(out: &mut Text, breaker: &Value, columns: Option<usize>) {
    let Some(at) = breaker["retryAt"].as_str() else { return };
    below(out, &format!("failed repeatedly; next try at {at}"), columns);
    if let Some(cause) = breaker["cause"].as_str() {
        below(out, &format!("the last time: {cause}"), columns);
    }
}

/// Adds what is said below a line, broken where a terminal would break it.
fn below(out: &mut Text, said: &str, columns: Option<usize>) {
    let lines = match columns {
        Some(columns) => wrapped(said, columns.saturating_sub(INDENT.len()).max(1)),
        None => said.lines().map(str::to_owned).collect(),
    };
    for line in lines {
        out.push(PLAIN, &format!("{INDENT}{line}\n"));
    }
}

fn rejected_text(out: &mut Text, rejected: &Value) -> std::fmt::Result {
    for plugin in list(rejected) {
        writeln!(out, "not loaded: {}: {}", text(&plugin["file"]), text(&plugin["error"]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_as_people_see_them() {
        let agents = json!([
            {"id": "claude-code", "source": "built-in", "card": {"description": "Anthropic's coding agent."},
             "health": {"status": "degraded", "version": "2.1.329", "errorMessage": "not logged in", "fix": "claude /login"}},
            {"id": "codex", "source": "built-in", "card": {"description": "OpenAI's coding agent."},
             "health": {"status": "healthy", "version": "0.170.0", "detail": "tested with 0.169.0; other versions may differ"}},
            {"id": "parrot", "source": "parrot.wasm", "card": {"description": "Says it again."}, "notGranted": ["git"]},
        ]);
        let rejected = json!([{"file": "x.wasm", "error": "it is not WebAssembly"}]);
        insta::assert_snapshot!(agents_text(&agents, &rejected, Some(44)).unwrap().words(), @"
        claude-code        degraded (2.1.329)       built-in
            Anthropic's coding agent.
            not logged in
            fix: claude /login
        codex              healthy (0.170.0)        built-in
            OpenAI's coding agent.
            tested with 0.169.0; other versions may
            differ
        parrot                                      parrot.wasm
            Says it again.
            asks to run `git`, which is not granted;
            `[agents.parrot.grant.process.git]` in
            the configuration allows it
        not loaded: x.wasm: it is not WebAssembly
        ");
        insta::assert_snapshot!(agents_text(&agents, &rejected, None).unwrap().words(), @r"
        claude-code        degraded (2.1.329)       built-in
            Anthropic's coding agent.
            not logged in
            fix: claude /login
        codex              healthy (0.170.0)        built-in
            OpenAI's coding agent.
            tested with 0.169.0; other versions may differ
        parrot                                      parrot.wasm
            Says it again.
            asks to run `git`, which is not granted; `[agents.parrot.grant.process.git]` in the configuration allows it
        not loaded: x.wasm: it is not WebAssembly
        ");
    }

    #[test]
    fn status_as_people_see_it() {
        let status = json!({"version": "0.1.0", "uptime": 3_720_000, "warnings": ["the log was missing"], "activeTasks": 1, "waitingTasks": 1, "totalTasks": 5, "healthy": 1, "degraded": 0,
            "unhealthy": 0, "unknown": 1, "agents": [{"id": "echo", "name": "Echo", "status": "healthy",
                "breaker": {"state": "open", "retryAt": "2026-01-01T00:00:00.000Z", "cause": "the agent's code broke"}}]});
        insta::assert_snapshot!(status_text(&status, "/tmp/a2a-hub.sock", Some(100)).unwrap().words(), @r"
        hub 0.1.0 on /tmp/a2a-hub.sock, up for 1 h 2 min
        warning the log was missing
        tasks   1 active, 5 in all
                1 of them wait for an answer: `a2a-hub tasks --state input-required`
        agents  1 healthy, 0 degraded, 0 unhealthy, 1 not asked yet
          echo                 healthy    Echo
            failed repeatedly; next try at 2026-01-01T00:00:00.000Z
            the last time: the agent's code broke
        ");
    }

    #[test]
    fn a_store_that_fails_is_told_first() {
        let storage = json!({"status": "failing", "since": "2026-01-01T00:00:00.000Z", "error": "database or disk is full", "fix": "make room"});
        let mut out = Text::new();
        storage_text(&mut out, &storage).unwrap();
        storage_text(&mut out, &json!({"status": "ok"})).unwrap();
        insta::assert_snapshot!(out.words(), @"
        storage failing since 2026-01-01T00:00:00.000Z: database or disk is full
                nothing can be stored, so that no task begins or goes on; tried again until it can
                fix: make room
        ");
    }
}
