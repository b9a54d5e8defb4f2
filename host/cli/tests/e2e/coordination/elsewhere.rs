//! Tests of `send` to a remote agent, which is another hub's here: directly, and through a proxy
//! that makes it old or unreliable.

use crate::{
    command_line::run,
    stage::{hub_with_guest, state, stream},
};
use a2a_hub_tests::{Client, Front, TestHub};
use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    http::{StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

#[tokio::test]
async fn remote_agent_answers_like_local() -> Result<()> {
    let (here, there) = (hub_with_guest().await?, hub_with_guest().await?);
    let url = format!("http://{}/agents/guest", there.http());
    let ran = run(&here, &["send", &url, "flood 3", "--stream"]).await?;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "1\n2\n3\n"), "{}", ran.stderr);
    let ran = run(&here, &["send", &url, "reject"]).await?;
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(1), "", "not today\n"));

    let asked = run(&here, &["send", &url, "ask"]).await?;
    assert_eq!(asked.code, Some(3), "{}", asked.stderr);
    let task = asked.stderr.split("--task ").nth(1).and_then(|rest| rest.split(' ').next());
    let task = task.context("it does not say how to answer")?;
    let ran = run(&here, &["send", &url, "--task", task, "hi"]).await?;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hi\n"), "{}", ran.stderr);
    Ok(())
}

#[tokio::test]
async fn broken_stream_of_v03_agent_resumes() -> Result<()> {
    let hub = hub_with_guest().await?;
    let front = Front::start(&hub, 2, None).await?;
    // Any variable that is always set.
    let ran = run(&hub, &["send", &front.url, "tick 8 100", "--token-env", "HOME"]).await?;
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "1\n2\n3\n4\n5\n6\n7\n8\n"),
        "{}",
        ran.stderr
    );
    let seen = front.seen();
    let methods: Vec<_> = seen.iter().map(|(_, method)| method.as_str()).collect();
    assert_eq!(methods[..2], ["message/stream", "tasks/resubscribe"]);
    let bearer = format!("Bearer {}", hub.home().display());
    assert!(seen.iter().all(|(shown, _)| shown.as_ref() == Some(&bearer)), "{seen:?}");
    Ok(())
}

#[tokio::test]
async fn foreign_origin_and_missing_token_are_refused() -> Result<()> {
    let hub = hub_with_guest().await?;
    let there = format!("http://{}", hub.http());
    let front = Front::start(&hub, 0, Some(&there)).await?;
    let ran = run(&hub, &["send", &front.url, "hi", "--token-env", "HOME"]).await?;
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("and sends its clients to"), "{}", ran.stderr);
    assert!(front.seen().is_empty());
    let ran = run(&hub, &["send", &there, "hi", "--token-env", "A2A_NO_SUCH_TOKEN"]).await?;
    assert!(ran.stderr.contains("A2A_NO_SUCH_TOKEN is not set"), "{}", ran.stderr);
    Ok(())
}

/// A card may name another origin. Requests without a token follow it; a token is sent there only
/// if the user allows it.
#[tokio::test]
async fn token_reaches_only_allowed_origins() -> Result<()> {
    let hub = hub_with_guest().await?;
    let there = Front::start(&hub, 0, None).await?;
    let origin = there.url.trim_end_matches("/old");
    let front = Front::start(&hub, 0, Some(&there.url)).await?;
    let send = ["send", &front.url, "reply hi"];
    let ran = run(&hub, &send).await?;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hi\n"), "{}", ran.stderr);
    assert_eq!(there.seen().last().and_then(|(shown, _)| shown.clone()), None);

    let seen = there.seen().len();
    let with_token = [&send[..], &["--token-env", "HOME"]].concat();
    let ran = run(&hub, &with_token).await?;
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains(&format!("`--allow-origin {origin}`")), "{}", ran.stderr);
    let other = [&with_token[..], &["--allow-origin", "http://127.0.0.1:1"]].concat();
    assert_eq!(run(&hub, &other).await?.code, Some(2), "another one is allowed");
    assert_eq!(there.seen().len(), seen, "nothing was sent there");

    let ran = run(&hub, &[&with_token[..], &["--allow-origin", origin]].concat()).await?;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hi\n"), "{}", ran.stderr);
    let bearer = format!("Bearer {}", hub.home().display());
    assert_eq!(there.seen().last().and_then(|(shown, _)| shown.clone()), Some(bearer));
    assert!(front.seen().is_empty(), "what has the card is only asked for it");
    Ok(())
}

/// Response of a server without a valid card.
async fn odd(path: &str) -> Response {
    match path {
        "/page/.well-known/agent-card.json" => "<!doctype html>".into_response(),
        "/text/.well-known/agent-card.json" => "hello".into_response(),
        "/half/.well-known/agent-card.json" => "{}".into_response(),
        "/shut/.well-known/agent-card.json" => StatusCode::UNAUTHORIZED.into_response(),
        "/moved/.well-known/agent-card.json" => {
            (StatusCode::FOUND, [(header::LOCATION, "http://x/")]).into_response()
        }
        "/late/.well-known/agent-card.json" => Json(json!({
            "name": "late", "description": "wants a token for work only", "version": "1", "url": "/late", "skills": [],
        }))
        .into_response(),
        "/late" => StatusCode::UNAUTHORIZED.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

#[tokio::test]
async fn invalid_agent_url_errors_name_fix() -> Result<()> {
    let hub = TestHub::start().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let there = format!("http://{}", listener.local_addr()?);
    let router = Router::new().fallback(|uri: Uri| async move { odd(uri.path()).await });
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await });
    let mut told = String::new();
    for place in ["page", "text", "half", "shut", "moved", "late", "none"] {
        let ran = run(&hub, &["send", &format!("{there}/{place}"), "hi"]).await?;
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        told.push_str(&ran.stderr.replace(&there, "THERE"));
    }
    let ran = run(&hub, &["send", "http://127.0.0.1:1", "hi"]).await?;
    told.push_str(&ran.stderr);
    let ran = run(&hub, &["send", &format!("{there}/shut"), "hi", "--token-env", "HOME"]).await?;
    told.push_str(&ran.stderr.replace(&there, "THERE"));
    for args in [
        vec!["send", "http://x", "hi", "--cwd", "/"],
        vec!["send", "echo", "hi", "--token-env", "HOME"],
        vec!["task", "show", "1", "--agent", "echo"],
    ] {
        let ran = run(&hub, &args).await?;
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        told.push_str(&ran.stderr);
    }
    insta::assert_snapshot!(told, @r#"
        error: find the card of THERE/page: a web page is at THERE/page/.well-known/agent-card.json, and no card; give the URL of the agent itself, or that of its card
        error: find the card of THERE/text: what is at THERE/text/.well-known/agent-card.json is no JSON: expected value at line 1 column 1
        error: read the agent's card: missing field `name`; a card is a JSON object with at least `name`, `description` and `version`
        error: find the card of THERE/shut: THERE/shut/.well-known/agent-card.json answers with HTTP status 401 Unauthorized: it wants a token; `--token-env VARIABLE` shows what that variable holds, and for `[remote.<id>]` so does `token_env`
        error: find the card of THERE/moved: THERE/moved/.well-known/agent-card.json answers with HTTP status 302 Found: it points elsewhere to "http://x/", and nobody is followed unseen; give that URL if it is the right one
        error: ask the agent: it answers with HTTP status 401 Unauthorized, and wants a token that it knows; `--token-env VARIABLE` shows what that variable holds, and for `[remote.<id>]` so does `token_env`
        error: find the card of THERE/none: there is none at THERE/none/.well-known/agent-card.json or THERE/none/.well-known/agent.json; give the URL of the agent itself, or that of its card
        error: find the card of http://127.0.0.1:1/: nobody answers there (Connection refused (os error 111)); look at host and port, and whether the agent runs
        error: find the card of THERE/shut: THERE/shut/.well-known/agent-card.json answers with HTTP status 401 Unauthorized: it does not take the token it was shown
        error: send to http://x: a remote agent cannot work in a directory of this machine (`--cwd`); attach files with `--file`
        error: send to `echo`: `--token-env` needs an agent that is named by its URL; for a remote agent of the hub, set `token_env` and `origins` in `[remote.<id>]`
        error: look for the task at `echo`: `--agent` takes the URL of a remote agent; leave it out for a task of the hub
        "#);
    Ok(())
}

/// Agent in the way of another maker: its card has the defaults of protobuf, and it repeats its
/// task between two pieces of an artifact.
async fn foreign(uri: Uri, body: String) -> Response {
    if uri.path() == "/.well-known/agent-card.json" {
        let card = json!({ "name": "foreign", "description": "", "version": "", "iconUrl": "",
            "documentationUrl": "", "provider": { "organization": "", "url": "" }, "skills": null,
            "securitySchemes": null, "capabilities": { "streaming": true, "extensions": null },
            "supportedInterfaces": [{ "url": "/", "protocolBinding": "JSONRPC", "tenant": "" }] });
        return format!("\u{feff}{card}").into_response();
    }
    let asked: Value = serde_json::from_str(&body).unwrap_or_default();
    let task = json!({ "task": { "id": "t", "contextId": "c",
        "status": { "state": "TASK_STATE_WORKING" } } });
    let piece = |text: &str, append: bool| {
        json!({ "artifactUpdate": { "taskId": "t", "contextId": "c", "append": append,
            "artifact": { "artifactId": "a", "parts": [{ "text": text }, { "hologram": {} }] } } })
    };
    let done = json!({ "statusUpdate": { "taskId": "t", "contextId": "c",
        "status": { "state": "TASK_STATE_COMPLETED" } } });
    let pieces = [piece("one ", false), task.clone(), json!({ "news": 1 }), piece("two", true)];
    let events = std::iter::once(task).chain(pieces).chain([done]).map(|event| {
        let told = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": event });
        format!("event: any\rdata: {told}\r\r")
    });
    ([("content-type", "Text/Event-Stream")], events.collect::<String>()).into_response()
}

#[tokio::test]
async fn foreign_agents_card_and_pieces_are_read() -> Result<()> {
    let hub = TestHub::start().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = Router::new().fallback(foreign);
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await });
    for how in [&[][..], &["--stream"]] {
        let ran = run(&hub, &[&["send", &url, "hi"][..], how].concat()).await?;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "one two\n"), "{}", ran.stderr);
    }
    let ran = run(&hub, &["send", &url, "hi", "--format", "json"]).await?;
    let told: Value = serde_json::from_str(&ran.stdout)?;
    assert_eq!(told["artifacts"][0]["parts"], json!([{ "kind": "text", "text": "one two" }]));
    Ok(())
}

/// A remote task can be limited, cancelled and watched like a local one.
#[tokio::test]
async fn remote_task_is_limited_watched_and_cancelled() -> Result<()> {
    let (here, there) = (hub_with_guest().await?, hub_with_guest().await?);
    let url = format!("http://{}/agents/guest", there.http());
    let far = Client::http(&there);
    for agent in ["guest", &url] {
        let ran = run(&here, &["send", agent, "tick 1000 100", "--timeout", "700"]).await?;
        assert_eq!(
            (ran.code, ran.stderr.trim_end()),
            (Some(1), "The task exceeded its time limit of 700 ms.")
        );
        assert!(ran.stdout.starts_with("1\n"), "its output so far: {}", ran.stdout);
    }
    let tasks = far.call("hub/tasks/list", json!({})).await?;
    assert_eq!(state(&tasks[0]), "canceled");
    let args = ["send", &url, "tick 1000 100", "--timeout", "700", "--format", "json"];
    let told: Value = serde_json::from_str(&run(&here, &args).await?.stdout)?;
    assert_eq!(told["exit"], 1, "{told}");

    let (id, _updates) = stream(&far, "guest", "tick 20 100").await?;
    let ran = run(&here, &["task", "watch", &id, "--agent", &url]).await?;
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 20), "{}", ran.stderr);
    let ran = run(&here, &["task", "show", &id, "--agent", &url]).await?;
    assert!(ran.stdout.contains("state    completed"), "{}{}", ran.stdout, ran.stderr);
    let (id, _updates) = stream(&far, "guest", "tick 1000 100").await?;
    let ran = run(&here, &["task", "cancel", &id, "--agent", &url]).await?;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), &*format!("task {id} is cancelled\n")));
    Ok(())
}
