//! `restart` and `reload`: apply a changed configuration by restarting the hub or while it runs.

use super::{start, start::note_missing_workspaces, stop::Stopped};
use crate::{
    Exit, Global, ask, block_on,
    client::{
        hub_client::Client,
        running_hub::{self, system_text},
    },
    log_files,
    ui::{
        render::{list, text},
        text::Text,
    },
};
use a2a_hub::{Running, check_start};
use a2a_hub_config::Config;
use a2a_hub_process::daemon::Background;
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use std::{
    ffi::OsString,
    fmt::{self, Write as _},
    fs, io,
    path::{Path, PathBuf},
};

#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// Time in which running tasks may finish, such as `30s`, at most `stop.drain_ms`; a bare
    /// number counts seconds, and 0 cancels them at once [default: `stop.drain_ms` of the
    /// configuration]
    #[arg(long, value_name = "TIME", value_parser = super::duration::seconds)]
    timeout: Option<u64>,
}

/// Command line and state of the running background hub.
struct Before {
    arguments: Vec<OsString>,
    directory: PathBuf,
    /// Addresses that the running hub occupies.
    running: Running,
}

/// Stops the hub and starts it again with the same arguments; `read` loads the configuration for
/// these arguments.
pub(crate) fn restart(
    global: &Global,
    restart: &Restart,
    read: fn(&[OsString]) -> anyhow::Result<Option<Config>>,
) -> anyhow::Result<Exit> {
    block_on(async {
        let config = global.settings(Vec::new())?.config;
        let dir = config.data_dir()?;
        let mut client = Client::connect(global).await?;
        // Only the operator may see the error that keeps the hub from starting again.
        client.call("hub/status", json!({})).await?;
        let pid = client.pid.context("find the hub's process")?;
        drop(client);
        let before = Before::read(dir, pid)?;
        // A hub that could not start again keeps running.
        before.check(dir, read).context("restart the hub; the running hub is unchanged")?;
        let exe = std::env::current_exe().context("find this program")?;
        // The log is opened before the hub stops, so that a failure leaves the hub running.
        let (log_path, _) = log_files::open_log(dir).context("open the hub's log")?;
        Stopped::in_order(global, restart.timeout).await?;
        let (_, log) = log_files::open_log(dir).context("open the hub's log")?;
        let log_offset = log.metadata()?.len();
        let Before { arguments, directory, .. } = &before;
        let mut hub = Background::start(&exe, arguments, None, Some(directory), log)?;
        let log = (&*log_path, log_offset);
        let announced = start::until_up(global, &mut hub, (dir, &config.socket.path), log).await?;
        let up = || Ok(format!("{}\n", start::announced_text(&announced)).into());
        global.show(&announced, up)?;
        start::warn_of(global, &announced);
        Ok(Exit::Done)
    })
}

impl Before {
    /// Reads the run file of the hub with this process id.
    fn read(dir: &Path, pid: i32) -> anyhow::Result<Self> {
        let run = match running_hub::written_down(dir) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Value::Null,
            run => run.context("read how the hub was started")?,
        };
        if run["pid"] != json!(pid) {
            bail!(
                "restart the hub: it does not use the data directory {}; give its own with \
                 `--data-dir`",
                dir.display()
            );
        }
        if run["detached"] != true {
            bail!(
                "restart the hub: process {pid} runs in the foreground; restart it where it was \
                 started, for example with `systemctl --user restart a2a-hub`"
            );
        }
        let arguments = run["arguments"].as_array();
        let arguments = arguments.and_then(|all| all.iter().map(system_text).collect());
        let (Some(arguments), Some(directory)) = (arguments, system_text(&run["directory"])) else {
            bail!(
                "restart the hub: its command line is unknown; use `a2a-hub stop` and `a2a-hub \
                 start`"
            );
        };
        let http = run["http"].as_str().and_then(|at| at.parse().ok());
        let running = Running { socket: running_hub::socket(&run), http };
        Ok(Self { arguments, directory: directory.into(), running })
    }

    /// Checks that the hub can be started again with the same arguments.
    fn check(
        &self,
        dir: &Path,
        read: fn(&[OsString]) -> anyhow::Result<Option<Config>>,
    ) -> anyhow::Result<()> {
        let directory = self.directory.display();
        let there = fs::metadata(&self.directory);
        there.with_context(|| format!("start it in {directory}, where it was started before"))?;
        match read(&self.arguments)? {
            Some(config) => check_start(dir, &config, &self.running),
            None => Ok(()),
        }
    }
}

/// Makes the hub read its configuration again.
pub(crate) fn reload(global: &Global) -> anyhow::Result<Exit> {
    let reloaded = ask(global, "hub/reload", json!({}))?;
    // The hub's own settings may be those of another command line.
    if let Ok(settings) = global.settings(Vec::new()) {
        note_missing_workspaces(global, &settings.config);
    }
    let omitted = list(&reloaded["leftOut"]);
    global.show(&reloaded, || Ok(reloaded_text(&reloaded)?))?;
    Ok(if omitted.is_empty() { Exit::Done } else { Exit::Fault })
}

pub(crate) fn reloaded_text(reloaded: &Value) -> Result<Text, fmt::Error> {
    let names =
        |member: &str| list(&reloaded[member]).iter().map(text).collect::<Vec<_>>().join(", ");
    let (changed, later) = (names("changed"), names("needsRestart"));
    let mut out = Text::new();
    match (changed.as_str(), later.as_str()) {
        ("", "") => writeln!(out, "nothing has changed")?,
        ("", _) => {}
        (changed, _) => writeln!(
            out,
            "changed: {changed}; running tasks keep their settings, except permissions that were \
             withdrawn"
        )?,
    }
    if !later.is_empty() {
        writeln!(out, "needs `a2a-hub restart`: {later}")?;
    }
    for omitted in list(&reloaded["leftOut"]) {
        writeln!(out, "left out: {}: {}", text(&omitted["agentId"]), text(&omitted["error"]))?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reload_result_is_rendered() {
        let told = |changed: &[&str], later: &[&str]| {
            let left = json!([{ "agentId": "echo", "error": "another digest is pinned" }]);
            let left = if changed.is_empty() { json!([]) } else { left };
            let told = json!({ "changed": changed, "needsRestart": later, "leftOut": left });
            reloaded_text(&told).unwrap().words()
        };
        let all = [
            told(&[], &[]),
            told(&["agents.echo.timeout_ms", "workspaces"], &[]),
            told(&["stop.drain_ms"], &["http.port"]),
            told(&[], &["http.port"]),
        ];
        insta::assert_snapshot!(all.concat(), @"
        nothing has changed
        changed: agents.echo.timeout_ms, workspaces; running tasks keep their settings, except permissions that were withdrawn
        left out: echo: another digest is pinned
        changed: stop.drain_ms; running tasks keep their settings, except permissions that were withdrawn
        needs `a2a-hub restart`: http.port
        left out: echo: another digest is pinned
        needs `a2a-hub restart`: http.port
        ");
    }
}
