//! Tests of remote agents: the guest of another hub.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, hub_with_guest, said, send, state},
};
use a2a_hub_tests::{
    Client, Front, message_to,
    remotes::{health, long_task, tasks},
};
use anyhow::{Context as _, Result, anyhow};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Starts a hub whose agent `far` is the guest of another hub.
async fn hub_before(there: &InProcessHub) -> Result<InProcessHub> {
    let remote = format!("[remote.far]\nurl = 'http://{}/agents/guest'\n", there.http());
    InProcessHub::builder().config(format!("{GRANT}\n{remote}")).start().await
}

#[tokio::test]
async fn remote_agent_works_like_local() -> Result<()> {
    let there = hub_with_guest().await?;
    let here = hub_before(&there).await?;
    let client = Client::http(&here);
    let shown = client.call("hub/agents/get", json!({ "agentId": "far" })).await?;
    assert_eq!(shown["source"], json!(format!("http://{}/agents/guest", there.http())));
    assert_eq!(shown["name"], "test-guests");
    let health = client.call("hub/agents/health", json!({ "agentId": "far" })).await?;
    assert_eq!(health["status"], "healthy", "{health}");

    let done = send(&client, "far", "flood 3").await?;
    assert_eq!((state(&done), said(&done)), ("completed", "3 pieces"));
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "1\n2\n3\n");
    let failed = send(&client, "far", "fail").await?;
    assert_eq!((state(&failed), &failed["metadata"]["reason"]), ("failed", &json!("told-to")));
    assert_eq!(said(&send(&client, "far", "reply hi").await?), "hi");
    Ok(())
}

#[tokio::test]
async fn remote_questions_and_history_are_relayed() -> Result<()> {
    let there = hub_with_guest().await?;
    let here = hub_before(&there).await?;
    let client = Client::http(&here);
    let asked = send(&client, "far", "ask").await?;
    assert_eq!((state(&asked), said(&asked)), ("input-required", "what do you say?"));
    let mut answer = message_to("far", "both");
    answer["message"]["taskId"] = asked["id"].clone();
    let done = client.call("message/send", answer).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "both"));

    let mut more = message_to("far", "history");
    more["message"]["contextId"] = asked["contextId"].clone();
    let told = client.call("message/send", more).await?;
    assert_eq!(said(&told), "ask\nwhat do you say?\nboth\nboth", "it knows what was said before");
    Ok(())
}

#[tokio::test]
async fn cancel_reaches_remote_task() -> Result<()> {
    let there = hub_with_guest().await?;
    let here = hub_before(&there).await?;
    let client = Client::http(&here);
    let (id, _updates) = long_task(&here).await?;
    let cancelled = client.call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&cancelled), "canceled");
    let far = Client::http(&there);
    for _ in 0..50 {
        let tasks = far.call("hub/tasks/list", json!({})).await?;
        let theirs = tasks.get(0).context("it had a task")?;
        if state(theirs) == "canceled" {
            return Ok(());
        }
        sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("it goes on there")
}

/// A changed card may come from somebody else.
#[tokio::test]
async fn pinned_card_mismatch_rejects_remote() -> Result<()> {
    let there = hub_with_guest().await?;
    let remote = format!(
        "[remote.far]\nurl = 'http://{}/agents/guest'\nsha256 = '{}'\n",
        there.http(),
        "0".repeat(64)
    );
    let here = InProcessHub::builder().config(remote).start().await?;
    let client = Client::http(&here);
    let status = client.call("hub/status", json!({})).await?;
    let rejected = &status["rejectedPlugins"][0];
    assert_eq!(rejected["file"], "remote.far");
    let why = rejected["error"].as_str().unwrap_or_default();
    assert!(why.contains("set `remote.far.sha256` to"), "{status}");
    let refused = send(&client, "far", "flood 1").await.expect_err("it is not trusted");
    assert!(format!("{refused:#}").contains("-32003"), "there is no such agent: {refused:#}");
    assert!(tasks(&there).await?.is_empty(), "it never heard of it");
    Ok(())
}

/// Starts a hub whose agent `far` is behind the front; `more` is its further configuration.
async fn hub_before_front(front: &Front, more: &str) -> Result<InProcessHub> {
    let remote = format!("[remote.far]\nurl = '{}'\n{more}", front.url);
    InProcessHub::builder().config(remote).start().await
}

/// Signs a card of 0.3.
fn sign(card: &mut Value, key: &Ed25519KeyPair) {
    let header = BASE64.encode(json!({ "alg": "EdDSA", "kid": "k" }).to_string());
    if let Some(card) = card.as_object_mut() {
        card.remove("signatures");
    }
    // Members are sorted and texts are ASCII, so the JSON is canonical.
    let signed = format!("{header}.{}", BASE64.encode(card.to_string()));
    let signature = BASE64.encode(key.sign(signed.as_bytes()));
    card["signatures"] = json!([{ "protected": header, "signature": signature }]);
}

/// A hub signs the cards of its agents with the key that it publishes.
#[tokio::test]
async fn card_signed_by_another_hub_is_trusted() -> Result<()> {
    let there = hub_with_guest().await?;
    let published = format!("http://{}/.well-known/jwks.json", there.http());
    let published: Value = reqwest::get(published).await?.json().await?;
    let mut other = published.clone();
    other["keys"][0]["x"] = json!(BASE64.encode([7; 32]));
    for (keys, is_trusted) in [(&published, true), (&other, false)] {
        let url = format!("http://{}/agents/guest", there.http());
        let remote = format!("[remote.far]\nurl = '{url}'\nkeys = ['{keys}']\n");
        let here = InProcessHub::builder().config(remote).start().await?;
        let client = Client::http(&here);
        if is_trusted {
            assert_eq!(said(&send(&client, "far", "reply hi").await?), "hi");
            continue;
        }
        let status = client.call("hub/status", json!({})).await?;
        let why = status["rejectedPlugins"][0]["error"].as_str().unwrap_or_default();
        assert!(why.contains("no signature of it counts"), "{status}");
    }
    Ok(())
}

/// With configured keys, the signature decides: an unsigned card is rejected, and a changed card
/// needs no approval.
#[tokio::test]
async fn signed_card_may_change_unsigned_fails() -> Result<()> {
    let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).map_err(|why| anyhow!("{why}"))?;
    let x = BASE64.encode(key.public_key());
    let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x });
    let there = hub_with_guest().await?;
    let front = Front::start(&there, 0, None).await?;
    front.says(|card| {
        card.as_object_mut().map(|members| members.remove("signatures"));
    });
    let config = format!("keys = ['{jwk}']\n[health]\ninterval_ms = 500\n");
    let here = hub_before_front(&front, &config).await?;
    let client = Client::http(&here);
    let status = client.call("hub/status", json!({})).await?;
    let why = status["rejectedPlugins"][0]["error"].as_str().unwrap_or_default();
    assert!(why.contains("it is not signed"), "{status}");
    assert!(front.seen().is_empty());

    front.says(|card| sign(card, &key));
    client.call("hub/agents/reload", json!({ "agentId": "far" })).await?;
    assert_eq!(state(&send(&client, "far", "flood 1").await?), "completed");
    front.says(|card| {
        card["description"] = json!("signed anew");
        sign(card, &key);
    });
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let shown = client.call("hub/agents/get", json!({ "agentId": "far" })).await?;
        if shown["card"]["description"] == "signed anew" {
            break;
        }
        anyhow::ensure!(Instant::now() < until, "it is not taken: {shown}");
        sleep(Duration::from_millis(100)).await;
    }
    front.says(|card| card["description"] = json!("forged"));
    let told = health(&client).await?;
    assert_eq!(told["status"], "degraded", "{told}");
    assert_eq!(state(&send(&client, "far", "flood 1").await?), "completed", "by the card it had");
    Ok(())
}
