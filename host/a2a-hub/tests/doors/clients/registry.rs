//! Tests of the agent registry: listing, health checks, registration, removal, reload and events.

mod ard;

use crate::{
    hub::InProcessHub,
    stage::{hear, listen, said, send, state, stream, until},
};
use a2a_hub_tests::{Client, RpcError, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

fn echo() -> Result<PathBuf> {
    Ok(test_guests()?.with_file_name("echo.wasm"))
}

async fn agents(client: &Client, method: &str, agent: &str) -> Result<Value, RpcError> {
    client.call(&format!("hub/agents/{method}"), json!({ "agentId": agent })).await
}

async fn register(client: &Client, agent: &str, component: &Path) -> Result<Value, RpcError> {
    let params = json!({ "agentId": agent, "path": component });
    client.call("hub/agents/register", params).await
}

fn is_arrival(event: &Value) -> bool {
    event["type"] == "agent-joined" || event["type"] == "agent-replaced"
}

#[tokio::test]
async fn agent_details_and_health_are_shown() -> Result<()> {
    let hub = InProcessHub::start().await?;
    for client in [Client::http(&hub), Client::unix(&hub)] {
        let health = agents(&client, "health", "echo").await?;
        assert_eq!(health["status"], "healthy", "{health}");
        assert!(health["lastCheck"].is_string() && health["latencyMs"].is_u64(), "{health}");
        let echo = agents(&client, "get", "echo").await?;
        assert_eq!((&echo["id"], &echo["source"]), (&json!("echo"), &json!("built-in")));
        assert_eq!(echo["card"]["name"], echo["name"]);
        assert_eq!(echo["health"]["status"], "healthy", "what was learned is shown: {echo}");
        assert_eq!(echo["breaker"], json!({ "state": "closed" }));
        for method in ["get", "health", "deregister", "reload"] {
            let refused = agents(&client, method, "nobody").await.expect_err(method);
            assert_eq!(refused.code(), Some(-32003), "{method}: {refused}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn agent_is_registered_and_deregistered() -> Result<()> {
    let mut hub = InProcessHub::start().await?;
    let client = Client::unix(&hub);
    let mut events = listen(&Client::http(&hub)).await?;
    let file = hub.data_dir().join("plugins/parrot.wasm");

    let parrot = register(&client, "parrot", &echo()?).await?;
    assert_eq!((&parrot["id"], &parrot["source"]), (&json!("parrot"), &json!("parrot.wasm")));
    assert_eq!(said(&send(&client, "parrot", "at once").await?), "at once");
    assert_eq!(fs::read(&file)?, fs::read(echo()?)?);
    assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
    hear(&mut events, "agent-joined", "parrot").await?;

    for taken in ["parrot", "echo"] {
        let refused = register(&client, taken, &echo()?).await.expect_err(taken);
        assert_eq!(refused.code(), Some(-32602), "{refused}");
        assert!(refused.to_string().contains("exists already"), "{refused}");
    }
    // The scan of the folder finds nothing new, so no second event of the agent precedes the next
    // one.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    register(&client, "lori", &echo()?).await?;
    let next = until(&mut events, is_arrival).await?;
    assert_eq!((&next["type"], &next["agentId"]), (&json!("agent-joined"), &json!("lori")));
    hub.restart().await?;
    let client = Client::unix(&hub);
    assert_eq!(said(&send(&client, "parrot", "for good").await?), "for good");

    let mut events = listen(&client).await?;
    let gone = agents(&client, "deregister", "parrot").await?;
    assert_eq!(gone["returnsOnRestart"], false);
    assert!(!file.exists());
    hear(&mut events, "agent-left", "parrot").await?;
    let refused = send(&client, "parrot", "hello").await.expect_err("it is gone");
    assert!(refused.root_cause().to_string().contains("-32003"), "{refused:#}");
    Ok(())
}

#[tokio::test]
async fn invalid_registration_leaves_no_trace() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::http(&hub);
    let folder = hub.data_dir().join("plugins");
    let noise = client
        .call("hub/agents/register", json!({ "agentId": "noise", "component": "bm9pc2U=" }))
        .await
        .expect_err("noise");
    assert_eq!(noise.code(), Some(-32602));
    assert!(noise.to_string().contains("accept `noise`: it is not WebAssembly"), "{noise}");
    let nowhere = register(&client, "nowhere", Path::new("/no/such/file")).await;
    assert!(nowhere.expect_err("nowhere").to_string().contains("No such file"));
    let device = register(&client, "device", Path::new("/dev/zero")).await;
    assert!(device.expect_err("device").to_string().contains("no plain file"));
    assert_eq!(fs::read_dir(folder)?.count(), 0);
    let status = client.call("hub/status", json!({})).await?;
    assert_eq!(status["rejectedPlugins"], Value::Null, "nothing is kept of it");
    Ok(())
}

#[tokio::test]
async fn deregistered_built_in_can_be_reloaded() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::unix(&hub);
    let gone = agents(&client, "deregister", "echo").await?;
    assert_eq!(gone, json!({"agentId": "echo", "source": "built-in", "returnsOnRestart": true}));
    assert!(agents(&client, "get", "echo").await.is_err());
    let refused = register(&client, "echo", &echo()?).await.expect_err("the name stays its own");
    assert!(refused.to_string().contains("from built-in"), "{refused}");
    assert_eq!(agents(&client, "reload", "echo").await?["source"], "built-in");
    assert_eq!(said(&send(&client, "echo", "back").await?), "back");
    Ok(())
}

#[tokio::test]
async fn failed_reload_keeps_agent() -> Result<()> {
    let hub = InProcessHub::builder().plugin("parrot", echo()?).start().await?;
    let client = Client::unix(&hub);
    let mut events = listen(&client).await?;
    fs::write(hub.data_dir().join("plugins/parrot.wasm"), "half a compo")?;
    let refused = agents(&client, "reload", "parrot").await.expect_err("it is damaged");
    assert_eq!(refused.code(), Some(-32005));
    let why = "load `parrot` again: it is not WebAssembly";
    assert!(refused.to_string().contains(why), "{refused}");
    assert_eq!(said(&send(&client, "parrot", "still here").await?), "still here");

    hub.plug("parrot", &test_guests()?)?;
    agents(&client, "reload", "parrot").await?;
    assert!(said(&send(&client, "parrot", "fail").await?).contains("as told"), "at once");
    hear(&mut events, "agent-replaced", "parrot").await?;
    Ok(())
}

#[tokio::test]
async fn crashing_agent_opens_circuit_breaker() -> Result<()> {
    let breaker = "[breaker]\nfailures = 2\npause_ms = 1500";
    let hub =
        InProcessHub::builder().config(breaker).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    agents(&client, "health", "guest").await?;
    let mut events = listen(&client).await?;
    for _ in 0..2 {
        assert_eq!(send(&client, "guest", "panic").await?["metadata"]["reason"], "agent_crashed");
    }
    let opened = hear(&mut events, "agent-breaker", "guest").await?;
    assert_eq!(opened["breaker"]["state"], "open");

    let message = a2a_hub_tests::message_to("guest", "no-outcome-message");
    let refused = client.call("message/send", message).await.expect_err("it is open");
    let RpcError::Refused { code: -32004, data, .. } = &refused else { panic!("{refused}") };
    assert_eq!((&data["reason"], &data["agentId"]), (&json!("AGENT_UNAVAILABLE"), &json!("guest")));
    assert!(data["retryAfterMs"].as_u64().is_some_and(|ms| (1..=1500).contains(&ms)), "{data}");
    assert!(data["breaker"]["retryAt"].is_string(), "{data}");
    let text = refused.to_string();
    assert!(text.contains("panicked"), "the cause is told: {text}");
    assert!(text.contains("`a2a-hub agent reload guest`"), "and the way out: {text}");

    tokio::time::sleep(Duration::from_millis(1_600)).await;
    assert_eq!(state(&send(&client, "guest", "no-outcome-message").await?), "completed");
    assert_eq!(hear(&mut events, "agent-breaker", "guest").await?["breaker"]["state"], "half-open");
    assert_eq!(hear(&mut events, "agent-breaker", "guest").await?["breaker"]["state"], "closed");
    Ok(())
}

/// An operator who fixed an agent and requests a health check need not wait. An agent that still
/// fails is blocked again at once.
#[tokio::test]
async fn requested_health_check_closes_breaker() -> Result<()> {
    let breaker = "[breaker]\nfailures = 2\npause_ms = 60000\n[health]\ninterval_ms = 100";
    let hub =
        InProcessHub::builder().config(breaker).plugin("guest", test_guests()?).start().await?;
    let client = Client::http(&hub);
    let told = async || agents(&client, "get", "guest").await;
    for how in ["health", "list", "reload"] {
        while told().await?["breaker"]["state"] != "open" {
            send(&client, "guest", "panic").await?;
        }
        // Periodic health checks do not close the circuit breaker.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(told().await?["breaker"]["state"], "open");
        if how == "list" {
            let all = json!({ "includeHealth": true });
            client.call("hub/agents/list", all).await?;
        } else {
            agents(&client, how, "guest").await?;
        }
        assert_eq!(told().await?["breaker"], json!({ "state": "closed" }), "{how}");
        if how != "reload" {
            send(&client, "guest", "panic").await?;
            assert_eq!(told().await?["breaker"]["state"], "open", "on probation: {how}");
            agents(&client, "health", "guest").await?;
        }
        let task = send(&client, "guest", "no-outcome-message").await?;
        assert_eq!(state(&task), "completed", "{how}");
    }
    Ok(())
}

#[tokio::test]
async fn hub_events_are_same_over_transports() -> Result<()> {
    let mut hub = InProcessHub::start().await?;
    let (http, unix) = (Client::http(&hub), Client::unix(&hub));
    // A health check now keeps the periodic ones out of the streams.
    agents(&unix, "health", "echo").await?;
    let mut streams = [listen(&http).await?, listen(&unix).await?];
    let (task, updates) = stream(&unix, "echo", "hello").await?;
    updates.rest().await?;
    let mut told = Vec::new();
    for events in &mut streams {
        let mut lines = Vec::new();
        while lines.last() != Some(&"task-state completed".to_owned()) {
            let event = events.next().await.context("it ended early")??;
            if event["taskId"] == *task {
                assert_eq!(event["agentId"], "echo");
                let line = [&event["type"], &event["state"]].map(|it| it.as_str().unwrap_or("-"));
                lines.push(line.join(" "));
            }
        }
        told.push(lines.join("\n"));
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0], "task-created -\ntask-state working\ntask-state completed");

    let [mut events, _] = streams;
    hub.stop().await?;
    let mut last = Value::Null;
    while let Some(Ok(event)) = events.next().await {
        last = event;
    }
    let end = json!({ "kind": "stream-end", "reason": "hub-stopped", "retryable": true });
    assert_eq!(last, end, "who listens over HTTP is told as well");
    Ok(())
}

#[tokio::test]
async fn rpc_discover_returns_openrpc() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let document = Client::http(&hub).call("rpc.discover", json!({})).await?;
    assert_eq!(document["openrpc"], "1.3.2");
    let methods = document["methods"].as_array().context("no methods")?;
    assert!(methods.iter().any(|method| method["name"] == "hub/agents/register"));
    Ok(())
}

/// Sixteen agents with endless health checks do not delay the health of the others.
#[tokio::test]
async fn spinning_health_checks_delay_no_other() -> Result<()> {
    let mut config = "[agents.liar.settings]\nhealth = 'lie'\n".to_owned();
    let mut builder = InProcessHub::builder().plugin("liar", test_guests()?);
    for n in 0..16 {
        // Names before and after the others in the order.
        let name = format!("{}spinner-{n}", if n % 2 == 0 { "a" } else { "z" });
        config += &format!("[agents.{name}.settings]\nhealth = 'spin'\n");
        builder = builder.plugin(&name, test_guests()?);
    }
    let hub = builder.config(config).start().await?;
    let client = Client::unix(&hub);
    #[expect(clippy::disallowed_methods, reason = "what a client waits for is real time")]
    let asked = Instant::now();
    let agents = client.call("hub/agents/list", json!({"includeHealth": true})).await?;
    let took = asked.elapsed();
    let all = agents.as_array().or_else(|| agents["agents"].as_array()).context("no list")?;
    let health =
        |id: &str| &all.iter().find(|agent| agent["id"] == id).unwrap_or(&Value::Null)["health"];
    assert_eq!(health("echo")["status"], "healthy", "{agents}");
    let spinner = health("aspinner-0");
    assert_eq!(spinner["status"], "unhealthy", "{spinner}");
    let why = spinner["errorMessage"].as_str().unwrap_or_default();
    assert!(
        why.contains("used up its 100 ms of CPU time") || why.contains("did not say within 1 s"),
        "{why}"
    );
    let liar = health("liar");
    assert_eq!(liar["errorMessage"], "not set up fix: none", "one line");
    let fix = liar["fix"].as_str().unwrap_or_default();
    assert_eq!(fix, "the plugin, which was granted nothing, says: \"curl x | sh\"");
    assert!(took < Duration::from_secs(5), "it took {took:?}");
    Ok(())
}
