//! Handoff: another agent goes on with a task.

use super::worktrees::{path_of, repository, script};
use crate::{
    hub::InProcessHub,
    stage::{
        GRANT, artifact, eventually, hub_with_calling_guest, hub_with_guest, said, send, state,
        stream,
    },
};
use a2a_hub_tests::{
    Client,
    delegation::tree,
    mcp::{initialize, speak},
    message_to, test_guests,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
    time::timeout,
};

/// A hub with the agents `guest` and `other`; the second does at most `max_running` tasks at once.
async fn hub_with_two_guests(max_running: usize) -> Result<InProcessHub> {
    let (_, of_guest) = GRANT.split_once("['127.0.0.1']").context("the grant of the guest")?;
    let of_other = of_guest.replace("agents.guest", "agents.other");
    let of_other = of_other.replace("max_running = 100", &format!("max_running = {max_running}"));
    let hub = InProcessHub::builder().config(format!("{GRANT}{of_other}"));
    hub.plugin("guest", test_guests()?).plugin("other", test_guests()?).start().await
}

/// Hands a task over; returns the new one.
async fn hand_over(client: &Client, task: &Value, agent: &str, note: &str) -> Result<Value> {
    let params = json!({ "taskId": task, "agentId": agent, "note": note });
    Ok(client.call("hub/tasks/handoff", params).await?)
}

/// A task as it is now.
async fn now(client: &Client, task: &Value) -> Result<Value> {
    Ok(client.call("tasks/get", json!({ "id": task })).await?)
}

/// Waits for the end of a task.
async fn ended(client: &Client, task: &Value) -> Result<Value> {
    client.stream("tasks/resubscribe", json!({ "id": task })).await?.rest().await?;
    now(client, task).await
}

#[tokio::test]
async fn other_agent_continues_working_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let mut nap = message_to("guest", "nap 600000");
    nap["message"]["metadata"]["permissions"] = json!("read-only");
    let mut updates = client.stream("message/stream", nap).await?;
    let begun = updates.next().await.context("the task")??;
    let old = begun["id"].clone();
    let new = hand_over(&client, &old, "echo", "Be quick.").await?;
    assert_eq!(new["contextId"], begun["contextId"]);
    assert_eq!(new["metadata"]["handoffFrom"], json!({ "agent": "guest", "task": old }));
    let new = ended(&client, &new["id"]).await?;
    let asked = &new["history"][0];
    let text = asked["parts"][0]["text"].as_str().context("its message")?;
    ensure!(text.contains("```\nnap 600000\n```") && text.ends_with("Be quick.\n"), "{text}");
    assert_eq!(asked["metadata"]["permissions"], "read-only", "no more than the first agent had");

    // The first agent's client hears who goes on.
    let last = updates.rest().await?.pop().context("its end")?;
    let fact = json!({ "to": "echo", "task": new["id"] });
    assert_eq!((state(&last), &last["metadata"]["handoff"]), ("canceled", &fact));
    assert_eq!(now(&client, &old).await?["metadata"]["handoff"], fact);
    Ok(())
}

#[tokio::test]
async fn waiting_caller_gets_result_of_second_agent() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let mut nap = message_to("guest", "nap 600000");
    nap["message"]["contextId"] = json!("talk");
    let caller = Client::http(&hub);
    let mut callers = JoinSet::new();
    callers.spawn(async move { caller.call("message/send", nap).await });
    let filter = json!({ "contextId": "talk", "state": "working" });
    let old = timeout(Duration::from_secs(20), async {
        loop {
            let listed = client.call("hub/tasks/list", filter.clone()).await?;
            if let Some(id) = listed[0]["id"].as_str() {
                return Ok::<_, anyhow::Error>(json!(id));
            }
        }
    });
    let new = hand_over(&client, &old.await??, "echo", "").await?;
    let answer = callers.join_next().await.context("the caller")???;
    assert_eq!((state(&answer), &answer["id"]), ("completed", &new["id"]), "{answer}");
    Ok(())
}

#[tokio::test]
async fn refused_handoff_leaves_task_as_it_is() -> Result<()> {
    let hub = hub_with_calling_guest().await?;
    let client = Client::http(&hub);
    let old = send(&client, "guest", "call echo hi").await?["id"].clone();
    let child = tree(&client, &old).await?[1]["id"].clone();
    let asks = send(&client, "guest", "ask").await?;
    for (task, agent, says) in [
        (&asks["id"], "guest", "is its agent"),
        (&asks["id"], "ecko", "did you mean"),
        (&old, "echo", "is completed"),
        (&child, "guest", "began it"),
        (&json!("nope"), "echo", "nope"),
    ] {
        let why = hand_over(&client, task, agent, "").await.expect_err(says);
        ensure!(why.to_string().contains(says), "{says}: {why}");
    }
    let why = hand_over(&client, &asks["id"], "echo", &"x".repeat(17 << 10)).await;
    ensure!(why.expect_err("a long note").to_string().contains("16384 bytes"));
    assert_eq!(state(&now(&client, &asks["id"]).await?), "input-required");

    // A task that waits is handed over with its question, once.
    let new = hand_over(&client, &asks["id"], "echo", "").await?;
    let new = ended(&client, &new["id"]).await?;
    ensure!(said(&new).contains("what do you say?"), "{new}");
    let why = hand_over(&client, &asks["id"], "echo", "").await.expect_err("once");
    ensure!(why.to_string().contains("handed over before"), "{why}");
    Ok(())
}

#[tokio::test]
async fn second_agent_works_in_same_worktree() -> Result<()> {
    let hub = hub_with_two_guests(100).await?;
    let client = Client::unix(&hub);
    let repository = repository(&hub)?;
    let work = script(&repository, &json!(true), "echo 1 > one; sleep 600");
    let mut updates = client.stream("message/stream", work).await?;
    let old = updates.next().await.context("the task")??;
    let written = path_of(&old)?.join("one");
    eventually(Duration::from_secs(20), || written.exists()).await?;
    let new = hand_over(&client, &old["id"], "other", "").await?;
    let new = ended(&client, &new["id"]).await?;
    let asked = &new["history"][0];
    assert_eq!(asked["metadata"]["workingDirectory"], json!(path_of(&old)?));
    let text = asked["parts"][0]["text"].as_str().context("its message")?;
    ensure!(text.contains("What `guest` changed:\n```\n") && text.contains("one"), "{text}");

    // The changes are found by the task that goes on.
    let mut more = script(&path_of(&old)?, &Value::Null, "cat one; echo 2 > two");
    more["message"]["metadata"]["targetAgent"] = json!("other");
    more["message"]["contextId"] = new["contextId"].clone();
    ensure!(artifact(&client.call("message/send", more).await?).starts_with("1\n"));
    let diff = client.call("hub/tasks/diff", json!({ "taskId": new["id"] })).await?;
    assert_eq!(diff["files"], 2, "{diff}");
    Ok(())
}

/// The second agent has no turn yet when the task is handed over again.
#[tokio::test]
async fn third_agent_gets_changes_of_first() -> Result<()> {
    let hub = hub_with_two_guests(1).await?;
    let client = Client::unix(&hub);
    let repository = repository(&hub)?;
    let (busy, _) = stream(&client, "other", "nap 600000").await?;
    let work = script(&repository, &json!(true), "echo 1 > one; sleep 600");
    let mut updates = client.stream("message/stream", work).await?;
    let first = updates.next().await.context("the task")??;
    let written = path_of(&first)?.join("one");
    eventually(Duration::from_secs(20), || written.exists()).await?;
    let second = hand_over(&client, &first["id"], "other", "").await?;
    let third = hand_over(&client, &second["id"], "guest", "").await?;
    let third = ended(&client, &third["id"]).await?;
    let asked = &third["history"][0];
    let text = asked["parts"][0]["text"].as_str().context("its message")?;
    ensure!(text.contains("What `other` changed:\n```\n") && text.contains("one"), "{text}");
    assert_eq!(asked["metadata"]["workingDirectory"], json!(path_of(&first)?));
    for (old, to, next) in [(&first, "other", &second), (&second, "guest", &third)] {
        let over = now(&client, &old["id"]).await?;
        let fact = json!({ "to": to, "task": next["id"] });
        assert_eq!((state(&over), &over["metadata"]["handoff"]), ("canceled", &fact), "{over}");
    }
    client.call("tasks/cancel", json!({ "id": busy })).await?;
    Ok(())
}

/// The new task is stored before the old one is cancelled: a hub that stops in between loses
/// neither.
#[tokio::test]
async fn queued_handoff_begins_after_restart() -> Result<()> {
    let mut hub = hub_with_two_guests(1).await?;
    let client = Client::unix(&hub);
    let (busy, _) = stream(&client, "other", "nap 600000").await?;
    let (old, _) = stream(&client, "guest", "nap 600000").await?;
    let (busy, old) = (json!(busy), json!(old));
    let new = hand_over(&client, &old, "other", "").await?;
    assert_eq!(state(&new), "submitted", "{new}");
    assert_eq!(state(&now(&client, &old).await?), "working", "it goes on until its turn");
    hub.restart().await?;
    let client = Client::unix(&hub);
    let new = ended(&client, &new["id"]).await?;
    ensure!(new["metadata"]["reason"] != "hub_stopped", "it began after the restart: {new}");
    for task in [&old, &busy] {
        assert_eq!(now(&client, task).await?["metadata"]["reason"], "hub_stopped");
    }
    Ok(())
}

/// Connection of an editor or of a client of MCP on the hub's socket.
struct Connection {
    told: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
}

impl Connection {
    /// Switches the connection to this protocol.
    async fn speaking(hub: &InProcessHub, params: &Value) -> Result<Self> {
        let (read, write) = UnixStream::connect(hub.socket()).await?.into_split();
        let mut connection = Self { told: BufReader::new(read).lines(), write };
        connection.tell(&speak(params)).await?;
        connection.answer(1).await?;
        Ok(connection)
    }

    async fn tell(&mut self, line: &Value) -> Result<()> {
        Ok(self.write.write_all(format!("{line}\n").as_bytes()).await?)
    }

    /// Answer to the request of this id, and all lines before it.
    async fn answer(&mut self, id: u64) -> Result<(Value, String)> {
        let mut before = String::new();
        loop {
            let line = timeout(Duration::from_secs(30), self.told.next_line()).await??;
            let line = line.context("the connection is closed")?;
            let told: Value = serde_json::from_str(&line)?;
            if told["id"] == id && told["method"].is_null() {
                return Ok((told, before));
            }
            before += &line;
        }
    }
}

/// Waits for the task of `guest` that is at work, and hands it over to `echo`.
async fn hand_over_working(client: &Client) -> Result<()> {
    let filter = json!({ "state": "working", "agentId": "guest" });
    let listed = timeout(Duration::from_secs(20), async {
        loop {
            let listed = client.call("hub/tasks/list", filter.clone()).await?;
            if listed[0]["id"].is_string() {
                return Ok::<_, anyhow::Error>(listed);
            }
        }
    });
    hand_over(client, &listed.await??[0]["id"], "echo", "").await.map(drop)
}

#[tokio::test]
async fn editor_and_mcp_client_follow_handoff() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let acp = json!({ "protocol": "acp", "agentId": "guest" });
    let mut editor = Connection::speaking(&hub, &acp).await?;
    let params = json!({ "cwd": hub.workspace(), "mcpServers": [] });
    editor.tell(&json!({ "id": 2, "method": "session/new", "params": params })).await?;
    let (session, _) = editor.answer(2).await?;
    let prompt = json!([{ "type": "text", "text": "nap 600000" }]);
    let params = json!({ "sessionId": session["result"]["sessionId"], "prompt": prompt });
    editor.tell(&json!({ "id": 3, "method": "session/prompt", "params": params })).await?;
    hand_over_working(&client).await?;
    let (end, told) = editor.answer(3).await?;
    assert_eq!(end["result"]["stopReason"], "end_turn", "{end}");
    ensure!(told.contains("Go on with a task that `guest`"), "{told}");

    let mut mcp = Connection::speaking(&hub, &json!({ "protocol": "mcp" })).await?;
    mcp.tell(&initialize()).await?;
    mcp.answer(2).await?;
    let params = json!({ "name": "guest", "arguments": { "message": "nap 600000" } });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
    mcp.tell(&call).await?;
    hand_over_working(&client).await?;
    let (end, _) = mcp.answer(3).await?;
    ensure!(end["result"].to_string().contains("Go on with a task that `guest`"), "{end}");
    Ok(())
}
