//! Tests of clients that resume the hub's event stream after a restart.

use crate::{
    hub::InProcessHub,
    stage::{listen, send},
};
use a2a_hub_tests::{
    Client, RpcError, Updates, message_to,
    tenants::{TENANTS, Web, token},
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Task and state of an event; the type of an event about no state.
fn change(event: &Value) -> (String, String) {
    let of = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let state = of("state");
    (of("taskId"), if state.is_empty() { of("type") } else { state })
}

/// Changes of tasks, with their cursors, up to the end of that task.
async fn changes(events: &mut Updates, last: &str) -> Result<Vec<(String, (String, String))>> {
    let mut changes = Vec::new();
    while let Some(event) = events.next().await {
        let event = event?;
        if !["task-created", "task-state"].contains(&event["type"].as_str().unwrap_or_default()) {
            continue;
        }
        let cursor = event["cursor"].as_str().context("no cursor")?.to_owned();
        let change = change(&event);
        let is_last = change == (last.to_owned(), "completed".to_owned());
        changes.push((cursor, change));
        if is_last {
            return Ok(changes);
        }
    }
    anyhow::bail!("the stream ended before that: {changes:?}")
}

fn id(task: &Value) -> Result<String> {
    Ok(task["id"].as_str().context("no id")?.to_owned())
}

/// A client that comes back after a restart gets every change that it missed, once and in order,
/// from whichever event it saw last, and then the changes as they happen.
#[tokio::test]
async fn client_resumes_hub_events_after_restart() -> Result<()> {
    let mut hub = InProcessHub::builder().config(TENANTS).start().await?;
    let client = Client::http(&hub);
    let mut events = listen(&client).await?;
    let start = events.last_event_id().context("no id")?.to_owned();
    let first = id(&send(&client, "echo", "one").await?)?;
    let mut all = changes(&mut events, &first).await?;
    assert_eq!(events.last_event_id(), Some(all[all.len() - 1].0.as_str()));
    drop(events);
    let missed = id(&send(&client, "echo", "two").await?)?;
    let acme = Web::of(&hub, token(&hub, "acme")?);
    acme.call("/", "message/send", message_to("echo", "theirs")).await?;
    hub.restart().await?;

    let client = Client::http(&hub);
    let later = id(&send(&client, "echo", "three").await?)?;
    let after = all[all.len() - 1].0.clone();
    let mut resumed = client.stream("hub/events", json!({ "after": after })).await?;
    all.extend(changes(&mut resumed, &later).await?);
    let live = id(&send(&client, "echo", "four").await?)?;
    all.extend(changes(&mut resumed, &live).await?);
    let seen: Vec<_> = all.iter().map(|(_, change)| change.clone()).collect();
    let wanted = [&first, &missed, &later, &live].into_iter().flat_map(|task| {
        ["task-created", "working", "completed"].map(|what| (task.clone(), what.to_owned()))
    });
    assert_eq!(seen, wanted.collect::<Vec<_>>());

    for (index, cursor) in [start].iter().chain(all.iter().map(|(cursor, _)| cursor)).enumerate() {
        if index == all.len() {
            break;
        }
        // `Last-Event-ID` as a browser sends it.
        let cursor: &'static str = cursor.clone().leak();
        let again = Client::http(&hub).header("last-event-id", cursor);
        let mut again = listen(&again).await?;
        assert_eq!(again.last_event_id(), Some(cursor), "of the event `subscribed`");
        let again = changes(&mut again, &live).await?;
        let again: Vec<_> = again.into_iter().map(|(_, change)| change).collect();
        assert_eq!(again, seen[index..], "after {cursor}");
    }
    Ok(())
}

/// A tenant's stream has no change of another tenant, also if it resumes.
#[tokio::test]
async fn resumed_events_stay_within_tenant() -> Result<()> {
    let hub = InProcessHub::builder().config(TENANTS).start().await?;
    let client = Client::http(&hub);
    let events = listen(&client).await?;
    let start = events.last_event_id().context("no id")?.to_owned();
    let acme = Web::of(&hub, token(&hub, "acme")?);
    let theirs = acme.call("/", "message/send", message_to("echo", "theirs")).await?;
    let own = id(&send(&client, "echo", "own").await?)?;
    let mut resumed = client.stream("hub/events", json!({ "after": start })).await?;
    let seen = changes(&mut resumed, &own).await?;
    assert!(seen.iter().all(|(_, (task, _))| *task == own), "{seen:?}");
    assert!(theirs["result"]["id"].is_string(), "{theirs}");
    Ok(())
}

/// A cursor that means nothing here is refused with the way out, on each transport.
#[tokio::test]
async fn unusable_cursor_is_refused_with_way_out() -> Result<()> {
    let (hub, other) = (InProcessHub::start().await?, InProcessHub::start().await?);
    let foreign = listen(&Client::http(&other)).await?;
    let foreign = foreign.last_event_id().context("no id")?;
    for client in [Client::http(&hub), Client::unix(&hub)] {
        for after in ["7", "x-7", foreign] {
            // Over the socket, the refusal is the first line of the stream.
            let refused = match client.stream("hub/events", json!({ "after": after })).await {
                Ok(mut events) => events.next().await.and_then(Result::err),
                Err(why) => Some(why),
            };
            let Some(RpcError::Refused { code, message, data }) = refused else {
                anyhow::bail!("{after}: {refused:?}")
            };
            assert_eq!((code, &data["resync"]), (-32602, &json!(true)), "{message}");
            assert!(message.contains("subscribe without `after`"), "{message}");
            let latest = json!({ "after": data["latest"] });
            drop(client.stream("hub/events", latest).await?);
        }
    }
    Ok(())
}
