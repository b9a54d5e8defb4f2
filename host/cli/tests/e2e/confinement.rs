//! What the program of a stranger's agent cannot do, though the operator granted it a whole shell: the table of
//! `docs/SECURITY.md`, from the height of a task. The rows about system calls, sockets and fork bombs are tried closer to the
//! kernel, in `host/process/tests/process/confined.rs`.

use crate::stage::{
    GRANT, artifact, eventually, hub_with_guest, no_program_left, said, send, state, stream,
};
use a2a_hub_tests::{Client, TestHub, message_to, processes_with_marker, test_guests};
use anyhow::Result;
use serde_json::{Value, json};
use std::{fs, io::Write as _, time::Duration};

/// What the shell of the agent `guest` prints.
async fn sh(hub: &TestHub, script: &str) -> Result<String> {
    let task = send(&Client::unix(hub), "guest", &format!("sh {script}")).await?;
    anyhow::ensure!(state(&task) == "completed", "{script}: {task}");
    Ok(artifact(&task))
}

#[tokio::test]
async fn a_granted_program_works_in_its_workspace_and_reads_no_secret() -> Result<()> {
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

#[tokio::test]
async fn the_tier_of_each_agent_is_told() -> Result<()> {
    let builder = TestHub::builder()
        .config(format!("{GRANT}\n[agents.trusted]\nconfine = false\ngrant.process.sh = {{}}"));
    let guests = test_guests()?;
    let hub = builder
        .plugin("guest", &guests)
        .plugin("trusted", &guests)
        .plugin("nothing", &guests)
        .start()
        .await?;
    let agents = Client::unix(&hub).call("hub/agents/list", json!({})).await?;
    let tier = |id: &str| {
        let found = agents.as_array().and_then(|all| all.iter().find(|agent| agent["id"] == id));
        found.map(|agent| agent["tier"].clone()).unwrap_or_default()
    };
    assert_eq!(tier("guest"), "confined");
    assert_eq!(tier("trusted"), "plain");
    assert_eq!(tier("git-historian"), "plain");
    assert_eq!(tier("nothing"), Value::Null, "it may run none");
    let task = send(
        &Client::unix(&hub),
        "trusted",
        &format!("sh head -c 4 {}", hub.data_dir().join("http-token").display()),
    )
    .await?;
    assert_eq!(artifact(&task).trim_end().len(), 4, "plain is plain: {task}");
    Ok(())
}

#[tokio::test]
async fn a_granted_program_signals_neither_hub_nor_minder_and_leaves_nobody() -> Result<()> {
    let hub = hub_with_guest().await?;
    let script = format!(
        "kill -KILL {} 2>/dev/null && echo killed the hub; kill -KILL $PPID 2>/dev/null; kill -KILL -1 2>/dev/null; \
         (setsid nohup env -i /bin/sh -c 'trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 &); echo lives",
        hub.pid()
    );
    assert_eq!(sh(&hub, &script).await?, "lives\n");
    no_program_left(&hub.data_dir(), Duration::from_secs(10)).await?;
    assert_eq!(sh(&hub, "echo again").await?, "again\n");
    Ok(())
}

#[tokio::test]
async fn whoever_takes_too_much_memory_with_all_it_started_is_ended_and_told_by_how_much()
-> Result<()> {
    let config = format!("{GRANT}\n[agents.guest.confined]\nmax_memory_mb = 96");
    let hub = TestHub::builder().config(config).plugin("guest", &test_guests()?).start().await?;
    let greedy = "import os, time\nfor _ in range(4): os.fork() or (bytearray(b\"x\" * (40 << 20)), time.sleep(1000))\ntime.sleep(1000)";
    let client = Client::unix(&hub);
    let task = send(&client, "guest", &format!("sh exec python3 -Ic '{greedy}'")).await?;
    let told = said(&task);
    assert!(told.contains("MiB of memory with all it started, and may take 96"), "{task}");
    assert!(told.contains("`agents.guest.confined.max_memory_mb`"), "{task}");
    no_program_left(&hub.data_dir(), Duration::from_secs(10)).await?;
    assert_eq!(sh(&hub, "echo again").await?, "again\n");
    Ok(())
}

/// Asks the hub to cancel the task `sys.argv[3]` at each of its doors, and prints what it was answered.
const KNOCK: &str = r#"
import json, socket, sys, urllib.request
call = json.dumps(dict(jsonrpc='2.0', id=1, method='tasks/cancel', params=dict(id=sys.argv[3])))
try:
    door = socket.socket(socket.AF_UNIX); door.connect(sys.argv[1]); door.sendall(call.encode() + b'\n')
    print('socket', door.recv(1000))
except OSError as why: print('socket no', why.errno)
try:
    ask = urllib.request.Request(sys.argv[2], call.encode(), {'Content-Type': 'application/json'})
    print('http', urllib.request.urlopen(ask, timeout=5).read())
except OSError as why: print('http no')
"#;

#[tokio::test]
async fn a_granted_program_reaches_no_door_of_the_hub() -> Result<()> {
    let web = "\n[agents.web.grant.process.sh]\n[agents.web.confined]\nnetwork = true";
    let guests = test_guests()?;
    let hub = TestHub::builder()
        .config(format!("{GRANT}{web}"))
        .plugin("guest", &guests)
        .plugin("web", &guests);
    let hub = hub.start().await?;
    let client = Client::unix(&hub);
    let (waits, _updates) = stream(&client, "guest", "ask").await?;
    let mut script = fs::File::create(hub.workspace().join("knock.py"))?;
    script.write_all(KNOCK.as_bytes())?;
    for agent in ["guest", "web"] {
        let knock = format!(
            "sh /usr/bin/python3 -I knock.py {} {} {waits}",
            hub.socket().display(),
            hub.http()
        );
        let task = send(&client, agent, &knock).await?;
        assert_eq!(artifact(&task), "socket no 2\nhttp no\n", "{agent}: {task}");
    }
    let task = client.call("tasks/get", json!({ "id": waits })).await?;
    assert_eq!(state(&task), "input-required", "nobody answered or ended it");
    Ok(())
}

/// Where its agent may call others, and nowhere else: the hub's socket and its command are among what it sees, each by itself.
#[tokio::test]
async fn a_granted_program_whose_agent_may_call_others_reaches_the_hub_as_its_task() -> Result<()> {
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

    // What lies beside the socket is not there, but for its own workspace and home, nor is the rest of the hub's data.
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

/// Others that would do for a program what it may not do itself. Where one is not installed, its row is not tried.
#[tokio::test]
async fn nobody_does_for_a_granted_program_what_it_may_not_do() -> Result<()> {
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
async fn a_hub_that_is_killed_takes_confined_programs_along() -> Result<()> {
    let mut hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let script = "sh setsid env -i /bin/sleep 600 & exec env -i /bin/sleep 600";
    let _task = client.stream("message/stream", message_to("guest", script)).await?;
    let data = hub.data_dir().canonicalize()?;
    eventually(Duration::from_secs(10), || !processes_with_marker(&data).is_empty()).await?;
    hub.kill9().await?;
    no_program_left(&data, Duration::from_secs(10)).await
}

#[tokio::test]
async fn a_workspace_that_is_the_whole_system_is_refused_with_the_way_out() -> Result<()> {
    let whole = "[agents.guest]\n    workspaces = ['/']\n";
    let config = GRANT.replace("[agents.guest]\n", whole);
    let hub = TestHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let task = send(&Client::unix(&hub), "guest", "sh echo hello").await?;
    assert!(said(&task).contains("no confined program is given all of it"), "{task}");
    Ok(())
}
