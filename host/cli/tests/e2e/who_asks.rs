//! An agent's program runs as the hub's own user, and is not its operator: not on the unix socket, not over HTTP, not with the
//! token, and not by any trick that hides where its process stands.

use crate::stage::{GRANT, artifact, eventually, get, said, send, state, stream, until};
use a2a_hub_tests::{Client, TestHub, test_guests};
use anyhow::Result;
use serde_json::json;
use std::{fs, time::Duration};

/// What a program of an agent tries, by the first argument; it prints what the hub answered.
const KNOCK: &str = r#"
import array, ctypes, json, os, socket, subprocess, sys, threading, time, urllib.request

how, data, port, method, params = sys.argv[1:6]
path = data + "/a2a-hub.sock" if len(sys.argv) < 7 else sys.argv[6]
request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": json.loads(params)})


def over_unix():
    it = socket.socket(socket.AF_UNIX)
    it.connect(path)
    return it


def over_tcp():
    return socket.create_connection(("127.0.0.1", int(port)))


def http(more=""):
    return (f"POST / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(request)}\r\nconnection: close\r\n{more}\r\n{request}").encode()


def answer(it):
    it.settimeout(20)
    got = b""
    while b"\n" not in got if it.family == socket.AF_UNIX else True:
        more = it.recv(65536)
        if not more:
            break
        got += more
    return got.decode()


def ask_unix(it):
    it.sendall(request.encode() + b"\n")
    return answer(it)


if how == "unix":
    said = ask_unix(over_unix())
elif how == "http":
    it = over_tcp()
    it.sendall(http())
    said = answer(it)
elif how == "token":
    token = open(data + "/http-token").read().strip()
    it = over_tcp()
    it.sendall(http(f"authorization: Bearer {token}\r\n"))
    said = answer(it)
elif how == "in-flight":
    # Nobody has the connection open while the hub looks whose it is: it waits in a queue of this program's own.
    ours, theirs = socket.socketpair()
    it = over_tcp()
    socket.send_fds(ours, [b"x"], [it.fileno()])
    it.sendall(http())
    it.close()
    time.sleep(1)
    _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
    said = answer(socket.socket(fileno=fds[0]))
elif how == "thread":
    # A thread whose table of descriptors is its own.
    told = []

    def knock():
        ctypes.CDLL(None).unshare(0x400)
        it = over_tcp()
        it.sendall(http())
        told.append(answer(it))

    thread = threading.Thread(target=knock)
    thread.start()
    thread.join()
    said = told[0]
elif how == "heir":
    # Whoever connected is gone; its child has the connection.
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        it = over_unix()
        socket.send_fds(theirs, [b"x"], [it.fileno()])
        os._exit(0)
    os.wait()
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    said = ask_unix(socket.socket(fileno=fds[0]))
elif how == "daemon":
    # A session of its own, and no parent that lives.
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.3)
            os.write(write, ask_unix(over_unix()).encode())
        os._exit(0)
    os.wait()
    os.close(write)
    said = b"".join(iter(lambda: os.read(read, 65536), b"")).decode()
print(said.replace("\r", "").replace("\n", " "), flush=True)
"#;

/// Sheds what marks it, ends its minder, and then knocks: its answer is a file's, for nobody listens any more.
const ORPHAN: &str = "env -i PATH=\"$PATH\" setsid sh -c \
    'kill -9 '$PPID'; sleep 1; python3 knock.py unix \"$@\" > orphan.txt.new; mv orphan.txt.new orphan.txt' -";

async fn hub() -> Result<TestHub> {
    // A confined program would not come as far as to the doors.
    let plain = GRANT.replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n");
    let hub = TestHub::builder().config(plain).plugin("guest", test_guests()?).start().await?;
    fs::write(hub.workspace().join("knock.py"), KNOCK)?;
    Ok(hub)
}

/// The arguments of `knock.py` after how it does it.
fn arguments(hub: &TestHub, method: &str, params: &serde_json::Value) -> String {
    let port = hub.http().rsplit(':').next().unwrap_or_default().trim_end_matches('/');
    let (data, socket) = (hub.data_dir(), hub.socket().display());
    format!("'{}' {port} {method} '{params}' '{socket}'", data.display())
}

#[tokio::test]
async fn an_agents_program_is_not_the_operator_however_it_knocks() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    let ask = arguments(&hub, "hub/status", &json!({}));
    let its_agents = "the agent `guest` at work on task";
    for (how, whose) in [
        ("unix", its_agents),
        ("http", its_agents),
        ("token", its_agents),
        ("thread", its_agents),
        ("daemon", its_agents),
        // Nobody's or its agent's, by whether the hub looks before or after it is gone.
        ("heir", "may not do this"),
        ("in-flight", "may not do this"),
    ] {
        let task = send(&client, "guest", &format!("sh python3 knock.py {how} {ask}")).await?;
        assert_eq!(state(&task), "completed", "{how}: {}", said(&task));
        let told = artifact(&task);
        assert!(told.contains(whose) && !told.contains("\"uptime\""), "{how}: {told}");
    }
    // All the while, who is not below the hub is served as ever.
    assert!(Client::unix(&hub).call("hub/status", json!({})).await.is_ok());
    assert!(client.call("hub/status", json!({})).await.is_ok());
    Ok(())
}

#[tokio::test]
async fn a_program_that_kills_its_minder_is_nobody() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    let ask = arguments(&hub, "hub/status", &json!({}));
    let task = send(&client, "guest", &format!("sh {ORPHAN} {ask} & wait")).await?;
    assert!(["completed", "failed"].contains(&state(&task)), "{task}");
    let answer = hub.workspace().join("orphan.txt");
    eventually(Duration::from_secs(30), || answer.exists()).await?;
    let told = fs::read_to_string(answer)?;
    assert!(told.contains("somebody whom the hub does not know"), "{told}");
    // It stays below the hub, which reaps it in the end.
    let zombies = || {
        let below = a2a_hub_tests::descendants(hub.pid());
        below.iter().any(|pid| {
            fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| it.contains(") Z "))
        })
    };
    send(&client, "guest", "sh kill -9 $PPID").await?;
    eventually(Duration::from_secs(10), || !zombies()).await
}

#[tokio::test]
async fn a_program_cannot_answer_for_the_client() -> Result<()> {
    let hub = hub().await?;
    let client = Client::http(&hub);
    let (task, mut updates) = stream(&client, "guest", "ask which colour").await?;
    until(&mut updates, |event| state(event) == "input-required").await?;
    let yes = json!({ "message": { "kind": "message", "role": "user", "messageId": "m", "taskId": task,
        "parts": [{ "kind": "text", "text": "yes" }] } });
    for (method, params) in [
        ("message/send", &yes),
        ("tasks/cancel", &json!({ "id": task })),
        ("tasks/get", &json!({ "id": task })),
        ("hub/agents/register", &json!({ "agentId": "mine", "path": "/tmp/x.wasm" })),
        ("hub/reload", &json!({})),
    ] {
        let ask = arguments(&hub, method, params);
        for how in ["unix", "token"] {
            let said = send(&client, "guest", &format!("sh python3 knock.py {how} {ask}")).await?;
            let told = artifact(&said);
            let is_refused = told.contains("\"error\"") && !told.contains("\"result\"");
            assert!(is_refused, "{method} {how}: {told}");
        }
    }
    assert_eq!(state(&get(&client, &task).await?), "input-required", "nobody answered");
    Ok(())
}
