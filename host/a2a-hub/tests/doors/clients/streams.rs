//! Tests of the transports beyond responses: batches, event numbers, limits, and authentication.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, get, hub_with_guest, send, stream},
};
use a2a_hub_tests::{Client, message_to, test_guests};
use anyhow::{Context as _, Result};
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use std::path::Path;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
};

fn post(hub: &InProcessHub, path: &str, body: &Value) -> RequestBuilder {
    reqwest::Client::new().post(format!("http://{}{path}", hub.http())).json(body)
}

async fn json(answer: Response) -> Result<Value> {
    Ok(serde_json::from_str(&answer.text().await?)?)
}

/// Sends each line over one connection and returns the responses.
async fn lines(socket: &Path, said: &[String]) -> Result<Vec<Value>> {
    let (read, mut write) = UnixStream::connect(socket).await?.into_split();
    let mut answers = BufReader::new(read).lines();
    let mut told = Vec::new();
    for line in said {
        write.write_all(format!("{line}\n").as_bytes()).await?;
        let answer = answers.next_line().await?.context("the hub hung up")?;
        told.push(serde_json::from_str(&answer)?);
    }
    Ok(told)
}

#[tokio::test]
async fn overlong_line_fails_alone() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let status = json!({"jsonrpc": "2.0", "id": 1, "method": "hub/status"}).to_string();
    let told = lines(hub.socket(), &["x".repeat((8 << 20) + 2), status]).await?;
    assert!(
        told[0]["error"]["message"].as_str().unwrap_or_default().contains("longer than 8388608")
    );
    assert!(told[1]["result"]["version"].is_string());
    Ok(())
}

/// A disconnected client sends the number of its last event and gets the later events.
#[tokio::test]
async fn stream_resumes_after_last_event_id() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let (id, mut updates) = stream(&client, "guest", "flood 3").await?;
    let mut numbers = vec![updates.last_event_id().context("no id")?.to_owned()];
    while let Some(event) = updates.next().await {
        event?;
        numbers.push(updates.last_event_id().context("no id")?.to_owned());
    }
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6"].map(str::to_owned)[..numbers.len()], "{id}");

    let asked = send(&client, "guest", "ask").await?;
    let mut answer = message_to("guest", "the left one");
    answer["message"]["taskId"] = asked["id"].clone();
    let beyond = client.clone().header("last-event-id", "999");
    for answer_or_not in ["message/stream", "tasks/resubscribe"] {
        let mut params = answer.clone();
        params["id"] = asked["id"].clone();
        let refused = beyond.stream(answer_or_not, params).await.err().and_then(|why| why.code());
        assert_eq!(refused, Some(-32602), "{answer_or_not}");
    }
    let still = get(&client, asked["id"].as_str().context("no id")?).await?;
    assert_eq!(still["status"]["state"], "input-required", "the answer was not taken");
    let from_the_start = client.header("last-event-id", "0");
    let events = from_the_start.stream("message/stream", answer).await?.rest().await?;
    assert_eq!(events[0]["kind"], "task", "it is told again from the beginning");
    let states: Vec<_> =
        events.iter().filter_map(|event| event["status"]["state"].as_str()).collect();
    assert!(states.contains(&"input-required"), "an old question does not end it: {states:?}");
    assert_eq!(states.last(), Some(&"completed"));
    Ok(())
}

#[tokio::test]
async fn streams_over_limit_get_retry_after() -> Result<()> {
    let config = format!("max_streams = 1\n{GRANT}");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let (id, updates) = stream(&client, "guest", "nap 600000").await?;
    let more = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": message_to("guest", "flood 1")});
    let refused = post(&hub, "/stream", &more).send().await?;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(json(refused).await?["error"]["code"], -32004);
    let on_the_socket = lines(hub.socket(), &[more.to_string()]).await?;
    assert_eq!(on_the_socket[0]["error"]["data"]["limit"], 1);

    client.call("tasks/cancel", json!({ "id": id })).await?;
    updates.rest().await?;
    assert_eq!(post(&hub, "/stream", &more).send().await?.status(), 200, "there is room again");
    Ok(())
}

#[tokio::test]
async fn oversized_member_error_names_field() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let mut message = message_to("guest", "hi");
    message["message"]["metadata"]["note"] = json!("x".repeat((256 << 10) + 1));
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message});
    let refused = json(post(&hub, "/", &request).send().await?).await?;
    assert_eq!(refused["error"]["code"], -32600);
    assert_eq!(refused["error"]["data"]["field"], "params.message.metadata.note");
    assert_eq!(refused["id"], 1);
    Ok(())
}

/// All users of a machine share the loopback interface. Only root can run this test, as another
/// user.
#[tokio::test]
async fn other_system_user_needs_token() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let token = std::fs::read_to_string(hub.data_dir().join("http-token"))?;
    let Some(stranger) = Stranger::new(&hub) else { return Ok(()) };
    assert_eq!(stranger.get("/health", None).await?, "401");
    assert_eq!(stranger.get("/health", Some("wrong")).await?, "401");
    assert_eq!(stranger.get("/health", Some(&token)).await?, "200");
    assert_eq!(stranger.get("/.well-known/jwks.json", None).await?, "200", "public keys are");
    let own = reqwest::get(format!("http://{}/health", hub.http())).await?;
    assert_eq!(own.status(), 200, "the hub's own user needs none");
    Ok(())
}

/// `curl` under the user `nobody`.
struct Stranger(String);

impl Stranger {
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn new(hub: &InProcessHub) -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let has = |program: &str| Path::new("/usr/bin").join(program).exists();
        let able = is_root && has("setpriv") && has("curl");
        if !able {
            eprintln!("skipped: to try it as another user needs root, setpriv and curl");
        }
        able.then(|| Self(format!("http://{}", hub.http())))
    }

    /// Requests a path and returns the HTTP status.
    #[expect(clippy::disallowed_methods, reason = "another user is another process")]
    async fn get(&self, path: &str, token: Option<&str>) -> Result<String> {
        let mut curl = tokio::process::Command::new("/usr/bin/setpriv");
        curl.args(["--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/curl", "-s"]);
        curl.args(["--max-time", "20", "-o", "/dev/null", "-w", "%{http_code}"]);
        curl.arg(format!("{}{path}", self.0));
        if let Some(token) = token {
            curl.args(["-H", &format!("Authorization: Bearer {token}")]);
        }
        Ok(String::from_utf8(curl.output().await?.stdout)?)
    }
}
