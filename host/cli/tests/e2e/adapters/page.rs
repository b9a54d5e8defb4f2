//! The vendors' requests for permission on the web page, in Chromium.

use super::{CLAUDE, CODEX, KEY, Stage, Vendor};
use a2a_hub_tests::{Dialogue, ModelServer, message_to};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{path::Path, process::Stdio, time::Duration};
use tokio::{process::Command, time::timeout};

/// Message whose answer is scripted, and the command that the model wants to run.
const PROMPT: &str = "why does the login test fail?";
const COMMAND: &str = "python3 -m unittest tests.test_login";

/// Time limit of the story in the browser.
const WITHIN: Duration = Duration::from_secs(90);

#[tokio::test]
async fn claude_is_answered_in_page() -> Result<()> {
    page_shows_and_answers_request(&CLAUDE).await
}

#[tokio::test]
async fn codex_is_answered_in_page() -> Result<()> {
    page_shows_and_answers_request(&CODEX).await
}

/// A program's request is shown as what it would do; a key on the page allows exactly that.
async fn page_shows_and_answers_request(vendor: &Vendor) -> Result<()> {
    let model = ModelServer::start()?.with_key(KEY).with_dialogue(Dialogue {
        prompt: PROMPT.to_owned(),
        command: COMMAND.to_owned(),
        purpose: "Run the login test".to_owned(),
        answer: "The test expects a session of an hour, and **session.py** ends it after half an hour:\n\n\
                 ```python\nLIFETIME = 30 * 60\n```\n\nEither the test or the constant is out of date."
            .to_owned(),
        pace: Duration::ZERO,
    });
    let stage = vendor.stage_of(model, vendor.path()?, Some(KEY), "").await?;
    // Codex asks only for what it would do outside of its sandbox.
    let prompt = match vendor.agent {
        "claude-code" => PROMPT.to_owned(),
        _ => (vendor.run)(COMMAND),
    };
    let mut message = message_to(vendor.agent, &prompt);
    message["configuration"] = json!({ "blocking": false });
    message["message"]["metadata"]["workingDirectory"] = json!(stage.hub.workspace());
    let task = stage.client().call("message/send", message).await?;
    let printed = answered_in_page(&stage, vendor.agent).await?;
    assert_eq!(printed["question"]["taskId"], task["id"], "{printed}");
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the browser is driven by its own program")]
async fn answered_in_page(stage: &Stage, agent: &str) -> Result<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut node = Command::new("node");
    node.arg(root.join("tests/browser/vendor.mjs"));
    node.arg("--hub").arg(format!("http://{}", stage.hub.http()));
    node.arg("--socket").arg(stage.hub.socket()).args(["--agent", agent, "--command", COMMAND]);
    node.arg("--modules").arg(root.join("target/sdks/browser"));
    node.arg("--out").arg(root.join("target/page")).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(WITHIN, node.output()).await.context("the page takes too long")??;
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&printed).with_context(|| printed.into_owned())
}
