//! Tests of progress, suggested fixes and questions without text on the command line.

use crate::{command_line::run, stage::hub_with_guest};
use anyhow::{Context as _, Result};
use serde_json::Value;

#[tokio::test]
async fn send_shows_progress_and_fix() -> Result<()> {
    let hub = hub_with_guest().await?;
    let ran = run(&hub, &["send", "guest", "progress", "--stream"]).await?;
    assert_eq!(ran.code, Some(1));
    let shown = "· 40 % · compiles\n· 80 %\nnobody is logged in\nfix: guest login\n";
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", shown));
    let ran = run(&hub, &["--format", "json", "send", "guest", "progress"]).await?;
    let told: Value = serde_json::from_str(&ran.stdout)?;
    assert_eq!(told["metadata"]["fix"], "guest login", "{told:#}");
    assert_eq!(told["metadata"]["progress"]["percent"], 80, "{told:#}");
    Ok(())
}

#[tokio::test]
async fn question_without_text_is_explained() -> Result<()> {
    let hub = hub_with_guest().await?;
    let ran = run(&hub, &["send", "guest", "ask-silently"]).await?;
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("but sent no question"), "{}", ran.stderr);
    let socket = hub.socket().display().to_string();
    let way = &*format!("answer with: a2a-hub --socket {socket} task answer ");
    let task = ran.stderr.split(way).nth(1).and_then(|rest| rest.split(' ').next());
    let task = task.with_context(|| ran.stderr.clone())?;
    let shown = run(&hub, &["task", "show", task]).await?.stdout;
    let answer = format!("{way}{task} --question ");
    assert!(shown.trim_end().ends_with("\"...\"") && shown.contains(&answer), "{shown}");
    let answered = run(&hub, &["task", "answer", task, "fine"]).await?;
    assert_eq!((answered.code, answered.stdout.trim()), (Some(0), "fine"), "{}", answered.stderr);
    let again = run(&hub, &["task", "answer", task, "fine"]).await?;
    assert_eq!(again.code, Some(2), "{}", again.stdout);
    assert!(again.stderr.contains("it asks nothing, its state is completed"), "{}", again.stderr);
    Ok(())
}
