//! Tests of remote agents in a hub: one hub's guest is another hub's agent.

use crate::{
    command_line::run,
    stage::{GRANT, artifact, get, hub_with_guest, said, send, state, stream, until},
};
use a2a_hub_tests::{
    Client, Front, TestHub, message_to,
    remotes::{health, long_task, tasks},
    test_guests,
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, sleep},
};

/// TCP proxy with a fixed address in front of a hub whose address changes at each start.
struct Door {
    at: SocketAddr,
    behind: Arc<Mutex<String>>,
    _open: JoinSet<io::Result<()>>,
}

impl Door {
    async fn new() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (at, behind) = (listener.local_addr()?, Arc::new(Mutex::new(String::new())));
        let (mut open, to) = (JoinSet::new(), Arc::clone(&behind));
        open.spawn(async move {
            let mut inside = JoinSet::new();
            loop {
                let (mut visitor, _) = listener.accept().await?;
                let to = to.lock().map(|to| to.clone()).unwrap_or_default();
                inside.spawn(async move {
                    let mut hub = TcpStream::connect(to).await?;
                    tokio::io::copy_bidirectional(&mut visitor, &mut hub).await
                });
            }
        });
        Ok(Self { at, behind, _open: open })
    }

    /// Starts a hub with the test guests, whose cards name this proxy.
    async fn hub(&self) -> Result<TestHub> {
        let config = format!("public_url = 'http://{}'\n{GRANT}", self.at);
        let hub = TestHub::builder().config(config).plugin("guest", test_guests()?);
        let hub = hub.start().await?;
        self.leads_to(&hub);
        Ok(hub)
    }

    fn leads_to(&self, hub: &TestHub) {
        if let Ok(mut behind) = self.behind.lock() {
            hub.http().clone_into(&mut behind);
        }
    }

    /// Starts a hub whose agent `far` is the guest behind this proxy.
    async fn visitor(&self) -> Result<TestHub> {
        let remote = format!("[remote.far]\nurl = 'http://{}/agents/guest'\n", self.at);
        TestHub::builder().config(remote).start().await
    }
}

/// Waits until a task ends.
async fn over(client: &Client, id: &str) -> Result<Value> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let task = get(client, id).await?;
        if matches!(state(&task), "completed" | "failed" | "canceled" | "rejected") {
            return Ok(task);
        }
        anyhow::ensure!(Instant::now() < until, "it is not over: {task}");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the artifact lines in a task's stream, from its first event on.
async fn pieces(client: &Client, id: &str) -> Result<Vec<String>> {
    let mut told = Vec::new();
    let params = json!({ "id": id, "lastEventId": "1" });
    let events = client.stream("tasks/resubscribe", params).await?.rest().await?;
    for event in events.iter().filter(|event| event["kind"] == "artifact-update") {
        let text = event["artifact"]["parts"][0]["text"].as_str().unwrap_or_default();
        told.extend(text.lines().map(str::to_owned));
    }
    Ok(told)
}

/// Starts a hub whose agent `far` is another hub's guest.
async fn hub_before(there: &TestHub) -> Result<TestHub> {
    let remote = format!("[remote.far]\nurl = 'http://{}/agents/guest'\n", there.http());
    TestHub::builder().config(format!("{GRANT}\n{remote}")).start().await
}

/// A remote task that waits for its client is answered through the restarted hub.
#[tokio::test]
async fn remote_question_survives_kill() -> Result<()> {
    let there = hub_with_guest().await?;
    let mut here = hub_before(&there).await?;
    let asked = send(&Client::http(&here), "far", "ask").await?;
    here.kill9().await?;
    here.restart().await?;
    let client = Client::http(&here);
    let id = asked["id"].as_str().context("no id")?;
    assert_eq!(state(&get(&client, id).await?), "input-required");
    let mut answer = message_to("far", "late");
    answer["message"]["taskId"] = asked["id"].clone();
    let done: Value = client.call("message/send", answer).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "late"));
    Ok(())
}

/// The restarted hub reports what the agent did in the meantime, without duplicates.
#[tokio::test]
async fn remote_task_survives_local_restart() -> Result<()> {
    for graceful in [false, true] {
        let there = hub_with_guest().await?;
        let mut here = hub_before(&there).await?;
        let (id, mut updates) = stream(&Client::http(&here), "far", "tick 40 100").await?;
        until(&mut updates, |event| event["kind"] == "artifact-update").await?;
        if graceful {
            here.stop().await?;
        } else {
            here.kill9().await?;
        }
        here.restart().await?;
        let client = Client::http(&here);
        let task = get(&client, &id).await?;
        assert_eq!(state(&task), "working", "{task}");
        let done = over(&client, &id).await?;
        assert_eq!((state(&done), said(&done)), ("completed", "ticked 40 times"));
        let all: Vec<_> = (1..=40).map(|n| n.to_string()).collect();
        assert_eq!(artifact(&done).lines().collect::<Vec<_>>(), all);
        assert_eq!(pieces(&client, &id).await?, all);
        assert_eq!(tasks(&there).await?.len(), 1, "it was given to the agent once");
    }
    Ok(())
}

/// Cancelling a readmitted task cancels the remote task as well.
#[tokio::test]
async fn readmitted_remote_task_can_be_cancelled() -> Result<()> {
    let there = hub_with_guest().await?;
    let mut here = hub_before(&there).await?;
    let (id, _updates) = long_task(&here).await?;
    here.kill9().await?;
    here.restart().await?;
    let cancelled = Client::http(&here).call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&cancelled), "canceled");
    assert_eq!(state(&tasks(&there).await?[0]), "canceled");
    Ok(())
}

/// The task ends like the remote one: the agent's hub was killed, and reports so after its restart.
#[tokio::test]
async fn remote_failure_is_reported_unchanged() -> Result<()> {
    let door = Door::new().await?;
    let mut there = door.hub().await?;
    let here = door.visitor().await?;
    let client = Client::http(&here);
    let (id, _updates) = long_task(&here).await?;
    there.kill9().await?;
    there.restart().await?;
    door.leads_to(&there);
    let end = over(&client, &id).await?;
    let theirs = &tasks(&there).await?[0];
    assert_eq!((state(&end), state(theirs)), ("failed", "failed"));
    assert_eq!(said(&end), said(theirs));
    assert_eq!(end["metadata"]["reason"], "hub_restarted");
    Ok(())
}

/// A hub that starts before its remote agents keeps their tasks.
#[tokio::test]
async fn tasks_wait_for_late_remote_agent() -> Result<()> {
    let door = Door::new().await?;
    let mut there = door.hub().await?;
    let mut here = door.visitor().await?;
    let (id, _updates) = long_task(&here).await?;
    here.kill9().await?;
    there.kill9().await?;
    here.restart().await?;
    let client = Client::http(&here);
    assert_eq!(state(&get(&client, &id).await?), "working");
    there.restart().await?;
    door.leads_to(&there);
    let end = over(&client, &id).await?;
    assert_eq!(end["metadata"]["reason"], "hub_restarted", "{end}");
    Ok(())
}

/// The hub does not poll forever for a task that the agent has lost.
#[tokio::test]
async fn task_lost_by_remote_fails() -> Result<()> {
    let door = Door::new().await?;
    let mut there = door.hub().await?;
    let mut here = door.visitor().await?;
    let (id, _updates) = long_task(&here).await?;
    here.kill9().await?;
    there.kill9().await?;
    let another = door.hub().await?;
    here.restart().await?;
    let end = over(&Client::http(&here), &id).await?;
    assert_eq!((state(&end), &end["metadata"]["reason"]), ("failed", &json!("unavailable")));
    assert!(said(&end).contains("does not know the task any more"), "{}", said(&end));
    assert!(tasks(&another).await?.is_empty());
    Ok(())
}

/// Starts a hub whose agent `far` is behind the proxy; `more` is further configuration.
async fn hub_before_front(front: &Front, more: &str) -> Result<TestHub> {
    let remote = format!("[remote.far]\nurl = '{}'\n{more}", front.url);
    TestHub::builder().config(remote).start().await
}

/// A changed card is used only after the operator has approved it.
#[tokio::test]
async fn changed_card_needs_approval() -> Result<()> {
    let there = hub_with_guest().await?;
    let front = Front::start(&there, 0, None).await?;
    let mut here = hub_before_front(&front, "").await?;
    let client = Client::http(&here);
    assert_eq!(health(&client).await?["status"], "healthy");
    front.says(|card| {
        card["url"] = json!(format!("{}/elsewhere", front.url));
        card["skills"] = json!([{ "id": "more", "name": "More", "description": "does more" }]);
    });
    let told = health(&client).await?;
    assert_eq!(told["status"], "degraded");
    let why = told["errorMessage"].as_str().unwrap_or_default();
    assert!(why.contains("skills: +\"more\"; url was"), "{why}");
    assert_eq!(state(&send(&client, "far", "flood 1").await?), "completed", "as it was approved");
    assert_eq!(health(&client).await?["status"], "degraded");

    let reload = |params: Value| client.call("hub/agents/reload", params);
    let refused = reload(json!({ "agentId": "far" })).await.expect_err("nobody approved it");
    assert!(refused.to_string().contains("a2a-hub agent reload far --accept"), "{refused}");
    let other = json!({ "agentId": "far", "accept": "0".repeat(64) });
    let refused = reload(other).await.expect_err("another was approved");
    assert!(refused.to_string().contains("show it again"), "{refused}");
    let refused =
        reload(json!({ "agentId": "echo", "accept": "0" })).await.expect_err("a component");
    assert_eq!(refused.code(), Some(-32602), "{refused}");

    // Runs the suggested command verbatim.
    front.says(|card| card["url"] = json!(front.url));
    let fix = health(&client).await?["fix"].take();
    let fix = fix.as_str().and_then(|fix| fix.strip_prefix("a2a-hub ")).context("no command")?;
    let ran = run(&here, &fix.split(' ').collect::<Vec<_>>()).await?;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(health(&client).await?["status"], "healthy");
    here.restart().await?;
    let client = Client::http(&here);
    let shown = client.call("hub/agents/get", json!({ "agentId": "far" })).await?;
    assert_eq!(shown["card"]["skills"][0]["id"], "more");
    assert_eq!(health(&client).await?["status"], "healthy");
    Ok(())
}
