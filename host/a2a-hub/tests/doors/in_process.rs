//! Tests of Localized A2A: agents that are values of a program, called by it and by one another
//! without a socket.

use a2a_hub::{
    Builder, BuiltIn, ChildRequest, Ended, Hub, Stage, completed,
    config::Config,
    local::{Agent, card},
    protocol::{
        card::AgentCard,
        message::{Message, Part, Role},
        task::{Task, TaskState},
    },
};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};
use tokio::time::Instant;

/// Agent that follows the instruction in its message.
struct Worker;

impl Agent for Worker {
    fn card(&self) -> AgentCard {
        card("Worker", "Does as it is told", &["work"])
    }

    async fn run(&self, stage: Stage) -> Ended {
        let text = stage.text();
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match word {
            "make" => match stage.data(json!({ "made": rest })).await {
                Ok(()) => completed("made"),
                Err(why) => Ended::Failed(why),
            },
            "ask" => match stage.ask("which?", None).await {
                Ok(answer) => completed(&answer.message.joined_text()),
                Err(why) => Ended::Failed(why),
            },
            "silent" => completed(""),
            "panic" => panic!("as told"),
            "call" => {
                let message = Message::text(Role::User, "make it");
                match stage.outcome_of(ChildRequest::new(rest, message)).await {
                    Ok(Ended::Status { state, .. }) => completed(state.name()),
                    Ok(_) => completed("something else"),
                    Err(why) => completed(&why.to_string()),
                }
            }
            _ => completed(&text.to_uppercase()),
        }
    }
}

fn builder() -> Builder {
    Hub::in_memory()
}

async fn hub() -> Result<Hub> {
    builder().register("data_processor", Worker)?.start().await
}

/// A hub in memory does not recognise repeated messages, whatever the configuration says.
#[tokio::test]
async fn memory_hub_ignores_idempotency_configuration() -> Result<()> {
    let mut config = Config { max_tasks: Some(8), ..Config::default() };
    (config.http.enabled, config.socket.enabled) = (false, false);
    let hub = builder().config(config).register("data_processor", Worker)?.start().await?;
    let worker = hub.local().agent("data_processor").context("it is there")?;
    let message = Message::text(Role::User, "hello");
    let tasks = [worker.send(message.clone()).await?, worker.send(message).await?];
    assert_ne!(tasks[0].id, tasks[1].id);
    hub.shutdown().await;
    Ok(())
}

fn send(id: u32, task: Option<&str>, message: &str) -> Value {
    let params = match task {
        Some(task) => json!({ "task_id": task, "message": message }),
        None => json!({ "message": message }),
    };
    json!({ "jsonrpc": "2.0", "method": "tasks/send", "params": params, "id": id })
}

fn text_of(task: &Task) -> String {
    task.status.message.as_ref().map(Message::joined_text).unwrap_or_default()
}

#[tokio::test]
async fn json_rpc_call_returns_local_a2a_response() -> Result<()> {
    let hub = hub().await?;
    let agent = hub.local().agent("data_processor").context("it is there")?;
    assert_eq!(agent.id().as_str(), "data-processor");
    assert!(hub.local().agent("data-processor").is_some() && hub.local().agent("other").is_none());
    let ok = |result: Value, id: u32| json!({ "jsonrpc": "2.0", "result": result, "id": id });
    assert_eq!(agent.call(send(1, Some("task_123"), "hello")).await, ok(json!("HELLO"), 1));
    let text = send(2, Some("task_124"), "hello").to_string();
    assert_eq!(agent.call(text).await, ok(json!("HELLO"), 2));
    // The task is also visible through other methods.
    let get =
        json!({ "jsonrpc": "2.0", "method": "tasks/get", "params": { "id": "task_123" }, "id": 3 });
    let task = hub.local().call(get).await;
    assert_eq!(task["result"]["status"]["state"], "completed", "{task}");
    assert_eq!(task["result"]["history"][0]["parts"][0]["text"], "hello");
    // An agent without a last message is answered with the task.
    let silent = agent.call(send(4, None, "silent")).await;
    assert_eq!(silent["result"]["status"]["state"], "completed", "{silent}");
    // `message/send` selects its agent as on other transports.
    let message = json!({ "kind": "message", "messageId": "m", "role": "user",
        "parts": [{ "kind": "text", "text": "hi" }], "metadata": { "targetSkill": "work" } });
    let request = json!({ "jsonrpc": "2.0", "method": "message/send", "params": { "message": message }, "id": "a" });
    let answer = hub.local().call(request).await;
    assert_eq!(
        (&answer["id"], &answer["result"]["status"]["message"]["parts"][0]["text"]),
        (&json!("a"), &json!("HI"))
    );
    // A notification has no response.
    let mut notification = send(5, Some("quiet"), "hello");
    notification.as_object_mut().context("an object")?.remove("id");
    assert_eq!(agent.call(notification).await, Value::Null);
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn invalid_calls_return_json_rpc_errors() -> Result<()> {
    let hub = hub().await?;
    let agent = hub.local().agent("data_processor").context("it is there")?;
    assert_eq!(agent.call(send(1, Some("t"), "hello")).await["result"], "HELLO");
    let mut told = Vec::new();
    for request in [
        json!("no object"),
        json!({ "jsonrpc": "2.0", "method": "tasks/send", "params": {}, "id": 2 }),
        json!({ "jsonrpc": "2.0", "method": "tasks/fly", "params": {}, "id": 3 }),
        send(4, Some("../../x"), "hello"),
        send(5, Some("t"), "once more"),
        send(6, Some("u"), "panic"),
        json!({ "jsonrpc": "2.0", "method": "message/stream", "id": 7, "params": {
            "message": { "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "hi" }] } } }),
    ] {
        let answer = agent.call(request).await;
        told.push(format!(
            "{} {} {}",
            answer["id"], answer["error"]["code"], answer["error"]["message"]
        ));
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    null -32600 "a request is an object; a batch is none here: call once for each"
    2 -32602 "`params.message`: must be a string, or a message of A2A"
    3 -32601 "no method is called `tasks/fly`; `rpc.discover` lists them"
    4 -32602 "`params.task_id`: must be 1 to 128 letters, digits, `_`, `-` and `.`, and not begin with a `.`"
    5 -32005 "task `t` is completed, and takes no message; send the message without `taskId`"
    6 -32004 "the agent's code crashed: it panicked; the hub's log has the panic's text"
    7 -32005 "`message/stream` is a stream; `subscribe` has a function hear what happens to a task"
    "#);
    // A panic affects only its own task.
    assert_eq!(agent.call(send(8, Some("v"), "hello")).await["result"], "HELLO");
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn answer_under_same_id_continues_task() -> Result<()> {
    let hub = hub().await?;
    let agent = hub.local().agent("data_processor").context("it is there")?;
    let (heard, events) = mpsc::channel();
    hub.local().subscribe("t", move |event| drop(heard.send(event.to_value())))?;
    let asked = agent.call(send(1, Some("t"), "ask")).await;
    assert_eq!(asked["result"]["status"]["state"], "input-required", "{asked}");
    assert_eq!(agent.call(send(2, Some("t"), "that one")).await["result"], "that one");
    let all: Vec<_> = events.iter().map(|it| it["status"].clone()).collect();
    assert_eq!(all.first(), Some(&json!("pending")));
    assert!(all.contains(&json!("input-required")), "{all:?}");
    assert_eq!(all.last(), Some(&json!("completed")), "one callback hears it all: {all:?}");
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn agent_calls_follow_rules() -> Result<()> {
    let builder = builder().register("boss", Worker)?.register("worker", Worker)?;
    let hub = builder.register("other", Worker)?.allow("boss", "worker")?.start().await?;
    let ask = async |agent: &str, text: &str| {
        let agent = hub.local().agent(agent).context("it is there")?;
        anyhow::Ok(text_of(&agent.send(Message::text(Role::User, text)).await?))
    };
    assert_eq!(ask("boss", "call worker").await?, "completed");
    for (caller, callee) in
        [("boss", "other"), ("worker", "boss"), ("worker", "other"), ("other", "worker")]
    {
        let refused = ask(caller, &format!("call {callee}")).await?;
        assert!(refused.contains("call `"), "{caller} called {callee}: {refused}");
    }
    // The rules also apply to JSON-RPC values, for any code that holds the agent's interface.
    let boss = hub.local().speaking_as("boss")?;
    let worker = boss.agent("worker").context("it is there")?;
    assert_eq!(worker.call(send(1, None, "hello")).await["result"], "HELLO");
    let other = boss.agent("other").context("it is there")?;
    let refused = other.call(send(2, None, "hello")).await;
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .contains("`boss` may not call `other`"),
        "{refused}"
    );
    let by_skill = json!({ "jsonrpc": "2.0", "method": "tasks/send", "id": 3,
        "params": { "message": "hello", "metadata": { "targetSkill": "work" } } });
    assert!(boss.call(by_skill).await["error"].is_object(), "a rule names agents");
    let list = json!({ "jsonrpc": "2.0", "method": "hub/tasks/list", "params": {}, "id": 4 });
    assert!(boss.call(list).await["error"].is_object());
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn faulty_callback_affects_no_other() -> Result<()> {
    let hub = hub().await?;
    let agent = hub.local().agent("data_processor").context("it is there")?;
    let (heard, events) = mpsc::channel();
    let (release, blocked) = mpsc::channel::<()>();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    hub.local().subscribe("t", move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        panic!("as told");
    })?;
    hub.local().subscribe("t", move |_| {
        let _ = blocked.recv();
    })?;
    hub.local().subscribe("t", move |event| drop(heard.send(event.to_value())))?;
    hub.local().subscribe("never", |_| ())?;
    let begun = Instant::now();
    assert_eq!(agent.call(send(1, Some("t"), "make it")).await["result"], "made");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let last = events.recv_timeout(Duration::from_secs(5))?;
    assert_eq!(last, json!({ "status": "pending" }));
    let made = json!({ "status": "completed", "message": "made", "artifacts": [{ "made": "it" }] });
    assert!(events.iter().any(|event| event == made));
    assert_eq!(calls.load(Ordering::Relaxed), 1, "it hears no more");
    // A late callback receives all events.
    let (late, events) = mpsc::channel();
    hub.local().subscribe("t", move |event| drop(late.send(event.to_value())))?;
    let all = tokio::task::spawn_blocking(move || events.iter().collect::<Vec<_>>()).await?;
    assert_eq!(all.last(), Some(&made), "{all:?}");
    // A blocked callback does not delay the shutdown.
    let begun = Instant::now();
    hub.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(release);
    Ok(())
}

#[tokio::test]
async fn callback_count_is_limited() -> Result<()> {
    let hub = hub().await?;
    let full = (0..2_000).find(|n| hub.local().subscribe(format!("t{n}"), |_| ()).is_err());
    assert_eq!(full, Some(1_024));
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn concurrent_calls_with_id_create_one_task() -> Result<()> {
    let hub = hub().await?;
    let agent = hub.local().agent("data_processor").context("it is there")?;
    let all = (0..16).map(|n| agent.call(send(n, Some("t"), "hello")));
    let all = futures::future::join_all(all).await;
    let done = all.iter().filter(|answer| answer["result"] == "HELLO").count();
    assert_eq!(done, 1, "{all:?}");
    hub.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_messages_persist_in_disk_hub() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let stored = || Hub::builder(dir.path()).built_in(BuiltIn::default());
    let hub = stored().register("worker", Worker)?.start().await?;
    let worker = hub.local().agent("worker").context("it is there")?;
    let message = Message::new(Role::User, vec![Part::text("make it"), Part::data(json!(1))]);
    let task = worker.send_as("own", message).await?;
    assert_eq!((task.status.state, task.id.as_str()), (TaskState::Completed, "own"));
    // The handle keeps the store open.
    drop(worker);
    hub.shutdown().await;
    let hub = stored().register("worker", Worker)?.start().await?;
    let get =
        json!({ "jsonrpc": "2.0", "method": "tasks/get", "params": { "id": "own" }, "id": 1 });
    let there = hub.local().call(get).await;
    assert_eq!(
        there["result"]["artifacts"][0]["parts"][0]["data"],
        json!({ "made": "it" }),
        "{there}"
    );
    let again = hub.local().agent("worker").context("it is there")?;
    assert!(again.send_as("own", Message::text(Role::User, "x")).await.is_err(), "it is over");
    hub.shutdown().await;
    assert!(thread::current().name().is_some(), "nobody took this thread down");
    Ok(())
}
