//! Tests of push notifications: each arrives at least once and in order, even if the receiver or
//! the hub fails, and none goes to a forbidden address.

mod proof;
mod receivers;

use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually, hub_with_guest, send, state},
};
use a2a_hub_tests::{
    Client, Receiver,
    pushes::{SOON, answer, pushed, set, states, told},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;

/// Starts a hub with the guest and one changed setting of `push`.
async fn hub_with(setting: &str, value: impl Into<toml::Value>) -> Result<InProcessHub> {
    let mut config: toml::Table = GRANT.parse()?;
    let push = config["push"].as_table_mut().context("no settings")?;
    push.insert(setting.to_owned(), value.into());
    InProcessHub::builder().config(config.to_string()).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn notification_has_headers_and_signature() -> Result<()> {
    let (hub, receiver) = (hub_with_guest().await?, Receiver::start()?);
    let client = Client::http(&hub);
    let done = client.call("message/send", pushed("flood 3", &receiver.url("/news"))).await?;
    told(&receiver, "completed").await?;
    let came = receiver.came();
    let last = came.last().context("nothing came")?;
    assert_eq!(last.path, "/news");
    assert_eq!(last.body["id"], done["id"]);
    assert_eq!(last.body["artifacts"], done["artifacts"], "the whole task is told");
    let header = |name: &str| last.headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("x-a2a-notification-token"), Some("mine"));
    assert_eq!(header("authorization"), Some("Bearer let-me-in"));
    let ids: Vec<_> = came.iter().map(|it| it.headers.get("webhook-id").cloned()).collect();
    assert!(ids.iter().all(Option::is_some));
    assert!(header("webhook-signature").is_some_and(|signature| signature.starts_with("v1a,")));
    assert!(hub.data_dir().join("push-key.pub").is_file());
    assert!(!hub.log().contains("let-me-in"));
    Ok(())
}

/// The hub retries an event until it is delivered, and only then sends the next one.
#[tokio::test]
async fn events_are_delivered_in_order() -> Result<()> {
    let receiver = Receiver::start()?.answering(&[200, 200, 200, 503]);
    let hub = hub_with_guest().await?;
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
        "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "flood 5" }] },
        "configuration": { "taskPushNotificationConfig": { "url": receiver.url("/news") } },
    }});
    let agent = format!("http://{}/agents/guest", hub.http());
    let answer = reqwest::Client::new().post(agent).json(&request).send().await?;
    let answer: Value = serde_json::from_str(&answer.text().await?)?;
    let state = "/statusUpdate/status/state";
    let over = |event: &Value| event.pointer(state) == Some(&json!("TASK_STATE_COMPLETED"));
    eventually(SOON, || receiver.taken().iter().any(over)).await?;

    let lines = receiver.taken().into_iter().map(|event| {
        let text = event.pointer("/artifactUpdate/artifact/parts/0/text");
        let told = text.or_else(|| event.pointer(state)).or_else(|| event.pointer("/task/id"));
        told.and_then(Value::as_str).unwrap_or_default().to_owned()
    });
    let id = answer["result"]["task"]["id"].as_str().context("no task")?;
    let floods = ["1\n", "2\n", "3\n", "4\n", "5\n"];
    let wanted = [&[id, "TASK_STATE_WORKING"], &floods[..], &["TASK_STATE_COMPLETED"]].concat();
    assert_eq!(lines.collect::<Vec<_>>(), wanted);
    let kinds: Vec<_> =
        receiver.came().iter().map(|it| it.headers["content-type"].clone()).collect();
    assert!(kinds.iter().all(|kind| kind == "application/a2a+json"), "{kinds:?}");
    assert_eq!(receiver.came().len(), wanted.len() + 1, "one was refused");
    Ok(())
}

#[tokio::test]
async fn failed_delivery_is_retried_without_redirect() -> Result<()> {
    let (hub, receiver) = (hub_with_guest().await?, Receiver::start()?.answering(&[503, 302]));
    let client = Client::http(&hub);
    client.call("message/send", pushed("flood 1", &receiver.url("/news"))).await?;
    told(&receiver, "completed").await?;
    let came = receiver.came();
    assert!(came.iter().all(|it| it.path == "/news"), "{came:?}");
    let first: Vec<_> = came.iter().take(2).map(|it| it.status).collect();
    assert_eq!(first, [503, 302]);
    Ok(())
}

#[tokio::test]
async fn hanging_receiver_delays_no_other() -> Result<()> {
    let hub = hub_with_guest().await?;
    let (deaf, well) = (Receiver::start()?, Receiver::start()?);
    deaf.always(Some(0));
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "ask").await?;
    for n in 0..8 {
        set(&client, &asked, &format!("deaf-{n}"), &deaf.url("/")).await?;
    }
    set(&client, &asked, "well", &well.url("/")).await?;
    assert_eq!(state(&answer(&client, &asked, "hi").await?), "completed");
    // Before the first delivery to the hanging receiver times out.
    eventually(Duration::from_secs(5), || states(&well).contains(&"completed".to_owned())).await?;
    assert!(!deaf.came().is_empty());
    Ok(())
}

#[tokio::test]
async fn push_config_is_stored_replaced_deleted() -> Result<()> {
    let (hub, receiver) = (hub_with_guest().await?, Receiver::start()?);
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "ask").await?;
    let ask = async |method: &str, config: Option<&str>| {
        let params = json!({ "id": asked["id"], "pushNotificationConfigId": config });
        client.call(&format!("tasks/pushNotificationConfig/{method}"), params).await
    };
    set(&client, &asked, "a", &receiver.url("/old")).await?;
    let new = set(&client, &asked, "a", &receiver.url("/new")).await?;
    let other = set(&client, &asked, "b", &receiver.url("/b")).await?;
    assert_eq!(ask("get", None).await?, new, "without a name, the first");
    assert_eq!(ask("get", Some("b")).await?, other);
    assert_eq!(ask("list", None).await?, json!([new, other]));
    for _ in 0..2 {
        assert_eq!(ask("delete", Some("b")).await?, Value::Null);
    }
    let gone = ask("get", Some("b")).await.expect_err("it is deleted");
    assert_eq!(gone.code(), Some(-32001));
    answer(&client, &asked, "hi").await?;
    told(&receiver, "completed").await?;
    assert!(receiver.came().iter().all(|it| it.path == "/new"), "{:?}", receiver.came());
    Ok(())
}

#[tokio::test]
async fn untrusted_receiver_host_is_refused() -> Result<()> {
    let (hub, receiver) = (hub_with("trusted_hosts", vec!["localhost"]).await?, Receiver::start()?);
    let client = Client::http(&hub);
    let refused = client.call("message/send", pushed("flood 1", &receiver.url("/"))).await;
    assert_eq!(refused.expect_err("127.0.0.1 is not trusted").code(), Some(-32602));
    let by_name = format!("http://localhost:{}/", receiver.address().port());
    client.call("message/send", pushed("flood 1", &by_name)).await?;
    told(&receiver, "completed").await
}

#[tokio::test]
async fn gone_receiver_gets_no_retry() -> Result<()> {
    let (hub, receiver) = (hub_with_guest().await?, Receiver::start()?.answering(&[410]));
    let client = Client::http(&hub);
    client.call("message/send", pushed("flood 1", &receiver.url("/"))).await?;
    eventually(SOON, || !receiver.came().is_empty()).await?;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(receiver.came().len(), 1);
    Ok(())
}
