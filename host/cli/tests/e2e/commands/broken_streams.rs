//! Tests of the command line's reaction to a stream that ends before its task, and of failures as
//! JSON.

use crate::command_line::{Ran, command, finish};
use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, UnixListener},
    task::JoinSet,
};

/// Hub on a unix socket that sends some events of a task and then no more.
struct FakeHub {
    dir: TempDir,
    _serving: JoinSet<Result<()>>,
}

/// End of the fake hub's streams.
#[derive(Clone, Copy)]
enum End {
    /// In order, as at a shutdown of the hub.
    InOrder,
    /// With an error.
    Error,
    /// By closing the connection.
    HangUp,
}

fn status(state: &str) -> Value {
    json!({ "kind": "status-update", "taskId": "t-1", "contextId": "c-1", "final": false,
        "status": { "state": state, "timestamp": "2026-01-31T12:00:00Z" } })
}

/// Events of a task that is in the middle of its second line.
fn unfinished() -> Vec<Value> {
    let line = |text: &str| {
        json!({ "kind": "artifact-update", "taskId": "t-1", "contextId": "c-1", "append": true, "lastChunk": false,
            "artifact": { "artifactId": "a", "name": "a", "parts": [{ "kind": "text", "text": text }] } })
    };
    let task = json!({ "kind": "task", "id": "t-1", "contextId": "c-1", "history": [], "artifacts": [],
        "status": { "state": "submitted", "timestamp": "2026-01-31T12:00:00Z" } });
    vec![task, status("working"), line("one\n"), line("tw")]
}

impl FakeHub {
    fn start(events: Vec<Value>, end: End) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let listener = UnixListener::bind(dir.path().join("hub.sock"))?;
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await?;
                let (read, mut write) = stream.into_split();
                let mut requests = BufReader::new(read).lines();
                while let Some(request) = requests.next_line().await? {
                    let mut request = serde_json::from_str::<Value>(&request)?;
                    let id = request["id"].take();
                    let answer = |name: &str, value: &Value| json!({ "jsonrpc": "2.0", "id": id, name: value });
                    if !["message/stream", "tasks/resubscribe"].contains(&request["method"].as_str().unwrap_or_default()) {
                        let none = answer("result", &json!([]));
                        write.write_all(format!("{none}\n").as_bytes()).await?;
                        continue;
                    }
                    let mut answers: Vec<_> = events.iter().map(|event| answer("result", event)).collect();
                    answers.extend(match end {
                        End::InOrder => Some(answer("result", &json!({ "kind": "stream-end" }))),
                        End::Error => {
                            let data = json!({ "reason": "INTERNAL_ERROR" });
                            Some(answer("error", &json!({ "code": -32603, "message": "the stream broke", "data": data })))
                        }
                        End::HangUp => None,
                    });
                    for answer in answers {
                        write.write_all(format!("{answer}\n").as_bytes()).await?;
                    }
                    if let End::HangUp = end {
                        break;
                    }
                }
            }
        });
        Ok(Self { dir, _serving: serving })
    }

    async fn run(&self, args: &[&str]) -> Result<Ran> {
        finish(command(&self.dir.path().join("hub.sock"), self.dir.path(), args)?).await
    }
}

/// Parses the only JSON object on standard output.
fn object(ran: &Ran) -> Result<Value> {
    let object: Value = serde_json::from_str(&ran.stdout).with_context(|| ran.stdout.clone())?;
    assert_eq!(object["exit"].as_i64(), ran.code.map(i64::from), "{object}");
    assert_eq!(ran.stderr, "");
    Ok(object)
}

#[tokio::test]
async fn premature_stream_end_exits_with_fault() -> Result<()> {
    for (end, why) in [
        (End::InOrder, "the stream ended before the task did"),
        (End::Error, "the stream broke"),
        (End::HangUp, "the hub closed the connection before it answered"),
    ] {
        let hub = FakeHub::start(unfinished(), end)?;
        for args in
            [&["send", "x", "hi"][..], &["send", "x", "hi", "--stream"], &["task", "watch", "t-1"]]
        {
            let ran = hub.run(args).await?;
            assert_eq!(ran.code, Some(2), "{args:?} {}", ran.stderr);
            assert!(ran.stderr.contains(why), "{args:?} {}", ran.stderr);
            let on =
                "task t-1 was last reported as working, and may still run\nhelp: a2a-hub --socket ";
            assert!(
                ran.stderr.contains(on) && ran.stderr.ends_with(" task watch t-1\n"),
                "{args:?} {}",
                ran.stderr
            );
            let told = if args.len() > 3 || args[0] == "task" { "one\ntw\n" } else { "" };
            assert_eq!(ran.stdout, told, "{args:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn broken_stream_is_one_json_object() -> Result<()> {
    let hub = FakeHub::start(unfinished(), End::InOrder)?;
    let told = object(&hub.run(&["--format", "json", "send", "x", "hi"]).await?)?;
    let told = told.to_string().replace(&hub.dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!(told, @r#"{"artifacts":[{"artifactId":"a","name":"a","parts":[{"kind":"text","text":"one\ntw"}]}],"contextId":"c-1","error":{"code":null,"fix":"a2a-hub --socket DIR/hub.sock task watch t-1","message":"the stream ended before the task did; task t-1 was last reported as working, and may still run","reason":"STREAM_ENDED"},"exit":2,"state":"working","taskId":"t-1"}"#);
    let ran = hub.run(&["--format", "json", "send", "x", "hi", "--stream"]).await?;
    let last: Value = serde_json::from_str(ran.stdout.lines().last().context("nothing is told")?)?;
    assert_eq!((&last["error"]["reason"], &last["exit"]), (&json!("STREAM_ENDED"), &json!(2)));
    assert_eq!(ran.stdout.lines().count(), 5, "each event and the error: {}", ran.stdout);
    let silent = FakeHub::start(Vec::new(), End::InOrder)?;
    let told = object(&silent.run(&["--format", "json", "send", "x", "hi"]).await?)?;
    assert_eq!(told["error"]["reason"], "STREAM_ENDED");
    Ok(())
}

#[tokio::test]
async fn json_exit_matches_process_exit_code() -> Result<()> {
    for (state, exit) in [("completed", 0), ("failed", 1), ("input-required", 3)] {
        let events = unfinished().into_iter().chain([status(state)]).collect();
        let hub = FakeHub::start(events, End::InOrder)?;
        let told = object(&hub.run(&["--format", "json", "send", "x", "hi"]).await?)?;
        assert_eq!((&told["exit"], &told["state"]), (&json!(exit), &json!(state)));
        assert_eq!((&told["taskId"], &told["contextId"]), (&json!("t-1"), &json!("c-1")));
    }
    Ok(())
}

#[tokio::test]
async fn every_failure_is_one_json_object() -> Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("bad.toml"), "http = 3")?;
    let bad = dir.path().join("bad.toml").display().to_string();
    for (args, reason) in [
        (&["status"][..], "HUB_NOT_RUNNING"),
        (&["agents"], "HUB_NOT_RUNNING"),
        (&["tasks"], "HUB_NOT_RUNNING"),
        (&["task", "show", "t"], "HUB_NOT_RUNNING"),
        (&["task", "watch", "t"], "HUB_NOT_RUNNING"),
        (&["contexts"], "HUB_NOT_RUNNING"),
        (&["deliveries"], "HUB_NOT_RUNNING"),
        (&["agent", "reload", "echo"], "HUB_NOT_RUNNING"),
        (&["send", "echo", "hi"], "HUB_NOT_RUNNING"),
        (&["send", "http://127.0.0.1:1", "hi"], "AGENT_UNREACHABLE"),
        (&["logs"], "COMMAND_FAILED"),
        (&["send", "echo"], "USAGE"),
        (&["fly"], "USAGE"),
        (&["config", "show", "--config", &bad], "CONFIGURATION_INVALID"),
        (&["start", "--config", &bad], "CONFIGURATION_INVALID"),
    ] {
        let args = [&["--format=json"], args].concat();
        let ran = finish(command(&dir.path().join("none.sock"), dir.path(), &args)?).await?;
        assert_eq!(ran.code, Some(2), "{args:?}");
        let told = object(&ran).with_context(|| format!("{args:?}"))?;
        assert_eq!(told["error"]["reason"], reason, "{args:?} {told}");
        let message = told["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty() && !message.starts_with("a2a-hub:"), "{told}");
    }
    Ok(())
}

/// Agent whose stream breaks off, and which then does not know the task any more.
async fn forgetful(asked: Json<Value>) -> Response {
    let Json(asked) = asked;
    if asked["method"] != "message/stream" {
        let error = json!({ "code": -32001, "message": "no such task" });
        return Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }))
            .into_response();
    }
    let events = unfinished().into_iter().map(|event| {
        let told = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": event });
        format!("data: {told}\n\n")
    });
    ([("content-type", "text/event-stream")], events.collect::<String>()).into_response()
}

#[tokio::test]
async fn premature_remote_stream_end_is_failure() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let card = json!({ "name": "forgetful", "description": "forgets", "version": "1", "url": &url, "skills": [],
        "protocolVersion": "0.3.0", "capabilities": { "streaming": true },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"] });
    let router = Router::new()
        .route("/.well-known/agent-card.json", get(move || async { Json(card) }))
        .route("/", post(forgetful));
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await });

    let dir = tempfile::tempdir()?;
    let run =
        async |args: &[&str]| finish(command(&dir.path().join("none"), dir.path(), args)?).await;
    let ran = run(&["send", &url, "hi", "--stream", "--token-env", "HOME"]).await?;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), "one\ntw\n"), "{}", ran.stderr);
    let on =
        format!("may still run\nhelp: a2a-hub task watch t-1 --agent {url} --token-env HOME\n");
    assert!(ran.stderr.contains("no such task") && ran.stderr.ends_with(&on), "{}", ran.stderr);
    let told = object(&run(&["send", &url, "hi", "--format", "json"]).await?)?;
    let error = &told["error"];
    assert_eq!((&error["reason"], &error["code"]), (&json!("TASK_NOT_FOUND"), &json!(-32001)));
    let made = &told["artifacts"][0]["parts"];
    assert_eq!(
        (&told["taskId"], made),
        (&json!("t-1"), &json!([{ "kind": "text", "text": "one\ntw" }]))
    );
    Ok(())
}
