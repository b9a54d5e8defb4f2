//! MCP server with tools of all kinds, and the hub whose agent may call some.

use crate::{
    Client, Endpoints, descendants,
    stage::{GRANT, said, send},
};
use anyhow::{Context as _, Result};
use std::{fs, path::Path};

/// Python MCP server with tools of all kinds, good and bad.
pub const SERVER: &str = r#"
import json, os, sys, time

NAMES = ["read", "secret", "big", "line", "chatter", "noise", "never", "hang", "die", "wrong", "shapeless", "asks", "hologram"]

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
    elif name == "hologram":
        content = [{"type": "text", "text": "before"}, {"type": "hologram"}, {"type": "text", "text": "after"}]
        say({"jsonrpc": "2.0", "method": "notifications/brandNew", "params": None})
        return say({"jsonrpc": "2.0", "id": str(id), "result": {"content": content, "isError": None}})
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
        tools.append({"name": "odd", "description": "is unusable", "inputSchema": "none"})
        tools.append({"name": "read", "description": "twice", "inputSchema": {"type": "object", "x": "x" * 100000}})
        say({"jsonrpc": "2.0", "id": id, "result": {"tools": tools, "nextCursor": "again", "ttlMs": 10 ** 9}})
    elif method == "tools/call":
        call(id, params["name"], params.get("arguments"))
"#;

/// Configuration of a hub whose agent `guest` may call these tools of its server `files` in this
/// directory; `other` may call a tool of a server that does not exist.
pub fn config(place: &Path, tools: &str) -> String {
    let dir = place.display();
    format!(
        "{GRANT}\n[agents.guest.grant.tools]\nfiles = [{tools}]\n[agents.guest.confined]\nread = ['{dir}']\n\
         [agents.guest.mcp.files]\ncommand = '/usr/bin/python3'\nargs = ['-I', '{dir}/server.py']\nenv = ['SERVER_KEY']\n\
         [agents.other.grant.tools]\nweb = ['get']\n"
    )
}

/// Answer of the agent after calling a tool.
pub async fn call(hub: &Endpoints, tool: &str) -> Result<String> {
    Ok(said(&send(&Client::unix(hub), "guest", &format!("tool files:{tool}")).await?).to_owned())
}

/// Id of the server process that answers, as its tool reports it.
pub async fn which(hub: &Endpoints) -> Result<String> {
    let told = call(hub, "read 20000 {}").await?;
    let run = told.split(" by ").nth(1).and_then(|rest| rest.split(' ').next());
    Ok(run.with_context(|| told.clone())?.to_owned())
}

/// Number of servers that run below the hub with this process id.
pub fn servers(hub: u32) -> usize {
    let is_server = |pid: &u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("server.py")
            && command.starts_with(b"/usr/bin/python3")
    };
    descendants(hub).iter().filter(|pid| is_server(pid)).count()
}
