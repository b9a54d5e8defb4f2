//! Tests of the published program, which carries its agents' code, and of its packages.

use crate::{
    command_line::{Ran, finish},
    lifecycle::full_disk::run_program_after,
    stage::home,
};
use a2a_hub_tests::hub_binary;
use anyhow::{Context as _, Result, ensure};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio};
use tokio::process::Command;

/// Configuration without other agents, so that tests do not wait for their compilation.
const ECHO_ALONE: &str = "
    [agents]
    claude-code.enabled = false
    codex.enabled = false
    gemini.enabled = false
    flow.enabled = false
    git-historian.enabled = false
    vibe.enabled = false
";

/// Stand-in for the program in packages: it has a manual and completions.
const FAKE: &str = "#!/bin/sh\ncase $1 in man) echo 'a2a\\-hub\\-start(1)';; esac\necho \"$0 $*\" | sed 's|.*/||'\n";

async fn ran(program: impl AsRef<Path>, arguments: &[&str]) -> Result<Ran> {
    #[expect(clippy::disallowed_methods, reason = "programs are run as whoever publishes would")]
    let mut command = Command::new(program.as_ref());
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command).await
}

/// Counts the components that a hub has compiled and cached.
fn kept(home: &Path) -> Result<usize> {
    let cache = fs::read_dir(home.join(".a2a-hub/cache"))?;
    let names = cache.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names = names.collect::<Result<Vec<String>>>()?;
    Ok(names.iter().filter(|name| name.ends_with(".cwasm")).count())
}

/// Starts a hub in an empty home, asks `echo`, and returns the log.
async fn first_answer(hub: &Path, home: &Path, first: &str) -> Result<String> {
    fs::create_dir_all(home.join(".a2a-hub"))?;
    fs::write(home.join(".a2a-hub/config.toml"), ECHO_ALONE)?;
    fs::set_permissions(home.join(".a2a-hub"), fs::Permissions::from_mode(0o700))?;
    let started = run_program_after(hub, home, first, "start --no-http").await?;
    ensure!(started.code == Some(0), "{}", started.stderr);
    let sent = run_program_after(hub, home, "exec", "send echo hello").await?;
    let stopped = run_program_after(hub, home, "exec", "stop").await?;
    ensure!(stopped.code == Some(0), "{}", stopped.stderr);
    ensure!(sent.stdout == "hello\n", "{} {}", sent.stdout, sent.stderr);
    Ok(fs::read_to_string(home.join(".a2a-hub/hub.log"))?)
}

#[tokio::test]
async fn bundled_code_avoids_first_compilation() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let hub = dir.path().join("a2a-hub");
    let to = hub.to_str().context("no UTF-8")?;
    let carrying = ran(hub_binary()?, &["__carry", to]).await?;
    ensure!(carrying.code == Some(0), "{}", carrying.stderr);

    let fits = dir.path().join("fits");
    fs::create_dir(&fits)?;
    let log = first_answer(&hub, &fits, "exec").await?;
    assert_eq!(kept(&fits)?, 0, "something was compiled");
    assert!(!log.contains("does not fit"), "{log}");

    // The carried code needs pooled instances, which this address space is too small for.
    let other = dir.path().join("other");
    fs::create_dir(&other)?;
    let log = first_answer(&hub, &other, "ulimit -v 12000000; exec").await?;
    assert_eq!(kept(&other)?, 1, "it was compiled here");
    assert!(log.contains("bundled code does not fit this machine"), "{log}");
    // The compiled code is cached now.
    let log = first_answer(&hub, &other, "ulimit -v 12000000; exec").await?;
    assert_eq!(log.matches("does not fit this machine").count(), 1, "{log}");
    Ok(())
}

#[tokio::test]
async fn carry_to_invalid_path_fails() -> Result<()> {
    let ran = ran(hub_binary()?, &["__carry", "/nonexistent/place"]).await?;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("No such file or directory"), "{}", ran.stderr);
    Ok(())
}

/// Runs `cargo xtask dist` with an existing program.
async fn dist(program: &Path, to: &Path, more: &[&str]) -> Result<Ran> {
    let hub = hub_binary()?;
    let xtask = hub.with_file_name("xtask");
    ensure!(xtask.is_file(), "`cargo build --workspace` leaves {}", xtask.display());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    #[expect(clippy::disallowed_methods, reason = "it is run as whoever publishes would")]
    let mut command = Command::new(xtask);
    command.arg("dist").arg("--program").arg(program).arg("--to").arg(to).args(more);
    command.current_dir(&root).env("CARGO_MANIFEST_DIR", root.join("xtask"));
    command
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .env("CARGO_TARGET_DIR", to.with_extension("target"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    finish(command).await
}

/// `dist --check` builds the packages twice and compares them; another program gives other
/// packages.
#[tokio::test]
async fn debian_and_other_packages_are_reproducible() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let program = dir.path().join("program");
    let packed = async |said: &str, name: &str| -> Result<String> {
        fs::write(&program, format!("{FAKE}# {said}\n"))?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
        let to = dir.path().join(name);
        let made = dist(&program, &to, &["--check"]).await?;
        ensure!(made.code == Some(0), "{}", made.stderr);
        ensure!(made.stderr.contains("all digests are equal"), "{}", made.stderr);
        Ok(fs::read_to_string(to.join("SHA256SUMS"))?)
    };
    let one = packed("one", "a").await?;
    assert_eq!(one, packed("one", "b").await?);
    assert_eq!(one.lines().count(), 6, "{one}");
    let other = packed("two", "c").await?;
    // The package of the command contains no program.
    let command = concat!("a2a-hub-", env!("CARGO_PKG_VERSION"), ".tgz");
    for line in one.lines().filter(|line| !line.ends_with(command)) {
        assert!(!other.contains(line), "{line} does not depend on the program");
    }

    // A dependency on the time is detected.
    fs::write(&program, format!("{FAKE}date +%N\n"))?;
    let made = dist(&program, &dir.path().join("d"), &["--check"]).await?;
    assert_eq!(made.code, Some(1), "{}", made.stderr);
    assert!(made.stderr.contains("these came out otherwise: a2a-hub-"), "{}", made.stderr);
    Ok(())
}

/// Lists all files below a folder, by relative paths.
fn files(top: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(top)?.display().to_string());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Creates a separate root for `dpkg`, with this machine's list of installed packages.
fn system() -> Result<tempfile::TempDir> {
    let system = tempfile::tempdir()?;
    let admin = system.path().join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(admin.join(folder))?;
    }
    fs::copy("/var/lib/dpkg/status", admin.join("status"))?;
    Ok(system)
}

async fn dpkg(system: &Path, arguments: &[&str]) -> Result<Ran> {
    let root = format!("--root={}", system.display());
    // `dpkg` installs only as root; other users become root in a namespace.
    let mut line = vec!["unshare", "--map-root-user"];
    if rustix::process::geteuid().is_root() {
        line.clear();
    }
    line.extend(["dpkg", &root, "--log=/dev/null", "--force-not-root"]);
    line.extend(arguments);
    let ran = ran(line[0], &line[1..]).await?;
    ensure!(ran.code == Some(0), "dpkg {arguments:?}: {}{}", ran.stdout, ran.stderr);
    Ok(ran)
}

/// The packages are made once for all installers, because that takes long.
#[tokio::test]
async fn packages_install_run_and_uninstall() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let to = dir.path().join("packages");
    let made = dist(&hub_binary()?, &to, &["--quick"]).await?;
    ensure!(made.code == Some(0), "{}", made.stderr);
    debian_package(&package(&to, ".deb")?).await?;
    npm_packages(&to).await?;
    wheel(&package(&to, ".whl")?).await
}

/// Path of the package whose name ends with `end`.
fn package(dir: &Path, end: &str) -> Result<String> {
    let name = files(dir)?.into_iter().find(|name| name.ends_with(end));
    let path = dir.join(name.with_context(|| format!("there is no {end}"))?);
    Ok(path.to_str().context("no UTF-8")?.to_owned())
}

/// Tests that an installed program has this version and answers.
async fn answers(hub: &Path) -> Result<()> {
    let version = ran(hub, &["--version"]).await?;
    assert_eq!(version.stdout, concat!("a2a-hub ", env!("CARGO_PKG_VERSION"), "\n"));
    first_answer(hub, home()?.path(), "exec").await?;
    Ok(())
}

/// npm installs both packages without network and runs no script; without the program's package,
/// the command says what is missing.
async fn npm_packages(dir: &Path) -> Result<()> {
    let project = tempfile::tempdir()?;
    let top = project.path().to_str().context("no UTF-8")?;
    let made: Vec<_> = files(dir)?.into_iter().filter(|name| name.ends_with(".tgz")).collect();
    assert_eq!(made.len(), 2, "{made:?}");
    let made: Vec<_> = made.iter().map(|name| dir.join(name).display().to_string()).collect();
    let npm = async |args: &[&str]| -> Result<Ran> {
        let cache = format!("--cache={top}/cache");
        let common = ["--prefix", top, "--offline", "--no-audit", "--no-fund", &cache];
        let ran = ran("npm", &[args, &common].concat()).await?;
        ensure!(ran.code == Some(0), "npm {args:?}: {}{}", ran.stdout, ran.stderr);
        Ok(ran)
    };
    let installed = npm(&["install", &made[0], &made[1]]).await?;
    assert!(!installed.stderr.contains("script"), "{}", installed.stderr);
    let command = project.path().join("node_modules/.bin/a2a-hub");
    answers(&command).await?;
    // `--omit=optional` leaves it out.
    fs::remove_dir_all(project.path().join("node_modules/@a2a-hub"))?;
    let without = ran(&command, &["--version"]).await?;
    assert_eq!(without.code, Some(2), "{}", without.stderr);
    let fix = concat!("npm install @a2a-hub/linux-x64@", env!("CARGO_PKG_VERSION"), "\n");
    assert!(without.stderr.ends_with(fix), "{}", without.stderr);
    Ok(())
}

/// pip installs the wheel without network into a new environment.
async fn wheel(package: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let bin = dir.path().join("bin");
    let made = ran("python3", &["-m", "venv", dir.path().to_str().context("no UTF-8")?]).await?;
    ensure!(made.code == Some(0), "{}", made.stderr);
    let pip = async |args: &[&str]| -> Result<()> {
        let ran = ran(bin.join("pip"), args).await?;
        ensure!(ran.code == Some(0), "pip {args:?}: {}{}", ran.stdout, ran.stderr);
        Ok(())
    };
    pip(&["install", "--no-index", package]).await?;
    answers(&bin.join("a2a-hub")).await?;
    pip(&["uninstall", "--yes", "a2a-hub"]).await?;
    assert!(!bin.join("a2a-hub").exists());
    Ok(())
}

async fn debian_package(package: &str) -> Result<()> {
    let system = system()?;
    let root = system.path();
    let before = files(root)?;
    dpkg(root, &["--install", package]).await?;
    let there = files(&root.join("usr"))?;
    for place in [
        "bin/a2a-hub",
        "lib/systemd/user/a2a-hub.service",
        "share/bash-completion/completions/a2a-hub",
        "share/doc/a2a-hub/copyright",
        "share/fish/vendor_completions.d/a2a-hub.fish",
        "share/man/man1/a2a-hub.1.gz",
        "share/man/man1/a2a-hub-send.1.gz",
        "share/zsh/vendor-completions/_a2a-hub",
    ] {
        assert!(there.iter().any(|file| file == place), "no {place} in {there:?}");
    }
    for file in &there {
        let mode = fs::metadata(root.join("usr").join(file))?.permissions().mode() & 0o7777;
        let meant = if file.starts_with("bin/") { 0o755 } else { 0o644 };
        assert_eq!(mode, meant, "{file}");
    }
    let unit = fs::read_to_string(root.join("usr/lib/systemd/user/a2a-hub.service"))?;
    assert!(unit.contains("\nExecStart=/usr/bin/a2a-hub start --foreground"), "{unit}");
    let intact = dpkg(root, &["--verify", "a2a-hub"]).await?;
    assert_eq!(intact.stdout, "", "files are not as their checksums say");

    answers(&root.join("usr/bin/a2a-hub")).await?;

    dpkg(root, &["--purge", "a2a-hub"]).await?;
    assert!(!root.join("usr").exists() || files(&root.join("usr"))?.is_empty());
    let new = files(root)?.into_iter().filter(|file| !before.contains(file));
    let new: Vec<_> = new.filter(|file| !file.starts_with("var/")).collect();
    assert!(new.is_empty(), "left behind: {new:?}");
    Ok(())
}
