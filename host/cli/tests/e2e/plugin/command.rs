//! Tests of `a2a-hub plugin`: an operator's work from a stranger's file to its removal.

use crate::{
    command_line::{Ran, run},
    stage::{another_build, eventually_async, said, send, state},
};
use a2a_hub_tests::{Client, TestHub, test_guests};
use anyhow::{Context as _, Result};
use axum::{Router, routing::get};
use serde_json::Value;
use std::{fs, time::Duration};
use tokio::task::JoinSet;

pub(crate) async fn plugin(hub: &TestHub, args: &[&str]) -> Result<Ran> {
    let data = hub.data_dir();
    let data = data.to_str().context("the data directory is no text")?;
    run(hub, &[&["--data-dir", data, "plugin"], args].concat()).await
}

async fn told(hub: &TestHub, args: &[&str]) -> Result<Value> {
    let ran = plugin(hub, &[args, &["--format", "json"]].concat()).await?;
    serde_json::from_str(&ran.stdout).with_context(|| format!("{args:?}: {}", ran.stderr))
}

#[tokio::test]
async fn plugin_lifecycle_from_add_to_remove() -> Result<()> {
    let hub = TestHub::builder().config("agents.stranger.confine = false").start().await?;
    let (client, guests) = (Client::http(&hub), test_guests()?);
    let file = guests.to_str().context("no text")?;
    let seen = plugin(&hub, &["inspect", file]).await?.stdout;
    for asked in ["run `sh`", "remember 4096 bytes", "send requests to"] {
        assert!(seen.contains(asked), "{asked}: {seen}");
    }
    let none = plugin(&hub, &["grant", "stranger", "--all"]).await?;
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("there is no plug-in `stranger`"), "{}", none.stderr);

    let added = plugin(&hub, &["add", file, "--name", "stranger"]).await?;
    assert_eq!(added.code, Some(0), "{}{}", added.stdout, added.stderr);
    assert!(added.stdout.contains("It is not signed."), "{}", added.stdout);
    let joined = async || {
        let all = told(&hub, &["list"]).await;
        all.is_ok_and(|all| all[0]["joined"] == true)
    };
    eventually_async(Duration::from_secs(60), joined).await?;
    let twice = plugin(&hub, &["add", file, "--name", "stranger"]).await?;
    assert!(twice.stderr.contains("exists already"), "{}", twice.stderr);
    let denied = send(&client, "stranger", "sh echo hello").await?;
    assert!(said(&denied).contains("`a2a-hub plugin grant stranger --program sh`"), "{denied}");

    // Without a terminal, the command cannot prompt.
    let what = plugin(&hub, &["grant", "stranger"]).await?;
    assert!(what.stderr.contains("name some, such as `--all`"), "{}", what.stderr);
    let wrong = plugin(&hub, &["grant", "stranger", "--program", "rm"]).await?;
    assert!(wrong.stderr.contains("does not ask to run `rm`"), "{}", wrong.stderr);
    // With `--all`, a missing program is reported and skipped; a named one is refused.
    let missing = plugin(&hub, &["grant", "stranger", "--program", "formed"]).await?;
    assert!(missing.stderr.contains("`formed`: it is not on the PATH"), "{}", missing.stderr);
    let all = plugin(&hub, &["grant", "stranger", "--all"]).await?;
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    assert!(
        all.stderr.contains("not granted, because it is not installed: formed"),
        "{}",
        all.stderr
    );
    assert_eq!(plugin(&hub, &["revoke", "stranger"]).await?.code, Some(0));
    let granted = plugin(&hub, &["grant", "stranger", "--program", "sh", "--memory=100"]).await?;
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    assert!(granted.stdout.contains("in effect now"), "{}", granted.stdout);
    let ran = send(&client, "stranger", "sh echo hello").await?;
    assert_eq!(state(&ran), "completed", "{}", said(&ran));
    let all = told(&hub, &["list"]).await?;
    assert_eq!(all[0]["installation"]["grant"]["memory"], 100, "the operator's number");
    assert_eq!(all[0]["tier"], "plain");

    let gone = plugin(&hub, &["deny", "stranger", "process.sh"]).await?;
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    assert!(said(&send(&client, "stranger", "sh echo hello").await?).contains("not granted"));
    let twice = plugin(&hub, &["deny", "stranger", "process.sh"]).await?;
    assert!(twice.stderr.contains("what is granted is `memory`"), "{}", twice.stderr);
    assert_eq!(said(&send(&client, "stranger", "remember k v").await?), "k is 1 bytes");
    assert_eq!(plugin(&hub, &["revoke", "stranger"]).await?.code, Some(0));
    assert!(said(&send(&client, "stranger", "remember k v").await?).contains("not granted"));

    let removed = plugin(&hub, &["remove", "stranger"]).await?;
    assert!(
        removed.stdout.contains("removed, with its stored data"),
        "{}{}",
        removed.stdout,
        removed.stderr
    );
    assert!(send(&client, "stranger", "flood 1").await.is_err());
    let again = plugin(&hub, &["remove", "stranger"]).await?;
    assert_eq!(again.code, Some(2), "{}", again.stdout);
    Ok(())
}

#[tokio::test]
async fn update_is_diffed_and_needs_approval() -> Result<()> {
    let (hub, dir) = (TestHub::start().await?, tempfile::tempdir()?);
    let (old, new) = (test_guests()?, another_build(&dir)?);
    let [old, new] = [&old, &new].map(|path| path.display().to_string());
    let added = plugin(&hub, &["add", &old, "--name", "guest", "--memory"]).await?;
    assert_eq!(added.code, Some(0), "{}{}", added.stdout, added.stderr);
    let is = async |wanted: fn(&Value) -> bool| {
        eventually_async(Duration::from_secs(60), async || {
            told(&hub, &["list"]).await.is_ok_and(|all| wanted(&all[0]))
        })
        .await
    };
    is(|plugin| plugin["joined"] == true).await?;
    let update = plugin(&hub, &["add", &new, "--name", "guest"]).await?;
    assert_eq!(update.code, Some(0), "{}{}", update.stdout, update.stderr);
    is(|plugin| plugin["heldBack"].is_object()).await?;
    let listed = plugin(&hub, &["list"]).await?.stdout;
    assert!(listed.contains("the granted one stays in use"), "{listed}");
    let diff = plugin(&hub, &["diff", "guest"]).await?.stdout;
    assert!(diff.contains("it asks for the same"), "{diff}");
    let other = plugin(&hub, &["grant", "guest", "--sha256", &"0".repeat(64)]).await?;
    assert!(other.stderr.contains("the present one has"), "{}", other.stderr);
    let digest =
        told(&hub, &["diff", "guest"]).await?["new"].as_str().unwrap_or_default().to_owned();
    let granted = plugin(&hub, &["grant", "guest", "--sha256", &digest]).await?;
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    is(|plugin| plugin["heldBack"].is_null()).await?;
    let all = told(&hub, &["list"]).await?;
    assert_eq!(
        (all[0]["sha256"].as_str(), &all[0]["installation"]["grant"]["memory"]),
        (Some(&*digest), &4096.into())
    );

    // Damages the stored copy of the granted component.
    fs::write(hub.data_dir().join(format!("components/{digest}.wasm")), "none")?;
    let diff = plugin(&hub, &["diff", "guest"]).await?;
    assert_eq!((diff.code, &*diff.stderr), (Some(2), ""));
    assert!(diff.stdout.contains(".wasm, is damaged; `a2a-hub restart`"), "{}", diff.stdout);
    plugin(&hub, &["add", &old, "--name", "guest"]).await?;
    is(|plugin| plugin["heldBack"].is_object()).await?;
    let listed = plugin(&hub, &["list"]).await?.stdout;
    assert!(listed.contains("the differences are unknown"), "{listed}");
    let diff = plugin(&hub, &["diff", "guest"]).await?;
    assert_eq!(diff.code, Some(2), "{}", diff.stdout);
    assert!(diff.stderr.contains("is damaged, so the differences"), "{}", diff.stderr);
    Ok(())
}

#[tokio::test]
async fn downloaded_component_must_be_signed() -> Result<()> {
    let hub = TestHub::start().await?;
    let bytes = fs::read(test_guests()?)?;
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let at = server.local_addr()?;
    let routes = Router::new()
        .route("/guest.wasm", get(async move || bytes))
        .route("/moved.wasm", get(async || axum::response::Redirect::to("/guest.wasm")));
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(server, routes).await });
    for (path, why) in [
        ("guest.wasm", "nobody signed it"),
        ("moved.wasm", "redirects are not followed"),
        ("none.wasm", "the server has no such file (404)"),
    ] {
        let ran = plugin(&hub, &["add", &format!("http://{at}/{path}")]).await?;
        assert_eq!(ran.code, Some(2), "{path}: {}", ran.stdout);
        assert!(ran.stderr.contains(why), "{path}: {}", ran.stderr);
    }
    let open = plugin(&hub, &["add", "http://example.com/x.wasm"]).await?;
    assert!(open.stderr.contains("only https is allowed"), "{}", open.stderr);
    assert!(fs::read_dir(hub.data_dir().join("plugins"))?.next().is_none(), "nothing was added");
    serving.shutdown().await;
    Ok(())
}
