//! Tests of a message that is sent by hand: the whole answer, its files, the conversation, and a
//! reader that leaves.

use crate::{
    command_line::{command, finish, run},
    stage::{eventually_async, get, hub_with_guest, no_program_left, state},
};
use a2a_hub_tests::{Client, TestHub};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    time::timeout,
};

async fn sent(hub: &TestHub, args: &[&str]) -> Result<Value> {
    let ran = run(hub, &[&["--format", "json"], args].concat()).await?;
    serde_json::from_str(&ran.stdout).with_context(|| format!("{}{}", ran.stdout, ran.stderr))
}

#[tokio::test]
async fn json_output_contains_every_part() -> Result<()> {
    let hub = hub_with_guest().await?;
    let told = sent(&hub, &["send", "guest", "parts", "--context", "c-1"]).await?;
    let parts = told["artifacts"][0]["parts"].as_array().context("no parts")?;
    let file = |name: &str| parts.iter().find(|part| part["file"]["name"] == name);
    assert_eq!(file("a.bin").context("no file")?["file"]["bytes"], "AP8=");
    assert_eq!(file("a.png").context("no URL")?["file"]["uri"], "https://example.com/a.png");
    let data = parts.iter().find(|part| part["kind"] == "data").context("no data")?;
    assert_eq!(data["data"], json!({ "n": [1, null] }));
    assert_eq!((&told["contextId"], &told["state"]), (&json!("c-1"), &json!("completed")));
    assert_eq!((&told["message"], &told["exit"]), (&json!("made them"), &json!(0)));
    assert_eq!(told["metadata"]["kind"], "fact");
    let streamed = sent(&hub, &["send", "guest", "flood 3"]).await?;
    assert_eq!(streamed["artifacts"][0]["parts"], json!([{ "kind": "text", "text": "1\n2\n3\n" }]));
    let shown = run(&hub, &["send", "guest", "parts"]).await?.stdout;
    assert!(shown.contains("[file a.png: https://example.com/a.png]"), "{shown}");
    assert!(shown.contains("[file a.bin, 2 bytes]"), "{shown}");
    Ok(())
}

/// An agent that makes a file, or some text, still says something at the end.
#[tokio::test]
async fn last_words_follow_artifacts() -> Result<()> {
    let hub = hub_with_guest().await?;
    for more in [&["--stream"][..], &[]] {
        let ran = run(&hub, &[&["send", "guest", "parts"], more].concat()).await?;
        assert!(ran.stdout.starts_with("a text\n[file a.bin, 2 bytes]\n"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("made them"), "a pipe gets the text only: {}", ran.stdout);
        assert_eq!(ran.stderr, "made them\n");
    }
    Ok(())
}

#[tokio::test]
async fn files_are_saved_and_nothing_is_overwritten() -> Result<()> {
    let hub = hub_with_guest().await?;
    let told = sent(&hub, &["send", "guest", "parts", "--save", "out"]).await?;
    let out = hub.workspace().join("out");
    assert_eq!(told["saved"][0], json!({ "name": "a.bin", "path": "out/a.bin", "bytes": 2 }));
    assert_eq!(told["saved"][1]["path"], Value::Null, "a URL is not fetched: {told}");
    fs::write(out.join("a.bin"), "mine")?;
    let task = told["taskId"].as_str().context("no task")?;
    let saved = run(&hub, &["task", "save", task, "out"]).await?;
    assert_eq!((saved.code, saved.stderr.as_str()), (Some(0), ""));
    let lines: Vec<_> = saved.stdout.lines().collect();
    assert_eq!(lines[0], "saved out/a-2.bin: 2 bytes, for `a.bin`");
    assert!(
        lines[1].starts_with("not saved: `a.png` is at https://example.com/a.png"),
        "{lines:?}"
    );
    assert_eq!(fs::read(out.join("a.bin"))?, b"mine");
    assert_eq!(fs::read(out.join("a-2.bin"))?, [0, 255]);
    // The answer is printed even if its files cannot be saved.
    let refused = run(&hub, &["send", "guest", "parts", "--save", "out/a.bin"]).await?;
    assert_eq!((refused.code, refused.stdout.contains("a text")), (Some(2), true));
    let refused = sent(&hub, &["send", "guest", "parts", "--save", "out/a.bin"]).await?;
    assert_eq!((&refused["exit"], &refused["state"]), (&json!(2), &json!("completed")));
    assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("out/a.bin")));
    Ok(())
}

#[tokio::test]
async fn continue_resumes_latest_directory_conversation() -> Result<()> {
    let hub = hub_with_guest().await?;
    let refused = run(&hub, &["send", "guest", "history", "--continue"]).await?;
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("leave out `--continue`"), "{}", refused.stderr);
    fs::create_dir(hub.workspace().join("other"))?;
    let first = sent(&hub, &["send", "guest", "flood 1"]).await?;
    sent(&hub, &["send", "guest", "flood 1", "--cwd", "other"]).await?;
    sent(&hub, &["send", "echo", "hi"]).await?;
    let on = sent(&hub, &["send", "guest", "history", "--continue"]).await?;
    assert_eq!(on["contextId"], first["contextId"], "{on}");
    assert!(on["message"].as_str().is_some_and(|said| said.contains("flood 1")), "{on}");
    Ok(())
}

#[tokio::test]
async fn answer_leaves_task_in_its_directory() -> Result<()> {
    let hub = hub_with_guest().await?;
    let asked = sent(&hub, &["send", "guest", "ask which one?"]).await?;
    let task = asked["taskId"].as_str().context("no task")?;
    let other = hub.workspace().join("other");
    fs::create_dir(&other)?;
    let mut answer =
        command(hub.socket(), &hub.home(), &["send", "guest", "--task", task, "blue"])?;
    answer.current_dir(&other);
    let answered = finish(answer).await?;
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
    let latest: Value =
        serde_json::from_str(&run(&hub, &["--format", "json", "task", "show"]).await?.stdout)?;
    assert_eq!(latest["id"], task, "the latest task of this directory");
    Ok(())
}

#[tokio::test]
async fn an_empty_message_is_refused() -> Result<()> {
    let hub = hub_with_guest().await?;
    for empty in ["", " \n\t"] {
        let ran = run(&hub, &["send", "echo", empty]).await?;
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("the message is empty; give a text"), "{}", ran.stderr);
    }
    fs::write(hub.workspace().join("notes.md"), "hello")?;
    let told = sent(&hub, &["send", "echo", "", "--file", "notes.md"]).await?;
    assert_eq!(told["exit"], 0, "{told}");
    Ok(())
}

/// JSON is UTF-8; a path need not be.
#[tokio::test]
async fn non_utf8_directory_is_refused() -> Result<()> {
    let hub = hub_with_guest().await?;
    let dir = hub.workspace().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&dir)?;
    let mut send = command(hub.socket(), &hub.home(), &["send", "echo", "hello"])?;
    send.current_dir(&dir);
    let ran = finish(send).await?;
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("its path is not UTF-8"), "{}", ran.stderr);
    Ok(())
}

/// `send ... | head`: also while the agent is silent, so that no write can fail.
#[tokio::test]
async fn closed_output_cancels_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    for (asked, args) in [
        ("sh echo begun; sleep 600", &["--stream"][..]),
        ("tick 1000 20", &["--stream"]),
        ("sh sleep 600", &[]),
        ("sh sleep 601", &["--format", "json"]),
    ] {
        let words = [&["send", "guest", asked], args].concat();
        let mut command = command(hub.socket(), &hub.home(), &words)?;
        command.current_dir(hub.workspace());
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().context("no stdout")?;
        if args == ["--stream"] {
            let mut lines = BufReader::new(stdout).lines();
            assert!(timeout(Duration::from_secs(20), lines.next_line()).await??.is_some());
        } else {
            let begun = async || {
                let tasks = client.call("hub/tasks/list", json!({})).await.unwrap_or_default();
                state(&tasks[0]) == "working"
            };
            eventually_async(Duration::from_secs(20), begun).await?;
            drop(stdout);
        }
        let status = timeout(Duration::from_secs(20), child.wait()).await??;
        assert_eq!(status.code(), Some(130), "{asked}");
        let tasks = client.call("hub/tasks/list", json!({ "limit": 1 })).await?;
        assert_eq!(state(&tasks[0]), "canceled", "{asked}");
    }
    no_program_left(&hub.data_dir(), Duration::from_secs(2)).await?;
    let help = run(&hub, &["send", "--help"]).await?.stdout;
    assert!(help.contains("If the reader of the output closes it"), "{help}");
    Ok(())
}

#[tokio::test]
async fn closed_watch_leaves_task_running() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let (task, _updates) = crate::stage::stream(&client, "guest", "tick 1000 20").await?;
    let begun = async || get(&client, &task).await.is_ok_and(|task| state(&task) == "working");
    eventually_async(Duration::from_secs(20), begun).await?;
    let mut child = command(hub.socket(), &hub.home(), &["task", "watch", &task])?.spawn()?;
    drop(child.stdout.take());
    timeout(Duration::from_secs(20), child.wait()).await??;
    assert_eq!(state(&get(&client, &task).await?), "working");
    Ok(())
}
