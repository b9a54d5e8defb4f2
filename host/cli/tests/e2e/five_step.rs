//! Tests of the five-step protocol: a requesting agent discovers a specialist, submits a task, and
//! receives updates.

use crate::{
    plugin::examples::{example, output},
    stage::{GRANT, no_program_left},
};
use a2a_hub_tests::{
    ModelServer, TestHub, WebServer, example_agent,
    five_step::{Updates, behave, specialist_config},
    test_guests,
};
use anyhow::{Context as _, Result};
use std::{path::Path, time::Duration};
use tokio::process::Command;

/// Starts a hub with the specialist, a source and a model.
async fn specialist(source: &WebServer, model: Option<&ModelServer>) -> Result<TestHub> {
    let (config, agent) = (specialist_config(source, model)?, example_agent("browse-extract")?);
    TestHub::builder().config(config).plugin("browse-extract", agent).start().await
}

#[tokio::test]
async fn updates_resume_after_hub_kill() -> Result<()> {
    let mut hub = TestHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await?;
    let waits = behave(&hub, "ask").await?;
    let asked = Updates::listen(&waits, None).await?.until("input-required").await?;
    let url = behave(&hub, "count 1000").await?;
    let mut updates = Updates::listen(&url, None).await?;
    let heard = updates.until("working").await?;
    hub.kill9().await?;
    no_program_left(&hub.data_dir(), Duration::from_secs(5)).await?;
    while updates.next().await?.is_some() {}
    hub.restart().await?;
    // The restarted hub has another port; the paths stay the same.
    let here = |url: &str| {
        let path = url.split_once("/task_updates/").map(|(_, id)| id.to_owned());
        format!("http://{}/task_updates/{}", hub.http(), path.unwrap_or_default())
    };
    let rest = Updates::listen(&here(&url), Some(&heard.id)).await?.rest().await?;
    let last = rest.last().context("nothing is told of its end")?;
    assert_eq!(last.status(), "failed", "{rest:?}");
    assert!(last.data["error_message"].as_str().is_some_and(|why| why.contains("hub")), "{last:?}");
    let still = Updates::listen(&here(&waits), Some(&asked.id)).await?.next().await?;
    let still = still.context("the question is gone")?;
    assert_eq!(still.status(), "input-required");
    assert!(still.message().contains("what do you say?"), "{still:?}");
    Ok(())
}

/// Runs both requesting agents against the real specialist.
#[tokio::test]
async fn example_requesters_complete_five_steps() -> Result<()> {
    let source = WebServer::start().await?;
    let hub = specialist(&source, None).await?;
    let url = format!("http://{}/agents/browse-extract", hub.http());
    let topic = "Why is the \"sky\" blue?";
    let told = output(example("five-step").args([&url, topic])).await?;
    for wanted in [
        "1. discovered \"browse-extract\" with the skill browse_extract\n",
        "2. generated the task: {",
        "3. submitted: ",
        "100 % \"completed\"",
        "5. completed:\n",
        "Rayleigh scattering.",
        "Extracted by ranking sentences; no model is set. Sources:\n- http://127.0.0.1",
    ] {
        assert!(told.contains(wanted), "no {wanted}: {told}");
    }
    // Without an argument, the agent picks a topic; the source does not have all of them.
    let any = output(example("five-step").arg(&url)).await;
    let any = any.unwrap_or_else(|why| why.to_string());
    assert!(any.contains("2. generated the task: {") && any.contains("5. "), "{any}");

    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/five-step/requesting-agent.sh");
    #[expect(clippy::disallowed_methods, reason = "an example is a program that a reader starts")]
    let told = output(Command::new(script).args([&url, topic])).await?;
    assert!(told.contains("1. discovered http://") && told.ends_with("5. completed\n"), "{told}");
    let asked: Vec<_> = source.asked().iter().map(|asked| asked.path.clone()).collect();
    assert_eq!(asked.first(), asked.last(), "the quotes arrived: {asked:?}");
    assert!(asked[0].contains("%22sky%22"), "{asked:?}");
    Ok(())
}
