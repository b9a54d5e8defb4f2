//! What the Model Context Protocol opens to its client, and to nobody else.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, send},
};
use a2a_hub_tests::{
    Client,
    mcp::{initialize, speak, spoken},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::json;

async fn hub() -> Result<InProcessHub> {
    InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn a_connection_speaks_what_it_is_asked_for_and_survives_what_is_no_message() -> Result<()> {
    let hub = hub().await?;
    let lines = [
        speak(&json!({ "protocol": "morse" })),
        speak(&json!({ "protocol": "mcp" })),
        initialize(),
    ];
    let told = spoken(&hub, &lines, 3).await?;
    let why = told[0]["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("this hub speaks `acp` and `mcp`"), "{why}");
    assert_eq!(told[1]["result"], json!({}));
    assert_eq!(told[2]["result"]["serverInfo"]["name"], "a2a-hub");
    let nonsense = json!("nonsense");
    let lines = [speak(&json!({ "protocol": "mcp" })), nonsense, initialize()];
    let told = spoken(&hub, &lines, 3).await?;
    assert!(told.iter().any(|line| line["result"]["serverInfo"]["name"] == "a2a-hub"), "{told:?}");
    Ok(())
}

/// What an agent's program does with a session over HTTP that it got to know: it says how it is answered.
const STOLEN: &str = r#"
import sys, urllib.error, urllib.request

url, session = sys.argv[1:]
head = {"content-type": "application/json", "accept": "application/json, text/event-stream", "mcp-session-id": session}
body = b'{"jsonrpc": "2.0", "id": 9, "method": "tools/list"}'
for data in [body, None]:
    try:
        print(urllib.request.urlopen(urllib.request.Request(url, data, head), timeout=10).status)
    except urllib.error.HTTPError as why:
        print(why.code)
"#;

#[tokio::test]
async fn a_session_is_of_no_use_to_anybody_else() -> Result<()> {
    let config = GRANT.replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let url = format!("http://{}/mcp", hub.http());
    let ask = |body: String, session: Option<String>| {
        let request = reqwest::Client::new()
            .post(&url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(body);
        let session = session.map(|session| ("mcp-session-id", session));
        session.into_iter().fold(request, |request, (name, id)| request.header(name, id)).send()
    };
    let begun = ask(initialize().to_string(), None).await?;
    let session = begun.headers().get("mcp-session-id").context("no session")?.to_str()?.to_owned();
    std::fs::write(hub.workspace().join("stolen.py"), STOLEN)?;
    let script = format!("sh python3 stolen.py {url} {session}");
    let told = send(&Client::http(&hub), "guest", &script).await?;
    assert_eq!(artifact(&told), "404\n404\n", "{told}");
    let list = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" });
    assert_eq!(ask(list.to_string(), Some(session)).await?.status(), 200, "its own client goes on");
    Ok(())
}

/// Over HTTP the same guard stands before it as before everything else.
#[tokio::test]
async fn a_web_page_reaches_no_tool() -> Result<()> {
    let hub = hub().await?;
    let post = |headers: &[(&str, &str)]| {
        let mut request = reqwest::Client::new()
            .post(format!("http://{}/mcp", hub.http()))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(initialize().to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send()
    };
    assert_eq!(post(&[]).await?.status(), 200);
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("host", "evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert_eq!(post(&[(name, value)]).await?.status(), 403, "{name}");
    }
    assert_eq!(post(&[("content-type", "text/plain")]).await?.status(), 415);
    Ok(())
}
