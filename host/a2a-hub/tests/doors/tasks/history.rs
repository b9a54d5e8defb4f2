//! Tests of the search for earlier tasks and of their usage, over the hub's doors.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually_async, send},
};
use a2a_hub_tests::{
    Client, message_to,
    tenants::{TENANTS, Web, token},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;

/// Ids of the tasks that a search finds.
fn ids(found: &Value) -> Vec<&str> {
    let results = found["results"].as_array().into_iter().flatten();
    results.filter_map(|result| result["taskId"].as_str()).collect()
}

async fn search(client: &Client, query: &str) -> Result<Value> {
    Ok(client.call("hub/search", json!({ "query": query })).await?)
}

/// Waits until a search finds this many tasks.
async fn found(client: &Client, query: &str, count: usize) -> Result<Value> {
    let there = async || search(client, query).await.is_ok_and(|it| ids(&it).len() == count);
    let waited = eventually_async(Duration::from_secs(60), there).await;
    let found = search(client, query).await?;
    waited.with_context(|| format!("{count} tasks: {found}"))?;
    Ok(found)
}

/// Words are found over a restart until their conversation is deleted; the usage stays. A tenant
/// finds its own tasks only.
#[tokio::test]
async fn words_are_found_until_deletion_and_usage_stays() -> Result<()> {
    let mut hub = InProcessHub::builder().config(TENANTS).start().await?;
    let client = Client::http(&hub);
    let first = send(&client, "echo", "the walrus sings").await?;
    send(&client, "echo", "the carpenter sings").await?;
    let acme = Web::of(&hub, token(&hub, "acme")?);
    acme.call("/", "message/send", message_to("echo", "a walrus of acme")).await?;

    let walrus = found(&client, "walr* \"walrus sings\"", 1).await?;
    let result = &walrus["results"][0];
    assert_eq!((&result["taskId"], &result["agentId"]), (&first["id"], &json!("echo")));
    assert_eq!(result["state"], "completed", "{result}");
    let hits =
        result["excerpt"].as_array().into_iter().flatten().filter(|part| part["hit"] == true);
    assert!(hits.count() > 0, "{result}");
    let both = found(&client, "sings", 2).await?;
    let one = json!({ "query": "sings", "limit": 1 });
    let page = client.call("hub/search", one).await?;
    let rest = json!({ "query": "sings", "cursor": page["next"] });
    let rest = client.call("hub/search", rest).await?;
    assert_eq!([ids(&page), ids(&rest)].concat(), ids(&both), "{page}");
    for wrong in [json!({ "query": " * " }), json!({ "query": "a", "cursor": "x" })] {
        assert!(client.call("hub/search", wrong).await.is_err());
    }
    let theirs = acme.call("/", "hub/search", json!({ "query": "walrus OR (" })).await?;
    assert_eq!(theirs["result"]["results"], json!([]), "`or` is a word: {theirs}");
    let theirs = async || {
        let found = acme.call("/", "hub/search", json!({ "query": "walrus" })).await;
        found.is_ok_and(|it| ids(&it["result"]).len() == 1)
    };
    eventually_async(Duration::from_secs(60), theirs).await.context("the task of the tenant")?;

    hub.restart().await?;
    let client = Client::http(&hub);
    found(&client, "walrus", 1).await?;
    let usage = async || client.call("hub/usage", json!({ "by": "person" })).await;
    let before = usage().await?;
    assert_eq!((&before["total"]["tasks"], &before["total"]["costUsd"]), (&json!(2), &Value::Null));
    assert_eq!(before["total"]["withoutTokens"], 2, "{before}");
    client.call("hub/contexts/delete", json!({ "contextId": first["contextId"] })).await?;
    assert_eq!(ids(&search(&client, "walrus").await?), [""; 0], "at once");
    assert_eq!(usage().await?, before);
    let of_all = client.call("hub/usage", json!({ "by": "tenant" })).await?;
    assert_eq!(of_all["total"]["tasks"], 3, "{of_all}");
    let acme = Web::of(&hub, token(&hub, "acme")?);
    let refused = acme.call("/", "hub/usage", json!({ "by": "tenant" })).await?;
    assert!(refused["error"].is_object(), "it is the operator's: {refused}");
    let own = acme.call("/", "hub/usage", json!({})).await?;
    assert_eq!(own["result"]["total"]["tasks"], 1, "{own}");
    Ok(())
}

/// The timeline names each event of a task with the principal that requested it, in pages that
/// together are the whole; another tenant's task has none.
#[tokio::test]
async fn timeline_shows_questions_and_who_answered() -> Result<()> {
    let config = format!("{TENANTS}\n{GRANT}");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "ask").await?;
    let id = asked["id"].as_str().context("no id")?;
    let mut answer = message_to("guest", "the left one");
    answer["message"]["taskId"] = json!(id);
    client.call("message/send", answer).await?;
    let whole = client.call("hub/tasks/timeline", json!({ "id": id })).await?;
    let entries = whole["entries"].as_array().context("no entries")?;
    let kinds: Vec<_> = entries.iter().filter_map(|entry| entry["kind"].as_str()).collect();
    assert_eq!((kinds[0], entries[0]["text"].as_str()), ("created", Some("ask")));
    let question = entries.iter().find(|entry| entry["kind"] == "question").context("asked")?;
    let answer = entries.iter().find(|entry| entry["kind"] == "answer").context("answered")?;
    assert_eq!(question["questionId"], answer["questionId"], "{whole}");
    assert_eq!((&answer["text"], question["by"].is_null()), (&json!("the left one"), true));
    assert!(answer["by"].as_str().is_some_and(|by| by.starts_with("operator")), "{answer}");
    let last = entries.last().context("no end")?;
    assert_eq!((&last["state"], whole["next"].is_null()), (&json!("completed"), true));

    let (mut paged, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = json!({ "id": id, "limit": 2, "cursor": cursor });
        let page = client.call("hub/tasks/timeline", params).await?;
        paged.extend(page["entries"].as_array().context("no entries")?.clone());
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(paged, *entries);
    let acme = Web::of(&hub, token(&hub, "acme")?);
    let theirs = acme.call("/", "hub/tasks/timeline", json!({ "id": id })).await?;
    assert_eq!(theirs["error"]["code"], -32001, "{theirs}");
    Ok(())
}

#[tokio::test]
async fn unknown_cursor_of_timeline_is_refused() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::http(&hub);
    let task = send(&client, "echo", "hello").await?;
    for cursor in ["x", "7", "-1@2026", "1@now"] {
        let params = json!({ "id": task["id"], "cursor": cursor });
        let refused = client.call("hub/tasks/timeline", params).await.err();
        assert_eq!(refused.and_then(|why| why.code()), Some(-32602), "{cursor}");
    }
    let beyond = json!({ "id": task["id"], "cursor": "999@2026-01-01T00:00:00.000Z" });
    assert_eq!(client.call("hub/tasks/timeline", beyond).await?["entries"], json!([]));
    Ok(())
}
