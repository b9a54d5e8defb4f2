//! `status` and `agents`: show the hub's own status and its agents.

use super::completion;
use crate::{
    Exit, Format, Global, ask, block_on,
    client::hub_client::{Client, start_text},
    inbox::waiting::{unread_notices, unread_text, waiting_text},
    ui::{
        failure::{CommandError, HUB_NOT_JOINED, HUB_NOT_RUNNING},
        render::{counted, duration, list, size, text},
        table::{Cell, Table},
        text::{FAINT, PLAIN, Text, style_of},
        width::{joined_lines, wrapped},
    },
};
use a2a_hub_core::text::plain_text::line;
use a2a_hub_protocol::member;
use anstyle::Style;
use serde_json::{Value, json};

/// Width, in columns, of the label in front of a status line, with its gap.
const LABEL_WIDTH: usize = 8;

/// Maximum length, in characters, of a description in the table. Agents write it, and a long one
/// could imitate further rows.
const MAX_DESCRIPTION: usize = 400;

/// Asks the hub for its status, also while it starts.
fn of_hub(global: &Global) -> anyhow::Result<Value> {
    block_on(async { Client::connect_to_any(global).await?.call("hub/status", json!({})).await })
}

/// Address of the hub, for people.
#[cfg(feature = "hub")]
fn address(global: &Global) -> anyhow::Result<String> {
    Ok(global.socket_path()?.display().to_string())
}

#[cfg(not(feature = "hub"))]
fn address(global: &Global) -> anyhow::Result<String> {
    Ok(global.hub.clone().unwrap_or_default())
}

pub(crate) fn status(global: &Global) -> anyhow::Result<Exit> {
    let status = of_hub(global)?;
    global.show(&status, || {
        let socket = address(global)?;
        let mut with_notices = status.clone();
        member::set(&mut with_notices, "unreadNotices", unread_notices(global, &status));
        Ok(status_text(&with_notices, &socket, global.console().columns()))
    })?;
    Ok(Exit::Done)
}

/// Shows the versions of this program and of the running hub, which may be an older one.
pub(crate) fn version(global: &Global) -> anyhow::Result<Exit> {
    let hub = match of_hub(global) {
        Ok(status) => status["version"].clone(),
        Err(why) if CommandError::from_error(&why).is(NO_HUB) => Value::Null,
        Err(why) => return Err(why),
    };
    let program = env!("CARGO_PKG_VERSION");
    global.show(&json!({ "program": program, "hub": hub }), || {
        let hub = hub.as_str().unwrap_or("not running");
        Ok(format!("program  {program}\nhub      {hub}\n").into())
    })?;
    Ok(Exit::Done)
}

/// Next commands of a user whose hub runs, each with its effect.
const WITH_HUB: [(&str, &str); 3] = [
    ("a2a-hub send echo hello", "sends a message to an agent"),
    ("a2a-hub agents", "lists the agents"),
    ("a2a-hub --help", "lists all commands"),
];

/// Next commands of a user whose hub does not run.
const WITHOUT_HUB: [(&str, &str); 3] = match cfg!(feature = "hub") {
    true => [
        ("a2a-hub start", "starts the hub"),
        ("a2a-hub doctor", "checks the installation"),
        ("a2a-hub --help", "lists all commands"),
    ],
    false => [
        ("a2a-hub join URL", "joins a hub with an invitation"),
        ("a2a-hub --hub NAME", "shows one of several hubs"),
        ("a2a-hub --help", "lists all commands"),
    ],
};

/// Reason of an error that no hub is there to be asked.
const NO_HUB: &str = if cfg!(feature = "hub") { HUB_NOT_RUNNING } else { HUB_NOT_JOINED };

/// Shows the hub's status and three next commands, for a command line without a command.
pub(crate) fn overview(global: &Global) -> anyhow::Result<Exit> {
    let next = match status(global) {
        Ok(_) => WITH_HUB,
        // The status of a remote hub is for its operator.
        Err(why) if global.hub.is_some() && CommandError::from_error(&why).is_denied() => WITH_HUB,
        Err(why)
            if global.format == Format::Pretty && CommandError::from_error(&why).is(NO_HUB) =>
        {
            let is_client = cfg!(not(feature = "hub"));
            let why =
                if is_client { format!("{why}\n") } else { "the hub is not running\n".into() };
            global.console().print(&why.into())?;
            WITHOUT_HUB
        }
        Err(why) => return Err(why),
    };
    if global.format == Format::Pretty {
        let next = next_commands(&next, global.console().columns());
        global.console().print(&next.into())?;
    }
    Ok(Exit::Done)
}

/// Renders commands with their effects; on a narrow terminal, each effect is below its command.
fn next_commands(next: &[(&str, &str)], columns: Option<usize>) -> String {
    let lines = next.iter().map(|(command, effect)| {
        let line = format!("  {command:<24} {effect}\n");
        let is_narrow = columns.is_some_and(|columns| line.len() > columns);
        if is_narrow { format!("  {command}\n    {effect}\n") } else { line }
    });
    format!("\nnext:\n{}", lines.collect::<String>())
}

pub(crate) fn agents(global: &Global, health: bool, all: bool) -> anyhow::Result<Exit> {
    let agents = ask(global, "hub/agents/list", json!({ "includeHealth": health }))?;
    global.show(&agents, || {
        let status = status_if_allowed(global)?;
        let mut agents = with_known_health(&agents, &status["agents"]);
        if let Some(agents) = agents.as_array_mut().filter(|_| !all) {
            agents.retain(completion::is_listed);
        }
        let columns = global.console().columns();
        let rejected = &status["rejectedPlugins"];
        let mut out = match columns {
            Some(columns) => lines_text(&agents, rejected, columns),
            None => agents_text(&agents, rejected, None),
        };
        compiling_text(&mut out, &status["compilingPlugins"], columns);
        Ok(out)
    })?;
    Ok(Exit::Done)
}

/// Requests the hub's status; returns JSON null for a program that an agent started, which may only
/// list agents.
fn status_if_allowed(global: &Global) -> anyhow::Result<Value> {
    match ask(global, "hub/status", json!({})) {
        Err(why) if CommandError::from_error(&why).is_denied() => Ok(Value::Null),
        status => status,
    }
}

fn status_text(status: &Value, socket: &str, columns: Option<usize>) -> Text {
    let mut out = Text::new();
    if let Some(start) = start_text(status) {
        let hub = format!("{} on {socket}, starting: {start}", text(&status["version"]));
        push_line(&mut out, (PLAIN, "hub"), &hub, columns);
        return out;
    }
    let up = duration(status["uptime"].as_u64().unwrap_or_default() / 1000);
    let hub = format!("{} on {socket}, up for {up}", text(&status["version"]));
    push_line(&mut out, (PLAIN, "hub"), &hub, columns);
    if status["stopping"] == true {
        push_line(&mut out, (PLAIN, ""), "it is stopping, and accepts no new tasks", columns);
    }
    for warning in list(&status["warnings"]) {
        push_line(&mut out, (style_of("degraded"), "warning"), text(warning), columns);
    }
    storage_text(&mut out, &status["storage"], columns);
    if let Some(at) = status["certificateExpiresAt"].as_str() {
        push_line(&mut out, (PLAIN, "tls"), &format!("the certificate expires at {at}"), columns);
    }
    let tasks = format!("{} active, {} in all", status["activeTasks"], status["totalTasks"]);
    push_line(&mut out, (PLAIN, "tasks"), &tasks, columns);
    if let Some(waiting) = waiting_text(status) {
        push_line(&mut out, (PLAIN, ""), &waiting, columns);
    }
    if let Some(unread) = unread_text(status) {
        push_line(&mut out, (PLAIN, ""), &unread, columns);
    }
    let agents = format!(
        "{} healthy, {} degraded, {} unhealthy, {} not checked yet",
        status["healthy"], status["degraded"], status["unhealthy"], status["unknown"]
    );
    push_line(&mut out, (PLAIN, "agents"), &agents, columns);
    let agents: Vec<_> =
        list(&status["agents"]).iter().filter(|it| completion::is_listed(it)).collect();
    if !agents.is_empty() {
        let mut table = Table::new(["AGENT", "HEALTH", "NAME"]);
        for agent in agents {
            let id = text(&agent["id"]);
            let health = health_cell(agent, text(&agent["status"]), columns);
            table.row([Cell::named(id, id), health, text(&agent["name"]).into()]);
            if is_missing(agent) {
                continue;
            }
            breaker_text(&mut table, &agent["breaker"]);
            if agent["breaker"]["cause"].is_null()
                && let Some(why) = agent["errorMessage"].as_str()
            {
                table.add_note(why.to_owned());
            }
        }
        out.push(PLAIN, if columns.is_some() { "\n" } else { "" });
        out.append(table.text(columns));
    }
    for group in list(&status["groups"]) {
        push_line(&mut out, (PLAIN, "group"), &group_text(group), columns);
    }
    rejected_text(&mut out, &status["rejectedPlugins"], columns);
    compiling_text(&mut out, &status["compilingPlugins"], columns);
    out
}

/// Describes a group: its agents, and those that are missing.
fn group_text(group: &Value) -> String {
    let names = |of: &str| list(&group[of]).iter().map(text).collect::<Vec<_>>().join(", ");
    let missing = names("missing");
    let missing = if missing.is_empty() { missing } else { format!("; missing: {missing}") };
    format!(
        "{}: {}, by {}{missing}",
        text(&group["name"]),
        names("agents"),
        text(&group["balance"])
    )
}

/// Completes the agents that were not asked for their health with the health that the hub knows
/// already.
fn with_known_health(agents: &Value, known: &Value) -> Value {
    let mut agents = agents.clone();
    for agent in agents.as_array_mut().into_iter().flatten() {
        if agent["health"].is_null()
            && let Some(known) = list(known).iter().find(|known| known["id"] == agent["id"])
        {
            let health = ["status", "errorMessage", "fix"]
                .map(|name| (name.to_owned(), known[name].clone()))
                .into_iter()
                .filter(|(_, value)| !value.is_null());
            member::set(agent, "health", Value::Object(health.collect()));
        }
    }
    agents
}

/// Adds a status line, with its label in front of its first row.
fn push_line(out: &mut Text, (style, word): (Style, &str), text: &str, columns: Option<usize>) {
    let lines = match columns {
        Some(columns) => wrapped(text, columns.saturating_sub(LABEL_WIDTH).max(1)),
        None => text.lines().map(str::to_owned).collect(),
    };
    for (at, line) in lines.iter().enumerate() {
        let word = if at == 0 { word } else { "" };
        out.push(style, word);
        out.push(PLAIN, &format!("{:<1$}{line}\n", "", LABEL_WIDTH - word.len()));
    }
}

/// Adds the store's error, if it fails.
fn storage_text(out: &mut Text, storage: &Value, columns: Option<usize>) {
    if storage["status"] != "failing" {
        return;
    }
    let failing = format!("failing since {}: {}", text(&storage["since"]), text(&storage["error"]));
    push_line(out, (style_of("unhealthy"), "storage"), &failing, columns);
    for message in [
        "tasks neither start nor continue until the store can be written; the hub keeps trying",
        &format!("fix: {}", text(&storage["fix"])),
    ] {
        push_line(out, (PLAIN, ""), message, columns);
    }
}

/// Error of an agent whose program is not there, as the hub words it.
const MISSING: &str = "it is not installed";

/// True if the agent's program is not installed.
fn is_missing(agent: &Value) -> bool {
    let errors =
        [&agent["health"]["errorMessage"], &agent["errorMessage"], &agent["breaker"]["cause"]];
    errors.into_iter().any(|error| text(error).contains(MISSING))
}

/// Cell with an agent's health; on a terminal, a program that is not installed is no illness.
fn health_cell(agent: &Value, health: &str, columns: Option<usize>) -> Cell {
    if columns.is_some() && is_missing(agent) {
        return Cell::styled(FAINT, "not installed");
    }
    Cell::styled(style_of(health), health)
}

/// Renders the agents for a terminal, each in one line: what is wrong with it, or what it does.
fn lines_text(agents: &Value, rejected: &Value, columns: usize) -> Text {
    if list(agents).is_empty() {
        return agents_text(agents, rejected, Some(columns));
    }
    let mut table = Table::new(["AGENT", "HEALTH", "VERSION", "ABOUT"]);
    let mut has_more = false;
    for agent in list(agents) {
        let (id, health) = (text(&agent["id"]), &agent["health"]);
        let [status, version] = ["status", "version"].map(|name| text(&health[name]));
        let lacks = list(&agent["notGranted"]).len();
        let (style, about) = if is_missing(agent) {
            (FAINT, health["fix"].as_str().map(|fix| format!("install it with: {fix}")))
        } else if let Some(cause) = agent["breaker"]["cause"].as_str() {
            (PLAIN, Some(format!("failed repeatedly: {cause}")))
        } else if let Some(why) = health["errorMessage"].as_str() {
            (PLAIN, Some(why.to_owned()))
        } else if lacks > 0 {
            let lacks = counted(lacks, "permission");
            (PLAIN, Some(format!("asks for {lacks} that it was not granted")))
        } else {
            (PLAIN, None)
        };
        has_more |= about.is_some();
        let about =
            about.unwrap_or_else(|| line(text(&agent["card"]["description"]), MAX_DESCRIPTION));
        let name = if style == FAINT { Cell::faint_name(id) } else { Cell::named(id, id) };
        let health = health_cell(agent, status, Some(columns));
        table.row([name, health, version.into(), Cell::styled(style, about)]);
    }
    let mut out = table.text(Some(columns));
    if has_more {
        out.push(FAINT, "`a2a-hub agent show ID` shows all about one\n");
    }
    rejected_text(&mut out, rejected, Some(columns));
    out
}

/// Renders the agents, and the rejected files of the plugins folder.
pub(crate) fn agents_text(agents: &Value, rejected: &Value, columns: Option<usize>) -> Text {
    let mut out = Text::new();
    if list(agents).is_empty() {
        out.push(
            PLAIN,
            "This hub has no agents, because it was built without them; `cargo xtask install` \
             builds one with agents.\nA component that is copied into the plugins folder of the \
             data directory is loaded at once.\n",
        );
    } else {
        out.append(agents_table(list(agents)).text(columns));
    }
    rejected_text(&mut out, rejected, columns);
    out
}

/// Builds a table of agents; below each row its description and its errors.
fn agents_table(agents: &[Value]) -> Table {
    let mut table = Table::new(["AGENT", "HEALTH", "VERSION", "SOURCE"]);
    for agent in agents {
        let (id, health) = (text(&agent["id"]), &agent["health"]);
        let [status, version] = ["status", "version"].map(|name| text(&health[name]));
        let status = health_cell(agent, status, None);
        table.row([Cell::named(id, id), status, version.into(), text(&agent["source"]).into()]);
        table.add_note(line(text(&agent["card"]["description"]), MAX_DESCRIPTION));
        if let Some(key) = agent["signedBy"].as_str() {
            table.add_note(format!("signed by `{key}`"));
        }
        if let Some(tier) = agent["tier"].as_str() {
            let idle = match agent["kept"].as_u64() {
                None | Some(0) => String::new(),
                Some(idle) => format!(", {idle} idle"),
            };
            table.add_note(format!("programs: {tier}{idle}"));
        }
        for message in [&health["errorMessage"], &health["detail"]] {
            if let Some(message) = message.as_str() {
                table.add_note(message);
            }
        }
        if let Some(fix) = health["fix"].as_str() {
            table.add_note(format!("fix: {fix}"));
        }
        if !is_missing(agent) {
            breaker_text(&mut table, &agent["breaker"]);
        }
        for lack in list(&agent["notGranted"]) {
            let [action, setting] = ["what", "setting"].map(|name| text(&lack[name]));
            let remedy = lack["command"].as_str().map_or_else(
                || format!("`{setting}` in `[agents.{id}.grant]` of the configuration allows it"),
                |command| format!("allow it with: {command}"),
            );
            table.add_note(format!("asks to {action}, which is not granted; {remedy}"));
        }
    }
    table
}

fn breaker_text(table: &mut Table, breaker: &Value) {
    let Some(at) = breaker["retryAt"].as_str() else { return };
    table.add_note(format!("failed repeatedly; next try at {at}"));
    if let Some(cause) = breaker["cause"].as_str() {
        table.add_note(format!("last failure: {cause}"));
    }
}

/// Adds the plug-ins that are being compiled and have not joined yet.
fn compiling_text(out: &mut Text, compiling: &Value, columns: Option<usize>) {
    for plugin in list(compiling) {
        let (file, since) = (text(&plugin["file"]), text(&plugin["since"]));
        let bytes = plugin["bytes"].as_u64().unwrap_or_default();
        let size = size(usize::try_from(bytes).unwrap_or(usize::MAX));
        let message = format!(
            "compiling: {file} ({size}), since {since}; it is loaded when that is done, \
             and later starts do not compile it"
        );
        let lines =
            columns.map_or_else(|| vec![message.clone()], |columns| wrapped(&message, columns));
        lines.iter().for_each(|line| out.push(PLAIN, &format!("{line}\n")));
    }
}

/// Adds the rejected files of the plugins folder, with the reasons.
pub(crate) fn rejected_text(out: &mut Text, rejected: &Value, columns: Option<usize>) {
    for plugin in list(rejected) {
        let (file, why) = (text(&plugin["file"]), joined_lines(text(&plugin["error"])));
        let message = format!("not loaded: {file}: {why}");
        let lines =
            columns.map_or_else(|| vec![message.clone()], |columns| wrapped(&message, columns));
        lines.iter().for_each(|line| out.push(PLAIN, &format!("{line}\n")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(shown: &Text) -> String {
        shown.words().replace('\t', " → ")
    }

    #[test]
    fn compiling_plugins_are_listed() {
        let compiling =
            json!([{"file": "x.wasm", "bytes": 19_400_001, "since": "2026-01-31T10:00:00.000Z"}]);
        let mut out = Text::new();
        compiling_text(&mut out, &compiling, None);
        compiling_text(&mut out, &Value::Null, None);
        assert_eq!(
            out.words(),
            "compiling: x.wasm (18.5 MiB), since 2026-01-31T10:00:00.000Z; it is loaded when that is \
             done, and later starts do not compile it\n"
        );
    }

    #[test]
    fn effects_are_below_commands_on_narrow_terminals() {
        let next = [("a2a-hub start", "starts the hub")];
        let wide = "\nnext:\n  a2a-hub start            starts the hub\n";
        assert_eq!(next_commands(&next, None), wide);
        assert_eq!(next_commands(&next, Some(80)), wide);
        let narrow = "\nnext:\n  a2a-hub start\n    starts the hub\n";
        assert_eq!(next_commands(&next, Some(40)), narrow);
    }

    #[test]
    fn agent_table_fits_terminal_width() {
        let agents = json!([
            {"id": "claude-code", "source": "built-in", "card": {"description": "Anthropic's coding agent."},
             "health": {"status": "degraded", "version": "2.1.329", "errorMessage": "not logged in", "fix": "claude /login"}},
            {"id": "codex", "source": "built-in", "card": {"description": "OpenAI's coding agent."},
             "health": {"status": "healthy", "version": "0.170.0", "detail": "tested with 0.169.0; other versions may differ"}},
            {"id": "parrot", "source": "parrot-of-many-colours.wasm", "card": {"description": "Says it again."}, "tier": "confined", "kept": 2, "notGranted": [{"capability": "process.git", "what": "run `git`", "setting": "process.git = {}"}]},
        ]);
        let rejected = json!([{"file": "x.wasm", "error": "it is not WebAssembly, but a text of some length"}]);
        let shown = |width| columns(&agents_text(&agents, &rejected, width));
        insta::assert_snapshot!(shown(Some(100)), @"
        AGENT        HEALTH    VERSION  SOURCE
        claude-code  degraded  2.1.329  built-in
            Anthropic's coding agent.
            not logged in
            fix: claude /login
        codex        healthy   0.170.0  built-in
            OpenAI's coding agent.
            tested with 0.169.0; other versions may differ
        parrot                          parrot-of-many-colours.wasm
            Says it again.
            programs: confined, 2 idle
            asks to run `git`, which is not granted; `process.git = {}` in `[agents.parrot.grant]` of the
            configuration allows it
        not loaded: x.wasm: it is not WebAssembly, but a text of some length
        ");
        insta::assert_snapshot!(shown(Some(44)), @"
        AGENT        HEALTH    VERSION  SOURCE
        claude-code  degraded  2.1.329  built-in
            Anthropic's coding agent.
            not logged in
            fix: claude /login
        codex        healthy   0.170.0  built-in
            OpenAI's coding agent.
            tested with 0.169.0; other versions may
            differ
        parrot                          parrot-of-m…
            Says it again.
            programs: confined, 2 idle
            asks to run `git`, which is not granted;
            `process.git = {}` in
            `[agents.parrot.grant]` of the
            configuration allows it
        not loaded: x.wasm: it is not WebAssembly,
        but a text of some length
        ");
        insta::assert_snapshot!(shown(None), @"
        claude-code → degraded → 2.1.329 → built-in
         → Anthropic's coding agent.
         → not logged in
         → fix: claude /login
        codex → healthy → 0.170.0 → built-in
         → OpenAI's coding agent.
         → tested with 0.169.0; other versions may differ
        parrot →  →  → parrot-of-many-colours.wasm
         → Says it again.
         → programs: confined, 2 idle
         → asks to run `git`, which is not granted; `process.git = {}` in `[agents.parrot.grant]` of the configuration allows it
        not loaded: x.wasm: it is not WebAssembly, but a text of some length
        ");
    }

    #[test]
    fn terminal_lists_agents_in_one_line() {
        let missing = "run `codex`: it is not installed, or not on the PATH";
        let agents = json!([
            {"id": "codex", "card": {"description": "OpenAI's coding agent."},
             "health": {"status": "unhealthy", "errorMessage": missing, "fix": "npm install -g codex"},
             "breaker": {"state": "open", "retryAt": "2026-01-01T00:00:00.000Z", "cause": missing}},
            {"id": "echo", "card": {"description": "Says back\nwhat it is told"},
             "health": {"status": "healthy", "version": "1"}},
            {"id": "weak", "card": {}, "health": {"status": "healthy"},
             "breaker": {"state": "open", "retryAt": "2026-01-01T00:00:00.000Z", "cause": "it broke"}},
            {"id": "poor", "card": {}, "health": {}, "notGranted": [{"what": "run `git`"}]},
        ]);
        let shown = |columns| lines_text(&agents, &Value::Null, columns).words();
        insta::assert_snapshot!(shown(80), @"
        AGENT  HEALTH         VERSION  ABOUT
        codex  not installed           install it with: npm install -g codex
        echo   healthy        1        Says back what it is told
        weak   healthy                 failed repeatedly: it broke
        poor                           asks for 1 permission that it was not granted
        `a2a-hub agent show ID` shows all about one
        ");
        assert!(shown(40).lines().take(5).all(|line| line.chars().count() <= 40), "{}", shown(40));
    }

    #[test]
    fn unasked_agent_shows_known_health() {
        let asked = json!({ "id": "codex", "health": { "status": "degraded", "version": "2" } });
        let agents = json!([{ "id": "echo" }, asked.clone(), { "id": "new" }]);
        let known =
            json!([{ "id": "echo", "status": "healthy" }, { "id": "codex", "status": "healthy" }]);
        let shown = with_known_health(&agents, &known);
        assert_eq!(shown[0]["health"]["status"], "healthy");
        assert_eq!((&shown[1], &shown[2]), (&asked, &json!({ "id": "new" })));
    }

    #[test]
    fn status_fits_terminal_width() {
        let status = json!({"version": "0.1.0", "uptime": 3_720_000, "warnings": ["the log was missing"], "activeTasks": 1, "waitingTasks": 1, "totalTasks": 5, "unreadNotices": 2, "healthy": 1, "degraded": 0,
            "unhealthy": 0, "unknown": 1, "agents": [{"id": "echo", "name": "Echo", "status": "healthy",
                "breaker": {"state": "open", "retryAt": "2026-01-01T00:00:00.000Z", "cause": "the agent's code broke"}}]});
        let shown = |width| columns(&status_text(&status, "/tmp/a2a-hub.sock", width));
        insta::assert_snapshot!(shown(Some(100)), @"
        hub     0.1.0 on /tmp/a2a-hub.sock, up for 1 h 2 min
        warning the log was missing
        tasks   1 active, 5 in all
                1 of them wait for an answer: `a2a-hub inbox`
                2 notices: `a2a-hub inbox`
        agents  1 healthy, 0 degraded, 0 unhealthy, 1 not checked yet

        AGENT  HEALTH   NAME
        echo   healthy  Echo
            failed repeatedly; next try at 2026-01-01T00:00:00.000Z
            last failure: the agent's code broke
        ");
        insta::assert_snapshot!(shown(Some(40)), @"
        hub     0.1.0 on /tmp/a2a-hub.sock, up
                for 1 h 2 min
        warning the log was missing
        tasks   1 active, 5 in all
                1 of them wait for an answer:
                `a2a-hub inbox`
                2 notices: `a2a-hub inbox`
        agents  1 healthy, 0 degraded, 0
                unhealthy, 1 not checked yet

        AGENT  HEALTH   NAME
        echo   healthy  Echo
            failed repeatedly; next try at
            2026-01-01T00:00:00.000Z
            last failure: the agent's code broke
        ");
        insta::assert_snapshot!(shown(None), @"
        hub     0.1.0 on /tmp/a2a-hub.sock, up for 1 h 2 min
        warning the log was missing
        tasks   1 active, 5 in all
                1 of them wait for an answer: `a2a-hub inbox`
                2 notices: `a2a-hub inbox`
        agents  1 healthy, 0 degraded, 0 unhealthy, 1 not checked yet
        echo → healthy → Echo
         → failed repeatedly; next try at 2026-01-01T00:00:00.000Z
         → last failure: the agent's code broke
        ");
    }

    #[test]
    fn starting_hub_shows_progress_only() {
        let status = json!({ "version": "0.1.0", "activeTasks": 0, "starting": { "agents": 6, "ready": 3 } });
        let shown = columns(&status_text(&status, "/tmp/a2a-hub.sock", None));
        insta::assert_snapshot!(shown, @"hub     0.1.0 on /tmp/a2a-hub.sock, starting: 3 of 6 agents compiled");
    }

    #[test]
    fn failing_store_is_shown_with_fix() {
        let storage = json!({"status": "failing", "since": "2026-01-01T00:00:00.000Z", "error": "database or disk is full", "fix": "make room"});
        let mut out = Text::new();
        storage_text(&mut out, &storage, None);
        storage_text(&mut out, &json!({"status": "ok"}), None);
        insta::assert_snapshot!(out.words(), @"
        storage failing since 2026-01-01T00:00:00.000Z: database or disk is full
                tasks neither start nor continue until the store can be written; the hub keeps trying
                fix: make room
        ");
    }
}
