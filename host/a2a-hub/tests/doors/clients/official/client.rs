//! Tests of the hub as a client of A2A: requests to a remote agent, and its responses.

use crate::{
    hub::InProcessHub,
    stage::{artifact, said, send, state},
};
use a2a_hub_tests::Client;
use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Uri, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use std::{
    io,
    sync::{Arc, Mutex},
};
use tokio::{net::TcpListener, task::JoinSet};

/// Remote agent of A2A 1.0 that records its requests.
struct Scribe {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Serves until the agent is dropped.
    _serving: JoinSet<io::Result<()>>,
}

/// Recorded request: path, headers, and body (null if empty).
#[derive(Clone)]
struct Asked {
    path: String,
    headers: HeaderMap,
    body: Value,
}

type Book = (Arc<Mutex<Vec<Asked>>>, String);

impl Scribe {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let router = Router::new()
            .route("/.well-known/agent-card.json", get(card))
            .route("/rpc", post(answer))
            .with_state((Arc::clone(&asked), url.clone()));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, asked, _serving: serving })
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().map(|asked| asked.clone()).unwrap_or_default()
    }
}

fn note((book, _): &Book, uri: &Uri, headers: HeaderMap, body: &[u8]) -> Value {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Ok(mut asked) = book.lock() {
        asked.push(Asked { path: uri.path().to_owned(), headers, body: body.clone() });
    }
    body
}

/// Serves a card that prefers an unknown binding and has unknown members.
async fn card(State(book): State<Book>, uri: Uri, headers: HeaderMap) -> Json<Value> {
    note(&book, &uri, headers, b"");
    let one = |binding: &str, version: &str, path: &str| json!({ "url": format!("{}{path}", book.1), "protocolBinding": binding, "protocolVersion": version });
    Json(json!({
        "name": "scribe", "description": "writes down", "version": "1", "skills": [], "unknown": { "x": 1 },
        "capabilities": { "streaming": true },
        "supportedInterfaces": [one("urn:example:pigeon", "1.0", "/pigeon"), one("JSONRPC", "1.0", "/rpc"), one("JSONRPC", "0.3", "/old")],
    }))
}

/// Answers each request with two artifacts in chunks, one of which it replaces.
async fn answer(State(book): State<Book>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let asked = note(&book, &uri, headers, &body);
    let ids = json!({ "taskId": "theirs", "contextId": "c" });
    let piece = |id: &str, text: &str, append: bool| {
        let mut update = ids.clone();
        update["artifact"] = json!({ "artifactId": id, "parts": [{ "text": text }] });
        update["append"] = json!(append);
        json!({ "artifactUpdate": update })
    };
    let mut done = ids.clone();
    done["status"] = json!({ "state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-31T10:30:00Z",
        "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "done" }] } });
    let told = [
        json!({ "task": { "id": "theirs", "contextId": "c", "status": { "state": "TASK_STATE_SUBMITTED" } } }),
        piece("one", "draft", false),
        piece("one", " of it", true),
        piece("other", "kept", false),
        piece("one", "the text", false),
        piece("one", ", whole", true),
        json!({ "statusUpdate": done }),
    ];
    let events = told.map(|told| {
        let response = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": told });
        format!("data: {response}\n\n")
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], events.concat()).into_response()
}

#[tokio::test]
async fn remote_requests_conform_to_a2a() -> Result<()> {
    let scribe = Scribe::start().await?;
    let remote = format!("[remote.far]\nurl = '{}'\n", scribe.url);
    let hub = InProcessHub::builder().config(remote).start().await?;
    let task = send(&Client::http(&hub), "far", "hello").await?;
    assert_eq!((state(&task), said(&task)), ("completed", "done"));
    // A chunk with `append` extends its artifact; any other replaces the artifact.
    assert_eq!(artifact(&task), "the text, whole");
    assert_eq!(task["artifacts"][1]["parts"][0]["text"], "kept");

    let asked = scribe.asked();
    for Asked { path, headers, .. } in &asked {
        assert_eq!(headers.get("a2a-version").context("no version")?, "1.0", "{path}");
    }
    let (cards, calls): (Vec<_>, Vec<_>) =
        asked.iter().partition(|asked| asked.path.starts_with("/.well-known/"));
    assert!(!cards.is_empty());
    assert_eq!(calls.len(), 1, "it was sent once");
    let Asked { path, headers, body } = calls[0];
    assert_eq!((path.as_str(), &headers["content-type"]), ("/rpc", &"application/json".parse()?));
    assert_eq!(
        (&body["jsonrpc"], &body["method"]),
        (&json!("2.0"), &json!("SendStreamingMessage"))
    );
    let message = &body["params"]["message"];
    assert_eq!(
        (&message["role"], &message["parts"]),
        (&json!("ROLE_USER"), &json!([{ "text": "hello" }]))
    );
    assert!(message["messageId"].as_str().is_some_and(|id| !id.is_empty()));
    assert_eq!(message.get("taskId"), None, "the task is the agent's to name");
    assert_eq!(message.get("contextId"), None, "and so is the conversation");
    Ok(())
}
