//! Tests of the hub that a command addresses: the one that runs on the data directory, even if the
//! configuration has changed since its start.

use crate::{
    command_line::{Ran, finish},
    stage::home,
};
use anyhow::Result;
use std::{fs, path::Path, process::Stdio};
use tokio::process::Command;

/// Runs `a2a-hub` with this home and without an explicit socket.
async fn run(home: &Path, args: &str) -> Result<Ran> {
    run_with(home, args, &[]).await
}

/// Runs `a2a-hub` with this home and these environment variables.
#[expect(clippy::disallowed_methods, reason = "the command is typed as a user would")]
async fn run_with(home: &Path, args: &str, variables: &[(&str, &str)]) -> Result<Ran> {
    let mut command = Command::new(a2a_hub_tests::hub_binary()?);
    command.args(args.split_whitespace()).current_dir(home);
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    finish(command).await
}

#[tokio::test]
async fn hub_is_found_by_data_directory() -> Result<()> {
    let dir = home()?;
    let run = async |args: &str| run(dir.path(), args).await;
    let data = dir.path().join(".a2a-hub");
    fs::create_dir_all(&data)?;
    let listening_on = |name: &str| {
        let path = dir.path().join(name).display().to_string();
        fs::write(
            data.join("config.toml"),
            format!("http.enabled = false\nsocket.path = {path:?}\n"),
        )
    };
    listening_on("one.sock")?;
    let started = run("start").await?;
    assert_eq!(started.code, Some(0), "{}", started.stderr);

    // A changed socket takes effect at the next start.
    listening_on("two.sock")?;
    let status = run("status").await?;
    assert!(status.stdout.contains("one.sock"), "{}{}", status.stdout, status.stderr);
    let reloaded = run("reload").await?;
    assert!(reloaded.stdout.contains("socket.path"), "{}{}", reloaded.stdout, reloaded.stderr);
    assert_eq!(run("restart").await?.code, Some(0));
    let status = run("status").await?;
    assert!(status.stdout.contains("two.sock"), "{}{}", status.stdout, status.stderr);

    // An invalid file changes nothing.
    fs::write(data.join("config.toml"), "max_task = 1\n")?;
    let sent = run("send echo hello").await?;
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "hello\n"), "{}", sent.stderr);
    let checked = run("config check").await?;
    assert!(checked.code != Some(0) && checked.stderr.contains("max_task"), "{}", checked.stderr);

    // Another data directory belongs to another hub.
    for command in ["stop", "status", "send echo hello"] {
        let refused = run(&format!("--data-dir other {command}")).await?;
        assert_eq!(refused.code, Some(2), "{command}: {}", refused.stdout);
    }
    assert_eq!(run("stop").await?.code, Some(0));
    let refused = run("status").await?;
    assert!(refused.stderr.contains("max_task"), "no hub runs any more: {}", refused.stderr);
    Ok(())
}

/// The command line takes precedence over the environment, even for different settings.
#[tokio::test]
async fn data_dir_option_overrides_socket_variable() -> Result<()> {
    let dir = home()?;
    let [one, two] = ["one", "two"].map(|name| dir.path().join(name).display().to_string());
    let socket = format!("{one}.sock");
    let run =
        async |args: String| run_with(dir.path(), &args, &[("A2A_HUB_SOCKET", &socket)]).await;
    for start in [
        format!("start --no-http --data-dir {one}"),
        format!("start --no-http --data-dir {two} --socket {two}.sock"),
    ] {
        let started = run(start).await?;
        assert_eq!(started.code, Some(0), "{}", started.stderr);
    }
    let status = run(format!("status --data-dir {two}")).await?;
    assert!(status.stdout.contains("two.sock"), "{}{}", status.stdout, status.stderr);
    assert_eq!(run(format!("stop --data-dir {two}")).await?.code, Some(0));
    let status = run("status".to_owned()).await?;
    assert!(status.stdout.contains("one.sock"), "it runs on: {}{}", status.stdout, status.stderr);

    // A hub without its socket is still found.
    fs::remove_file(&socket)?;
    for command in ["status", "stop"] {
        let deaf = run(format!("{command} --data-dir {one}")).await?;
        assert!(deaf.stderr.contains("a2a-hub stop --force"), "{command}: {}", deaf.stderr);
    }
    assert_eq!(run(format!("stop --force --data-dir {one}")).await?.code, Some(0));
    Ok(())
}
