//! Tests of a message that is sent twice, over each binding and version.

use super::ways::{Saying, say, ways};
use crate::stage::hub_with_guest;
use a2a_hub_protocol::{event::StreamResponse, id::TaskId};
use anyhow::{Context as _, Result};
use serde_json::json;

/// Id of the first task in a response, and true if the task is marked as repeated.
fn first(told: Vec<StreamResponse>) -> Result<(TaskId, bool)> {
    let Some(StreamResponse::Task(task)) = told.into_iter().next() else {
        anyhow::bail!("it does not begin with a task")
    };
    let repeated = task.metadata.as_ref().and_then(|facts| facts.get("repeated"));
    Ok((task.id.clone(), repeated == Some(&json!(true))))
}

#[tokio::test]
async fn repeated_message_returns_same_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    // All requests have one message id; each method, binding and version makes another request.
    for way in ways() {
        let send = async |live: bool, text: &'static str| {
            let saying = Saying { agent: "guest", id: Some("1"), text, live, ..Saying::default() };
            let heard = say(&hub, way, &saying).await?;
            let heard = heard.map_err(|why| anyhow::anyhow!("{way:?}: {why:?}"))?;
            Ok::<_, anyhow::Error>(heard.told)
        };
        let (task, repeated) = first(send(false, "flood 2").await?)?;
        assert!(!repeated, "{way:?}");
        let (streamed, repeated) = first(send(true, "flood 2").await?)?;
        assert!(streamed != task && !repeated, "{way:?}: another method is another request");
        for (live, task) in [(false, &task), (true, &streamed)] {
            let told = send(live, "flood 2").await?;
            let (events, again) = (told.len(), first(told)?);
            assert_eq!(again, (task.clone(), true), "{way:?} {live}");
            assert!(!live || events > 3, "a stream tells it all again");
        }
        let (other, repeated) = first(send(false, "flood 3").await?)?;
        assert!(other != task && !repeated, "{way:?}: it says something else");

        let reply = |mut told: Vec<StreamResponse>| match told.pop() {
            Some(StreamResponse::Message(message)) => Ok(message),
            Some(StreamResponse::Status { update, .. }) if update.status.message.is_some() => {
                update.status.message.context("no message")
            }
            last => Err(anyhow::anyhow!("{last:?} is no message")),
        };
        for live in [false, true] {
            let before = reply(send(live, "reply hi").await?)?;
            let again = reply(send(live, "reply hi").await?)?;
            let repeated = again.metadata.as_ref().and_then(|facts| facts.get("repeated"));
            assert_eq!(repeated, Some(&json!(true)), "{way:?} {live}");
            assert_eq!(again.message_id, before.message_id, "{way:?} {live}");
        }
    }
    let listed =
        a2a_hub_tests::Client::http(&hub).call("hub/tasks/list", json!({ "limit": 100 })).await?;
    let count = listed.as_array().context("no list")?.len();
    assert_eq!(count, 5 * ways().count(), "five tasks in each way");
    Ok(())
}
