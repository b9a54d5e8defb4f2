//! Tests of REST in both versions, and of push configurations over both bindings.

use super::{Endpoint, events, more, v1};
use crate::stage::hub_with_guest;
use anyhow::{Context as _, Result};
use reqwest::{Method, header};
use serde_json::{Value, json};

#[tokio::test]
async fn rest_supports_both_versions() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    let (status, new) = guest.rest(Method::POST, "message:send", Some(v1("flood 2"))).await?;
    assert_eq!((status, &new["task"]["status"]["state"]), (200, &json!("TASK_STATE_COMPLETED")));
    let old = json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "reply hi"}]},
        "configuration": {"blocking": true}});
    let (_, old) = guest.rest(Method::POST, "v1/message:send", Some(old)).await?;
    assert_eq!(old["message"]["content"], json!([{"text": "hi"}]));
    let id = new["task"]["id"].as_str().context("no id")?;
    for path in [
        format!("tasks/{id}?historyLength=0"),
        format!("acme/tasks/{id}?history_length=0"),
        format!("v1/tasks/{id}"),
    ] {
        let (status, task) = guest.rest(Method::GET, &path, None).await?;
        assert_eq!((status, &task["id"]), (200, &json!(id)), "{path}");
        assert_eq!(task.get("history").is_some(), path.starts_with("v1"), "{path}");
    }
    let (_, page) = guest.rest(Method::GET, "tasks?pageSize=1&includeArtifacts=true", None).await?;
    assert_eq!((&page["totalSize"], page["tasks"].as_array().map(Vec::len)), (&json!(2), Some(1)));

    let ask = guest.ask(Method::POST, "/rest/message:stream", Some(v1("ask"))).await?;
    let told = events(ask).await?;
    let waits = told[0]["task"]["id"].as_str().context("a stream begins with its task")?;
    // A stream of 0.3 ends when the task waits for its client.
    let path = format!("/rest/v1/tasks/{waits}:subscribe");
    let told = events(guest.ask(Method::GET, &path, None).await?).await?;
    assert_eq!(told[0]["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{path}");
    let (_, canceled) =
        guest.rest(Method::POST, &format!("v1/tasks/{waits}:cancel"), Some(json!({}))).await?;
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELLED");
    let over =
        guest.ask(Method::POST, "/rest/message:stream", Some(more(&json!(waits), "x"))).await?;
    assert_eq!(over.status(), 400, "an error before the first event is a plain answer");
    assert_eq!(over.headers()[header::CONTENT_TYPE], "application/json");

    let own = Endpoint::of(&hub, "/agents/guest").with("Accept", "application/a2a+json");
    let answer = own.ask(Method::GET, &format!("/rest/tasks/{id}"), None).await?;
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/a2a+json");
    Ok(())
}

#[tokio::test]
async fn push_configs_work_in_both_versions() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    let task = guest.result("SendMessage", v1("ask")).await?["task"]["id"].take();
    let config = json!({"taskId": task, "id": "c", "url": "http://127.0.0.1:9/news", "token": "t",
        "authentication": {"scheme": "Bearer", "credentials": "s"}});
    let set = guest.result("CreateTaskPushNotificationConfig", config.clone()).await?;
    assert_eq!(set, config);
    let id = task.as_str().context("no id")?;
    let (_, listed) =
        guest.rest(Method::GET, &format!("tasks/{id}/pushNotificationConfigs"), None).await?;
    assert_eq!(listed["configs"], json!([config]));
    let (_, old) =
        guest.rest(Method::GET, &format!("v1/tasks/{id}/pushNotificationConfigs/c"), None).await?;
    assert_eq!(old["name"], json!(format!("tasks/{id}/pushNotificationConfigs/c")));
    let (_, tenant) = guest
        .rest(Method::GET, &format!("acme/tasks/{id}/pushNotificationConfigs/c"), None)
        .await?;
    assert_eq!(tenant["tenant"], "acme");
    let of_acme = json!({"taskId": task, "id": "c", "tenant": "acme"});
    assert_eq!(guest.result("GetTaskPushNotificationConfig", of_acme).await?["tenant"], "acme");
    let old = guest.result("tasks/pushNotificationConfig/get", json!({ "id": task })).await?;
    assert_eq!(old["pushNotificationConfig"]["authentication"]["schemes"], json!(["Bearer"]));

    let one = json!({"taskId": task, "id": "c"});
    assert_eq!(guest.result("DeleteTaskPushNotificationConfig", one.clone()).await?, Value::Null);
    let path = format!("tasks/{id}/pushNotificationConfigs/c");
    assert_eq!(
        guest.rest(Method::DELETE, &path, None).await?,
        (200, json!({})),
        "it is gone already"
    );
    assert_eq!(guest.refusal("GetTaskPushNotificationConfig", one).await?.0, -32001);
    let none = guest.result("ListTaskPushNotificationConfigs", json!({ "taskId": task })).await?;
    assert_eq!(none, json!({}));
    Ok(())
}
