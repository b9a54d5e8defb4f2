//! Tests of schedules of a hub that is killed, and of the command `schedule`.

use crate::{
    command_line::run,
    stage::{eventually_async, get, state},
};
use a2a_hub_tests::{Client, TestHub};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use tokio::time::sleep;

/// A schedule whose latest planned time was missed for as long as the test makes it so.
const YEARLY: &str = "
    [schedule.yearly]
    cron = '0 0 1 1 *'
    zone = 'UTC'
    agent = 'echo'
    message = 'hello'
    permissions = 'read-only'
    budget = { tasks = 0 }
";

/// Time in which a restarted hub looks at the clock.
const SOON: Duration = Duration::from_secs(60);

/// Sets the state of the schedule to one of a year ago: the hub was down at the planned time, or
/// was killed before it had marked that as done.
fn set_back(data_dir: &Path) -> Result<()> {
    let db = rusqlite::Connection::open(data_dir.join("hub.db"))?;
    let sql = "UPDATE schedules
        SET state = json_set(state, '$.doneUntilMs', 1000 * (unixepoch() - 366 * 24 * 60 * 60))";
    ensure!(db.execute(sql, [])? == 1, "the schedule has no state");
    Ok(())
}

async fn yearly(client: &Client) -> Result<Value> {
    let mut all = client.call("hub/schedules/list", json!({})).await?;
    Ok(all[0].take())
}

#[tokio::test]
async fn killed_hub_runs_missed_time_once() -> Result<()> {
    let mut hub = TestHub::builder().config(YEARLY).start().await?;
    let fresh = yearly(&Client::http(&hub)).await?;
    ensure!(fresh["last"].is_null() && !fresh["next"].is_null(), "{fresh}");
    // The pauses let kills fall before, into and after the creation of the task.
    for pause in [0, 5, 10, 20, 50, 200] {
        hub.kill9().await?;
        set_back(&hub.data_dir())?;
        hub.restart().await?;
        sleep(Duration::from_millis(pause)).await;
    }
    let client = Client::http(&hub);
    // A task that a kill cuts off fails, as any task of an agent that cannot be resumed.
    let is_over = async || {
        let found = yearly(&client).await.unwrap_or_default();
        found["last"]["state"] == "completed" || found["last"]["state"] == "failed"
    };
    eventually_async(SOON, is_over).await?;
    let tasks = client.call("hub/tasks/list", json!({ "limit": 100 })).await?;
    let tasks = tasks.as_array().context("no list")?;
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    let found = yearly(&client).await?;
    assert_eq!(found["last"]["task"], tasks[0]["id"], "{found}");
    ensure!(found["note"].as_str().is_some_and(|note| note.contains("did not run")), "{found}");
    Ok(())
}

#[tokio::test]
async fn schedule_command_runs_and_pauses() -> Result<()> {
    let hub = TestHub::builder().config(YEARLY).start().await?;
    let listed = run(&hub, &["schedule", "list"]).await?;
    ensure!(listed.code == Some(0) && listed.stdout.contains("yearly"), "{}", listed.stderr);
    let ran = run(&hub, &["--format", "json", "schedule", "run", "yearly"]).await?;
    let task: Value = serde_json::from_str(&ran.stdout).with_context(|| ran.stderr.clone())?;
    let client = Client::http(&hub);
    let id = task["id"].as_str().context("no id")?;
    let is_over = async || get(&client, id).await.is_ok_and(|task| state(&task) == "completed");
    eventually_async(SOON, is_over).await?;
    let paused = run(&hub, &["schedule", "pause", "yearly"]).await?;
    ensure!(paused.stdout.contains("a2a-hub schedule resume yearly"), "{}", paused.stdout);
    let listed = run(&hub, &["schedule", "list"]).await?.stdout;
    ensure!(listed.contains("paused") && listed.contains(id), "{listed}");
    let resumed = run(&hub, &["schedule", "resume", "yearly"]).await?;
    ensure!(resumed.stdout.contains("next run: "), "{}", resumed.stdout);
    let unknown = run(&hub, &["schedule", "run", "yearli"]).await?;
    ensure!(
        unknown.code != Some(0) && unknown.stderr.contains("did you mean `yearly`?"),
        "{}",
        unknown.stderr
    );
    Ok(())
}
