//! Tests of a group of agents on the command line and with official clients.

use crate::{
    command_line::run,
    stage::{GRANT, said, send, state},
};
use a2a_hub_tests::{Client, TestHub, message_to, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

#[tokio::test]
async fn group_acts_as_agent_for_clients() -> Result<()> {
    let config = format!("{GRANT}\n[aliases]\nreviewer = ['echo', 'guest', 'missing']\n");
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let first = send(&client, "reviewer", "flood 1").await?;
    let second = send(&client, "reviewer", "flood 1").await?;
    assert_eq!((state(&first), said(&first)), ("completed", "flood 1"), "that was echo");
    assert_eq!((state(&second), said(&second)), ("completed", "1 pieces"), "that was guest");

    let sent = run(&hub, &["send", "reviewer", "reply ho"]).await?;
    assert_eq!((sent.code, sent.stdout.trim()), (Some(0), "reply ho"), "{}", sent.stderr);
    let sent = run(&hub, &["send", "skill:echo", "ho"]).await?;
    assert_eq!((sent.code, sent.stdout.trim()), (Some(0), "ho"), "{}", sent.stderr);
    let shown = run(&hub, &["task", "show", second["id"].as_str().context("no id")?]).await?;
    assert!(
        shown.stdout.contains("agent    guest: one of `reviewer`, by round-robin"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("not echo: its turn comes later"), "{}", shown.stdout);
    let status = run(&hub, &["status"]).await?;
    assert!(
        status.stdout.contains("reviewer: echo, guest, by round-robin; missing: missing"),
        "{}",
        status.stdout
    );
    let doctor = run(&hub, &["doctor"]).await?;
    assert!(doctor.stdout.contains("`aliases.reviewer` names `missing`"), "{}", doctor.stdout);

    let url = format!("http://{}/agents/reviewer", hub.http());
    let card: Value =
        reqwest::get(format!("{url}/.well-known/agent-card.json")).await?.json().await?;
    assert_eq!(card["name"], "reviewer", "{card}");
    let mut params = message_to("reviewer", "flood 1");
    params["message"].as_object_mut().context("no message")?.remove("metadata");
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params });
    let answer: Value =
        reqwest::Client::new().post(&url).json(&request).send().await?.json().await?;
    assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
    let task = answer["result"]["id"].clone();
    let request =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": { "id": task } });
    let answer: Value =
        reqwest::Client::new().post(&url).json(&request).send().await?.json().await?;
    assert_eq!(answer["result"]["id"], task, "{answer}");
    Ok(())
}
