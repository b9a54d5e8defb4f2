//! Idle connections: however many connections one caller holds, others are served, and the operator
//! always is.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, said, send},
};
use a2a_hub_tests::{Client, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Script that opens `sys.argv[2]` connections to the unix socket or HTTP port `sys.argv[1]`.
/// Prints the number of connections that stay open, and the hub's message to the last refused one.
/// With a third argument, each connection starts an MCP session before the next one is opened;
/// otherwise the script waits until the agent is within its limit on connections, for at most 30
/// seconds.
const HOLD: &str = r#"
import json, socket, sys, time
at, count, talks = sys.argv[1], int(sys.argv[2]), len(sys.argv) > 3
def connect():
    if ':' in at:
        host, port = at.rsplit(':', 1)
        return socket.create_connection((host, int(port)))
    one = socket.socket(socket.AF_UNIX); one.connect(at)
    return one
def talk(one, n):
    ask = dict(jsonrpc='2.0', id=n, method='hub/speak', params=dict(protocol='mcp'))
    one.settimeout(30)
    try: one.sendall(json.dumps(ask).encode() + b'\n')
    except OSError: pass
    return one.recv(4096)
def is_open(one):
    one.setblocking(False)
    try: return bool(one.recv(4096))
    except BlockingIOError: return True
    except OSError: return False
held, told = [], b''
for n in range(count):
    one = connect()
    heard = talk(one, n) if talks else b''
    if talks and b'"result"' not in heard: told = heard
    else: held.append(one)
until = time.monotonic() + 30
while True:
    held = [one for one in held if is_open(one)]
    if talks or len(held) <= 128 or time.monotonic() > until: break
    time.sleep(.1)
print(len(held), told.decode().strip()[:400])
"#;

/// Starts a hub whose agent `holder` runs unconfined programs and may call others: its programs
/// reach every endpoint.
async fn hub() -> Result<(InProcessHub, PathBuf)> {
    let holder = "
        [agents.holder]
        confine = false
        grant.process.sh = {}
        grant.delegate = ['echo']
    ";
    let builder = InProcessHub::builder().config(format!("{GRANT}{holder}"));
    let hub = builder.plugin("holder", test_guests()?).start().await?;
    let script = hub.workspace().join("hold.py");
    fs::write(&script, HOLD)?;
    Ok((hub, script))
}

/// Runs [`HOLD`] with these arguments in a program of an agent, and returns its output: the number
/// of open connections, and the hub's message.
async fn held(hub: &InProcessHub, script: &Path, arguments: &str) -> Result<(u32, String)> {
    let hold = format!("sh ulimit -Sn 1000; python3 -I {} {arguments}", script.display());
    let task = send(&Client::unix(hub), "holder", &hold).await?;
    let text = artifact(&task);
    let (left, told) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    Ok((left.parse().with_context(|| task.to_string())?, told.to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_idle_connections_give_way_on_every_endpoint() -> Result<()> {
    let (hub, script) = hub().await?;
    for at in [hub.socket().display().to_string(), hub.http().to_owned()] {
        let (left, _) = held(&hub, &script, &format!("{at} 400")).await?;
        ensure!((1..=128).contains(&left), "{at}: {left} of 400 are open");
        assert_eq!(said(&send(&Client::unix(&hub), "echo", "still here").await?), "still here");
        assert_eq!(said(&send(&Client::http(&hub), "echo", "still here").await?), "still here");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_busy_connections_are_refused_beyond_their_share() -> Result<()> {
    let (hub, script) = hub().await?;
    let (left, told) = held(&hub, &script, &format!("{} 200 talk", hub.socket().display())).await?;
    assert_eq!(left, 128);
    let told: Value = serde_json::from_str(&told)?;
    let why = told["error"]["message"].as_str().unwrap_or_default();
    let expected = "the programs of the agent `holder` hold as many connections as they may (128)";
    ensure!(why.starts_with(expected), "{told}");
    let pong = Client::unix(&hub).call("hub/ping", json!({})).await?;
    ensure!(pong["version"].is_string(), "{pong}");
    Ok(())
}
