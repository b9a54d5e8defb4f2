//! Tests of the plugins folder: a dropped component becomes an agent, and an invalid file is
//! reported.

use crate::stage::{artifact, eventually, said, send};
use a2a_hub_tests::{Client, TestHub, message_to, test_guests};
use anyhow::Result;
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

/// A file exists for the programs of its task only: not after the task, and not after a crash.
#[tokio::test]
async fn task_files_are_removed_with_task() -> Result<()> {
    let mut hub = crate::stage::hub_with_guest().await?;
    let client = Client::http(&hub);
    let written = |task: &Value| PathBuf::from(said(task));
    let waiting = send(&client, "guest", "put-and-ask ../../notes.txt").await?;
    let path = written(&waiting);
    assert!(path.starts_with(hub.data_dir().join("files")) && path.ends_with("notes.txt"));
    assert_eq!(fs::read_to_string(&path)?, "kept while I wait");

    let read = send(&client, "guest", &format!("sh cat {}", path.display())).await?;
    assert!(said(&read).starts_with("exit 1"), "a program of another task sees it: {read}");
    let mut answer = message_to("guest", "thanks");
    answer["message"]["taskId"] = waiting["id"].clone();
    assert_eq!(said(&client.call("message/send", answer).await?), "thanks");
    eventually(Duration::from_secs(5), || path.parent().is_some_and(|dir| !dir.exists())).await?;

    let left = written(&send(&client, "guest", "put-and-ask left").await?);
    hub.kill9().await?;
    assert!(left.exists());
    hub.restart().await?;
    assert!(!left.exists());
    Ok(())
}

#[tokio::test]
async fn settings_reach_their_agent() -> Result<()> {
    let config = "[agents.guest]\npermissions = 'edit'\nsettings = { turns = 3 }";
    let env = ("A2A_HUB_AGENTS_GUEST_SETTINGS_MODEL", "small");
    let builder = TestHub::builder().config(config).env(env.0, env.1);
    let hub = builder.plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    for (name, value) in
        [("permissions", "edit"), ("turns", "3"), ("model", "small"), ("other", "not set")]
    {
        let told = send(&client, "guest", &format!("setting {name}")).await?;
        assert_eq!(said(&told), value, "{name}");
    }
    Ok(())
}

/// The operator sets a program's path and environment, independently of its permissions.
#[tokio::test]
async fn operator_sets_program_path_and_environment() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let shell = dir.path().join("shell");
    fs::write(&shell, "#!/bin/sh\necho placed\nexec /bin/sh \"$@\"\n")?;
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o700))?;
    let config = format!(
        "[agents.guest]\nenv = ['MY_*', 'OWN']\nprograms.sh = '{}'\ngrant.process.sh = {{}}",
        shell.display()
    );
    let builder = TestHub::builder().config(config).env("MY_WORD", "hello").env("OTHER", "x");
    let builder = builder.env("MY_TOKEN", "not-for-everybody");
    let hub = builder.plugin("guest", test_guests()?).start().await?;
    let task = send(&Client::http(&hub), "guest", "sh echo $MY_WORD $OTHER").await?;
    assert_eq!(artifact(&task), "placed\nhello\n", "{task}");
    let task = send(&Client::http(&hub), "guest", "sh echo $MY_TOKEN >&2; echo $MY_TOKEN").await?;
    assert_eq!(artifact(&task), "placed\n[redacted MY_TOKEN]\n", "{task}");
    assert_eq!(said(&task), "exit 0: [redacted MY_TOKEN]");
    Ok(())
}
