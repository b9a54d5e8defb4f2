//! Tests of the web page in a real browser: Chromium, driven by `tests/browser/stories.mjs`, whose
//! every story must hold.

use crate::stage::GRANT;
use a2a_hub_tests::{TestHub, example_agent, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use std::{env, path::Path, process::Stdio, time::Duration};
use tokio::{process::Command, time::timeout};

/// Stories that the script tells, each once.
const STORIES: [&str; 16] = [
    "unpaired",
    "pairing",
    "inbox",
    "races",
    "tasks",
    "task",
    "send",
    "connection",
    "hostile",
    "origins",
    "removed",
    "remembered",
    "accessible",
    "tabs",
    "first-view",
    "load",
];

/// Time limit of all stories.
const WITHIN: Duration = Duration::from_secs(550);

/// Variable with the number of questions that page and socket answer at the same moment.
const ROUNDS: &str = "A2A_HUB_PAGE_ROUNDS";

/// Line that the script prints for a story.
#[derive(Debug, Deserialize)]
struct Story {
    step: String,
    ok: bool,
    detail: String,
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the browser is driven by its own program")]
async fn every_story_holds_in_chromium() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let modules = root.join("target/sdks/browser");
    ensure!(modules.is_dir(), "what drives a browser is missing; run `cargo xtask sdks`");
    let hub = TestHub::builder().config(GRANT);
    let hub = hub
        .plugin("test-guests", test_guests()?)
        .plugin("approval-gate", example_agent("approval-gate")?);
    let hub = hub.start().await?;
    let screenshots = root.join("target/page");
    let rounds = env::var_os(ROUNDS).unwrap_or_else(|| "20".into());
    let mut node = Command::new("node");
    node.arg(root.join("tests/browser/stories.mjs"));
    node.arg("--hub").arg(format!("http://{}", hub.http())).arg("--rounds").arg(rounds);
    node.arg("--socket").arg(hub.socket()).arg("--modules").arg(&modules);
    node.arg("--out").arg(&screenshots).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(WITHIN, node.output()).await.context("the stories take too long")??;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let stories: Vec<Story> = printed
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
        .collect::<Result<_>>()?;
    let failed: Vec<_> = stories.iter().filter(|story| !story.ok).collect();
    let reasons: Vec<_> = failed.iter().map(|it| format!("{}: {}", it.step, it.detail)).collect();
    let why = || format!("{reasons:#?}\n{}", String::from_utf8_lossy(&output.stderr));
    ensure!(failed.is_empty() && output.status.success(), "{}", why());
    let steps: Vec<_> = stories.iter().map(|story| &*story.step).collect();
    assert_eq!(steps, STORIES, "every story is reported");
    Ok(())
}
