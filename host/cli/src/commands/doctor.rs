//! `doctor`: checks everything that the hub needs and names a fix for each finding.

pub(crate) mod finding;
pub(crate) mod grants;
mod http_names;
mod never_rules;
pub(crate) mod trial;

use super::{
    completion,
    doctor::{
        finding::{CheckResult, CheckVerdict, fail, ok, warn},
        grants::{grants, servers},
        http_names::http_names,
    },
};
use crate::{
    Exit, Global, block_on,
    client::hub_client::Client,
    people::tenant_tokens,
    ui::{
        render::{list, size, text},
        text::{PLAIN, Text, style_of},
        width::{joined_lines, wrapped},
    },
};
use a2a_hub_config::{self as config, Settings, ownership};
use a2a_hub_core::text::duration::Span;
use a2a_hub_process::{Supervisor, System, confine::Network, controllers_of_trees, daemon, probe};
use a2a_hub_store::{
    StorageError,
    sqlite::{self, Examined, LOCK_FILE},
};
use a2a_hub_toolchain::TARGET;
use clap::Args;
use futures::future::join_all;
use rustix::{fs::Access, io::Errno};
use serde_json::{Value, json};
use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// Free disk space, in bytes, below which the hub will soon be unable to store a task.
const LITTLE_SPACE: u64 = 1 << 30;

/// Free disk space, in bytes, below which the hub may fail at once.
const NO_SPACE: u64 = 64 << 20;

/// Maximum length of a unix socket's path: the size of `sun_path`.
const MAX_SOCKET_PATH: usize = 107;

/// Files of the data directory that a running hub writes.
const DATA_FILES: &[&str] =
    &["hub.lock", "hub.db", "hub.db-wal", "hub.db-shm", "search.db", "search.db-wal", "hub.log"];

/// Number of waiting tasks above which `doctor` warns.
const WAITING_THRESHOLD: u64 = 100;

/// Time limit of the store's integrity check: enough for some hundred MiB.
const EXAMINED_FOR: Duration = Duration::from_secs(20);

/// Programs that agents drive: the program, its agent, and the way to install it.
const CLIS: &[(&str, &str, &str)] = &[
    ("claude", "claude-code", "npm install -g @anthropic-ai/claude-code"),
    ("gemini", "gemini", "npm install -g @google/gemini-cli"),
    ("codex", "codex", "npm install -g @openai/codex"),
    ("vibe-acp", "vibe", "uv tool install mistral-vibe"),
    ("git", "git-historian", "install git with your system's packages"),
];

/// Accounts that Google serves, for an installed program that is not ready.
const GEMINI_ACCOUNTS: &str =
    "since June 2026, Google serves Gemini CLI to paid API keys and enterprise licences only";

/// Width of a terminal, in columns, below which a finding stands below its subject.
const NARROW: usize = 70;

/// Arguments that make `rustc` print the directory of the target's libraries.
const TARGET_LIBDIR_ARGS: [&str; 4] = ["--print", "target-libdir", "--target", TARGET];

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Test these agents, or all that support it, against a local model that echoes: free and
    /// offline
    #[arg(long, value_name = "AGENT", num_args = 0..)]
    trial: Option<Vec<String>>,
}

pub(crate) fn doctor(global: &Global, doctor: &Doctor) -> anyhow::Result<Exit> {
    let findings = block_on(async {
        match &doctor.trial {
            Some(agents) => trial::try_agents(global, agents).await,
            None => Ok(examine(global).await),
        }
    })?;
    let columns = global.console().columns();
    global.show(&json!(findings), || Ok(findings_text(&findings, columns)))?;
    let failed = findings.iter().any(|finding| finding.verdict == CheckVerdict::Fail);
    Ok(if failed { Exit::Fault } else { Exit::Done })
}

async fn examine(global: &Global) -> Vec<CheckResult> {
    let settings = match global.settings(Vec::new()) {
        Ok(settings) => settings,
        // All other checks depend on the configuration.
        Err(why) => {
            return vec![fail(
                "configuration",
                why.to_string(),
                "correct it, and check it with `a2a-hub config check`",
            )];
        }
    };
    let file = settings.file.as_ref().map(|file| file.display().to_string());
    let mut findings = vec![ok("configuration", file.unwrap_or_else(|| "the defaults".to_owned()))];
    match settings.config.data_dir() {
        Ok(dir) => {
            findings.extend([data_directory(dir), space(dir), store(dir), grants(dir)]);
            findings.extend(servers(&settings.config, dir));
            findings.extend(tenant_tokens(&settings.config, dir));
            findings.push(confinement(dir).await);
        }
        Err(why) => findings.push(fail("data", why.to_string(), "set HOME")),
    }
    let listens = global.socket_path().unwrap_or_else(|_| settings.config.socket.path.clone());
    findings.push(socket(&listens));
    findings.extend(http_names(&settings.config));
    match Client::to(&listens).await {
        Ok(client) => findings.extend(running(client).await),
        Err(_) => findings.extend(not_running(&settings).await),
    }
    let of_hub = settings.config.data_dir().ok().and_then(path_of_hub);
    let of_hub = of_hub.as_deref();
    let clis = CLIS.iter().map(|(cli, agent, install)| find_cli(cli, agent, install, of_hub));
    let clis = join_all(clis);
    let untold = untold(clis.await, &findings);
    findings.extend(untold);
    let all = config::catalogue::available(&settings.config).into_iter();
    findings.extend(all.filter(|it| it.state == "installed").map(|it| {
        ok(
            it.id,
            format!("{} is installed; `a2a-hub agent add {}` makes it an agent", it.name, it.id),
        )
    }));
    findings.push(toolchain().await);
    findings
}

fn data_directory(dir: &Path) -> CheckResult {
    let about = "data";
    let shown = dir.display();
    match fs::metadata(dir) {
        Ok(meta) if !meta.is_dir() => {
            fail(about, format!("{shown} is not a directory"), "move it away, or set `data_dir`")
        }
        Ok(meta) if meta.uid() != rustix::process::geteuid().as_raw() => fail(
            about,
            format!("{shown} belongs to another user"),
            "set `data_dir` to a directory that you own",
        ),
        Ok(_) if let Err(why) = ownership::check(dir) => {
            fail(about, why.to_string(), "do so: `a2a-hub start` refuses it, too")
        }
        Ok(meta) if meta.mode() & 0o077 != 0 => warn(
            about,
            format!("{shown} is accessible to other users (mode {:o})", meta.mode() & 0o777),
            format!("chmod 700 {shown}"),
        ),
        Ok(_) => match unwritable(dir) {
            Some((path, why)) => fail(
                about,
                format!("{} cannot be written: {why}", path.display()),
                "give your user write access to it and its files, or set `data_dir`",
            ),
            None => ok(about, shown.to_string()),
        },
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            ok(about, format!("{shown}, created by `a2a-hub start`"))
        }
        Err(why) => {
            fail(about, format!("{shown}: {why}"), "give your user access to it, or set `data_dir`")
        }
    }
}

/// Checks if programs can be confined on this machine.
async fn confinement(dir: &Path) -> CheckResult {
    let about = "confine";
    // Any existing directory will do: nothing is written to it.
    let there = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    let supervisor =
        Supervisor::new("/proc/self/exe".into(), there.to_owned(), Duration::from_secs(1))
            .with_system(System::of_switch(config::is_posix_only()));
    let fix = "fix it, or set `agents.<id>.confine = false` for plug-ins that you trust with all \
               rights of your user";
    match supervisor.support().await {
        Ok(support) => match support.allows(&Network::Ports([443].into())) {
            Ok(()) => ok(about, support.describe() + "; " + &bounds_of_trees(dir)),
            Err(why) => warn(about, why.to_string(), fix),
        },
        Err(why) => warn(about, why.to_string(), "see `a2a-hub logs`"),
    }
}

/// Describes the mechanism that limits a confined program and its descendants.
fn bounds_of_trees(dir: &Path) -> String {
    let hub = daemon::holder(&dir.join(LOCK_FILE)).ok().flatten();
    let controllers = hub.map(|hub| controllers_of_trees(hub.pid)).unwrap_or_default();
    let groups = format!("control groups for {}", controllers.join(", "));
    let looks = "memory limit of each process, and polling of the sum".to_owned();
    match (controllers.is_empty(), controllers.contains(&"memory")) {
        (true, _) => looks,
        (false, true) => groups,
        (false, false) => groups + "; " + &looks,
    }
}

/// Returns the first path among the data directory and its files that this user may not write, with
/// the error.
fn unwritable(dir: &Path) -> Option<(PathBuf, io::Error)> {
    let files = DATA_FILES.iter().map(|file| (dir.join(file), Access::WRITE_OK));
    let all = std::iter::once((dir.to_owned(), Access::WRITE_OK | Access::EXEC_OK)).chain(files);
    all.filter_map(|(path, mode)| {
        let why = rustix::fs::access(&path, mode).err()?;
        // A missing file will be created.
        (why != Errno::NOENT).then(|| (path, why.into()))
    })
    .next()
}

/// Checks the store's integrity page by page, and that nothing of it is missing.
fn store(dir: &Path) -> CheckResult {
    let about = "store";
    let logs = sqlite::retained_logs(dir);
    match sqlite::examine(dir, EXAMINED_FOR) {
        Ok(_) if !logs.is_empty() => {
            let found = format!(
                "a write-ahead log that could not be applied completely is kept as {}",
                joined_paths(&logs)
            );
            warn(about, found, "move it away when you no longer need it, and restart the hub")
        }
        Ok(Examined::Absent) => ok(about, "none yet; `a2a-hub start` creates it"),
        Ok(Examined::Sound) => ok(about, "sound"),
        Ok(Examined::SoundSoFar) => ok(
            about,
            format!("sound as far as it was checked within {}; it is large", Span(EXAMINED_FOR)),
        ),
        Err(why @ StorageError::LogMissing { .. }) => {
            let fix = "stop the hub and put the log beside the store, or restore a backup: \
                       `a2a-hub restore FILE`";
            fail(about, why.to_string(), fix)
        }
        Err(why @ (StorageError::DatabaseMissing { .. } | StorageError::LogCut { .. })) => fail(
            about,
            why.to_string(),
            "put the missing file back, or restore a backup: `a2a-hub restore FILE`",
        ),
        Err(why @ StorageError::Corrupt { .. }) => {
            fail(about, why.to_string(), "`a2a-hub stop`, then `a2a-hub restore FILE`")
        }
        Err(why) => {
            warn(about, why.to_string(), "give your user read access to the data directory")
        }
    }
}

/// Joins paths for display.
fn joined_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn space(dir: &Path) -> CheckResult {
    let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let free = match rustix::fs::statvfs(there) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(why) => return warn("disk", why.to_string(), "check with `df`"),
    };
    space_verdict(free)
}

fn space_verdict(free: u64) -> CheckResult {
    let found = format!("{} free", size(usize::try_from(free).unwrap_or(usize::MAX)));
    let fix = "free some space, or set `data_dir` to another disk";
    match free {
        ..NO_SPACE => fail("disk", found, fix),
        NO_SPACE..LITTLE_SPACE => warn("disk", found, fix),
        _ => ok("disk", found),
    }
}

fn socket(path: &Path) -> CheckResult {
    let about = "socket";
    let shown = path.display();
    if path.as_os_str().len() > MAX_SOCKET_PATH {
        let found =
            format!("{shown} is longer than the {MAX_SOCKET_PATH} bytes a socket's path may have");
        return fail(about, found, "set `socket.path` to a shorter one");
    }
    match fs::symlink_metadata(path) {
        Ok(meta) if !meta.file_type().is_socket() => {
            fail(about, format!("{shown} is not a socket"), "move it away, or set `socket.path`")
        }
        Ok(meta) if meta.uid() != rustix::process::geteuid().as_raw() => fail(
            about,
            format!("{shown} belongs to another user"),
            "set `socket.path` to another one",
        ),
        Ok(meta) if meta.mode() & 0o077 != 0 => fail(
            about,
            format!("{shown} is accessible to other users"),
            format!("chmod 600 {shown}"),
        ),
        Ok(_) => ok(about, shown.to_string()),
        // A bare file name refers to the current directory.
        Err(_) if path.parent().is_some_and(|dir| dir.as_os_str().is_empty() || dir.is_dir()) => {
            ok(about, format!("{shown}, free"))
        }
        Err(_) => fail(
            about,
            format!("{shown}: its directory is missing"),
            "make it, or set `socket.path`",
        ),
    }
}

/// Advice about a hub that is starting.
const STARTING_FIX: &str = "wait until `a2a-hub status` says that it is up";

/// Checks a running hub: its own status and that of its agents.
async fn running(mut client: Client) -> Vec<CheckResult> {
    match client.greet().await {
        Err(why) => {
            return vec![fail("hub", why.to_string(), "a2a-hub stop --force && a2a-hub start")];
        }
        Ok(Some(start)) => return vec![warn("hub", format!("starting: {start}"), STARTING_FIX)],
        Ok(None) => {}
    }
    let answers: anyhow::Result<(Value, Value)> = async {
        let status = client.call("hub/status", json!({})).await?;
        Ok((status, client.call("hub/agents/list", json!({ "includeHealth": true })).await?))
    }
    .await;
    match answers {
        Err(why) => vec![fail("hub", why.to_string(), "see `a2a-hub logs`")],
        Ok((status, agents)) => {
            let hub = hub_verdict(text(&status["version"]), env!("CARGO_PKG_VERSION"));
            let storage = storage_verdict(&status["storage"]);
            let agents: Vec<_> =
                list(&agents).iter().filter(|it| completion::is_listed(it)).collect();
            let never = never_rules::check(&mut client, &agents).await;
            let agents = agents.into_iter().map(agent_verdict);
            let rejected = list(&status["rejectedPlugins"]).iter().map(rejected_verdict);
            let waiting = waiting_verdict(status["waitingTasks"].as_u64().unwrap_or_default());
            let logged = |warning| warn("warning", text(warning), "see `a2a-hub logs`");
            let warnings = list(&status["warnings"]).iter().map(logged);
            let checks = [hub, storage, waiting].into_iter().chain(warnings);
            checks.chain(agents).chain(never).chain(rejected).collect()
        }
    }
}

fn hub_verdict(runs: &str, this: &str) -> CheckResult {
    if runs == this {
        ok("hub", format!("{runs}, running"))
    } else {
        let found = format!("the hub is version {runs}, and this program is {this}");
        warn("hub", found, "a2a-hub stop && a2a-hub start")
    }
}

/// Warns about waiting tasks that may use up the capacity that other tasks need.
fn waiting_verdict(waiting: u64) -> CheckResult {
    let found = format!("{waiting} wait for an answer");
    if waiting < WAITING_THRESHOLD {
        return ok("tasks", found);
    }
    warn("tasks", found, "a2a-hub task cancel --state input-required --older 1d")
}

/// Result of the running hub's latest write to its store.
fn storage_verdict(storage: &Value) -> CheckResult {
    match storage["status"].as_str() {
        Some("failing") => {
            let (error, since) = (text(&storage["error"]), text(&storage["since"]));
            let found = format!("nothing can be stored since {since}: {error}");
            fail("storage", found, text(&storage["fix"]))
        }
        // A hub of an older version does not report its storage.
        Some(_) | None => ok("storage", "writable"),
    }
}

fn agent_verdict(agent: &Value) -> CheckResult {
    let (id, health) = (text(&agent["id"]), &agent["health"]);
    let version = health["version"].as_str().map_or_else(String::new, |it| format!(" ({it})"));
    let about = format!("agent {id}");
    let why = health["errorMessage"].as_str().unwrap_or("it does not say what is wrong");
    let fix =
        health["fix"].as_str().map_or_else(|| format!("a2a-hub agent show {id}"), str::to_owned);
    match text(&health["status"]) {
        "healthy" => {
            let idle = agent["kept"].as_u64().filter(|idle| *idle > 0);
            let idle = idle.map(|count| format!(", idle programs: {count}")).unwrap_or_default();
            ok(&about, format!("healthy{version}{idle}"))
        }
        // An agent that fails affects neither the hub nor other agents.
        _ if id == "gemini" && !version.is_empty() => {
            warn(&about, format!("{why}{version}; {GEMINI_ACCOUNTS}"), fix)
        }
        _ => warn(&about, format!("{why}{version}"), fix),
    }
}

fn rejected_verdict(rejected: &Value) -> CheckResult {
    let (file, why) = (text(&rejected["file"]), joined_lines(text(&rejected["error"])));
    let kind = if file.starts_with("flows/") { "flow" } else { "plugin" };
    match file.strip_prefix("remote.") {
        // The name of a plug-in file has an extension; the id of a remote agent contains no dot.
        Some(id) if !id.contains('.') => warn(
            &format!("agent {id}"),
            &why,
            format!("fix that, then run `a2a-hub agent reload {id}`"),
        ),
        _ => {
            let name = file.strip_prefix("flows/").and_then(|file| file.strip_suffix(".flow.toml"));
            let fix = match name.filter(|_| why.starts_with("held back until you trust it")) {
                Some(name) => format!("a2a-hub flow trust {name}"),
                None => "replace or remove it".to_owned(),
            };
            warn(kind, format!("{file}: {why}"), fix)
        }
    }
}

/// Checks that concern a hub that is about to be started.
async fn not_running(settings: &Settings) -> Vec<CheckResult> {
    let mut findings = vec![warn("hub", "it is not running", "a2a-hub start")];
    let http = &settings.config.http;
    if http.enabled {
        let at = http.address();
        findings.push(match tokio::net::TcpListener::bind(at).await {
            Ok(_) => ok("http", format!("{at}, free")),
            Err(why) => fail(
                "http",
                format!("{at}: {why}"),
                "set `http.port` to another one, or `http.enabled` to false",
            ),
        });
    }
    let missing = settings.config.missing_workspaces().into_iter();
    findings.extend(missing.map(|why| warn("workspace", why, "a2a-hub workspace list")));
    findings
}

/// `PATH` of the hub that runs on this data directory.
fn path_of_hub(data_dir: &Path) -> Option<OsString> {
    let hub = daemon::holder(&data_dir.join(LOCK_FILE)).ok().flatten()?;
    config::path_of_process(hub.pid)
}

/// Program of an agent on the `PATH` of the running hub, or else on this user's.
struct FoundProgram {
    /// Name of the hub's finding that would report the missing program as well.
    agent: String,
    is_there: bool,
    finding: CheckResult,
}

async fn find_cli(cli: &str, agent: &str, install: &str, of_hub: Option<&OsStr>) -> FoundProgram {
    let agent = format!("agent {agent}");
    let local = config::find_program(cli);
    let found = of_hub.map_or_else(|| local.clone(), |path| config::find_program_on(path, cli));
    let Some(path) = found else {
        if let Some(local) = local {
            let found = format!("{}, which is not on the PATH of the running hub", local.display());
            let finding = warn(cli, found, "a2a-hub restart, here: the hub takes this PATH");
            return FoundProgram { agent, is_there: true, finding };
        }
        let finding = warn(cli, "not found; its agent cannot work", install);
        return FoundProgram { agent, is_there: false, finding };
    };
    let version = probe::first_line(&path, &["--version"]).await;
    FoundProgram { agent, is_there: true, finding: cli_verdict(cli, &path, version, install) }
}

/// Filters out missing programs that a running hub has already reported with their agents.
fn untold(clis: Vec<FoundProgram>, reported: &[CheckResult]) -> Vec<CheckResult> {
    let is_reported =
        |cli: &FoundProgram| reported.iter().any(|finding| finding.about == cli.agent);
    clis.into_iter()
        .filter(|cli| cli.is_there || !is_reported(cli))
        .map(|cli| cli.finding)
        .collect()
}

/// Finding for an installed program. Installing it again fixes neither a slow program nor one that
/// reports an error of its configuration.
fn cli_verdict(cli: &str, path: &Path, version: io::Result<String>, install: &str) -> CheckResult {
    let shown = path.display();
    match version {
        Ok(version) => ok(cli, format!("{version}, at {shown}")),
        Err(why) if why.kind() == io::ErrorKind::TimedOut => warn(
            cli,
            format!("{shown} exists, but did not print its version in time"),
            format!(
                "run `{shown} --version` once, because a first start can be slow; then run \
                 `a2a-hub doctor` again"
            ),
        ),
        Err(why) => warn(
            cli,
            format!("{shown} --version: {why}"),
            format!("run `{shown} --version` for details; reinstall it with `{install}`"),
        ),
    }
}

/// Checks the tools for writing agents; running agents needs none of them.
async fn toolchain() -> CheckResult {
    let about = "toolchain";
    let debian = a2a_hub_toolchain::debian_lacks().is_empty();
    let Some(rustc) = config::find_program("rustc") else {
        if debian {
            return ok(about, format!("Debian's Rust, with all that {TARGET} needs"));
        }
        let found = "no Rust; only needed to write agents";
        return warn(about, found, "install Rust with rustup or your system's packages");
    };
    let output = probe::first_line(&rustc, &TARGET_LIBDIR_ARGS).await;
    toolchain_verdict(&rustc, output, debian)
}

/// Finding for a `rustc` that was asked for the directory of the target's libraries. `rustc` prints
/// the directory even if it does not exist, so only a timely answer says something about the
/// target.
///
/// `debian` says whether Debian's packages can compile components, too.
fn toolchain_verdict(rustc: &Path, libraries: io::Result<String>, debian: bool) -> CheckResult {
    let about = "toolchain";
    let shown = rustc.display();
    let by_hand = format!("run `{shown} {}`", TARGET_LIBDIR_ARGS.join(" "));
    match libraries {
        Ok(dir) if Path::new(&dir).is_dir() => ok(about, format!("Rust with {TARGET}")),
        _ if debian => ok(about, format!("Debian's Rust, with all that {TARGET} needs")),
        Ok(_) => warn(
            about,
            format!("Rust without {TARGET}; only needed to write agents"),
            a2a_hub_toolchain::advice(),
        ),
        Err(why) if why.kind() == io::ErrorKind::TimedOut => warn(
            about,
            format!("{shown} exists, but did not answer in time; only needed to write agents"),
            format!(
                "{by_hand} once, because a first start can be slow; then run `a2a-hub doctor` again"
            ),
        ),
        Err(why) => warn(
            about,
            format!("{shown} does not report {TARGET}: {why}; only needed to write agents"),
            format!("{by_hand} for details"),
        ),
    }
}

/// Renders the findings: on a terminal wrapped between words, and below their subjects if it is
/// narrow. Remedies are left whole, because users copy them.
fn findings_text(findings: &[CheckResult], columns: Option<usize>) -> Text {
    let mut out = Text::new();
    let is_narrow = columns.is_some_and(|columns| columns < NARROW);
    let indent = if is_narrow { 6 } else { 27 };
    for CheckResult { verdict, about, found, fix } in findings {
        let word = verdict.word();
        out.push(style_of(word), word);
        out.push(PLAIN, &format!("{:<1$} {about:<20}", "", 5 - word.len()));
        out.push(PLAIN, if is_narrow { "\n" } else { " " });
        let lines = match columns {
            Some(columns) => wrapped(found, columns.saturating_sub(indent).max(1)),
            None => vec![found.clone()],
        };
        for (at, line) in lines.iter().enumerate() {
            let indent = if at == 0 && !is_narrow { 0 } else { indent };
            out.push(PLAIN, &format!("{:indent$}{line}\n", ""));
        }
        if let Some(fix) = fix {
            out.push(PLAIN, &format!("{:indent$}fix: {fix}\n", ""));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_store::sqlite::SqliteStorage;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn findings_are_rendered_with_fixes() {
        let agent = |id: &str, health: Value| agent_verdict(&json!({ "id": id, "health": health }));
        let findings = [
            hub_verdict("0.1.0", "0.1.0"),
            hub_verdict("0.1.0", "0.2.0"),
            space_verdict(2 << 30),
            space_verdict(900 << 20),
            space_verdict(1 << 20),
            agent("echo", json!({ "status": "healthy" })),
            agent(
                "claude-code",
                json!({ "status": "unhealthy", "version": "2.1", "errorMessage": "not logged in", "fix": "claude /login" }),
            ),
            agent(
                "gemini",
                json!({ "status": "unhealthy", "version": "0.61.0", "errorMessage": "not logged in", "fix": "gemini" }),
            ),
            agent("odd", json!({ "status": "degraded" })),
            waiting_verdict(3),
            waiting_verdict(WAITING_THRESHOLD),
            storage_verdict(&json!({ "status": "ok" })),
            storage_verdict(
                &json!({ "status": "failing", "since": "2026-01-01T00:00:00.000Z", "error": "database or disk is full", "fix": "make room" }),
            ),
        ];
        insta::assert_snapshot!(findings_text(&findings, None).words(), @"
        ok    hub                  0.1.0, running
        warn  hub                  the hub is version 0.1.0, and this program is 0.2.0
                                   fix: a2a-hub stop && a2a-hub start
        ok    disk                 2.0 GiB free
        warn  disk                 900.0 MiB free
                                   fix: free some space, or set `data_dir` to another disk
        fail  disk                 1.0 MiB free
                                   fix: free some space, or set `data_dir` to another disk
        ok    agent echo           healthy
        warn  agent claude-code    not logged in (2.1)
                                   fix: claude /login
        warn  agent gemini         not logged in (0.61.0); since June 2026, Google serves Gemini CLI to paid API keys and enterprise licences only
                                   fix: gemini
        warn  agent odd            it does not say what is wrong
                                   fix: a2a-hub agent show odd
        ok    tasks                3 wait for an answer
        warn  tasks                100 wait for an answer
                                   fix: a2a-hub task cancel --state input-required --older 1d
        ok    storage              writable
        fail  storage              nothing can be stored since 2026-01-01T00:00:00.000Z: database or disk is full
                                   fix: make room
        ");
    }

    #[test]
    fn slow_program_is_not_reinstalled() {
        let of =
            |version| cli_verdict("claude", Path::new("/bin/claude"), version, "npm install x");
        let slow = of(Err(io::ErrorKind::TimedOut.into()));
        assert!(slow.found.contains("exists, but did not"), "{}", slow.found);
        assert!(!slow.fix.unwrap_or_default().contains("install"));
        let broken = of(Err(io::Error::other("it ended with exit status: 1")));
        assert!(broken.fix.is_some_and(|fix| fix.contains("`npm install x`")));
        assert_eq!(of(Ok("2.1".to_owned())).found, "2.1, at /bin/claude");
    }

    #[test]
    fn slow_rustc_is_not_missing_target() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().display().to_string();
        let told = [
            Ok(there),
            Ok("/no/such/libraries".to_owned()),
            Err(io::ErrorKind::TimedOut.into()),
            Err(io::Error::other("it ended with exit status: 1")),
        ]
        .map(|asked| toolchain_verdict(Path::new("/bin/rustc"), asked, false));
        insta::assert_snapshot!(findings_text(&told, None).words(), @"
        ok    toolchain            Rust with wasm32-wasip2
        warn  toolchain            Rust without wasm32-wasip2; only needed to write agents
                                   fix: run `rustup target add wasm32-wasip2`, or install Debian's rustc-web cargo-web rust-web-src rust-web-llvm lld-22 wasi-libc
        warn  toolchain            /bin/rustc exists, but did not answer in time; only needed to write agents
                                   fix: run `/bin/rustc --print target-libdir --target wasm32-wasip2` once, because a first start can be slow; then run `a2a-hub doctor` again
        warn  toolchain            /bin/rustc does not report wasm32-wasip2: it ended with exit status: 1; only needed to write agents
                                   fix: run `/bin/rustc --print target-libdir --target wasm32-wasip2` for details
        ");
    }

    #[tokio::test]
    async fn missing_program_is_reported_once() {
        let cli = "a-cli-that-nobody-has-installed";
        let found = async || vec![find_cli(cli, "claude-code", "install it", None).await];
        let missing = untold(found().await, &[]);
        assert_eq!(missing.len(), 1, "no hub runs, so nobody else tells of it");
        assert_eq!(missing[0].found, "not found; its agent cannot work");
        let health =
            json!({ "status": "unhealthy", "errorMessage": "run `claude`: it is not installed" });
        let agent = agent_verdict(&json!({ "id": "claude-code", "health": health }));
        assert!(untold(found().await, &[agent]).is_empty(), "the running hub tells of it");
        let other = agent_verdict(&json!({ "id": "codex", "health": health }));
        assert_eq!(untold(found().await, &[other]).len(), 1);
        // An existing program is always reported: the user's may differ from the hub's.
        let there = FoundProgram {
            is_there: true,
            ..find_cli("sh", "claude-code", "install it", None).await
        };
        let agent = agent_verdict(&json!({ "id": "claude-code", "health": health }));
        assert_eq!(untold(vec![there], &[agent]).len(), 1);
    }

    #[test]
    fn damaged_store_fails_with_fix() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(store(dir.path()).found, "none yet; `a2a-hub start` creates it");
        drop(SqliteStorage::open(dir.path()).unwrap());
        assert_eq!(
            (store(dir.path()).verdict, store(dir.path()).found.as_str()),
            (CheckVerdict::Ok, "sound")
        );
        let file = dir.path().join("hub.db");
        let mut bytes = fs::read(&file).unwrap();
        bytes[8_192..12_288].fill(0xa5);
        fs::write(&file, bytes).unwrap();
        let damaged = store(dir.path());
        assert_eq!(damaged.verdict, CheckVerdict::Fail, "{}", damaged.found);
        assert!(damaged.found.contains("hub.db"), "{}", damaged.found);
        assert_eq!(damaged.fix.as_deref(), Some("`a2a-hub stop`, then `a2a-hub restore FILE`"));
        // A file that is no database is damage as well, not a new store.
        fs::write(&file, "no database").unwrap();
        assert_eq!(store(dir.path()).verdict, CheckVerdict::Fail);
    }

    #[test]
    fn insecure_permissions_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let mode =
            |mode| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        mode(0o700);
        assert_eq!(data_directory(dir.path()).verdict, CheckVerdict::Ok);
        mode(0o755);
        let found = data_directory(dir.path());
        assert_eq!(found.verdict, CheckVerdict::Warn);
        assert!(found.fix.unwrap().starts_with("chmod 700"));
        mode(0o777);
        let found = data_directory(dir.path());
        assert_eq!(found.verdict, CheckVerdict::Fail, "the hub does not start");
        assert!(found.found.contains("chmod go-w"), "{}", found.found);
        mode(0o700);
        let file = dir.path().join("config.toml");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(data_directory(dir.path()).verdict, CheckVerdict::Fail);
        fs::remove_file(&file).unwrap();
        assert_eq!(data_directory(&dir.path().join("new")).verdict, CheckVerdict::Ok);

        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(data_directory(&file).verdict, CheckVerdict::Fail);
        assert_eq!(socket(&file).verdict, CheckVerdict::Fail);
        assert_eq!(socket(&dir.path().join("free")).verdict, CheckVerdict::Ok);
        assert_eq!(socket(&dir.path().join("no/where")).verdict, CheckVerdict::Fail);
        assert_eq!(socket(Path::new(&"x".repeat(108))).verdict, CheckVerdict::Fail);
    }

    #[tokio::test]
    async fn program_off_the_hubs_path_is_reported() {
        let elsewhere = OsStr::new("/no/such/folder");
        let missing = find_cli("sh", "claude-code", "install it", Some(elsewhere)).await;
        let found = missing.finding.found;
        assert!(found.ends_with("sh, which is not on the PATH of the running hub"), "{found}");
        assert!(missing.is_there, "the agent's own finding does not say so");
        let own = config::path_of_process(std::process::id().try_into().unwrap());
        let there = find_cli("sh", "claude-code", "install it", own.as_deref()).await;
        assert!(there.finding.found.contains("/sh"), "{}", there.finding.found);
    }
}
