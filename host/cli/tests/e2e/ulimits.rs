//! A hub under the limits of a shell (`ulimit`): it works with less, or says what it needs.

use crate::{
    full_disk::run_after,
    stage::{GRANT, home},
};
use a2a_hub_tests::test_guests;
use anyhow::Result;
use std::{fs, path::Path};

/// A home whose hub has the test guests.
fn furnish(home: &Path) -> Result<()> {
    let data = home.join(".a2a-hub");
    fs::create_dir_all(data.join("plugins"))?;
    fs::copy(test_guests()?, data.join("plugins/guest.wasm"))?;
    Ok(fs::write(data.join("config.toml"), GRANT)?)
}

#[tokio::test]
async fn too_few_open_files_are_refused_with_the_way_out() -> Result<()> {
    let dir = home()?;
    let few = run_after(dir.path(), "ulimit -n 64; exec", "start --foreground --no-http").await?;
    assert_eq!(few.code, Some(2), "{}", few.stderr);
    assert!(few.stderr.contains("ulimit -n 4096"), "{}", few.stderr);
    Ok(())
}

#[tokio::test]
async fn the_soft_limit_on_open_files_is_raised_for_the_hub_and_not_for_its_programs() -> Result<()>
{
    let dir = home()?;
    furnish(dir.path())?;
    let run = async |first: &str, args: &str| run_after(dir.path(), first, args).await;
    let started = run("ulimit -Sn 1500; exec", "start --no-http").await?;
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let run_file = fs::read(dir.path().join(".a2a-hub/run.json"))?;
    let pid = &serde_json::from_slice::<serde_json::Value>(&run_file)?["pid"];
    let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let own = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    let soft = own.split_whitespace().nth(3).and_then(|soft| soft.parse::<u64>().ok());
    let told = run("exec", "send guest 'sh ulimit -n'").await?;
    assert_eq!(run("exec", "stop").await?.code, Some(0));
    assert!(soft.is_some_and(|soft| soft > 1_500), "{own}");
    assert_eq!(told.stdout.trim(), "1500", "{}", told.stderr);
    Ok(())
}

#[tokio::test]
async fn a_limited_address_space_means_fewer_agents_at_once_and_no_refusal() -> Result<()> {
    let dir = home()?;
    let run = async |first: &str, args: &str| run_after(dir.path(), first, args).await;
    let started = run("ulimit -v 12000000; exec", "start --no-http").await?;
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let sent = run("exec", "send echo hello").await?;
    assert_eq!(run("exec", "stop").await?.code, Some(0));
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "hello\n"), "{}", sent.stderr);
    let log = fs::read_to_string(dir.path().join(".a2a-hub/hub.log"))?;
    assert!(log.contains("too few addresses for a pool"), "{log}");
    Ok(())
}
