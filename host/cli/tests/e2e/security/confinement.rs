//! Tests of the limits of a confined program that was granted a whole shell: the table of
//! `docs/SECURITY.md`, at the level of tasks. The rows about system calls, sockets and fork bombs
//! are tested closer to the kernel, in `host/process/tests/process/confined.rs`.

use crate::stage::{
    GRANT, artifact, eventually, hub_with_guest, no_program_left, send, sh, stream,
};
use a2a_hub_tests::{Client, TestHub, message_to, processes_with_marker, test_guests};
use anyhow::Result;
use serde_json::json;
use std::{fs, time::Duration};

#[tokio::test]
async fn confined_program_sees_only_its_workspace() -> Result<()> {
    let hub = hub_with_guest().await?;
    let (data, home, workspace) = (hub.data_dir(), hub.home(), hub.workspace());
    fs::create_dir_all(home.join(".ssh"))?;
    fs::write(home.join(".ssh/id_ed25519"), "key")?;
    fs::create_dir_all(data.join("files/1-1/given"))?;
    fs::write(data.join("files/1-1/given/letter"), "of another task")?;
    fs::write(workspace.join("plan"), "of this one\n")?;
    assert_eq!(
        sh(&hub, "cat plan; echo done > made; pwd").await?.lines().next(),
        Some("of this one")
    );
    assert_eq!(fs::read_to_string(workspace.join("made"))?, "done\n");

    let (pid, shown) = (hub.pid(), |path: &std::path::Path| path.display().to_string());
    let secrets = [
        format!("/proc/{pid}/environ"),
        format!("/proc/{pid}/mem"),
        shown(&data.join("http-token")),
        shown(&data.join("hub.db")),
        shown(&data.join("cache")),
        shown(&data.join("plugins")),
        shown(&data.join("files/1-1/given/letter")),
        shown(&home.join(".ssh/id_ed25519")),
        "/root".to_owned(),
        "/etc/shadow".to_owned(),
        "/run".to_owned(),
    ];
    for secret in &secrets {
        assert!(
            fs::metadata(secret).is_ok() || secret.contains("mem"),
            "{secret} is not there to be read"
        );
        let read = sh(&hub, &format!("ls -d {secret} 2>/dev/null; cat {secret} 2>/dev/null; true"))
            .await?;
        assert_eq!(read, "", "{secret}");
    }
    let places =
        [data.clone(), home, data.join("plugins"), "/usr".into(), "/etc".into(), "/".into()];
    for place in &places {
        let file = place.join("a-confined-program-was-here");
        assert!(!sh(&hub, &format!("echo x > {}; true", file.display())).await?.contains("here"));
        assert!(!file.exists(), "{}", file.display());
    }
    Ok(())
}

/// Only a program whose agent may call others sees the hub's socket and command, and nothing next
/// to them.
#[tokio::test]
async fn confined_program_reaches_hub_as_task() -> Result<()> {
    let calls = GRANT.replace("    memory = true", "    memory = true\n    delegate = ['echo']");
    let guests = test_guests()?;
    let hub = TestHub::builder()
        .config(format!("{calls}\n[agents.other.grant.process.sh]"))
        .plugin("guest", &guests)
        .plugin("other", &guests);
    let hub = hub.start().await?;
    let sent = sh(&hub, "a2a-hub send echo 'hello from within' 2>&1").await?;
    assert_eq!(sent, "hello from within\n");
    let client = Client::unix(&hub);
    let (waits, _updates) = stream(&client, "guest", "ask").await?;
    for (command, why) in [
        ("status".to_owned(), "may not do this"),
        ("reload".to_owned(), "may not do this"),
        ("send codex hello".to_owned(), "delegate = [\"codex\"]"),
        (format!("task cancel {waits}"), "no task"),
    ] {
        let told = sh(&hub, &format!("a2a-hub {command} 2>&1; true")).await?;
        assert!(told.contains(why), "{command}: {told}");
    }
    let asked = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
    ];
    fs::write(hub.workspace().join("asked"), asked.map(|line| format!("{line}\n")).concat())?;
    let tools = sh(&hub, "(cat asked; sleep 2) | a2a-hub mcp").await?;
    assert!(
        tools.contains("\"name\":\"echo\"") && !tools.contains("\"name\":\"codex\""),
        "{tools}"
    );

    // Next to the socket, only the program's own workspace and home are visible; the rest of the
    // hub's data is not.
    let beside = "cd $(dirname $A2A_HUB_SOCKET); ls -A . data; cat data/http-token hub.log 2>/dev/null; true";
    let own = ".:\ndata\nhub.sock\nwork\n\ndata:\nfiles\nhomes\n";
    assert_eq!(sh(&hub, beside).await?, own);
    let written = "rm -f $A2A_HUB_SOCKET 2>/dev/null; mv $A2A_HUB_SOCKET other 2>/dev/null; \
                   echo x 2>/dev/null > $(command -v a2a-hub) && echo written; true";
    assert_eq!(sh(&hub, written).await?, "");
    assert!(hub.socket().exists());

    let script = format!(
        "sh echo [$A2A_HUB_SOCKET]; command -v a2a-hub; ls {} 2>/dev/null",
        hub.socket().display()
    );
    let other = send(&client, "other", &script).await?;
    assert_eq!(artifact(&other), "[]\n", "it may call nobody: {other}");
    Ok(())
}

#[expect(clippy::print_stdout, reason = "who reads the rows wants to know which were tried")]
fn untried(program: &str) {
    println!("untried, for it is not installed: {program}");
}

/// Helpers that could act on a program's behalf. Rows of missing programs are skipped.
#[tokio::test]
async fn helpers_cannot_bypass_confinement() -> Result<()> {
    let hub = hub_with_guest().await?;
    let file = hub.home().join("made-by-another");
    let shown = file.display();
    let rows = [
        ("systemd-run", format!("systemd-run --user --wait touch {shown}")),
        ("systemd-run", format!("systemd-run touch {shown}")),
        ("tmux", format!("tmux new-session -d 'touch {shown}'")),
        ("docker", "docker ps".to_owned()),
        ("dbus-send", "dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames".to_owned()),
        ("at", format!("echo touch {shown} | at now")),
        ("crontab", format!("echo '* * * * * touch {shown}' | crontab -")),
        ("sudo", format!("sudo -n touch {shown}")),
        ("su", format!("su -c 'touch {shown}'")),
        ("unshare", format!("unshare --user --map-root-user touch {shown}")),
        ("nsenter", format!("nsenter --target 1 --mount touch {shown}")),
        ("strace", format!("strace -f touch {shown}")),
        ("gdb", format!("gdb --batch -p {} -ex 'call system(\"touch {shown}\")'", hub.pid())),
    ];
    for (program, script) in rows {
        if sh(&hub, &format!("command -v {program} || true")).await?.is_empty() {
            untried(program);
            continue;
        }
        let done = sh(&hub, &format!("({script}) >/dev/null 2>&1 && echo done; true")).await?;
        assert!(done.is_empty() || program == "tmux", "{script}: {done}");
        assert!(!file.exists(), "{script}");
    }
    Ok(())
}

#[tokio::test]
async fn killed_hub_ends_confined_programs() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let script = "sh setsid env -i /bin/sleep 600 & exec env -i /bin/sleep 600";
    let _task = client.stream("message/stream", message_to("guest", script)).await?;
    let data = hub.data_dir().canonicalize()?;
    eventually(Duration::from_secs(10), || !processes_with_marker(&data).is_empty()).await?;
    hub.kill9().await?;
    no_program_left(&data, Duration::from_secs(10)).await
}
