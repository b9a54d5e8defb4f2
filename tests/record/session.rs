//! The recorded session: a newcomer starts the hub, asks two agents, and approves a command.
//!
//! The hub, the repository, its failing test and Claude Code are real. The model behind Claude
//! Code is the loopback server of the tests, whose words are scripted here.

use crate::{cast::Cast, terminal::Terminal};
use a2a_hub_tests::{Dialogue, ModelServer, hub_binary};
use anyhow::{Context as _, Result, ensure};
use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::process::Command;

/// Title of the recording.
const TITLE: &str = "a2a-hub: two agents behind one address, and a permission prompt";

/// Question whose answer is scripted, and the command that the model wants to run.
const QUESTION: &str = "why does the login test fail?";
const COMMAND: &str = "python3 -m unittest tests.test_login";

/// A commit: author, date, subject, and files.
type Commit = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

/// History of the repository.
const COMMITS: [Commit; 3] = [
    (
        "Ada Moss",
        "2026-11-12",
        "Add sessions",
        &[("session.py", SESSION), ("tests/__init__.py", "")],
    ),
    (
        "Ada Moss",
        "2026-11-18",
        "Test that a login is valid for an hour",
        &[("tests/test_login.py", TEST)],
    ),
    ("Bo Lind", "2026-11-24", "Shorten sessions to half an hour", &[("session.py", SHORTER)]),
];

const SESSION: &str = "LIFETIME = 60 * 60\n\n\ndef is_valid(age):\n    return age < LIFETIME\n";
const SHORTER: &str = "LIFETIME = 30 * 60\n\n\ndef is_valid(age):\n    return age < LIFETIME\n";
const TEST: &str = "import unittest\n\nimport session\n\n\nclass Login(unittest.TestCase):\n    def test_is_valid_for_an_hour(self):\n        self.assertTrue(session.is_valid(3599))\n";

/// A user's machine: a home with a repository, and the programs on the `PATH`.
struct Machine {
    home: tempfile::TempDir,
    env: Vec<(&'static str, String)>,
}

/// Records the session. `clis` is the folder of `cargo xtask clis`.
pub(crate) async fn record(clis: &Path) -> Result<Cast> {
    let model = ModelServer::start()?;
    let machine = Machine::new(clis, model.url())?;
    let commit = machine.repository().await?;
    let model = model.with_dialogue(Dialogue {
        prompt: QUESTION.to_owned(),
        command: COMMAND.to_owned(),
        purpose: "Run the login test".to_owned(),
        answer: format!(
            "The test expects a session to be valid after 3,599 seconds. Commit {commit} (\"Shorten sessions to half an hour\") set LIFETIME in session.py to 30 minutes, and the test was not updated."
        ),
        pace: Duration::from_millis(60),
    });
    // Agents are compiled once, before the recording.
    machine.hub(&["start", "--workspace", "src"]).await?;
    let warm = machine.hub(&["agents", "--health"]).await;
    machine.hub(&["stop"]).await?;
    let agents = warm?;
    ensure!(agents.contains("claude-code"), "where is claude-code? {agents}");

    let played = machine.play().await;
    let stopped = machine.hub(&["stop"]).await;
    drop(model);
    let cast = played?;
    stopped?;
    Ok(cast)
}

impl Machine {
    fn new(clis: &Path, model: &str) -> Result<Self> {
        let programs = clis.join("node_modules/.bin");
        ensure!(programs.join("claude").exists(), "there is no claude; run `cargo xtask clis`");
        // A name that always is the same, since it is in the picture.
        let home = tempfile::Builder::new().prefix("ada").rand_bytes(0).tempdir()?;
        let bin = home.path().join("bin");
        fs::create_dir(&bin)?;
        symlink(hub_binary()?, bin.join("a2a-hub"))?;
        symlink(fs::canonicalize(programs.join("claude"))?, bin.join("claude"))?;
        let env = vec![
            ("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display())),
            ("LC_ALL", "C.UTF-8".to_owned()),
            ("A2A_HUB_SOCKET", home.path().join("hub.sock").display().to_string()),
            ("A2A_HUB_HTTP_PORT", "0".to_owned()),
            ("ANTHROPIC_API_KEY", "sk-scripted".to_owned()),
            ("ANTHROPIC_BASE_URL", model.to_owned()),
        ];
        Ok(Self { home, env })
    }

    /// Makes the repository; returns the short id of the last commit.
    async fn repository(&self) -> Result<String> {
        let dir = self.home.path().join("src/shop");
        fs::create_dir_all(dir.join("tests"))?;
        self.run(&dir, "git", &["init", "--quiet", "--initial-branch=main"]).await?;
        for (author, day, subject, files) in COMMITS {
            for (path, text) in files {
                fs::write(dir.join(path), text)?;
            }
            self.run(&dir, "git", &["add", "--all"]).await?;
            let name = format!("user.name={author}");
            let dated =
                ["AUTHOR", "COMMITTER"].map(|who| format!("GIT_{who}_DATE={day}T10:00:00Z"));
            let [written, committed] = &dated;
            let commit = [
                written,
                committed,
                "git",
                "-c",
                &name,
                "-c",
                "user.email=team@shop.example",
                "commit",
            ];
            let commit = [&commit[..], &["--quiet", "--message", subject]].concat();
            self.run(&dir, "env", &commit).await?;
        }
        let id = self.run(&dir, "git", &["rev-parse", "--short=7", "HEAD"]).await?;
        Ok(id.trim().to_owned())
    }

    /// Types the session.
    async fn play(&self) -> Result<Cast> {
        let mut terminal = Terminal::start(TITLE, self.home.path(), &self.env).await?;
        terminal.command("a2a-hub start --workspace ~/src").await?;
        terminal.command("cd ~/src/shop").await?;
        terminal.command("a2a-hub send git-historian \"who knows session.py best?\"").await?;
        terminal.enter(&format!("a2a-hub send claude-code \"{QUESTION}\" --stream")).await?;
        terminal.until("┇ >").await?;
        terminal.command("yes").await?;
        terminal.command("a2a-hub tasks").await?;
        terminal.end().await
    }

    async fn hub(&self, arguments: &[&str]) -> Result<String> {
        self.run(self.home.path(), "a2a-hub", arguments).await
    }

    /// Runs a program of the user to its end; returns its output.
    #[expect(clippy::disallowed_methods, reason = "the program is run as by a user")]
    async fn run(&self, dir: &Path, program: &str, arguments: &[&str]) -> Result<String> {
        let own = self.home.path().join("bin").join(program);
        let program: PathBuf = if own.exists() { own } else { program.into() };
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(dir).env_clear().env("HOME", self.home.path());
        command.envs(self.env.iter().map(|(name, value)| (*name, value)));
        let ran = command.output().await.with_context(|| program.display().to_string())?;
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&ran.stderr);
        ensure!(ran.status.success(), "{program:?} {arguments:?}: {}\n{said}{wrong}", ran.status);
        Ok(said)
    }
}

/// Folder in which `cargo xtask clis` installs the CLIs.
pub(crate) fn clis() -> Result<PathBuf> {
    let exe = env::current_exe()?;
    let target = exe.ancestors().nth(2).context("the program is in the target folder")?;
    Ok(target.join("clis"))
}
