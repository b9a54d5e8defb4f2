//! Tests of sending and answering messages, on any transport.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually, get, hub_with_guest, said, send, state, stream, until},
};
use a2a_hub_tests::{Client, RpcError, message_to, processes_of_task, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn stream_matches_stored_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let (id, updates) = stream(&client, "guest", "flood 300").await?;
    let events = updates.rest().await?;
    let pieces: Vec<_> =
        events.iter().filter_map(|event| event["artifact"]["parts"][0]["text"].as_str()).collect();
    assert_eq!(pieces.len(), 300, "none is lost, however fast they come");
    assert_eq!(events.last().context("no events")?["final"], true);
    let task = get(&client, &id).await?;
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], pieces.concat());
    assert_eq!(task["history"][0]["parts"][0]["text"], "flood 300");
    Ok(())
}

#[tokio::test]
async fn answer_continues_waiting_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let asked = send(&client, "guest", "ask").await?;
    assert_eq!(state(&asked), "input-required");

    let mut answer = message_to("guest", "the left one");
    answer["message"]["taskId"] = asked["id"].clone();
    let done = client.call("message/send", answer.clone()).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "the left one"));
    let history: Vec<_> = done["history"]
        .as_array()
        .context("no history")?
        .iter()
        .map(|message| message["parts"][0]["text"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(history, ["ask", "what do you say?", "the left one"]);

    let again = client.call("message/send", answer.clone()).await?;
    assert_eq!((state(&again), &again["metadata"]["repeated"]), ("completed", &json!(true)));
    answer["message"]["parts"][0]["text"] = json!("the right one");
    let late = client.call("message/send", answer).await.expect_err("the task is over");
    assert_eq!(late.code(), Some(-32005), "{late}");
    Ok(())
}

#[tokio::test]
async fn history_spans_tasks_of_conversation() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let first = send(&client, "guest", "no-outcome-message").await?;
    let mut second = message_to("guest", "history");
    second["message"]["contextId"] = first["contextId"].clone();
    let second = client.call("message/send", second).await?;
    assert_eq!(second["contextId"], first["contextId"]);
    assert_eq!(said(&second), "no-outcome-message");
    Ok(())
}

#[tokio::test]
async fn waiting_task_can_be_cancelled() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let asked = send(&client, "guest", "auth").await?;
    assert_eq!(state(&asked), "auth-required");
    let cancelled = client.call("tasks/cancel", json!({ "id": asked["id"] })).await?;
    assert_eq!(state(&cancelled), "canceled");
    Ok(())
}

#[tokio::test]
async fn task_timeout_fails_task() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::unix(&hub);
    let mut slow = message_to("guest", "nap 600000");
    slow["configuration"] = json!({ "timeoutMs": 300 });
    let task = client.call("message/send", slow).await?;
    assert_eq!(state(&task), "failed");
    assert_eq!(task["metadata"]["reason"], "timeout");
    assert!(said(&task).contains("time limit of 300 ms"), "{}", said(&task));
    Ok(())
}

/// Continuous output does not postpone the deadline.
#[tokio::test]
async fn output_does_not_extend_task_timeout() -> Result<()> {
    let config = GRANT.replace("events = 5000", "events = 100000");
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let mut flood = message_to("guest", "flood-forever");
    flood["configuration"] = json!({ "timeoutMs": 100 });
    let task = Client::unix(&hub).call("message/send", flood).await?;
    assert_eq!(task["metadata"]["reason"], "timeout", "{}", said(&task));
    Ok(())
}

/// An unanswered question has a deadline.
#[tokio::test]
async fn unanswered_question_times_out() -> Result<()> {
    let config = GRANT.replace("max_running", "answer_timeout_ms = 200\nmax_running");
    let config = config.replacen("[agents.guest.limits]", "[agents.guest.limits] # first", 1);
    let hub =
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await?;
    let client = Client::unix(&hub);
    let asked = send(&client, "guest", "ask").await?;
    let id = asked["id"].as_str().context("no id")?;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let task = get(&client, id).await?;
        if state(&task) == "failed" {
            assert_eq!(task["metadata"]["reason"], "timeout");
            return Ok(());
        }
    }
    panic!("it still waits")
}

#[tokio::test]
async fn status_counts_tasks_and_agents() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    send(&client, "guest", "reply x").await?;
    send(&client, "guest", "ask").await?;
    let status = client.call("hub/status", json!({})).await?;
    assert_eq!((&status["activeTasks"], &status["totalTasks"]), (&json!(1), &json!(2)));
    let agents = status["agents"].as_array().map_or(0, Vec::len);
    assert_eq!(status["total"], json!(agents));
    let listed = client.call("hub/agents/list", json!({ "includeHealth": true })).await?;
    let guest = listed.as_array().and_then(|all| all.iter().find(|one| one["id"] == "guest"));
    let guest = guest.context("the guest is not listed")?;
    assert_eq!(guest["health"]["status"], "healthy");
    let lacks = guest["notGranted"].as_array().context("no list")?;
    let lacks: Vec<_> = lacks.iter().map(|lack| &lack["capability"]).collect();
    let asked_and_not_granted =
        ["process.formed", "process.never-granted", "http.*", "workspace", "tools", "delegate"];
    assert_eq!(lacks, asked_and_not_granted.map(|it| json!(it)).each_ref());
    Ok(())
}

#[tokio::test]
async fn malformed_request_error_names_field() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = Client::unix(&hub);
    let mut message = message_to("echo", "hi");
    message["message"]["parts"][0] = json!({ "kind": "text" });
    let Err(RpcError::Refused { code, message, data }) = client.call("message/send", message).await
    else {
        panic!("it was taken")
    };
    assert_eq!(code, -32602);
    assert!(message.contains("message.parts[0]"), "{message}");
    assert_eq!(data, json!({ "reason": "INVALID_PARAMS", "field": "message.parts[0]" }));
    Ok::<(), anyhow::Error>(())
}

/// Runs many sleeping tasks at once, of which each is answered.
#[tokio::test]
async fn many_concurrent_tasks_complete() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let sends = (0..100).map(|n| {
        let client = client.clone();
        async move { send(&client, "guest", &format!("reply {n}")).await }
    });
    let answers: Vec<Result<Value>> = futures::future::join_all(sends).await;
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer?["parts"][0]["text"], json!(n.to_string()));
    }
    Ok(())
}

#[tokio::test]
async fn cancel_ends_task_and_programs() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let (id, mut updates) = stream(&client, "guest", "sh setsid sleep 600 & sleep 600").await?;
    // The minder, the shell and two processes that sleep.
    eventually(Duration::from_secs(30), || processes_of_task(&id).len() >= 4).await?;

    let cancelled = client.call("tasks/cancel", json!({ "id": id })).await?;
    assert_eq!(state(&cancelled), "canceled");
    assert_eq!(processes_of_task(&id), [0_u32; 0], "no program outlives its task");
    until(&mut updates, |event| event["status"]["state"] == "canceled").await?;
    let again = client.call("tasks/cancel", json!({ "id": id })).await.expect_err("it is over");
    assert_eq!(again.code(), Some(-32002));
    Ok(())
}

#[tokio::test]
async fn program_runs_only_in_workspaces() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let at = |directory: &str| {
        let mut message = message_to("guest", "sh pwd");
        message["message"]["metadata"]["workingDirectory"] = json!(directory);
        client.call("message/send", message)
    };
    let inside = at(&hub.workspace().display().to_string()).await?;
    assert_eq!(said(&inside), "exit 0");
    for outside in ["/", "/etc", "relative", "/no/such/directory"] {
        let refused = at(outside).await?;
        assert!(said(&refused).starts_with("denied: work in"), "{outside}: {}", said(&refused));
    }
    let dots = format!("{}/..", hub.workspace().display());
    assert!(said(&at(&dots).await?).contains("outside the granted workspaces"));
    Ok(())
}
