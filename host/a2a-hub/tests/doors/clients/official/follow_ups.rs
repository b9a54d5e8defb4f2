//! Tests of a second message to a running task, over each binding and version.

use super::{
    Endpoint, v1,
    ways::{Saying, say, ways},
};
use crate::stage::hub_with_guest;
use anyhow::{Context as _, Result};
use serde_json::json;

/// The official kit of 0.3 does this: it does not wait for the end, and sends another message.
#[tokio::test]
async fn running_task_accepts_message_over_bindings() -> Result<()> {
    let hub = hub_with_guest().await?;
    let guest = Endpoint::of(&hub, "/agents/guest");
    for way in ways() {
        let mut begin = v1("tick 3 200");
        begin["configuration"]["returnImmediately"] = json!(true);
        let task = guest.result("SendMessage", begin).await?["task"]["id"].take();
        let id = task.as_str().context("no id")?.to_owned();
        for live in [false, true] {
            let saying = Saying {
                agent: "guest",
                text: "flood 2",
                task: Some(id.clone()),
                live,
                ..Saying::default()
            };
            let heard = say(&hub, way, &saying).await?;
            if live {
                // The hub waited until the task ended.
                assert!(heard.is_err(), "{way:?}: {heard:?}");
            } else {
                heard.map_err(|why| anyhow::anyhow!("{way:?}: {why:?}"))?;
            }
        }
        let done = guest.result("GetTask", json!({ "id": id })).await?;
        assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{way:?}: {done}");
        let said: Vec<_> = done["history"]
            .as_array()
            .context("no history")?
            .iter()
            .map(|said| said["parts"][0]["text"].as_str().unwrap_or_default())
            .collect();
        assert_eq!(said[..2], ["tick 3 200", "flood 2"], "{way:?}");
        let artifacts = done["artifacts"].to_string();
        assert!(artifacts.contains("3\\n") && artifacts.contains("2\\n"), "{way:?}: {artifacts}");
    }
    Ok(())
}
