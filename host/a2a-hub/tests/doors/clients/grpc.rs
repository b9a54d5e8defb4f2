//! Tests of official A2A over gRPC, in both versions: every operation, streams, errors, and access.

use crate::stage::{bearer, eventually_async, hub_with_guest};
use a2a_hub_protocol::id::MessageId;
use a2a_hub_tests::{GrpcClient, RpcError};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Message of 1.0 for the agent `guest`.
fn v1(text: &str) -> Value {
    let parts = json!([{ "text": text }]);
    json!({"tenant": "guest", "message": {"messageId": MessageId::fresh(), "role": "ROLE_USER", "parts": parts}})
}

/// Message of 0.3, which names its agent in its metadata.
fn v03(text: &str) -> Value {
    let content = json!([{ "text": text }]);
    let message = json!({"messageId": MessageId::fresh(), "role": "ROLE_USER", "content": content});
    json!({"message": message, "configuration": {"blocking": true}, "metadata": {"targetAgent": "guest"}})
}

/// Returns the code and the reason of an error.
fn refusal<T: std::fmt::Debug>(answer: Result<T, RpcError>) -> Result<(i64, String)> {
    match answer {
        Err(RpcError::Refused { code, data, .. }) => {
            Ok((code, data[0]["reason"].as_str().unwrap_or_default().to_owned()))
        }
        other => anyhow::bail!("no refusal: {other:?}"),
    }
}

/// Returns the kinds of a stream's responses.
fn kinds(told: &[Value]) -> Vec<&str> {
    let members = told.iter().filter_map(|told| told.as_object()?.keys().next());
    members.map(String::as_str).collect()
}

#[tokio::test]
async fn v1_operations_are_supported() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = GrpcClient::v1(&hub)?;
    let call = async |method, params| guest.call(method, params).await.map(|(answer, _)| answer);

    let sent = call("SendMessage", v1("flood 2")).await?;
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let done = sent["task"]["id"].clone();
    let reply = call("SendMessage", v1("reply hi")).await?;
    assert_eq!(reply["message"]["parts"], json!([{"text": "hi"}]));

    let told = guest.stream("SendStreamingMessage", v1("flood 1")).await?;
    assert_eq!(told[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    assert!(kinds(&told).contains(&"artifactUpdate"), "{told:?}");
    let last = told.last().context("no end")?;
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");

    let task = call("SendMessage", v1("ask")).await?["task"]["id"].take();
    let named = json!({"tenant": "guest", "id": task, "historyLength": 0});
    let shown = call("GetTask", named).await?;
    assert_eq!(shown["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(shown.get("history"), None);
    let page = json!({"tenant": "guest", "pageSize": 1, "status": "TASK_STATE_INPUT_REQUIRED"});
    let page = call("ListTasks", page).await?;
    assert_eq!((&page["tasks"][0]["id"], &page["totalSize"]), (&task, &json!(1)));
    let config = json!({"tenant": "guest", "taskId": task, "id": "c", "url": "http://127.0.0.1:9/news",
        "token": "t", "authentication": {"scheme": "Bearer", "credentials": "s"}});
    assert_eq!(call("CreateTaskPushNotificationConfig", config.clone()).await?, config);
    let one = json!({"tenant": "guest", "taskId": task, "id": "c"});
    assert_eq!(call("GetTaskPushNotificationConfig", one.clone()).await?, config);
    let all = json!({"tenant": "guest", "taskId": task});
    let listed = call("ListTaskPushNotificationConfigs", all.clone()).await?;
    assert_eq!(listed["configs"], json!([config]));
    assert_eq!(call("DeleteTaskPushNotificationConfig", one).await?, json!({}));
    assert_eq!(call("ListTaskPushNotificationConfigs", all).await?, json!({}));

    let cancel = async {
        sleep(Duration::from_millis(300)).await;
        call("CancelTask", json!({ "id": task })).await
    };
    let listen = guest.stream("SubscribeToTask", json!({ "id": task }));
    let (told, canceled) = tokio::join!(listen, cancel);
    assert_eq!(canceled?["status"]["state"], "TASK_STATE_CANCELED");
    let told = told?;
    assert_eq!(told[0]["task"]["id"], task);
    let last = told.last().context("no end")?;
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_CANCELED");
    let known = GrpcClient::v1(&hub)?.with("authorization", &bearer(&hub)?)?;
    let (card, _) = known.call("GetExtendedAgentCard", json!({"tenant": "guest"})).await?;
    assert_eq!(card["name"], "test-guests");
    let url = format!("http://{}/agents/guest", hub.http());
    assert_eq!(card["supportedInterfaces"][0]["url"], url);
    let unknown = refusal(guest.call("GetExtendedAgentCard", json!({"tenant": "guest"})).await)?;
    assert_eq!(unknown, (9, "UNSUPPORTED_OPERATION".to_owned()), "it has not shown who it is");

    let elsewhere = call("GetTask", json!({"tenant": "echo", "id": done})).await;
    assert_eq!(refusal(elsewhere)?, (5, "TASK_NOT_FOUND".to_owned()), "another agent's task");
    Ok(())
}

#[tokio::test]
async fn v03_operations_are_supported() -> Result<()> {
    let hub = hub_with_guest().await?;
    let old = GrpcClient::v03(&hub)?;
    let call = async |method, params| old.call(method, params).await.map(|(answer, _)| answer);

    let sent = call("SendMessage", v03("flood 2")).await?;
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let reply = call("SendMessage", v03("reply hi")).await?;
    assert_eq!(reply["message"]["content"], json!([{"text": "hi"}]));
    let told = old.stream("SendStreamingMessage", v03("flood 1")).await?;
    let last = &told.last().context("no end")?["statusUpdate"];
    assert_eq!(
        (&last["status"]["state"], &last["final"]),
        (&json!("TASK_STATE_COMPLETED"), &json!(true))
    );

    let id = call("SendMessage", v03("ask")).await?["task"]["id"].take();
    let id = id.as_str().context("no id")?;
    let name = format!("tasks/{id}");
    let shown = call("GetTask", json!({ "name": name })).await?;
    assert_eq!(shown["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let told = old.stream("TaskSubscription", json!({ "name": name })).await?;
    assert_eq!(told[0]["task"]["id"], id);

    let config = format!("{name}/pushNotificationConfigs/c");
    let push = json!({"url": "http://127.0.0.1:9/news", "authentication": {"schemes": ["Bearer"], "credentials": "s"}});
    let set = json!({"parent": name, "configId": "c", "config": {"name": config, "pushNotificationConfig": push}});
    let set = call("CreateTaskPushNotificationConfig", set).await?;
    assert_eq!((&set["name"], &set["pushNotificationConfig"]["id"]), (&json!(config), &json!("c")));
    assert_eq!(call("GetTaskPushNotificationConfig", json!({ "name": config })).await?, set);
    let listed = call("ListTaskPushNotificationConfig", json!({ "parent": name })).await?;
    assert_eq!(listed["configs"], json!([set]));
    assert_eq!(
        call("DeleteTaskPushNotificationConfig", json!({ "name": config })).await?,
        json!({})
    );

    let canceled = call("CancelTask", json!({ "name": name })).await?;
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELLED");
    let again = call("CancelTask", json!({ "name": name })).await;
    assert_eq!(refusal(again)?, (9, "TASK_NOT_CANCELABLE".to_owned()));
    let known = GrpcClient::v03(&hub)?.with("authorization", &bearer(&hub)?)?;
    let (card, _) = known.call("GetAgentCard", json!({})).await?;
    assert_eq!(
        (&card["protocolVersion"], &card["preferredTransport"]),
        (&json!("0.3.0"), &json!("JSONRPC"))
    );
    Ok(())
}

#[tokio::test]
async fn errors_have_codes_and_details() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = GrpcClient::v1(&hub)?;
    let refused =
        async |client: &GrpcClient, method, params| refusal(client.call(method, params).await);

    let unknown = refused(&guest, "GetTask", json!({"id": "x"})).await?;
    assert_eq!(unknown, (5, "TASK_NOT_FOUND".to_owned()));
    let mut nobody = v1("hi");
    nobody["tenant"] = json!("nobody");
    assert_eq!(refused(&guest, "SendMessage", nobody).await?, (5, "AGENT_NOT_FOUND".to_owned()));
    let early = refusal(guest.stream("SubscribeToTask", json!({"id": "x"})).await)?;
    assert_eq!(early, (5, "TASK_NOT_FOUND".to_owned()));
    let future = GrpcClient::v1(&hub)?.with("a2a-version", "99.0")?;
    let version = refused(&future, "SendMessage", v1("hi")).await?;
    assert_eq!(version, (9, "VERSION_NOT_SUPPORTED".to_owned()));

    let mut empty = v1("");
    empty["message"]["parts"] = json!([]);
    let Err(RpcError::Refused { code, data, .. }) = guest.call("SendMessage", empty).await else {
        anyhow::bail!("a message without parts was taken");
    };
    assert_eq!((code, &data[1]["fieldViolations"][0]["field"]), (3, &json!("message.parts")));
    let large = v1(&"x".repeat(9 << 20));
    assert_eq!(refused(&guest, "SendMessage", large).await?, (3, "INVALID_REQUEST".to_owned()));
    Ok(())
}

#[tokio::test]
async fn extensions_are_activated_by_metadata() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = GrpcClient::v1(&hub)?.with("a2a-extensions", "urn:unknown, urn:a2a-hub:test")?;
    let (_, headers) = guest.call("SendMessage", v1("reply hi")).await?;
    assert_eq!(headers["a2a-extensions"], "urn:a2a-hub:test");
    Ok(())
}

#[tokio::test]
async fn grpc_rejects_web_pages_like_http() -> Result<()> {
    let hub = hub_with_guest().await?;
    // A foreign host name, in addition to the authority that every call has.
    for (name, value) in [("host", "evil.example"), ("origin", "http://evil.example")] {
        let page = GrpcClient::v1(&hub)?.with(name, value)?;
        let Err(RpcError::Refused { code, .. }) = page.call("SendMessage", v1("hi")).await else {
            anyhow::bail!("{name}: {value} was let in");
        };
        assert_eq!(code, 7, "{name}");
    }
    let url = format!("http://{}/lf.a2a.v1.A2AService/GetTask", hub.http());
    let post = |media: &'static str| {
        reqwest::Client::new().post(&url).header("content-type", media).body("{}").send()
    };
    assert_eq!(post("application/json").await?.status(), 415, "it is no gRPC");
    assert_eq!(post("text/plain").await?.status(), 415, "a web page may send it");
    Ok(())
}

/// Covers clients that rely on the server to enforce their deadline.
#[tokio::test]
async fn call_deadline_ends_call_not_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let hurried = GrpcClient::v1(&hub)?.with("grpc-timeout", "400m")?;
    let working = || v1("sh sleep 1; echo done");
    for refused in [
        hurried.call("SendMessage", working()).await.map(drop),
        hurried.stream("SendStreamingMessage", working()).await.map(drop),
    ] {
        let Err(RpcError::Refused { code, message, .. }) = refused else {
            anyhow::bail!("no refusal: {refused:?}");
        };
        assert_eq!(code, 4, "DEADLINE_EXCEEDED: {message}");
        assert!(message.contains("grpc-timeout"), "{message}");
    }
    let guest = GrpcClient::v1(&hub)?.with("grpc-timeout", "60S")?;
    let both_are_done = async || {
        let done = json!({ "status": "TASK_STATE_COMPLETED" });
        let listed = guest.call("ListTasks", done).await;
        listed.is_ok_and(|(listed, _)| listed["tasks"].as_array().is_some_and(|all| all.len() == 2))
    };
    eventually_async(Duration::from_secs(20), both_are_done).await?;
    let malformed = GrpcClient::v1(&hub)?.with("grpc-timeout", "soon")?;
    assert_eq!(refusal(malformed.call("ListTasks", json!({})).await)?.0, 3, "INVALID_ARGUMENT");
    Ok(())
}
