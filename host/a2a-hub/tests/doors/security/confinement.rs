//! Tests of the limits of a confined program that was granted a whole shell: the table of
//! `docs/SECURITY.md`, at the level of tasks. The rows about system calls, sockets and fork bombs
//! are tested closer to the kernel, in `host/process/tests/process/confined.rs`.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, hub_with_guest, no_program_left, said, send, sh, state, stream},
};
use a2a_hub_tests::{Client, test_guests};
use anyhow::Result;
use serde_json::{Value, json};
use std::{fs, io::Write as _, time::Duration};

#[tokio::test]
async fn status_shows_confinement_tiers() -> Result<()> {
    let builder = InProcessHub::builder()
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
async fn confined_program_cannot_signal_outside_processes() -> Result<()> {
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
async fn process_tree_over_memory_is_ended() -> Result<()> {
    let config = format!("{GRANT}\n[agents.guest.confined]\nmax_memory_mb = 96");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", &test_guests()?).start().await?;
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

/// Script that tries to cancel the task `sys.argv[3]` on each of the hub's transports, and prints
/// the answers.
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
async fn confined_program_cannot_reach_hub_endpoints() -> Result<()> {
    let web = "\n[agents.web.grant.process.sh]\n[agents.web.confined]\nnetwork = true";
    let guests = test_guests()?;
    let hub = InProcessHub::builder()
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

#[tokio::test]
async fn root_directory_workspace_is_refused() -> Result<()> {
    let whole = "[agents.guest]\n    workspaces = ['/']\n";
    let config = GRANT.replace("[agents.guest]\n", whole);
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let task = send(&Client::unix(&hub), "guest", "sh echo hello").await?;
    assert!(said(&task).contains("no confined program is given all of it"), "{task}");
    Ok(())
}
