//! Tests of Agentic Resource Discovery: the catalogue, and the registry below `/ard`.

use crate::{
    hub::InProcessHub,
    stage::{artifact, hub_with_calling_guest, send},
};
use a2a_hub_tests::Client;
use anyhow::{Context as _, Result};
use reqwest::StatusCode;
use serde_json::{Value, json};

async fn get(hub: &InProcessHub, path: &str) -> Result<(StatusCode, Value)> {
    let answer = reqwest::get(format!("http://{}{path}", hub.http())).await?;
    Ok((answer.status(), answer.json().await?))
}

async fn search(hub: &InProcessHub, body: &str) -> Result<(StatusCode, Value)> {
    let request = reqwest::Client::new().post(format!("http://{}/ard/search", hub.http()));
    let request = request.header("content-type", "application/json").body(body.to_owned());
    let answer = request.send().await?;
    Ok((answer.status(), answer.json().await?))
}

#[tokio::test]
async fn agent_is_found_listed_and_retrieved() -> Result<()> {
    let hub = InProcessHub::builder().start().await?;
    let (_, catalogue) = get(&hub, "/.well-known/ard.json").await?;
    assert_eq!(get(&hub, "/.well-known/ai-catalog.json").await?.1, catalogue);
    let entries = catalogue["entries"].as_array().context("no entries")?;
    assert_eq!(entries[0]["type"], "application/ai-registry+json");
    let echo = entries.iter().find(|entry| entry["displayName"] == "echo").context("no echo")?;
    let card = reqwest::get(echo["url"].as_str().context("no url")?).await?.error_for_status()?;
    assert_eq!(card.json::<Value>().await?["name"], "echo");

    let asked = json!({ "query": { "text": "echo", "filter": { "type": [echo["type"]] } } });
    let (_, found) = search(&hub, &asked.to_string()).await?;
    let best = &found["results"][0];
    assert_eq!((&best["identifier"], &best["score"]), (&echo["identifier"], &json!(100)));
    let registry = entries[0]["url"].as_str().context("no registry")?;
    assert_eq!(best["source"], registry);
    let none = json!({ "query": { "text": "echo", "filter": { "type": "x" } }, "pageSize": 1 });
    assert_eq!(search(&hub, &none.to_string()).await?.1, json!({ "results": [] }));

    let (mut listed, mut token) = (Vec::new(), String::new());
    loop {
        let page = get(&hub, &format!("/ard/agents?pageSize=2&pageToken={token}")).await?.1;
        listed.extend(page["items"].as_array().context("no items")?.clone());
        assert_eq!(page["total"], entries.len() - 1);
        let Some(next) = page["pageToken"].as_str() else { break };
        next.clone_into(&mut token);
    }
    assert_eq!(listed.len(), entries.len() - 1);
    let identifier = echo["identifier"].as_str().unwrap_or_default().replace(':', "%3A");
    assert_eq!(get(&hub, &format!("/ard/agents/{identifier}")).await?.1, *echo);
    Ok(())
}

#[tokio::test]
async fn odd_ard_request_is_explained() -> Result<()> {
    let hub = InProcessHub::builder().start().await?;
    for path in [
        "/ard/agents/not-a-valid-ard-urn",
        "/ard/agents?pageSize=0",
        "/ard/agents?pageSize=101",
        "/ard/agents?pageSize=many",
        "/ard/agents?pageToken=x",
        "/ard/agents?orderBy=size",
        "/ard/agents?filter=createdAfter+%3D+%272026%27",
    ] {
        let (status, told) = get(&hub, path).await?;
        assert_eq!(
            (status, &told["errorCode"]),
            (StatusCode::BAD_REQUEST, &json!("INVALID_ARGUMENT")),
            "{path}"
        );
    }
    let (status, told) = get(&hub, "/ard/agents/urn%3Aair%3Ax.invalid%3Aprobe%3Anone").await?;
    assert_eq!((status, &told["errorCode"]), (StatusCode::NOT_FOUND, &json!("NOT_FOUND")));
    for body in [
        "{",
        "[]",
        "{}",
        r#"{"query":{"text":"  "}}"#,
        r#"{"query":{"text":7}}"#,
        r#"{"query":{"text":"a","filter":{"unheard":["x"]}}}"#,
        r#"{"query":{"text":"a"},"federation":"all"}"#,
        r#"{"query":{"text":"a"},"pageSize":-1}"#,
        r#"{"query":{"text":"a"},"pageSize":101}"#,
        r#"{"query":{"text":"a"},"pageToken":7}"#,
    ] {
        let (status, told) = search(&hub, body).await?;
        let what: String = body.chars().take(80).collect();
        assert_eq!(status, StatusCode::BAD_REQUEST, "{what}: {told}");
        assert!(told["message"].as_str().is_some_and(|why| why.len() < 500), "{what}: {told}");
    }
    let long = json!({ "query": { "text": "x".repeat(1_000_000) } }).to_string();
    assert_eq!(search(&hub, &long).await?, (StatusCode::OK, json!({ "results": [] })));
    Ok(())
}

/// A program that an agent started finds the agents that its agent may call, and no others.
#[tokio::test]
async fn agent_program_finds_granted_agents_only() -> Result<()> {
    let hub = hub_with_calling_guest().await?;
    let url = format!("http://{}/.well-known/ard.json", hub.http());
    let read =
        format!("import urllib.request; print(urllib.request.urlopen('{url}').read().decode())");
    let script = format!("sh python3 -c \"{read}\"");
    let told = send(&Client::http(&hub), "guest", &script).await?;
    let catalogue: Value = serde_json::from_str(&artifact(&told)).context(told.to_string())?;
    let entries = catalogue["entries"].as_array().context("no entries")?;
    let names: Vec<_> = entries.iter().filter_map(|entry| entry["displayName"].as_str()).collect();
    assert_eq!(names, ["A2A Local Hub", "echo"], "{catalogue}");
    Ok(())
}
