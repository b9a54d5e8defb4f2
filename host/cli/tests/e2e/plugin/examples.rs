//! Tests of the programs under `examples/`, run as a reader would run them.

use crate::stage::GRANT;
use a2a_hub_tests::{TestHub, test_guests};
use anyhow::{Context as _, Result, ensure};
use std::{path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    time::timeout,
};

/// Timeout of an unoptimised hub, which starts in two seconds, and compiles its agents in twenty if
/// they are not cached.
const WITHIN: Duration = Duration::from_secs(60);

#[tokio::test]
async fn rust_client_example_prints_stream() -> Result<()> {
    let hub = TestHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await?;
    let url = format!("http://{}/agents/guest", hub.http());
    let told = output(example("client").args([&url, "flood", "2"])).await?;
    let (first, rest) = told.split_once('\n').context(told.clone())?;
    ensure!(first.starts_with("task ") && first.ends_with(" is submitted"), "{told}");
    ensure!(rest == "working: \n1\n\n2\n\ncompleted: 2 pieces\n", "{told}");
    Ok(())
}

/// Calls the hub inside its own program, and over HTTP with the other example.
#[tokio::test]
async fn embedded_hub_example_serves_function() -> Result<()> {
    let mut program = example("embedded");
    let spawned = program.arg("0").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut embedded = spawned.spawn()?;
    let mut lines = BufReader::new(embedded.stdout.take().context("no output")?).lines();
    let mut line = async || timeout(WITHIN, lines.next_line()).await??.context("it ended");
    ensure!(line().await? == "completed: HELLO");
    let url = line().await?;
    let told = output(example("client").args([&url, "over", "there"])).await?;
    let expected = "working: taking a deep breath\ncompleted: OVER THERE\n";
    ensure!(told.ends_with(expected), "{told}");
    drop(embedded.stdin.take());
    ensure!(timeout(WITHIN, embedded.wait()).await??.success(), "it goes down with its input");
    Ok(())
}

/// Expects the output from the specification of L-A2A, and two additional updates of the hub.
#[tokio::test]
async fn in_process_example_matches_specification() -> Result<()> {
    let told = output(&mut example("in_process")).await?;
    let lines: Vec<_> = told.lines().collect();
    ensure!(
        lines
            == [
                r#"Received update: {"status":"pending"}"#,
                r#"Received update: {"status":"running"}"#,
                r#"Received update: {"artifacts":[{"data":"processed data"}],"status":"running"}"#,
                r#"Received update: {"artifacts":[{"data":"processed data"}],"message":"Task completed","status":"completed"}"#,
                r#"Final response: {"id":1,"jsonrpc":"2.0","result":"Task completed"}"#,
            ],
        "{told}"
    );
    Ok(())
}

/// Cargo builds examples next to the program of these tests.
#[expect(clippy::disallowed_methods, reason = "an example is a program that a reader starts")]
pub(crate) fn example(name: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_a2a-hub"));
    Command::new(program.with_file_name("examples").join(name))
}

pub(crate) async fn output(command: &mut Command) -> Result<String> {
    let done = timeout(WITHIN, command.kill_on_drop(true).output()).await??;
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    ensure!(done.status.success(), "{told}{}", String::from_utf8_lossy(&done.stderr));
    Ok(told)
}
