//! Tests of the commands for flows: run, test, draw and trust.

use crate::command_line::{Ran, run as run_in};
use a2a_hub_tests::TestHub;
use anyhow::Result;
use std::fs;

const FAKES: &str = "[input]\nquestion = \"why?\"\n[answers]\ndraft = \"because\"\nreview = \"fine\"\n[expect]\ntext = \"fine\"\n";

const SCRIPT: &str = "description = \"Prints\"\n[input]\nwhat = { type = \"string\" }\n[[step]]\nid = \"print\"\nrun = [\"sh\", \"-c\", \"printf 'got %s' \\\"$A2A_INPUT_WHAT\\\"\"]\n";

/// Runs `a2a-hub` with the data directory of the hub.
async fn run(hub: &TestHub, args: &[&str]) -> Result<Ran> {
    let dir = hub.data_dir().display().to_string();
    run_in(hub, &[&["--data-dir", &dir], args].concat()).await
}

#[tokio::test]
async fn flow_is_tested_run_and_trusted() -> Result<()> {
    let hub = TestHub::builder().config("[agents.script]\nconfine = false\n").start().await?;
    run(&hub, &["flow", "new", "answer"]).await?;
    let again = run(&hub, &["flow", "new", "answer"]).await?;
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    let unknown = run(&hub, &["flow", "show", "nope"]).await?;
    assert!(unknown.stderr.contains("no flow is called `nope`"), "{}", unknown.stderr);
    let file = hub.data_dir().join("flows/answer.flow.toml").display().to_string();
    let fakes = hub.data_dir().join("fakes.toml");
    fs::write(&fakes, FAKES)?;
    let fakes = fakes.display().to_string();

    let passed = run(&hub, &["flow", "test", &file, "--with", &fakes]).await?;
    assert!(passed.stdout.contains("-> draft: echo: why?"), "{}", passed.stdout);
    assert!(passed.stdout.ends_with("The test passed.\n"), "{}", passed.stdout);
    fs::write(&fakes, FAKES.replace("text = \"fine\"", "text = \"bad\""))?;
    let failed = run(&hub, &["flow", "test", &file, "--with", &fakes]).await?;
    assert_eq!(failed.code, Some(1), "{}", failed.stdout);
    let chart = run(&hub, &["flow", "show", "answer", "--mermaid"]).await?;
    assert!(chart.stdout.contains("s0 --> s1"), "{}", chart.stdout);

    let once = run(&hub, &["run", &file, "--input", "question=hello"]).await?;
    assert!(once.stdout.contains("| hello"), "{} {}", once.stdout, once.stderr);
    hub.joined("answer").await?;
    let named = run(&hub, &["run", "answer", "hello"]).await?;
    assert_eq!(named.stdout, once.stdout);

    let script = hub.data_dir().join("flows/print.flow.toml");
    fs::write(&script, SCRIPT)?;
    let unasked = run(&hub, &["flow", "trust", "print"]).await?;
    assert_eq!(unasked.code, Some(2), "{}", unasked.stdout);
    assert!(unasked.stderr.contains("run = [\"sh\""), "it is shown: {}", unasked.stderr);
    run(&hub, &["flow", "trust", "print", "--yes"]).await?;
    hub.joined("print").await?;
    let ran = run(&hub, &["run", "print", "$(id)"]).await?;
    assert!(ran.stdout.contains("got $(id)"), "{} {}", ran.stdout, ran.stderr);

    fs::write(&script, SCRIPT.replace("got", "have"))?;
    let changed = run(&hub, &["flow", "trust", "print"]).await?;
    assert!(changed.stderr.contains("- run = ") && changed.stderr.contains("+ run = "));
    Ok(())
}
