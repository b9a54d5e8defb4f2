//! Scenarios of the official compatibility kit (a2a-tck 1.0.0), each as a case over all bindings and
//! versions. A guest plays the agent that the kit expects; the id of the message selects the
//! scenario.

use super::{
    terms::written,
    ways::{Saying, say, ways},
};
use crate::{hub::InProcessHub, stage::GRANT};
use a2a_hub_tests::kit_guest;
use anyhow::{Result, anyhow};
use futures::future::try_join_all;

/// Ids of the messages, and true for a stream.
const SCENARIOS: [(&str, bool); 17] = [
    ("tck-complete-task-1", false),
    ("tck-artifact-text-1", false),
    ("tck-artifact-file-1", false),
    ("tck-artifact-file-url-1", false),
    ("tck-artifact-data-1", false),
    ("tck-message-response-1", false),
    ("tck-input-required-1", false),
    ("tck-auth-required-1", false),
    ("tck-reject-task-1", false),
    ("tck-delayed-complete-1", false),
    ("tck-stream-001-1", true),
    ("tck-stream-002-1", true),
    ("tck-stream-003-1", true),
    ("tck-stream-ordering-001-1", true),
    ("tck-stream-artifact-text-1", true),
    ("tck-stream-artifact-file-1", true),
    ("tck-stream-artifact-chunked-1", true),
];

#[tokio::test]
async fn kit_scenarios_are_same_over_bindings() -> Result<()> {
    let hub = InProcessHub::builder().config(GRANT).plugin("kit", kit_guest()?).start().await?;
    let mut told = Vec::new();
    for (id, live) in SCENARIOS {
        let heard = ways().map(async |way| {
            let saying =
                Saying { agent: "kit", id: Some(id), text: "hi", live, ..Saying::default() };
            let heard = say(&hub, way, &saying).await?;
            let heard = heard.map_err(|why| anyhow!("{way:?} {id}: {why:?}"))?;
            anyhow::Ok((way, written(heard.told)?))
        });
        // Each binding and version is another request, although all have one message id.
        let heard = try_join_all(heard).await?;
        for (way, lines) in &heard[1..] {
            assert_eq!(*lines, heard[0].1, "{way:?} {id}");
        }
        told.push(format!("{id}\n{}", heard[0].1));
    }
    insta::assert_snapshot!(told.concat(), @"");
    Ok(())
}
