//! Scenarios of the official compatibility kit (a2a-tck 1.0.0), each as a case over all bindings
//! and versions. A guest plays the agent that the kit expects; the id of the message selects the
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
    insta::assert_snapshot!(told.concat(), @r#"
    tck-complete-task-1
        {"task":{"status":{"message":{"parts":[{"text":"Hello from TCK"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_COMPLETED"}}}
    tck-artifact-text-1
        {"task":{"artifacts":[{"artifactId":"output","parts":[{"text":"Generated text content"}]}],"status":{"state":"TASK_STATE_COMPLETED"}}}
    tck-artifact-file-1
        {"task":{"artifacts":[{"artifactId":"output","parts":[{"filename":"output.txt","mediaType":"text/plain","raw":"dGNr"}]}],"status":{"state":"TASK_STATE_COMPLETED"}}}
    tck-artifact-file-url-1
        {"task":{"artifacts":[{"artifactId":"output","parts":[{"filename":"output.txt","mediaType":"text/plain","url":"https://example.com/output.txt"}]}],"status":{"state":"TASK_STATE_COMPLETED"}}}
    tck-artifact-data-1
        {"task":{"artifacts":[{"artifactId":"output","parts":[{"data":{"count":42,"key":"value"}}]}],"status":{"state":"TASK_STATE_COMPLETED"}}}
    tck-message-response-1
        {"message":{"parts":[{"text":"Direct message response"}],"role":"ROLE_AGENT"}}
    tck-input-required-1
        {"task":{"metadata":{"question":{"kind":"input"}},"status":{"message":{"parts":[{"text":""}],"role":"ROLE_AGENT"},"state":"TASK_STATE_INPUT_REQUIRED"}}}
    tck-auth-required-1
        {"task":{"metadata":{"question":{"kind":"auth"}},"status":{"message":{"parts":[{"text":"Authenticate, please"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_AUTH_REQUIRED"}}}
    tck-reject-task-1
        {"task":{"status":{"message":{"parts":[{"text":"rejected"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_REJECTED"}}}
    tck-delayed-complete-1
        {"task":{"status":{"message":{"parts":[{"text":"Done after delay"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_COMPLETED"}}}
    tck-stream-001-1
        {"task":{"status":{"state":"TASK_STATE_SUBMITTED"}}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}
        {"statusUpdate":{"status":{"message":{"parts":[{"text":"works"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_WORKING"}}}
        {"artifactUpdate":{"appended":false,"artifact":{"artifactId":"output","parts":[{"text":"Stream hello from TCK"}]},"lastChunk":true}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}
    tck-stream-002-1
        {"message":{"parts":[{"text":"Stream message-only response"}],"role":"ROLE_AGENT"}}
    tck-stream-003-1
        {"task":{"status":{"state":"TASK_STATE_SUBMITTED"}}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}
        {"statusUpdate":{"status":{"message":{"parts":[{"text":"works"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_WORKING"}}}
        {"artifactUpdate":{"appended":false,"artifact":{"artifactId":"output","parts":[{"text":"Stream task lifecycle"}]},"lastChunk":true}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}
    tck-stream-ordering-001-1
        {"task":{"status":{"state":"TASK_STATE_SUBMITTED"}}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}
        {"statusUpdate":{"status":{"message":{"parts":[{"text":"works"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_WORKING"}}}
        {"artifactUpdate":{"appended":false,"artifact":{"artifactId":"output","parts":[{"text":"Ordered output"}]},"lastChunk":true}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}
    tck-stream-artifact-text-1
        {"task":{"status":{"state":"TASK_STATE_SUBMITTED"}}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}
        {"statusUpdate":{"status":{"message":{"parts":[{"text":"works"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_WORKING"}}}
        {"artifactUpdate":{"appended":false,"artifact":{"artifactId":"output","parts":[{"text":"Streamed text content"}]},"lastChunk":true}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}
    tck-stream-artifact-file-1
        {"task":{"status":{"state":"TASK_STATE_SUBMITTED"}}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}
        {"statusUpdate":{"status":{"message":{"parts":[{"text":"works"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_WORKING"}}}
        {"artifactUpdate":{"appended":false,"artifact":{"artifactId":"output","parts":[{"filename":"output.txt","mediaType":"text/plain","raw":"dGNr"}]},"lastChunk":true}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}
    tck-stream-artifact-chunked-1
        {"task":{"status":{"state":"TASK_STATE_SUBMITTED"}}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}
        {"statusUpdate":{"status":{"message":{"parts":[{"text":"works"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_WORKING"}}}
        {"artifactUpdate":{"appended":false,"artifact":{"artifactId":"chunks","parts":[{"text":"chunk-1 "}]}}}
        {"artifactUpdate":{"appended":true,"artifact":{"artifactId":"chunks","parts":[{"text":"chunk-2"}]},"lastChunk":true}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}
    "#);
    Ok(())
}
