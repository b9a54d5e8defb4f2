//! Runs drivers of official SDKs for other protocols than A2A: separate programs in `tests/sdks`
//! that print a line for each step.

use a2a_hub_tests::TestHub;
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{process::Command, time::timeout};

/// Timeout of a driver, which takes about twenty seconds; each step has a separate timeout.
const WITHIN: Duration = Duration::from_secs(100);

/// Line that a driver prints for a step.
#[derive(Debug, Deserialize)]
struct Step {
    step: String,
    ok: bool,
    detail: String,
}

/// Directory in which an SDK is installed.
pub(crate) fn sdk(name: &str) -> Result<PathBuf> {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/sdks").join(name);
    ensure!(sdk.is_dir(), "{name} is not installed; run `cargo xtask sdks`");
    Ok(sdk)
}

/// Path of a driver.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdks").join(name)
}

/// Runs a driver, and checks that it passes these steps.
pub(crate) async fn drive(mut driver: Command, hub: &TestHub, steps: &[&str]) -> Result<()> {
    driver.stdin(Stdio::null()).env("WORKSPACE", hub.workspace()).kill_on_drop(true);
    let ran =
        timeout(WITHIN, driver.output()).await.context("the driver is not done in time")??;
    let (told, complaints) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let mut taken = BTreeMap::new();
    for line in told.lines() {
        let step: Step = serde_json::from_str(line).with_context(|| line.to_owned())?;
        taken.insert(step.step.clone(), step);
    }
    let missed = |name: &&str| match taken.get(*name) {
        Some(step) if step.ok => None,
        Some(step) => Some(format!("{name}: {}", step.detail)),
        None => Some(format!("{name}: not taken")),
    };
    let failed: Vec<_> = steps.iter().filter_map(missed).collect();
    let whole = failed.is_empty() && ran.status.success();
    ensure!(whole, "{}\n{complaints}\nhub: {}", failed.join("\n"), hub.log());
    Ok(())
}
