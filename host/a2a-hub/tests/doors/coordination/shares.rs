//! Story of shares: an agent's program that takes all topics, cursors and messages that it can get.

use crate::{
    hub::InProcessHub,
    stage::{artifact, send},
};
use a2a_hub_tests::{Client, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fs;

/// Floods the hub over the unix socket, as a program of an agent, and prints the number of topics,
/// cursors and messages that it got, and the last refusals.
const FLOOD: &str = r##"
import json, socket
it = socket.socket(socket.AF_UNIX)
it.connect("SOCKET")
lines = it.makefile()
def call(method, **params):
    it.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
    return json.loads(lines.readline())
def count(answers):
    answers = list(answers)
    refused = [answer["error"]["message"] for answer in answers if "error" in answer]
    return [len(answers) - len(refused), refused[-1] if refused else ""]
topics = count(call("hub/topics/publish", topic=f"AGENT/{n}", text="x") for n in range(30))
cursors = count(call("hub/topics/read", pattern="#", cursor=f"c{n}") for n in range(250))
messages = count(call("hub/topics/publish", topic="plans", text="flood") for n in range(60))
print(json.dumps([topics, cursors, messages]))
"##;

#[tokio::test]
async fn greedy_agent_leaves_topics_to_others() -> Result<()> {
    let agent = |name: &str| {
        format!(
            "[agents.{name}]\nconfine = false\n[agents.{name}.grant]\nmemory = true\nfiles = true\ndelegate = ['echo']\n\
             [agents.{name}.grant.process.sh]\n"
        )
    };
    let topics = "[topics]\nmax_topics = 40\nkeep_messages = 40\n";
    let config = format!("{topics}{}{}", agent("greedy"), agent("other"));
    let hub = InProcessHub::builder().config(config);
    let hub = hub.plugin("greedy", test_guests()?).plugin("other", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let plan = json!({ "topic": "plans", "text": "read me" });
    client.call("hub/topics/publish", plan).await?;

    let floods = async |agent: &str| -> Result<Value> {
        let socket = hub.socket().display().to_string();
        let script = FLOOD.replace("SOCKET", &socket).replace("AGENT", agent);
        let file = hub.workspace().join(format!("{agent}.py"));
        fs::write(&file, script)?;
        let task = send(&client, agent, &format!("sh python3 {}", file.display())).await?;
        let printed = artifact(&task);
        let line = printed.lines().rfind(|line| line.starts_with("[["));
        serde_json::from_str(line.with_context(|| task.to_string())?).map_err(Into::into)
    };
    // Of 40 topics, 4 are the operator's alone, and an agent has a quarter of the others.
    for name in ["greedy", "other"] {
        let [topics, cursors, messages] = [0, 1, 2];
        let got = floods(name).await?;
        assert_eq!((&got[topics][0], &got[cursors][0]), (&json!(9), &json!(225)), "{got}");
        assert_eq!(got[messages], json!([60, ""]), "{name}");
        for (refusal, share) in [(&got[topics][1], "9 of 40"), (&got[cursors][1], "225 of 1000")] {
            let refusal = refusal.as_str().context("no refusal")?;
            let whose =
                format!("the programs of the agent `{name}` have as many as they may, {share}");
            ensure!(
                refusal.contains(&whose) && refusal.contains("a2a-hub topic delete"),
                "{refusal}"
            );
        }
    }
    // What the operator wrote was not lost in the flood, and the operator goes on.
    let page = json!({ "pattern": "plans", "start": "stored" });
    let page = client.call("hub/topics/read", page).await?;
    let text = &page["messages"][0]["text"];
    assert_eq!((text, &page["messages"][0]["publisher"]), (&json!("read me"), &json!("operator")));
    for n in 0..21 {
        let topic = json!({ "topic": format!("own/{n}"), "text": "x" });
        client.call("hub/topics/publish", topic).await?;
    }
    let cursor = json!({ "pattern": "#", "cursor": "own" });
    client.call("hub/topics/read", cursor).await?;
    let list = client.call("hub/topics/list", json!({})).await?;
    let listed = list["topics"].as_array().context("no list")?;
    let of = |owner: &str| listed.iter().filter(|topic| topic["owner"] == owner).count();
    assert_eq!([of("operator"), of("agent:greedy"), of("agent:other")], [22, 9, 9], "{list}");
    Ok(())
}
