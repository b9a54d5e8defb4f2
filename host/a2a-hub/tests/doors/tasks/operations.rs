//! Tests of each method over each transport and for each principal against the table of required
//! access.

use crate::{
    hub::InProcessHub,
    stage::{artifact, hub_with_calling_guest, send, state, stream},
};
use a2a_hub_core::access_control::{Access, needed};
use a2a_hub_protocol::hub::methods::{METHODS, operation};
use a2a_hub_tests::{Client, RpcError};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, time::Duration};

/// Script that sends each request of a file (one per line) over each transport, and prints each
/// response as a line. It first waits for a file with its task's id.
const ASK: &str = r#"
import json, os, socket, sys, time, urllib.error, urllib.request

path, url, token = sys.argv[1], sys.argv[2], open(sys.argv[3]).read().strip()
while not os.path.exists("own"):
    time.sleep(0.05)
own = open("own").read()


def over_unix(body):
    it = socket.socket(socket.AF_UNIX)
    it.settimeout(30)
    it.connect(path)
    it.sendall(body.encode() + b"\n")
    return it.makefile().readline()


def over_http(body, **more):
    head = {"content-type": "application/json", **more}
    asked = urllib.request.Request(url, body.encode(), head)
    try:
        return urllib.request.urlopen(asked, timeout=30).read().decode()
    except urllib.error.HTTPError as why:
        return why.read().decode()


def over_rest(body):
    asked = json.loads(body)
    if not asked["method"].startswith("hub/"):
        return over_http(body)
    params = json.dumps(asked["params"]).encode()
    asked = urllib.request.Request(url + asked["method"], params, {"content-type": "application/json"})
    try:
        return json.dumps({"result": json.load(urllib.request.urlopen(asked, timeout=30))})
    except urllib.error.HTTPError as why:
        return why.read().decode()


def with_token(body):
    return over_http(body, authorization="Bearer " + token)


for line in open("asked"):
    line = line.replace("OWN", own)
    method = json.loads(line)["method"]
    for door, ask in [("unix", over_unix), ("http", over_http), ("rest", over_rest), ("token", with_token)]:
        answer = json.loads(ask(line))
        print(json.dumps({"door": door, "method": method, "answer": answer}), flush=True)
"#;

/// Each method with its example. Methods that stream name unknown tasks, because their streams
/// would never end.
fn requests() -> Result<Vec<Value>> {
    let all = METHODS.iter().map(|method| {
        let params: Value = serde_json::from_str(method.example)?;
        Ok(json!({ "jsonrpc": "2.0", "id": 1, "method": method.name, "params": params }))
    });
    all.collect()
}

fn access(request: &Value) -> Result<Access> {
    let method = request["method"].as_str().context("no method")?;
    Ok(needed(&operation(method, request["params"].clone())?))
}

fn is_denied(answer: &Value) -> bool {
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    why.contains("may not do this")
}

#[tokio::test]
async fn agent_program_access_matches_table() -> Result<()> {
    let hub = hub_with_calling_guest().await?;
    let client = Client::http(&hub);
    let other = send(&client, "echo", "not for the guest").await?;
    let mut asked = requests()?;
    let tree = |id: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "hub/tasks/tree", "params": { "id": id } });
    asked.extend([tree(json!("OWN")), tree(other["id"].clone())]);
    let lines: String = asked.iter().map(|request| format!("{request}\n")).collect();
    fs::write(hub.workspace().join("asked"), lines)?;
    fs::write(hub.workspace().join("ask.py"), ASK)?;
    let (socket, data) = (hub.socket().display(), hub.data_dir());
    let script = format!(
        "sh python3 ask.py '{socket}' 'http://{}/' '{}'",
        hub.http(),
        data.join("http-token").display()
    );
    let (id, mut updates) = stream(&client, "guest", &script).await?;
    fs::write(hub.workspace().join("own.new"), &id)?;
    fs::rename(hub.workspace().join("own.new"), hub.workspace().join("own"))?;
    while updates.next().await.is_some() {}
    let task = client.call("tasks/get", json!({ "id": id })).await?;
    assert_eq!(state(&task), "completed", "{task}");

    let told = artifact(&task);
    let mut told = told.lines().map(serde_json::from_str::<Value>);
    for request in &asked {
        for door in ["unix", "http", "rest", "token"] {
            let said = told.next().context("an answer is missing")??;
            let case = format!("{request} over {door}: {}", said["answer"]);
            assert_eq!(
                (&said["method"], &said["door"]),
                (&request["method"], &json!(door)),
                "{case}"
            );
            assert_eq!(is_denied(&said["answer"]), access(request)? > Access::Delegate, "{case}");
            if request["method"] == "hub/tasks/tree" {
                match request["params"]["id"].as_str() {
                    // The program sees its task's tree and no other.
                    Some("OWN") => {
                        assert_eq!(said["answer"]["result"]["tasks"][0]["id"], id, "{case}");
                    }
                    _ => {
                        let code = if door == "rest" { 404 } else { -32001 };
                        assert_eq!(said["answer"]["error"]["code"], code, "{case}");
                    }
                }
            }
        }
    }
    assert!(told.next().is_none(), "each is asked once on each door");
    Ok(())
}

/// True for a method of the unix socket only: a process that serves others over HTTP gives them
/// none of these.
fn is_own(method: &str) -> bool {
    let own = ["hub/backup", "hub/plugins/add", "hub/tasks/apply"];
    let pairs = ["hub/devices/pair", "hub/devices/pairing", "hub/devices/confirm"];
    let people = ["hub/people/add", "hub/people/role", "hub/people/invite", "hub/keys/new"];
    let is_in = |list: &[&str]| list.contains(&method);
    is_in(&own) || is_in(&pairs) || is_in(&people) || method.starts_with("hub/grants/")
}

#[tokio::test]
async fn operator_access_is_unlimited() -> Result<()> {
    let hub = InProcessHub::start().await?;
    for (door, client) in [("http", Client::http(&hub)), ("unix", Client::unix(&hub))] {
        for request in requests()? {
            let method = request["method"].as_str().context("no method")?;
            // A message would start a task, and the stream of hub events never ends.
            if method.starts_with("message/") || method == "hub/events" {
                continue;
            }
            let answer = client.call(method, request["params"].clone());
            let answer = tokio::time::timeout(Duration::from_secs(60), answer).await?;
            if let Err(RpcError::Refused { message, .. }) = answer {
                let is_denied = message.contains("may not do this");
                assert!(!is_denied || (is_own(method) && door == "http"), "{method}: {message}");
            } else {
                assert!(method != "hub/backup" || door == "unix", "{method} over {door}");
            }
        }
    }
    Ok(())
}
