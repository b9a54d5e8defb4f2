//! `doctor --trial`: sends one message through each agent's program to an echoing model on
//! loopback. The trial costs nothing and shows whether the installed program still speaks the
//! protocol that its agent expects.
//!
//! The agents run in a separate hub with a temporary home, data directory and workspace, so that
//! neither the user's logins nor the running hub are affected.

use super::finding::{CheckResult, ok, warn};
use crate::{
    Global,
    client::hub_client::Client,
    commands::start,
    ui::{console::Console, render::text},
};
use a2a_hub::builtin;
use a2a_hub_config::{self as config, Settings};
use a2a_hub_core::grant::Trial;
use a2a_hub_model_server::ModelServer;
use a2a_hub_process::daemon::{self, Background};
use a2a_hub_protocol::id::{AgentId, MessageId};
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// Text that the trial sends and expects back after `ECHO: `.
const WORDS: &str = "Does this arrive?";

/// Time that an agent has to answer. The slowest program needs seconds to start, more on a busy
/// machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that the trial's hub has to exit.
const END: Duration = Duration::from_secs(10);

/// Environment variables that the trial's hub inherits: none that identifies the user.
const INHERITED: &[&str] = &["PATH", "LANG", "TMPDIR"];

/// Tries the agents of these names, or all that can be tried.
pub(crate) async fn try_agents(
    global: &Global,
    names: &[String],
) -> anyhow::Result<Vec<CheckResult>> {
    let trials = chosen(builtin::trials(), names)?;
    let settings = global.settings(Vec::new())?;
    let ground = TrialSetup::lay(settings.config.data_dir()?, &trials, global.console())?;
    let mut hub = ground.start(&settings, &trials)?;
    let found = ask_all(global, &mut hub, &ground, trials.keys()).await;
    let pid = i32::try_from(hub.id()).context("the hub's process id")?;
    daemon::terminate(pid, END).await.context("end the hub of the trial")?;
    found
}

fn chosen(
    mut trials: BTreeMap<AgentId, Trial>,
    names: &[String],
) -> anyhow::Result<BTreeMap<AgentId, Trial>> {
    let there: Vec<_> = trials.keys().map(ToString::to_string).collect();
    if let Some(unknown) = names.iter().find(|name| !there.contains(name)) {
        bail!("try `{unknown}`: this agent has no trial; choose from {}", there.join(", "));
    }
    trials.retain(|agent, _| names.is_empty() || names.iter().any(|name| name == agent.as_str()));
    Ok(trials)
}

/// Temporary directories and model server of a trial, removed on drop.
struct TrialSetup {
    dir: PathBuf,
    model: ModelServer,
    console: Console,
}

impl TrialSetup {
    /// Creates the directories below the data directory, because some programs refuse a home in a
    /// world-writable directory.
    fn lay(
        data_dir: &Path,
        trials: &BTreeMap<AgentId, Trial>,
        console: Console,
    ) -> anyhow::Result<Self> {
        let dir = std::path::absolute(data_dir)?.join(format!("trial-{}", std::process::id()));
        let model = ModelServer::start().context("start the loopback model")?;
        let ground = Self { dir, model, console };
        for folder in [ground.home(), ground.workspace()] {
            make_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
        }
        for (path, contents) in trials.values().flat_map(|trial| &trial.files) {
            let path = ground.home().join(path);
            make_dir(path.parent().unwrap_or(&path))?;
            fs::write(&path, ground.filled(contents))
                .with_context(|| format!("write {}", path.display()))?;
        }
        Ok(ground)
    }

    fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    fn workspace(&self) -> PathBuf {
        self.dir.join("workspace")
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("s")
    }

    fn filled(&self, text: &str) -> String {
        text.replace("{model}", self.model.url())
    }

    fn start(
        &self,
        settings: &Settings,
        trials: &BTreeMap<AgentId, Trial>,
    ) -> anyhow::Result<Background> {
        let inherited = INHERITED.iter().map(ToString::to_string).collect();
        let trials = trials.values().flat_map(|trial| &trial.env);
        let env = config::environment(&inherited)
            .into_iter()
            .chain([("HOME".to_owned(), self.home().display().to_string())])
            .chain(trials.map(|(name, value)| (name.clone(), self.filled(value))))
            .collect();
        let mut args: Vec<OsString> = ["start", "--foreground", "--no-http"].map(Into::into).into();
        let mut option = |name: &str, value: &Path| args.extend([name.into(), value.into()]);
        option("--data-dir", &self.dir);
        option("--socket", &self.socket());
        option("--workspace", &self.workspace());
        if let Some(file) = &settings.file {
            option("--config", file);
        }
        let log = fs::File::create(self.dir.join("log")).context("open the trial's log")?;
        let exe = std::env::current_exe().context("find this program")?;
        Background::start(&exe, &args, Some(env), None, log).context("start the hub of the trial")
    }
}

impl Drop for TrialSetup {
    fn drop(&mut self) {
        if let Err(why) = fs::remove_dir_all(&self.dir) {
            self.console.note(format!("error: remove {}: {why}", self.dir.display()));
        }
    }
}

/// Creates a directory and its ancestors, with access for this user only.
fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

async fn ask_all(
    global: &Global,
    hub: &mut Background,
    ground: &TrialSetup,
    agents: impl Iterator<Item = &AgentId>,
) -> anyhow::Result<Vec<CheckResult>> {
    let (log, socket) = (ground.dir.join("log"), ground.socket());
    start::until_up(global, hub, (&ground.dir, &socket), (&log, 0)).await?;
    let mut client = Client::to(&socket).await.context("reach the hub of the trial")?;
    let mut findings = Vec::new();
    for agent in agents {
        findings.push(ask(&mut client, agent).await?);
    }
    Ok(findings)
}

async fn ask(client: &mut Client, agent: &AgentId) -> anyhow::Result<CheckResult> {
    let about = format!("trial {agent}");
    let health = client.call("hub/agents/health", json!({ "agentId": agent })).await?;
    let version = text(&health["version"]).to_owned();
    if health["status"] == "unhealthy" {
        return Ok(warn(&about, text(&health["errorMessage"]), text(&health["fix"])));
    }
    let message = json!({
        "kind": "message", "role": "user", "messageId": MessageId::fresh(),
        "parts": [{ "kind": "text", "text": WORDS }], "metadata": { "targetAgent": agent },
    });
    let began = Instant::now();
    let answer =
        timeout(ANSWER_TIMEOUT, client.call("message/send", json!({ "message": message })));
    let answer = answer.await.unwrap_or_else(|_| {
        Err(anyhow::anyhow!("it did not answer within {} s", ANSWER_TIMEOUT.as_secs()))
    });
    Ok(verdict(&about, &version, answer, began.elapsed()))
}

fn verdict(
    about: &str,
    version: &str,
    answer: anyhow::Result<Value>,
    took: Duration,
) -> CheckResult {
    let fix = "install the version the agent was tested with (see `a2a-hub agents --health`), or \
               report this";
    let task = match answer {
        Ok(task) => task,
        Err(why) => return warn(about, format!("{version}: {why}"), fix),
    };
    let reply: String = task["status"]["message"]["parts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| part["text"].as_str())
        .collect();
    // The echo contains the whole prompt, and a program may prepend text, such as the list of other
    // agents.
    let echoed = reply.starts_with("ECHO: ") && reply.ends_with(WORDS);
    if task["status"]["state"] == "completed" && echoed {
        return ok(about, format!("{version} answers, in {:.1} s", took.as_secs_f64()));
    }
    let state = text(&task["status"]["state"]);
    warn(about, format!("{version}: {state}: {reply}"), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trial_requires_complete_echo() {
        let task = |state: &str, text: &str| {
            Ok(json!({ "status": { "state": state,
                "message": { "parts": [{ "kind": "text", "text": text }] } } }))
        };
        let found = |answer| verdict("trial x", "1.2", answer, Duration::from_millis(1234)).found;
        let echo = format!("ECHO: {WORDS}");
        assert_eq!(found(task("completed", &echo)), "1.2 answers, in 1.2 s");
        assert_eq!(found(task("completed", "hm")), "1.2: completed: hm");
        assert_eq!(found(task("failed", "API Error")), "1.2: failed: API Error");
        assert_eq!(found(Err(anyhow::anyhow!("it is gone"))), "1.2: it is gone");
    }

    #[test]
    fn unknown_trial_agent_is_refused() {
        let trials: BTreeMap<_, _> =
            ["a", "b"].map(|id| (AgentId::parse(id).unwrap(), Trial::default())).into();
        assert_eq!(chosen(trials.clone(), &["b".into()]).unwrap().len(), 1);
        assert_eq!(chosen(trials.clone(), &[]).unwrap().len(), 2);
        let why = chosen(trials, &["c".into()]).unwrap_err().to_string();
        assert_eq!(why, "try `c`: this agent has no trial; choose from a, b");
    }
}
