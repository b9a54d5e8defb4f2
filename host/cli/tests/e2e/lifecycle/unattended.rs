//! Kills the hub while a run of a trigger on webhooks is at work. The webhook was answered with
//! 202, so its run starts again, once, and no event counts twice.

use crate::stage::{GRANT, eventually_async, get, resuming_guests, said, state};
use a2a_hub_tests::{Client, TestHub, test_guests};
use anyhow::{Context as _, Result, ensure};
use ring::hmac;
use serde_json::{Value, json};
use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, time::Duration};

/// Limit of a wait for a run.
const SOON: Duration = Duration::from_secs(60);

const SECRET: &str = "a-secret-of-the-sender";

/// A trigger whose agent works for twenty seconds.
fn trigger(name: &str, agent: &str) -> String {
    format!(
        "[trigger.{name}]\non = 'webhook'\nsecret = 'HOOK'\nsignature = 'github'\nagent = '{agent}'\nmessage = 'tick 400 50 x'\n\
         permissions = 'read-only'\nbudget = {{ tasks = 5 }}\ndebounce = '0s'\noverlap = 'queue'\n"
    )
}

/// Sends a webhook; returns the status of the answer.
async fn send(hub: &TestHub, name: &str, body: &str) -> Result<u16> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let request = reqwest::Client::new()
        .post(format!("http://{}/hooks/{name}", hub.http()))
        .header("content-type", "application/json")
        .header("x-hub-signature-256", format!("sha256={hex}"))
        .header("x-github-event", "push")
        .header("x-github-delivery", body);
    Ok(request.body(body.to_owned()).send().await?.status().as_u16())
}

async fn last(client: &Client, name: &str) -> Result<Value> {
    let all = client.call("hub/triggers/list", json!({})).await?;
    let mut all = all.as_array().cloned().unwrap_or_default().into_iter();
    let found = all.find(|it| it["name"] == name).context("no such trigger")?;
    Ok(found["last"].clone())
}

/// Waits until the latest run of a trigger is in this state, with this number of messages.
async fn ran(hub: &TestHub, name: &str, wanted: &str, messages: usize) -> Result<Value> {
    let client = Client::http(hub);
    let task = async || {
        let id = last(&client, name).await?["task"].as_str().context("no run")?.to_owned();
        get(&client, &id).await
    };
    let said = |task: &Value| {
        let history = task["history"].as_array().cloned().unwrap_or_default();
        history.iter().filter(|message| message["role"] == "user").count()
    };
    let is_so =
        async || task().await.is_ok_and(|task| state(&task) == wanted && said(&task) == messages);
    let waited = eventually_async(SOON, is_so).await;
    let task = task().await?;
    waited.with_context(|| format!("{name} {wanted}: {task}"))?;
    Ok(task)
}

#[tokio::test]
async fn killed_hub_starts_webhook_run_again() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let config = format!("{GRANT}\n{}\n{}", trigger("known", "guest"), trigger("anew", "plain"));
    let hub = TestHub::builder().config(config).plugin("guest", resuming_guests(dir.path())?);
    let mut hub = hub.plugin("plain", test_guests()?).start().await?;
    let secrets = hub.data_dir().join("secrets");
    fs::create_dir_all(&secrets)?;
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600);
    file.open(secrets.join("HOOK"))?.write_all(SECRET.as_bytes())?;
    for name in ["known", "anew"] {
        assert_eq!(send(&hub, name, "{}").await?, 202);
        ran(&hub, name, "working", 1).await?;
    }

    hub.kill9().await?;
    hub.restart().await?;
    let known = ran(&hub, "known", "completed", 2).await?;
    ensure!(said(&known).starts_with("[Your run was ended by a restart of the hub"), "{known}");
    let anew = ran(&hub, "anew", "working", 2).await?;
    ensure!(anew["history"].to_string().contains(":again"), "{anew}");

    hub.kill9().await?;
    hub.restart().await?;
    let failed = ran(&hub, "anew", "failed", 2).await?;
    assert_eq!(failed["metadata"]["reason"], "hub_restarted", "{failed}");
    ensure!(said(&failed).contains("a run without a person starts again once"), "{failed}");
    for name in ["known", "anew"] {
        assert_eq!(send(&hub, name, "{}").await?, 200, "it was taken before");
    }
    let tasks = Client::http(&hub).call("hub/tasks/list", json!({ "limit": 100 })).await?;
    assert_eq!(tasks.as_array().map(Vec::len), Some(2), "{tasks}");
    Ok(())
}
