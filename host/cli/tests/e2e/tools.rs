//! Tools of servers of the Model Context Protocol that an operator names for an agent: reached by that one, tool by tool, whatever
//! the server is up to.

use crate::{
    command_line::run,
    stage::{GRANT, eventually, said, send, state, stream, until},
};
use a2a_hub_tests::{Client, TestHub, descendants, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{fs, time::Duration};
use tempfile::TempDir;

/// A server with tools of all kinds, good and bad.
const SERVER: &str = r#"
import json, os, sys, time

NAMES = ["read", "secret", "big", "line", "chatter", "noise", "never", "hang", "die", "wrong", "shapeless", "asks"]

# In a namespace of its own each has the same number.
ID = os.urandom(4).hex()


def say(it):
    sys.stdout.write(json.dumps(it) + "\n")
    sys.stdout.flush()


def call(id, name, arguments):
    text = f"read {json.dumps(arguments)} by {ID} of {os.environ.get('SERVER_KEY', 'nobody')}"
    if name == "big":
        text = "x" * (2 << 20)
    elif name == "line":
        sys.stdout.write("x" * (6 << 20))
        sys.stdout.flush()
    elif name == "chatter":
        while True:
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}})
    elif name == "noise":
        print("this is no message\n[1, 2\n{\"jsonrpc\": \"2.0\"}\n{\"jsonrpc\": \"2.0\", \"id\": 77, \"result\": {}}", flush=True)
    elif name == "never":
        return
    elif name == "hang":
        time.sleep(600)
    elif name == "die":
        print("\x1b[2Jno key", file=sys.stderr, flush=True)
        os._exit(3)
    elif name == "wrong":
        return say({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "wants\na \u202epath"}})
    elif name == "shapeless":
        return say({"jsonrpc": "2.0", "id": id, "result": "text"})
    elif name == "asks":
        return say({"jsonrpc": "2.0", "id": id, "result": {"resultType": "input_required", "inputRequests": {}}})
    say({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})


lists = 0
for line in sys.stdin:
    ask = json.loads(line)
    id, method, params = ask.get("id"), ask.get("method"), ask.get("params") or {}
    if method == "initialize":
        say({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": params["protocolVersion"],
             "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "s", "version": "1"}}})
        if "mute" in sys.argv:
            say({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})
    elif method == "ping":
        say({"jsonrpc": "2.0", "id": id, "result": {}})
    elif method == "tools/list":
        lists += 1
        tools = [{"name": name, "description": f"Does\n\x1b[2J\u202e {name}, list {lists}",
                  "inputSchema": {"type": "object"}} for name in NAMES]
        tools.append({"name": "read", "description": "twice", "inputSchema": {"type": "object", "x": "x" * 100000}})
        say({"jsonrpc": "2.0", "id": id, "result": {"tools": tools, "nextCursor": "again", "ttlMs": 10 ** 9}})
    elif method == "tools/call":
        call(id, params["name"], params.get("arguments"))
"#;

/// A hub whose agent `guest` may call these tools of its server `files`; `other` may call one of a server that is nowhere.
async fn hub(tools: &str) -> Result<(TestHub, TempDir)> {
    let place = tempfile::tempdir()?;
    fs::write(place.path().join("server.py"), SERVER)?;
    let guests = test_guests()?;
    let hub = TestHub::builder().config(config(&place, tools)).env("SERVER_KEY", "sesame-sesame");
    let hub = hub.plugin("guest", &guests).plugin("other", &guests).start().await?;
    Ok((hub, place))
}

fn config(place: &TempDir, tools: &str) -> String {
    let dir = place.path().display();
    format!(
        "{GRANT}\n[agents.guest.grant.tools]\nfiles = [{tools}]\n[agents.guest.confined]\nread = ['{dir}']\n\
         [agents.guest.mcp.files]\ncommand = '/usr/bin/python3'\nargs = ['-I', '{dir}/server.py']\nenv = ['SERVER_KEY']\n\
         [agents.other.grant.tools]\nweb = ['get']\n"
    )
}

/// What the agent says of calling a tool.
async fn call(hub: &TestHub, tool: &str) -> Result<String> {
    Ok(said(&send(&Client::unix(hub), "guest", &format!("tool files:{tool}")).await?).to_owned())
}

/// Which run of the server answers, as it tells by its tool.
async fn which(hub: &TestHub) -> Result<String> {
    let told = call(hub, "read 20000 {}").await?;
    let run = told.split(" by ").nth(1).and_then(|rest| rest.split(' ').next());
    Ok(run.with_context(|| told.clone())?.to_owned())
}

fn servers(hub: &TestHub) -> usize {
    let is_server = |pid: &u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("server.py")
            && command.starts_with(b"/usr/bin/python3")
    };
    descendants(hub.pid()).iter().filter(|pid| is_server(pid)).count()
}

#[tokio::test]
async fn an_agent_calls_the_tools_that_it_was_granted_and_no_others() -> Result<()> {
    let (hub, _place) = hub("'read', 'noise'").await?;
    let client = Client::unix(&hub);
    assert_eq!(servers(&hub), 0, "nobody has asked for it");
    let listed = send(&client, "guest", "tools").await?;
    let lines: Vec<_> = said(&listed).lines().collect();
    assert_eq!(
        lines,
        [
            r#"files:noise Does [2J noise, list 1 {"type":"object"}"#,
            r#"files:read Does [2J read, list 1 {"type":"object"}"#,
        ],
        "{listed}"
    );
    let told = call(&hub, r#"read 20000 {"path":"a"}"#).await?;
    // What it was passed is a secret to the agent's listeners.
    assert!(told.starts_with(r#"None read {"path": "a"} by "#), "{told}");
    assert!(told.ends_with("of [redacted SERVER_KEY]"), "{told}");
    let first = which(&hub).await?;
    assert_eq!((which(&hub).await?, servers(&hub)), (first, 1), "it serves several tasks");
    assert!(call(&hub, "noise").await?.starts_with("None read"), "what is no message is nothing");

    let refused = call(&hub, "secret").await?;
    assert!(refused.contains("a2a-hub plugin grant guest --tool files:secret"), "{refused}");
    for (tool, why) in [
        ("files:read", "`a2a-hub plugin grant other --tool files:read"),
        ("web:get", "`[agents.other.mcp.web]` of the hub's configuration does not say where it is"),
    ] {
        let told = send(&client, "other", &format!("tool {tool}")).await?;
        let told = said(&told).replace("with `a2a-hub", "`a2a-hub");
        assert!(told.contains(why), "{tool}: {told}");
    }
    let agents = run(&hub, &["--format", "json", "agents"]).await?;
    let agents: Value = serde_json::from_str(&agents.stdout)?;
    let lacks = |id: &str| {
        let agent = agents.as_array().and_then(|all| all.iter().find(|agent| agent["id"] == id));
        agent.map(|agent| agent["notGranted"].to_string()).unwrap_or_default()
    };
    assert!(!lacks("guest").contains("tools"), "{}", lacks("guest"));
    assert!(lacks("git-historian").is_empty() || !lacks("git-historian").contains("tools"));
    Ok(())
}

#[tokio::test]
async fn a_hostile_server_costs_its_calls_and_nothing_else() -> Result<()> {
    let all =
        "'read', 'big', 'line', 'chatter', 'never', 'hang', 'die', 'wrong', 'shapeless', 'asks'";
    let (hub, _place) = hub(all).await?;
    let before = which(&hub).await?;
    // It goes on after these.
    for (tool, why) in [
        ("big", "longer than 1 MiB"),
        ("never 500", "time"),
        ("wrong", "the server refuses: \"wants a path\""),
        ("shapeless", "none of the protocol's"),
        ("asks", "only a result is of use"),
    ] {
        let told = call(&hub, tool).await?;
        assert!(told.contains(why), "{tool}: {told}");
    }
    assert_eq!(which(&hub).await?, before);
    // After these another one is started.
    let mut before = before;
    for (tool, why) in [
        ("line", "it said a line of more than 4 MiB"),
        ("hang 500", "time"),
        ("die", "it ended with code 3, and said last: \"[2Jno key\""),
    ] {
        let told = call(&hub, tool).await?;
        assert!(told.contains(why), "{tool}: {told}");
        let now = which(&hub).await?;
        assert_ne!(now, before, "{tool}");
        before = now;
        assert_eq!(servers(&hub), 1, "{tool}");
    }
    // The fifth start within the minute, and the last.
    call(&hub, "die").await?;
    which(&hub).await?;
    call(&hub, "die").await?;
    let told = call(&hub, "read").await?;
    assert!(told.contains("it was started 5 times within") && told.contains("no key"), "{told}");
    let echo = send(&Client::unix(&hub), "echo", "all else goes on").await?;
    assert_eq!(state(&echo), "completed");
    Ok(())
}

#[tokio::test]
async fn a_server_that_never_stops_talking_waits_and_is_ended() -> Result<()> {
    let (hub, _place) = hub("'read', 'chatter'").await?;
    let told = call(&hub, "chatter 2000").await?;
    assert!(told.contains("time"), "{told}");
    which(&hub).await?;
    assert_eq!(servers(&hub), 1);
    Ok(())
}

/// Another hub is the server: its agents are its tools.
#[tokio::test]
async fn a_server_at_a_url_is_called_by_the_agents_rules_for_http() -> Result<()> {
    let server = TestHub::start().await?;
    let port = server.http().rsplit(':').next().unwrap_or_default().to_owned();
    let config = |methods: &str| {
        format!(
            "{GRANT}\n[agents.guest.mcp.hub]\nurl = 'http://127.0.0.1:{port}/mcp'\n[agents.guest.grant.tools]\nhub = ['echo']\n\
             [agents.guest.grant.http.'127.0.0.1']\nscheme = 'http'\nprivate = true\nports = [{port}]\nmethods = [{methods}]\n"
        )
    };
    let guests = test_guests()?;
    let hub = TestHub::builder().config(config("'POST'")).plugin("guest", &guests).start().await?;
    let client = Client::unix(&hub);
    let listed = send(&client, "guest", "tools").await?;
    assert!(said(&listed).starts_with("hub:echo Has the agent `echo` work"), "{listed}");
    let told = send(&client, "guest", r#"tool hub:echo 20000 {"message":"over there"}"#).await?;
    assert!(said(&told).contains("over there"), "{told}");
    let refused = send(&client, "guest", "tool hub:list_agents 20000 {}").await?;
    assert!(said(&refused).contains("--tool hub:list_agents"), "{refused}");

    let hub = TestHub::builder().config(config("'GET'")).plugin("guest", &guests).start().await?;
    let told = send(&Client::unix(&hub), "guest", "tool hub:echo 20000 {}").await?;
    assert!(said(&told).contains("POST"), "a rule of the agent's requests: {told}");
    Ok(())
}

#[tokio::test]
async fn what_is_taken_away_ends_calls_and_the_server() -> Result<()> {
    let (hub, place) = hub("'read', 'never'").await?;
    let client = Client::unix(&hub);
    which(&hub).await?;
    let (_, mut updates) = stream(&client, "guest", "tool files:never 60000").await?;
    until(&mut updates, |event| state(event) == "working").await?;
    hub.configure(&config(&place, ""))?;
    client.call("hub/reload", json!({})).await?;
    let end = until(&mut updates, |event| event["final"] == true).await?;
    assert!(said(&end).contains("revoked by the operator"), "{end}");
    eventually(Duration::from_secs(10), || servers(&hub) == 0).await?;
    let told = call(&hub, "read").await?;
    assert!(told.contains("not granted") || told.contains("none is granted"), "{told}");
    Ok(())
}
