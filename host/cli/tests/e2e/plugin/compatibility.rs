//! Tests that an earlier hub's data directory (`tests/compatibility`) is opened, replayed and
//! served.

use crate::{
    command_line::run,
    stage::{artifact, eventually_async, get, said, send, state},
};
use a2a_hub_tests::{Client, TestHub, message_to};
use anyhow::{Context as _, Result, ensure};
use rusqlite::{Connection, config::DbConfig};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path, time::Duration};
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a hub on the old data directory; returns the tasks in it by the state that each
/// represents.
async fn hub_on_old_data() -> Result<(TestHub, BTreeMap<String, String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compatibility");
    let config = fs::read_to_string(folder.join("config.toml"))?;
    let mut hub = TestHub::builder().config(config).start().await?;
    hub.stop().await?;
    let data = hub.data_dir();
    for entry in fs::read_dir(&data)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hub.db")) {
            fs::remove_file(path)?;
        }
    }
    unpack(&folder.join("data.tar.xz"), data.parent().context("no parent")?).await?;
    let tasks: BTreeMap<String, String> =
        serde_json::from_slice(&fs::read(data.join("tasks.json"))?)?;
    make_recent(&data, &tasks["idempotent"])?;
    hub.restart().await?;
    for plugin in ["guest", "slow", "durable"] {
        hub.joined(plugin).await?;
    }
    Ok((hub, tasks))
}

/// Moves the task of a request to the present: the hub repeats a request for a day. The log of the
/// killed hub stays as it is, with one more entry.
fn make_recent(data: &Path, task: &str) -> Result<()> {
    let db = Connection::open(data.join("hub.db"))?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let sql = "UPDATE tasks SET created = now, updated = now
        FROM (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS now) WHERE id = ?1";
    let changed = db.execute(sql, [task])?;
    ensure!(changed == 1, "the old hub has no task `{task}`");
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "archives are unpacked by tar")]
async fn unpack(archive: &Path, to: &Path) -> Result<()> {
    let status = Command::new("tar").arg("xJf").arg(archive).arg("-C").arg(to).status().await?;
    ensure!(status.success(), "unpack {}: {status}", archive.display());
    Ok(())
}

#[tokio::test]
async fn old_data_directory_is_replayed() -> Result<()> {
    let (hub, tasks) = hub_on_old_data().await?;
    let client = Client::http(&hub);
    let task = async |name: &str| get(&client, &tasks[name]).await;
    for (name, is) in [
        ("completed", "completed"),
        ("failed", "failed"),
        ("rejected", "rejected"),
        ("canceled", "canceled"),
        ("input-required", "input-required"),
        ("auth-required", "input-required"),
        ("working", "failed"),
    ] {
        let task = task(name).await?;
        assert!([is, "auth-required"].contains(&state(&task)), "{name}: {task}");
    }
    assert_eq!(artifact(&task("artifact").await?), "1\n2\n3\n");
    assert_eq!(task("working").await?["metadata"]["reason"], "hub_restarted");

    // Queued by the old hub, and run by this one.
    until(&client, &tasks["queued"], "completed").await?;
    // Replayed tasks continue, and each question keeps its id or is asked again.
    let done = until(&client, &tasks["replayed-at-work"], "completed").await?;
    assert_eq!(said(&done), "a | z");
    // The child of the tree, which is not replayed, is started again with the answer.
    for (name, answer) in [("replayed-waiting", "yes"), ("replayed-tree", "reply yes")] {
        let id = &tasks[name];
        until(&client, id, "input-required").await?;
        let mut answer = message_to("durable", answer);
        answer["message"]["taskId"] = json!(id);
        answer["message"]["metadata"] = json!({});
        client.call("message/send", answer).await?;
        let done = until(&client, id, "completed").await?;
        assert_eq!(said(&done), "a | yes | z", "{name}: {done}");
    }

    // A request of the old hub's clients is repeated: nobody saw its answer before the update.
    let message = json!({ "messageId": "sent-again", "role": "user",
        "parts": [{ "kind": "text", "text": "remember again 1" }] });
    let request = json!({ "message": message, "metadata": { "targetAgent": "guest" },
        "configuration": { "blocking": true } });
    let again = client.call("message/send", request).await?;
    assert_eq!(
        (&again["id"], &again["metadata"]["repeated"]),
        (&json!(tasks["idempotent"]), &json!(true))
    );

    // Agents keep their memory, under the recorded grants.
    assert_eq!(said(&send(&client, "guest", "recall colour").await?), "blue");
    let mut thought = message_to("guest", "mind");
    thought["message"]["contextId"] = json!("in-mind");
    let thought = client.call("message/send", thought).await?;
    assert!(said(&thought).contains("tidy up"), "{thought}");
    let pushed = json!({ "id": tasks["pushed"] });
    let config = client.call("tasks/pushNotificationConfig/list", pushed).await?;
    assert!(config.to_string().contains("http://127.0.0.1:9/news"), "{config}");
    let plugins = Client::unix(&hub).call("hub/plugins/list", json!({})).await?;
    for plugin in plugins.as_array().context("no list")? {
        assert!(plugin["installation"]["grant"].is_object(), "{plugin}");
    }
    let listed = run(&hub, &["tasks", "--format", "json"]).await?;
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    Ok(())
}

async fn until(client: &Client, task: &str, wanted: &str) -> Result<Value> {
    let is = async || get(client, task).await.is_ok_and(|task| state(&task) == wanted);
    let reached = eventually_async(PATIENCE, is).await;
    let task = get(client, task).await?;
    reached.with_context(|| format!("it is not {wanted}: {task}"))?;
    Ok(task)
}
