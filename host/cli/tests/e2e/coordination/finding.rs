//! Tests of the agent search on the command line.

use crate::command_line::run;
use a2a_hub_tests::{
    TestHub,
    finding::{config, ids},
    test_guests,
};
use anyhow::Result;
use serde_json::Value;

async fn hub() -> Result<TestHub> {
    TestHub::builder().config(config()).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn agents_find_lists_matches_with_reasons() -> Result<()> {
    let hub = hub().await?;
    let found = run(&hub, &["agents", "--find", "git history", "--tags", "git"]).await?;
    assert!(
        found.stdout.starts_with("git-historian\t") && found.stdout.contains("\"history\" in "),
        "{}",
        found.stdout
    );
    let json =
        run(&hub, &["--format", "json", "agents", "--name", "mirror", "--version", "*"]).await?;
    let json: Value = serde_json::from_str(&json.stdout)?;
    assert_eq!(ids(&json), ["echo"]);
    let refused = run(&hub, &["agents", "--name", "echo", "--version", ">=99"]).await?;
    assert!(refused.stderr.contains("allowOlder"), "{}", refused.stderr);
    Ok(())
}

#[tokio::test]
async fn agents_find_names_remote_registry() -> Result<()> {
    let there = hub().await?;
    let url = format!("http://{}", there.http());
    let config = format!("registry.team.url = '{url}'\nregistry.gone.url = 'http://127.0.0.1:1'\n");
    let here = TestHub::builder().config(config).start().await?;
    let ran = run(&here, &["agents", "--find", "behaves as told"]).await?;
    assert!(
        ran.stdout.contains("(team)")
            && ran.stdout.contains("The registry gone could not be searched"),
        "{}",
        ran.stdout
    );
    Ok(())
}
