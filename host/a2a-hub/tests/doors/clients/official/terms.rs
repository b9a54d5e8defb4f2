//! Tests that an SDK agent's output and input are the same over each binding and version.

use super::ways::{Binding, Heard, Saying, Version, say, ways};
use crate::{
    hub::InProcessHub,
    stage::{GRANT, hub_with_guest},
};
use a2a_hub_protocol::{
    event::{SequencedEvent, StreamResponse, TaskEvent},
    id::{ContextId, TaskId},
    v1,
};
use a2a_hub_tests::{picky_guest, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Extension that the picky guest requires.
const LOUDNESS: &str = "urn:a2a-hub:test:loudness";

/// Members that differ in each run or are missing in one version.
const MASKED: [&str; 9] = [
    "id",
    "messageId",
    "contextId",
    "taskId",
    "timestamp",
    "history",
    "referenceTaskIds",
    "name",
    "append",
];

/// Formats the responses as JSON of 1.0, one item per line.
pub(super) fn written(told: Vec<StreamResponse>) -> Result<String> {
    let event = |event| {
        let (task, context) = (TaskId::new(""), ContextId::new(""));
        v1::write_event(&SequencedEvent { task, context, seq: 0, event }).context("it is not told")
    };
    let mut lines = String::new();
    for item in told {
        let mut item = match item {
            StreamResponse::Task(task) => json!({ "task": v1::write_task(&task) }),
            StreamResponse::Message(message) => json!({ "message": v1::write_message(&message) }),
            StreamResponse::Status { update, .. } => event(TaskEvent::Status(update))?,
            StreamResponse::Artifact { update, .. } => {
                let append = update.append;
                let mut item = event(TaskEvent::Artifact(update))?;
                item["artifactUpdate"]["appended"] = json!(append);
                item
            }
        };
        mask(&mut item);
        lines += &format!("    {item}\n");
    }
    Ok(lines)
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !MASKED.contains(&name.as_str()));
            members.values_mut().for_each(mask);
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn agent_output_is_same_over_bindings() -> Result<()> {
    let hub = hub_with_guest().await?;
    let mut told = Vec::new();
    for way in ways() {
        let mut lines = String::new();
        for (text, live) in [
            ("reply hi", false),
            ("reply hi", true),
            ("parts", false),
            ("replace", true),
            ("ask", false),
            ("auth", false),
            ("reject", false),
            ("fail", false),
        ] {
            let saying = Saying { agent: "guest", text, live, ..Saying::default() };
            let heard = say(&hub, way, &saying).await?;
            let heard = heard.map_err(|why| anyhow::anyhow!("{way:?} {text}: {why:?}"))?;
            lines += &format!("{text}\n{}", written(heard.told)?);
        }
        told.push((way, lines));
    }
    for (way, lines) in &told[1..] {
        assert_eq!(*lines, told[0].1, "{way:?} tells otherwise");
    }
    insta::assert_snapshot!(told[0].1, @r#"
    reply hi
        {"message":{"parts":[{"text":"hi"}],"role":"ROLE_AGENT"}}
    reply hi
        {"task":{"status":{"state":"TASK_STATE_SUBMITTED"}}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}
        {"statusUpdate":{"status":{"message":{"parts":[{"text":"hi"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_COMPLETED"}}}
    parts
        {"task":{"artifacts":[{"artifactId":"parts","description":"one of each","extensions":["urn:a2a-hub:test"],"metadata":{"kind":"fact"},"parts":[{"text":"a text"},{"filename":"a.bin","mediaType":"application/octet-stream","raw":"AP8="},{"filename":"a.png","mediaType":"image/png","url":"https://example.com/a.png"},{"data":{"n":[1,null]},"metadata":{"kind":"fact"}}]}],"metadata":{"kind":"fact"},"status":{"message":{"extensions":["urn:a2a-hub:test"],"metadata":{"kind":"fact"},"parts":[{"text":"made them"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_COMPLETED"}}}
    replace
        {"task":{"status":{"state":"TASK_STATE_SUBMITTED"}}}
        {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}
        {"artifactUpdate":{"appended":false,"artifact":{"artifactId":"text","parts":[{"text":"a "}]}}}
        {"artifactUpdate":{"appended":true,"artifact":{"artifactId":"text","parts":[{"text":"draft"}]}}}
        {"artifactUpdate":{"appended":false,"artifact":{"artifactId":"text","parts":[{"text":"the text"}]},"lastChunk":true}}
        {"statusUpdate":{"status":{"message":{"parts":[{"text":"said it"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_COMPLETED"}}}
    ask
        {"task":{"metadata":{"question":{"kind":"input"}},"status":{"message":{"parts":[{"text":"what do you say?"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_INPUT_REQUIRED"}}}
    auth
        {"task":{"metadata":{"question":{"kind":"auth"}},"status":{"message":{"parts":[{"text":"who are you?"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_AUTH_REQUIRED"}}}
    reject
        {"task":{"status":{"message":{"parts":[{"text":"not today"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_REJECTED"}}}
    fail
        {"task":{"metadata":{"reason":"told-to"},"status":{"message":{"parts":[{"text":"failed, as told"}],"role":"ROLE_AGENT"},"state":"TASK_STATE_FAILED"}}}
    "#);
    Ok(())
}

async fn hub_with_both() -> Result<InProcessHub> {
    let builder = InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?);
    builder.plugin("picky", picky_guest()?).start().await
}

/// Code of an error over a binding: JSON-RPC, HTTP or gRPC.
fn code(binding: Binding, codes: (i64, i64, i64)) -> i64 {
    match binding {
        Binding::JsonRpc | Binding::Socket => codes.0,
        Binding::Rest => codes.1,
        Binding::Grpc => codes.2,
    }
}

/// Data in the message of an agent.
fn data(heard: Heard) -> Result<Value> {
    let Some(StreamResponse::Message(message)) = heard.told.into_iter().next() else {
        anyhow::bail!("it is no message")
    };
    Ok(v1::write_message(&message)["parts"][0]["data"].take())
}

#[tokio::test]
async fn required_extension_is_enforced_over_bindings() -> Result<()> {
    let hub = hub_with_both().await?;
    for way in ways() {
        let other = "urn:a2a-hub:test:other, urn:unknown";
        for (extensions, live) in [(None, false), (None, true), (Some(other), false)] {
            let saying =
                Saying { agent: "picky", text: "hi", extensions, live, ..Saying::default() };
            let refused =
                say(&hub, way, &saying).await?.err().with_context(|| format!("{way:?}"))?;
            let code = code(way.0, (-32008, 400, 9));
            assert_eq!(refused, (code, "EXTENSION_SUPPORT_REQUIRED".to_owned()), "{way:?}");
        }
        let named = Saying {
            agent: "picky",
            text: "hi",
            extensions: Some("urn:unknown,urn:a2a-hub:test:loudness"),
            metadata: Some(json!({ LOUDNESS: 11 })),
            ..Saying::default()
        };
        let heard =
            say(&hub, way, &named).await?.map_err(|why| anyhow::anyhow!("{way:?} {why:?}"))?;
        assert_eq!(heard.active.as_deref(), Some(LOUDNESS), "{way:?}");
        let terms = data(heard)?;
        assert_eq!(
            (&terms["active"], &terms["loudness"]),
            (&json!([LOUDNESS]), &json!(11)),
            "{way:?}"
        );
        let live = Saying { live: true, ..named };
        let heard =
            say(&hub, way, &live).await?.map_err(|why| anyhow::anyhow!("{way:?} {why:?}"))?;
        assert_eq!(heard.active.is_some(), way.0 != Binding::Grpc, "{way:?}");
        assert_eq!(data(heard)?["active"], json!([LOUDNESS]), "{way:?}");
    }
    Ok(())
}

/// The extensions and modes of an answer replace those of the first message.
#[tokio::test]
async fn answer_replaces_extensions_and_modes() -> Result<()> {
    let hub = hub_with_both().await?;
    let way = (Binding::JsonRpc, Version::V1);
    let ask = Saying {
        agent: "picky",
        text: "ask",
        extensions: Some("urn:a2a-hub:test:loudness"),
        ..Saying::default()
    };
    let asked = say(&hub, way, &ask).await?.map_err(|why| anyhow::anyhow!("{why:?}"))?;
    let Some(StreamResponse::Task(task)) = asked.told.into_iter().next() else {
        anyhow::bail!("no task")
    };
    let unnamed = Saying { task: Some(task.id.to_string()), extensions: None, ..ask };
    let refused = say(&hub, way, &unnamed).await?.err().context("it was taken")?;
    assert_eq!(refused.0, -32008);
    let answer = Saying {
        extensions: Some("urn:a2a-hub:test:other,urn:a2a-hub:test:loudness"),
        output_modes: vec!["image/*"],
        ..unnamed
    };
    let heard = say(&hub, way, &answer).await?.map_err(|why| anyhow::anyhow!("{why:?}"))?;
    let terms = data(heard)?;
    assert_eq!(terms["active"], json!(["urn:a2a-hub:test:other", LOUDNESS]));
    assert_eq!((&terms["modes"], &terms["picture"]), (&json!(["image/*"]), &json!(true)));
    Ok(())
}

/// The client's extensions and output modes reach a remote agent.
#[tokio::test]
async fn extensions_and_modes_reach_remote_agent() -> Result<()> {
    let far = hub_with_both().await?;
    let remote = format!("[remote.picky]\nurl = 'http://{}/agents/picky'\n", far.http());
    let near = InProcessHub::builder().config(remote).start().await?;
    let saying = Saying {
        agent: "picky",
        text: "hi",
        extensions: Some(LOUDNESS),
        output_modes: vec!["text/plain"],
        ..Saying::default()
    };
    for way in ways() {
        let heard =
            say(&near, way, &saying).await?.map_err(|why| anyhow::anyhow!("{way:?} {why:?}"))?;
        let terms = data(heard)?;
        let wanted = (&json!([LOUDNESS]), &json!(["text/plain"]));
        assert_eq!((&terms["active"], &terms["modes"]), wanted, "{way:?}");
        let unnamed = Saying { extensions: None, ..saying.clone() };
        let refused = say(&near, way, &unnamed).await?.err().context("it was taken")?;
        assert_eq!(refused.1, "EXTENSION_SUPPORT_REQUIRED", "{way:?}");
    }
    Ok(())
}

#[tokio::test]
async fn media_types_are_enforced_over_bindings() -> Result<()> {
    let hub = hub_with_both().await?;
    for way in ways() {
        let plain = Saying {
            agent: "picky",
            text: "hi",
            extensions: Some("urn:a2a-hub:test:loudness"),
            ..Saying::default()
        };
        for live in [false, true] {
            let film = Saying { file: Some("video/mp4"), live, ..plain.clone() };
            let refused = say(&hub, way, &film).await?.err().with_context(|| format!("{way:?}"))?;
            let code = code(way.0, (-32005, 400, 3));
            assert_eq!(refused, (code, "CONTENT_TYPE_NOT_SUPPORTED".to_owned()), "{way:?}");
        }
        let picture = Saying { file: Some("image/png"), ..plain.clone() };
        let heard =
            say(&hub, way, &picture).await?.map_err(|why| anyhow::anyhow!("{way:?} {why:?}"))?;
        let terms = data(heard)?;
        assert_eq!((&terms["modes"], &terms["picture"]), (&json!([]), &json!(true)), "{way:?}");
        let text_only = Saying { output_modes: vec!["text/plain"], ..plain };
        let heard =
            say(&hub, way, &text_only).await?.map_err(|why| anyhow::anyhow!("{way:?} {why:?}"))?;
        let terms = data(heard)?;
        let wanted = (&json!(["text/plain"]), &json!(false));
        assert_eq!((&terms["modes"], &terms["picture"]), wanted, "{way:?}");
    }
    Ok(())
}
