//! Tests of a client's view of the past: its tasks, its conversations, and resumed streams.

use crate::stage::{hub_with_guest, send, state, stream, until};
use a2a_hub_tests::{Client, RpcError, message_to};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// Sends a text to the guest, as part of a conversation.
async fn say(client: &Client, context: &str, text: &str) -> Result<Value> {
    let mut message = message_to("guest", text);
    message["message"]["contextId"] = json!(context);
    Ok(client.call("message/send", message).await?)
}

/// Returns one member of each element.
fn each<'a>(list: &'a Value, member: &str) -> Vec<&'a str> {
    let elements = list.as_array().map_or(&[][..], Vec::as_slice);
    elements.iter().map(|element| element[member].as_str().unwrap_or_default()).collect()
}

#[tokio::test]
async fn tasks_are_listed_newest_first() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let mut ids = Vec::new();
    for (context, text) in [("a", "flood 2"), ("b", "fail"), ("a", "ask"), ("a", "flood 3")] {
        let task = say(&client, context, text).await?;
        ids.push(task["id"].as_str().context("no task")?.to_owned());
    }
    let list = async |params: Value| client.call("hub/tasks/list", params).await;
    let all = list(json!({})).await?;
    assert_eq!(each(&all, "id"), [&ids[3], &ids[2], &ids[1], &ids[0]]);
    assert!(all[0].get("artifacts").is_none() && all[0]["kind"] == "task", "{all}");
    let whole = list(json!({ "limit": 1, "includeArtifacts": true, "historyLength": 0 })).await?;
    assert_eq!(whole[0]["artifacts"][0]["parts"][0]["text"], "1\n2\n3\n");
    assert_eq!(whole[0]["history"], json!([]));
    let table = list(json!({ "summary": true, "limit": 2, "includeArtifacts": true })).await?;
    assert_eq!(each(&table, "request"), ["flood 3", "ask"]);
    assert!(table[0].get("workingDirectory").is_none(), "its client named none: {table}");
    for task in table.as_array().context("no list")? {
        assert!(task.get("history").is_none() && task.get("artifacts").is_none(), "{task}");
    }
    assert_eq!(table[1]["status"]["message"]["parts"].as_array().map(Vec::len), Some(1));
    let params = json!({ "contextId": "a", "state": "completed", "limit": 20, "offset": 1 });
    assert_eq!(each(&list(params).await?, "id"), [&ids[0]]);
    assert_eq!(list(json!({ "contextId": "nobody's" })).await?, json!([]));
    let Err(RpcError::Refused { code, data, .. }) = list(json!({ "limit": 0 })).await else {
        bail!("it was taken")
    };
    assert_eq!((code, &data["field"]), (-32602, &json!("limit")));
    Ok(())
}

#[tokio::test]
async fn conversations_are_listed_shown_and_deleted() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    say(&client, "a", "flood 1").await?;
    say(&client, "a", "fail").await?;
    let asked = say(&client, "b", "ask").await?;
    let listed = client.call("hub/contexts/list", json!({ "limit": 10 })).await?;
    assert_eq!(each(&listed, "id"), ["b", "a"]);
    assert_eq!((&listed[1]["taskCount"], &listed[1]["agents"]), (&json!(2), &json!(["guest"])));
    assert_eq!(
        (&listed[0]["lastState"], &listed[1]["lastState"]),
        (&json!("input-required"), &json!("failed"))
    );

    let shown = client.call("hub/contexts/get", json!({ "contextId": "a" })).await?;
    assert_eq!(each(&shown["messages"], "role"), ["user", "agent", "user", "agent"]);
    let id = json!({ "contextId": "b" });
    let Err(RpcError::Refused { code, data, message }) =
        client.call("hub/contexts/delete", id.clone()).await
    else {
        bail!("a conversation that goes on was forgotten")
    };
    assert_eq!((code, &data["taskId"]), (-32005, &asked["id"]), "{message}");
    client.call("tasks/cancel", json!({ "id": asked["id"] })).await?;
    let forgotten = client.call("hub/contexts/delete", id.clone()).await?;
    assert_eq!(forgotten, json!({ "id": "b", "deletedTasks": 1 }));
    let gone = client.call("tasks/get", json!({ "id": asked["id"] })).await;
    assert_eq!(gone.err().and_then(|why| why.code()), Some(-32001));
    for method in ["hub/contexts/delete", "hub/contexts/get"] {
        let unknown = client.call(method, id.clone()).await;
        assert_eq!(unknown.err().and_then(|why| why.code()), Some(-32008), "{method}");
    }
    Ok(())
}

#[tokio::test]
async fn resubscription_continues_lost_stream() -> Result<()> {
    let hub = hub_with_guest().await?;
    for client in [Client::http(&hub), Client::unix(&hub)] {
        let (id, mut lost) = stream(&client, "guest", "tick 8 100").await?;
        until(&mut lost, |event| event["kind"] == "artifact-update").await?;
        drop(lost);
        let again = client.stream("tasks/resubscribe", json!({ "id": id })).await?.rest().await?;
        assert_eq!((&again[0]["kind"], &again[0]["id"]), (&json!("task"), &json!(id)));
        let mut text =
            again[0]["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
        for event in again.iter().filter(|event| event["kind"] == "artifact-update") {
            text += event["artifact"]["parts"][0]["text"].as_str().unwrap_or_default();
        }
        assert_eq!(text, "1\n2\n3\n4\n5\n6\n7\n8\n", "nothing is lost, and nothing told twice");
        assert_eq!(again.last().map(state), Some("completed"));

        let over = client.stream("tasks/resubscribe", json!({ "id": id })).await?.rest().await?;
        assert_eq!((over.len(), state(&over[0])), (1, "completed"));
        let since = json!({ "id": id, "lastEventId": "1" });
        let since = client.stream("tasks/resubscribe", since).await?.rest().await?;
        assert_eq!(since.len(), 10, "working, eight ticks and the end");
        let beyond = client.call("tasks/resubscribe", json!({ "id": id, "afterSeq": 99 })).await;
        assert_eq!(beyond.err().and_then(|why| why.code()), Some(-32602));
    }
    Ok(())
}

#[tokio::test]
async fn open_question_ends_stream_answered_does_not() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let asked = send(&client, "guest", "ask").await?;
    let id = asked["id"].as_str().context("no id")?;
    let waiting = client.stream("tasks/resubscribe", json!({ "id": id })).await?.rest().await?;
    assert_eq!((waiting.len(), state(&waiting[0])), (1, "input-required"));
    let mut answer = message_to("guest", "blue");
    answer["message"]["taskId"] = json!(id);
    client.call("message/send", answer).await?;
    let all = client
        .stream("tasks/resubscribe", json!({ "id": id, "afterSeq": 0 }))
        .await?
        .rest()
        .await?;
    let states: Vec<_> = all.iter().map(state).collect();
    assert_eq!(states, ["submitted", "working", "input-required", "working", "completed"]);
    Ok(())
}
