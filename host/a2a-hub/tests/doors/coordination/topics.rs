//! Tests of topics: publishing, waiting readers, cursors, limits, tenants, and triggers.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, eventually_async, hub_with_calling_guest, send, state},
};
use a2a_hub_tests::{
    Client, delegation,
    mcp::initialize,
    tenants::{TENANTS, Web, token},
    test_guests,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{fs, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// Limit of a wait for the hub's next look.
const SOON: Duration = Duration::from_secs(60);

/// Time in which the hub looks at every source, and starts what is due.
const LOOKS: Duration = Duration::from_secs(4);

/// Publishes over the unix socket, as a program of an agent.
const PUBLISH: &str = r#"
import json, socket
it = socket.socket(socket.AF_UNIX)
it.connect("SOCKET")
it.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hub/topics/publish",
    "params": {"topic": "TOPIC", "text": "by an agent"}}).encode() + b"\n")
print(it.makefile().readline())
"#;

async fn publish(client: &Client, topic: &str, text: &str) -> Result<Value> {
    Ok(client.call("hub/topics/publish", json!({ "topic": topic, "text": text })).await?)
}

async fn read(client: &Client, params: Value) -> Result<Value> {
    Ok(client.call("hub/topics/read", params).await?)
}

fn texts(page: &Value) -> Vec<&str> {
    let messages = page["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.iter().filter_map(|it| it["text"].as_str()).collect()
}

/// Writes the script that publishes to a topic into the workspace.
fn put_script(hub: &InProcessHub, topic: &str) -> Result<()> {
    let socket = hub.socket().display().to_string();
    let script = PUBLISH.replace("SOCKET", &socket).replace("TOPIC", topic);
    Ok(fs::write(hub.workspace().join("publish.py"), script)?)
}

#[tokio::test]
async fn waiting_reader_gets_matching_message() -> Result<()> {
    let mut hub = InProcessHub::start().await?;
    let (client, reader) = (Client::http(&hub), Client::unix(&hub));
    let stored = publish(&client, "builds/main/failed", "earlier").await?;
    let expected = json!({ "topic": "builds/main/failed", "sequence": 1, "position": 1 });
    assert_eq!(stored, expected);
    let waits = async {
        let begun = Instant::now();
        let asked = json!({ "pattern": "builds/+/failed", "waitMs": 30_000 });
        read(&reader, asked).await.map(|page| (page, begun.elapsed()))
    };
    let publishes = async {
        sleep(Duration::from_millis(500)).await;
        publish(&client, "builds/main/passed", "no match").await?;
        publish(&client, "builds/other/failed", "\u{1b}[2J").await
    };
    let (waited, published) = tokio::join!(waits, publishes);
    let (page, took) = waited?;
    ensure!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!((texts(&page), &page["next"]), (vec!["\u{1b}[2J"], &json!(3)), "{page}");
    assert_eq!(page["messages"][0]["publisher"], "operator");
    assert_eq!(published?["sequence"], 1);

    // A hub that stops keeps no reader waiting.
    let waits = read(&reader, json!({ "pattern": "#", "waitMs": 30_000 }));
    let stops = async {
        sleep(Duration::from_millis(500)).await;
        hub.stop().await
    };
    let both = async { tokio::join!(waits, stops) };
    timeout(Duration::from_secs(15), both).await.context("the reader still waits")?.1?;
    hub.restart().await?;
    let client = Client::http(&hub);
    let kept = read(&client, json!({ "pattern": "#", "start": "stored" })).await?;
    assert_eq!(texts(&kept), ["earlier", "no match", "\u{1b}[2J"]);
    Ok(())
}

#[tokio::test]
async fn unconfirmed_messages_come_again() -> Result<()> {
    let mut hub = InProcessHub::start().await?;
    let client = Client::http(&hub);
    for text in ["1", "2", "3"] {
        publish(&client, "a", text).await?;
    }
    let cursor = json!({ "pattern": "a", "cursor": "bot", "start": "stored", "limit": 2 });
    let first = read(&client, cursor.clone()).await?;
    assert_eq!(texts(&first), ["1", "2"]);
    assert_eq!(read(&client, cursor.clone()).await?, first, "nothing was confirmed");
    let mut confirms = cursor.clone();
    confirms["after"] = first["next"].clone();
    assert_eq!(texts(&read(&client, confirms).await?), ["3"]);
    hub.restart().await?;
    let client = Client::http(&hub);
    assert_eq!(texts(&read(&client, cursor).await?), ["3"], "the cursor is durable");
    let list = client.call("hub/topics/list", json!({})).await?;
    let known = &list["cursors"][0];
    assert_eq!((&known["owner"], &known["position"]), (&json!("operator"), &json!(2)), "{list}");
    client.call("hub/topics/delete", json!({ "cursor": "bot" })).await?;
    let again = client.call("hub/topics/delete", json!({ "cursor": "bot" })).await;
    let why = again.err().context("it is gone")?.to_string();
    ensure!(why.contains("no cursor is called `bot`; `a2a-hub topic list` lists them"), "{why}");
    Ok(())
}

#[tokio::test]
async fn slow_reader_learns_of_dropped_messages() -> Result<()> {
    let config = "[topics]\nkeep_messages = 3\nmax_topics = 2";
    let hub = InProcessHub::builder().config(config).start().await?;
    let client = Client::http(&hub);
    for n in 1..=5 {
        publish(&client, "a", &n.to_string()).await?;
    }
    let page = read(&client, json!({ "pattern": "a", "after": 1 })).await?;
    assert_eq!(texts(&page), ["3", "4", "5"]);
    assert_eq!(page["gaps"], json!([{ "topic": "a", "through": 2 }]));
    publish(&client, "b", "x").await?;
    let full = publish(&client, "c", "x").await.err().context("it is full")?.to_string();
    ensure!(full.contains("`topics.max_topics` is the limit"), "{full}");
    // A reload changes the limits.
    hub.configure("[topics]\nkeep_messages = 1\nmax_topics = 3")?;
    let reloaded = client.call("hub/reload", json!({})).await?;
    assert_eq!(reloaded["needsRestart"], json!([]), "{reloaded}");
    publish(&client, "c", "x").await?;
    publish(&client, "a", "6").await?;
    let page = read(&client, json!({ "pattern": "a", "start": "stored" })).await?;
    assert_eq!(texts(&page), ["6"]);

    for (params, why) in [
        (json!({ "topic": "a" }), "either `text` or `data`"),
        (json!({ "topic": "a/+", "text": "x" }), "`+` is a wildcard"),
        (json!({ "topic": "a\u{1b}", "text": "x" }), "U+001B"),
        (json!({ "topic": "a", "text": "x".repeat((256 << 10) + 1) }), "262144 at most"),
        (json!({ "topic": "a", "text": "x".repeat(5 << 20) }), "limit"),
        (json!([]), ""),
    ] {
        let refused = client.call("hub/topics/publish", params).await;
        let refused = refused.err().context(why)?.to_string();
        ensure!(refused.contains(why), "{why}: {refused}");
    }
    let long = read(&client, json!({ "pattern": "a", "waitMs": 30_001 })).await;
    ensure!(long.is_err_and(|why| why.to_string().contains("at most 30000")));
    Ok(())
}

#[tokio::test]
async fn topics_belong_to_their_tenant() -> Result<()> {
    let hub = InProcessHub::builder().config(TENANTS).start().await?;
    let [acme, other] =
        ["acme", "other"].map(|name| token(&hub, name).map(|token| Web::of(&hub, token)));
    let (acme, other, operator) = (acme?, other?, Client::http(&hub));
    let secret = json!({ "topic": "plans", "text": "secret" });
    let stored = acme.call("/", "hub/topics/publish", secret.clone()).await?;
    assert_eq!(stored["result"]["position"], 1, "{stored}");
    let all = json!({ "pattern": "#", "start": "stored" });
    let own = acme.call("/", "hub/topics/read", all.clone()).await?;
    assert_eq!(own["result"]["messages"][0]["publisher"], "client:acme", "{own}");
    for hidden in [
        other.call("/", "hub/topics/read", all.clone()).await?["result"].take(),
        read(&operator, all.clone()).await?,
    ] {
        assert_eq!(hidden, json!({ "messages": [], "next": 0 }));
    }
    let listed = other.call("/", "hub/topics/list", json!({})).await?;
    assert_eq!(listed["result"], json!({ "topics": [], "cursors": [] }));
    let mut theirs = all;
    theirs["tenant"] = json!("acme");
    let refused = other.call("/", "hub/topics/read", theirs.clone()).await?;
    ensure!(refused["error"].is_object(), "{refused}");
    assert_eq!(texts(&read(&operator, theirs).await?), ["secret"], "the operator names tenants");
    let denied = acme.call("/", "hub/topics/delete", json!({ "topic": "plans" })).await?;
    ensure!(denied["error"]["message"].to_string().contains("may not do this"), "{denied}");
    Ok(())
}

/// Calls a tool of the hub's MCP server on the unix socket, as a program of an agent.
const CALL: &str = r#"
import json, socket
it = socket.socket(socket.AF_UNIX)
it.connect("SOCKET")
def say(id, method, params):
    it.sendall(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
    print(lines.readline())
lines = it.makefile()
say(1, "hub/speak", {"protocol": "mcp"})
say(2, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
say(3, "tools/call", {"name": "publish_to_topic", "arguments": {"topic": "by/tool", "data": {"n": 1}}})
say(4, "tools/call", {"name": "read_topics", "arguments": {"pattern": "by/+"}})
"#;

#[tokio::test]
async fn agent_program_uses_topics_by_tools() -> Result<()> {
    let without = InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?);
    for (hub, is_allowed) in
        [(hub_with_calling_guest().await?, true), (without.start().await?, false)]
    {
        let script = CALL.replace("SOCKET", &hub.socket().display().to_string());
        fs::write(hub.workspace().join("call.py"), script)?;
        let client = Client::http(&hub);
        let task = send(&client, "guest", "sh python3 call.py").await?;
        let told = artifact(&task);
        let page = read(&client, json!({ "pattern": "#", "start": "stored" })).await?;
        if is_allowed {
            let message = &page["messages"][0];
            let of = [&message["publisher"], &message["taskId"], &message["data"]];
            assert_eq!(of, [&json!("agent:guest"), &task["id"], &json!({ "n": 1 })], "{page}");
            ensure!(told.contains("\"publisher\":\"agent:guest\""), "{told}");
        } else {
            assert_eq!(page["messages"], json!([]), "{told}");
        }
    }
    Ok(())
}

/// Result of a tool that a client calls over HTTP.
pub(super) async fn call_tool(
    hub: &InProcessHub,
    token: &str,
    tool: &str,
    arguments: Value,
) -> Result<Value> {
    let post = async |body: Value, session: Option<String>| -> Result<reqwest::Response> {
        let request = reqwest::Client::new().post(format!("http://{}/mcp", hub.http())).json(&body);
        let request = request.header("accept", "application/json, text/event-stream");
        let session = session.map(|it| ("mcp-session-id", it));
        let request = session.into_iter().fold(request, |it, (name, value)| it.header(name, value));
        Ok(request.header("authorization", token).send().await?)
    };
    let begun = post(initialize(), None).await?;
    let session = begun.headers().get("mcp-session-id").context("no session")?.to_str()?.to_owned();
    let params = json!({ "name": tool, "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
    let text = post(call, Some(session)).await?.text().await?;
    let mut events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let answer = events.rfind(|line| line.contains("\"id\":3")).with_context(|| text.clone())?;
    Ok(serde_json::from_str::<Value>(answer)?["result"].take())
}

#[tokio::test]
async fn tools_keep_topics_of_tenants_apart() -> Result<()> {
    let hub = InProcessHub::builder().config(TENANTS).start().await?;
    let (acme, other) = (token(&hub, "acme")?, token(&hub, "other")?);
    let secret = json!({ "topic": "plans", "text": "secret \u{1b}[2J" });
    let stored = call_tool(&hub, &acme, "publish_to_topic", secret).await?;
    let expected = json!({ "topic": "plans", "sequence": 1, "position": 1 });
    assert_eq!(stored["structuredContent"], expected, "{stored}");
    let all = json!({ "pattern": "#" });
    let own = call_tool(&hub, &acme, "read_topics", all.clone()).await?;
    let message = &own["structuredContent"]["messages"][0];
    let of = [&message["publisher"], &message["text"]];
    assert_eq!(of, [&json!("client:acme"), &json!("secret \u{1b}[2J")], "{own}");
    let hidden = call_tool(&hub, &other, "read_topics", all).await?;
    let none = json!({ "messages": [], "next": 0, "more": false, "gaps": [] });
    assert_eq!(hidden["structuredContent"], none);
    let listed = call_tool(&hub, &other, "list_topics", json!({})).await?;
    assert_eq!(listed["structuredContent"]["topics"], json!([]), "{listed}");
    for (tool, arguments, why) in [
        ("read_topics", json!({ "pattern": "#", "tenant": "acme" }), "no argument `tenant`"),
        (
            "publish_to_topic",
            json!({ "topic": "a", "text": "x".repeat(300_000) }),
            "262144 at most",
        ),
        ("publish_to_topic", json!({ "topic": 5 }), "expected a string"),
        ("read_topics", json!({ "pattern": "a/#/b" }), "must be the last one"),
    ] {
        let refused = call_tool(&hub, &acme, tool, arguments).await?;
        ensure!(refused["isError"] == true && refused.to_string().contains(why), "{refused}");
    }
    Ok(())
}

#[tokio::test]
async fn only_delegating_agents_use_topics() -> Result<()> {
    for (hub, is_allowed) in [
        (hub_with_calling_guest().await?, true),
        (
            InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await?,
            false,
        ),
    ] {
        put_script(&hub, "a/b")?;
        let client = Client::http(&hub);
        let task = send(&client, "guest", "sh python3 publish.py").await?;
        let told = artifact(&task);
        let page = read(&client, json!({ "pattern": "#", "start": "stored" })).await?;
        if is_allowed {
            let message = &page["messages"][0];
            assert_eq!(message["publisher"], "agent:guest", "{page}");
            assert_eq!((&message["taskId"], &message["permissions"]), (&task["id"], &json!("ask")));
        } else {
            // Where programs are confined, the socket is not even mounted.
            assert_eq!(page["messages"], json!([]), "{told}");
        }
    }
    Ok(())
}

/// The trigger `first` listens to all topics, also to that of the run that it starts. `second`
/// listens to that run.
#[tokio::test]
async fn own_messages_start_no_circle() -> Result<()> {
    let of = |name: &str, topic: &str, agent: &str, permissions: &str| {
        format!(
            "[trigger.{name}]\non = 'topic'\ntopic = '{topic}'\nagent = '{agent}'\npermissions = '{permissions}'\n\
             message = 'sh python3 publish.py; exit 0 #'\nbudget = {{ tasks = 5 }}\ndebounce = '0s'\n"
        )
    };
    let first = of("first", "#", "guest", "read-only");
    let second = of("second", "from/agents", "echo", "edit");
    let config = format!("{}\n{first}\n{second}", delegation::granted("'echo'"));
    let hub = InProcessHub::builder().config(config).plugin("guest", test_guests()?);
    let mut hub = hub.start().await?;
    put_script(&hub, "from/agents")?;
    let client = Client::http(&hub);
    publish(&client, "a", "before the first look, or just after").await?;
    sleep(LOOKS).await;
    publish(&client, "a", "go").await?;
    let run = async |name: &str| -> Result<Value> {
        let all = client.call("hub/triggers/list", json!({})).await?;
        let mut all = all.as_array().context("no list")?.iter();
        let found = all.find(|it| it["name"] == name).context("no trigger")?;
        let task = found["last"]["task"].as_str().with_context(|| found.to_string())?;
        Ok(client.call("tasks/get", json!({ "id": task })).await?)
    };
    let over = async |name: &str| run(name).await.is_ok_and(|task| state(&task) == "completed");
    eventually_async(SOON, async || over("second").await).await?;
    let second = run("second").await?;
    let event = &second["history"][0]["parts"][2]["data"]["trigger"]["events"][0];
    assert_eq!((&event["text"], &event["topic"]), (&json!("by an agent"), &json!("from/agents")));
    assert_eq!(event["triggers"], json!(["first"]), "{event}");
    assert_eq!(second["metadata"]["trigger"]["after"], json!(["first"]), "{second}");
    // The section allows more than the agent that published.
    assert_eq!(second["history"][0]["metadata"]["permissions"], "read-only", "{second}");
    sleep(LOOKS * 2).await;
    let all = read(&client, json!({ "pattern": "from/agents", "start": "stored" })).await?;
    let count = texts(&all).len();
    ensure!((1..=2).contains(&count), "one for each group of the operator's messages: {all}");

    // A message while no hub runs its triggers starts one run, once.
    hub.stop().await?;
    hub.restart().await?;
    let client = Client::http(&hub);
    sleep(LOOKS).await;
    let all = read(&client, json!({ "pattern": "from/agents", "start": "stored" })).await?;
    assert_eq!(texts(&all).len(), count, "no message counts again");
    Ok(())
}
