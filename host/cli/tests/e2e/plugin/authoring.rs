//! Tests of an agent author's work: from nothing to an agent in a hub, by the commands of a
//! new project, and the errors on the way.

use crate::{
    command_line::{Ran, command, finish_within},
    stage::{artifact, eventually, eventually_async, get, said, send, state, stream, until},
};
use a2a_hub_tests::{Client, TestHub, processes_with_marker, test_guests};
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout},
    time::timeout,
};

/// Readme of a new project, by its language.
const READMES: [(&str, &str); 3] = [
    ("rust", include_str!("../../../../../templates/rust/README.md")),
    ("python", include_str!("../../../../../templates/python/README.md")),
    ("js", include_str!("../../../../../templates/js/README.md")),
];

/// Timeout of a first compilation, including the standard library, on a machine that runs other
/// tests.
const COMPILED_WITHIN: Duration = Duration::from_secs(240);

/// A user's folder of projects, outside of any repository.
pub(crate) struct Desk<'a> {
    hub: &'a TestHub,
    // The name contains a blank, because paths are arguments of commands.
    dir: TempDir,
}

impl<'a> Desk<'a> {
    pub(crate) fn of(hub: &'a TestHub) -> Result<Self> {
        Ok(Self { hub, dir: tempfile::Builder::new().prefix("my agents ").tempdir()? })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    /// Builds an `a2a-hub` command in a directory, with the parts of the user's environment that a
    /// compiler needs.
    fn command(&self, dir: &Path, args: &[&str]) -> Result<tokio::process::Command> {
        let mut command = command(self.hub.socket(), &self.hub.home(), args)?;
        command.arg("--data-dir").arg(self.hub.data_dir()).current_dir(dir);
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(folder));
            if let Some(place) = std::env::var_os(name).map(PathBuf::from).or(home) {
                command.env(name, place);
            }
        }
        // Tools of other languages, as installed by `cargo xtask languages`; npm finds its packages
        // in its cache.
        let tools = compiled()?.with_file_name("languages");
        command.env("COMPONENTIZE_PY", tools.join("venv/bin/componentize-py"));
        if let Some(home) = std::env::var_os("HOME") {
            command.env("npm_config_cache", Path::new(&home).join(".npm"));
            command.env("npm_config_prefer_offline", "true");
        }
        // Shares compiled crates between tests; the registry is not contacted.
        command.env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", compiled()?);
        Ok(command)
    }

    pub(crate) async fn run(&self, dir: &Path, args: &[&str]) -> Result<Ran> {
        finish_within(COMPILED_WITHIN, self.command(dir, args)?).await
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) async fn done(&self, dir: &Path, args: &[&str]) -> Result<String> {
        let ran = self.run(dir, args).await?;
        ensure!(ran.code == Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        Ok(ran.stdout)
    }

    /// Runs a command that must be refused, and returns its error.
    async fn refused(&self, dir: &Path, args: &[&str]) -> Result<String> {
        let ran = self.run(dir, args).await?;
        ensure!(ran.code == Some(2), "{args:?} went well: {}{}", ran.stdout, ran.stderr);
        Ok(ran.stderr)
    }
}

/// Target directory that compilers share, inside the workspace's target directory.
fn compiled() -> Result<PathBuf> {
    let guests = test_guests()?;
    let target = guests.parent().and_then(Path::parent).context("no target directory")?;
    Ok(target.join("authoring"))
}

/// A running `plugin dev`, with its output.
pub(crate) struct Developing {
    child: Child,
    told: Lines<BufReader<ChildStdout>>,
}

impl Developing {
    pub(crate) fn start(desk: &Desk<'_>, project: &Path) -> Result<Self> {
        let mut dev = desk.command(project, &["--format", "json", "plugin", "dev"])?;
        let mut child = dev.spawn()?;
        let told = BufReader::new(child.stdout.take().context("no output")?).lines();
        Ok(Self { child, told })
    }

    /// Waits for a line of output.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut heard = Vec::new();
        let found = timeout(COMPILED_WITHIN, async {
            while let Some(line) = self.told.next_line().await? {
                let value: Value = serde_json::from_str(&line).context(line)?;
                if wanted(&value) {
                    return Ok(value);
                }
                heard.push(value.to_string());
            }
            anyhow::bail!("it ended")
        });
        found.await.context("it is silent").flatten().with_context(|| heard.join("\n"))
    }

    pub(crate) async fn built(&mut self) -> Result<Value> {
        self.until(|told| told["about"] == "built").await
    }

    /// Sends SIGINT and returns the exit code.
    pub(crate) async fn interrupt(mut self) -> Result<Option<i32>> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        kill_process(pid.context("it is gone")?, Signal::INT)?;
        // A full output pipe would block the command.
        let told = async { while let Ok(Some(_)) = self.told.next_line().await {} };
        let ended = async { tokio::join!(told, self.child.wait()).1 };
        Ok(timeout(Duration::from_secs(20), ended).await.context("it hangs")??.code())
    }
}

/// Returns the lines of the shell blocks in the README of a new project, without comments.
pub(crate) fn typed(language: &str, name: &str) -> Vec<String> {
    let readme = READMES.iter().find(|(of, _)| *of == language).map_or("", |(_, text)| text);
    let blocks = readme.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split("  #").next().unwrap_or(line));
    lines.map(|line| line.trim().replace("{{name}}", name)).collect()
}

/// Runs the commands of a new project's README outside of the repository, then checks the agent's
/// behaviour in detail, and changes the agent while it runs.
#[tokio::test]
async fn readme_commands_lead_to_granted_rust_agent() -> Result<()> {
    let hub = TestHub::start().await?;
    let (client, desk) = (Client::http(&hub), Desk::of(&hub)?);
    desk.done(&desk.path(), &["plugin", "new", "my-agent"]).await?;
    let dir = desk.path().join("my-agent");
    let mut dev = None;
    let mut counted = 0;
    let lines = typed("rust", "my-agent");
    ensure!(lines.len() >= 8, "where are the commands? {lines:?}");
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            // The test cannot type a password.
            ["a2a-hub", "plugin", "keygen"] => {
                desk.done(&dir, &["plugin", "keygen", "--no-password"]).await?;
            }
            ["cargo", args @ ..] => typed_at(&desk, &dir, "cargo", args).await?,
            ["a2a-hub", "plugin", "dev"] => {
                let mut developing = Developing::start(&desk, &dir)?;
                let built = developing.built().await?;
                let lacks = &built["plugin"]["notGranted"][0];
                assert_eq!(lacks["capability"], "memory", "{built}");
                developing.until(|told| told["said"] == "the build is in use").await?;
                dev = Some(developing);
            }
            ["a2a-hub", args @ ..] => {
                let code = desk.run(&dir, args).await?.code;
                let wanted = match args {
                    ["send", _, "hello", ..] => 3,
                    ["send", _, "count"] => {
                        counted += 1;
                        i32::from(counted == 1)
                    }
                    _ => 0,
                };
                assert_eq!(code, Some(wanted), "{line}");
            }
            _ => anyhow::bail!("nobody can type `{line}`"),
        }
    }
    assert_eq!(counted, 2, "denied at first, and granted then");
    let mut dev = dev.context("the README does not develop")?;
    let denied = dev.until(|told| told["state"] == "failed").await?;
    let why = denied["said"].as_str().unwrap_or_default();
    assert!(why.contains("a2a-hub plugin grant my-agent --memory"), "{denied}");

    // The agent reports progress, asks, and streams its answer.
    let (task, mut updates) = stream(&client, "my-agent", "hello").await?;
    until(&mut updates, |event| event["status"]["state"] == "input-required").await?;
    answer(&client, &task, "Ada").await?;
    let greeted = get(&client, &task).await?;
    assert_eq!(said(&greeted), "Hello, Ada. How good to see you.");
    assert_eq!(artifact(&greeted), said(&greeted));
    // The agent can be cancelled while it waits.
    let (task, mut updates) = stream(&client, "my-agent", "hello").await?;
    until(&mut updates, |event| event["status"]["state"] == "input-required").await?;
    client.call("tasks/cancel", json!({ "id": task })).await?;
    assert_eq!(state(&get(&client, &task).await?), "canceled");

    // A failed build is reported, and the previous version stays in use.
    let source = dir.join("src/lib.rs");
    let text = fs::read_to_string(&source)?;
    fs::write(&source, text.replace("fn run(", "fn walk("))?;
    let broken =
        |told: &Value| told["said"].as_str().is_some_and(|said| said.contains("ended with code"));
    dev.until(broken).await?;
    assert_eq!(said(&send(&client, "my-agent", "count").await?), "You have asked me 2 times.");
    // The next version keeps the grant and the memory.
    fs::write(&source, text.replace("You have asked me", "By now you asked me"))?;
    dev.built().await?;
    let counts = async || {
        let answer = send(&client, "my-agent", "count").await;
        answer.is_ok_and(|answer| said(&answer).starts_with("By now you asked me"))
    };
    eventually_async(Duration::from_secs(60), counts).await?;
    assert_eq!(dev.interrupt().await?, Some(0));
    assert!(processes_with_marker(&dir.canonicalize()?).is_empty(), "nothing of a build is left");
    Ok(())
}

async fn answer(client: &Client, task: &str, text: &str) -> Result<()> {
    let mut answer = a2a_hub_tests::message_to("my-agent", text);
    answer["message"]["taskId"] = task.into();
    client.call("message/send", answer).await?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the command is typed as a user would")]
pub(crate) async fn typed_at(
    desk: &Desk<'_>,
    dir: &Path,
    program: &str,
    args: &[&str],
) -> Result<()> {
    let like = desk.command(dir, &[])?;
    let mut typed = tokio::process::Command::new(program);
    typed.args(args).env_clear().current_dir(dir).kill_on_drop(true);
    typed.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    for (name, value) in like.as_std().get_envs() {
        typed.env(name, value.unwrap_or_default());
    }
    let ran = finish_within(COMPILED_WITHIN, typed).await?;
    ensure!(ran.code == Some(0), "{program} {args:?}: {}{}", ran.stdout, ran.stderr);
    Ok(())
}

#[tokio::test]
async fn interrupted_build_leaves_no_process() -> Result<()> {
    let hub = TestHub::start().await?;
    let desk = Desk::of(&hub)?;
    let project = desk.path();
    // A daemonised process belongs to the build as well.
    let build = "setsid sleep 300 & sleep 300 & touch began; wait";
    let described = format!(
        "[project]\nname = 'slow'\n[tool.a2a-hub]\nbuild = ['sh', '-c', '{build}']\ncomponent = 'dist/slow.wasm'\n"
    );
    fs::write(project.join("pyproject.toml"), described)?;
    let marker = project.canonicalize()?;
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let mut building = desk.command(&project, &["plugin", "build"])?.spawn()?;
        eventually(Duration::from_secs(20), || project.join("began").exists()).await?;
        assert!(processes_with_marker(&marker).len() >= 3);
        let pid = building.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        kill_process(pid.context("it is gone")?, signal)?;
        let ended =
            timeout(Duration::from_secs(20), building.wait()).await.context("it hangs")??;
        assert_eq!(ended.code(), code);
        eventually(Duration::from_secs(10), || processes_with_marker(&marker).is_empty()).await?;
        fs::remove_file(project.join("began"))?;
    }
    Ok(())
}

#[tokio::test]
async fn authoring_errors_name_fix() -> Result<()> {
    let mut hub = TestHub::start().await?;
    {
        let desk = Desk::of(&hub)?;
        let dir = desk.path();
        for (name, why) in [
            ("../out", "name a plug-in `../out`"),
            ("/etc", "name a plug-in `/etc`"),
            ("My_Agent", "name a plug-in `My_Agent`"),
            ("echo", "a built-in agent has this name"),
        ] {
            let told = desk.refused(&dir, &["plugin", "new", name]).await?;
            assert!(told.contains(why), "{name}: {told}");
        }
        symlink("/nowhere", dir.join("link"))?;
        let told = desk.refused(&dir, &["plugin", "new", "link"]).await?;
        assert!(told.contains("something is there already"), "{told}");
        assert_eq!(fs::read_dir(&dir)?.count(), 1, "nothing was made");
        for command in ["build", "dev"] {
            let told = desk.refused(&dir, &["plugin", command]).await?;
            assert!(told.contains("`a2a-hub plugin new NAME`"), "{told}");
        }

        // A component with escape sequences in its manifest, and a truncated one.
        fs::copy(test_guests()?.with_file_name("echo.wasm"), dir.join("x.wasm"))?;
        fs::write(dir.join("manifest.toml"), "description = \"a\\u001b[2Jb\"")?;
        let told = desk.refused(&dir, &["plugin", "pack", "x.wasm"]).await?;
        assert!(told.contains("a control character"), "{told}");
        let told = desk.refused(&dir, &["plugin", "pack", "x.wasm", "--manifest", "none"]).await?;
        assert!(told.contains("`--manifest FILE` names another one"), "{told}");
        fs::write(dir.join("half.wasm"), &fs::read(dir.join("x.wasm"))?[..1000])?;
        fs::write(dir.join("manifest.toml"), "[memory]\nmax_bytes = 1")?;
        let told = desk.refused(&dir, &["plugin", "pack", "half.wasm"]).await?;
        assert!(told.contains("not valid WebAssembly"), "{told}");
        let told = desk.refused(&dir, &["plugin", "sign", "x.wasm"]).await?;
        assert!(told.contains("`a2a-hub plugin keygen --key"), "{told}");
        let told = desk.refused(&dir, &["plugin", "keygen", "--key", "k"]).await?;
        assert!(told.contains("no terminal is attached"), "{told}");
        desk.done(&dir, &["plugin", "keygen", "--key", "k", "--no-password"]).await?;
        let key = fs::read(dir.join("k"))?;
        let told = desk.refused(&dir, &["plugin", "keygen", "--key", "k", "--no-password"]).await?;
        assert!(told.contains("no key is ever overwritten"), "{told}");
        assert_eq!(fs::read(dir.join("k"))?, key);
        fs::set_permissions(dir.join("k"), fs::Permissions::from_mode(0o644))?;
        let told = desk.refused(&dir, &["plugin", "sign", "x.wasm", "--key", "k"]).await?;
        assert!(told.contains("`chmod 600"), "{told}");
        assert!(!dir.join("x.wasm.minisig").exists());

        // An existing plug-in is not replaced by another one of the same name.
        desk.done(&dir, &["plugin", "new", "taken"]).await?;
        let component = dir.join("x.wasm").display().to_string();
        desk.done(&dir, &["plugin", "add", &component, "--name", "taken"]).await?;
        let told = desk.refused(&dir.join("taken"), &["plugin", "dev"]).await?;
        assert!(told.contains("remove it with `a2a-hub plugin remove taken`"), "{told}");
        fs::write(dir.join("taken/manifest.toml"), "id = 'echo'")?;
        let told = desk.refused(&dir.join("taken"), &["plugin", "dev"]).await?;
        assert!(told.contains("a built-in agent has this name"), "{told}");
    }
    hub.stop().await?;
    let desk = Desk::of(&hub)?;
    desk.done(&desk.path(), &["plugin", "new", "lonely"]).await?;
    let told = desk.refused(&desk.path().join("lonely"), &["plugin", "dev"]).await?;
    assert!(told.contains("start it with `a2a-hub start`"), "{told}");
    Ok(())
}

/// Packs and signs another tool's component, which a hub with a strict policy then accepts.
#[tokio::test]
async fn signed_component_passes_strict_policy() -> Result<()> {
    let plain = TestHub::start().await?;
    let desk = Desk::of(&plain)?;
    let dir = desk.path();
    fs::copy(test_guests()?.with_file_name("echo.wasm"), dir.join("x.wasm"))?;
    let manifest =
        "id = 'packed'\nversion = '1.0.0'\n[memory]\nmax_bytes = 77\nreason = 'to keep notes'\n";
    fs::write(dir.join("manifest.toml"), manifest)?;
    let told = desk.done(&dir, &["plugin", "pack", "x.wasm", "-o", "packed.wasm"]).await?;
    assert!(told.contains("remember 77 bytes") && told.contains("to keep notes"), "{told}");
    let again = desk.done(&dir, &["plugin", "pack", "packed.wasm"]).await?;
    assert!(again.contains("remember 77 bytes"), "{again}");
    let key = ["plugin", "keygen", "--key", "publisher key", "--no-password", "--format", "json"];
    let made: Value = serde_json::from_str(&desk.done(&dir, &key).await?)?;
    for file in ["publisher key", "publisher key.pub"] {
        assert_eq!(fs::metadata(dir.join(file))?.permissions().mode() & 0o777, 0o600, "{file}");
    }
    desk.done(&dir, &["plugin", "sign", "packed.wasm", "--key", "publisher key"]).await?;

    let public = made["publicKey"].as_str().context("no key")?;
    let config = format!("plugins.policy = 'require'\nplugins.keys.me = '{public}'");
    let hub = TestHub::builder().config(config).start().await?;
    let strict = Desk { hub: &hub, dir: tempfile::tempdir()? };
    let config = hub.data_dir().with_file_name("config.toml").display().to_string();
    let add = ["plugin", "add", "packed.wasm", "--config", &config];
    let told = strict.done(&dir, &add).await?;
    assert!(told.contains("It is signed by `me`."), "{told}");
    let joined = async || send(&Client::http(&hub), "packed", "hello").await.is_ok();
    eventually_async(Duration::from_secs(60), joined).await?;
    let unsigned = strict.refused(&dir, &["plugin", "add", "x.wasm", "--config", &config]).await?;
    assert!(unsigned.contains("nobody signed it"), "{unsigned}");
    Ok(())
}
