//! `send` to an agent elsewhere, which here is another hub's: as it is, and behind a front that makes it old or unreliable.

use crate::{command_line::run, stage::hub_with_guest};
use a2a_hub_tests::TestHub;
use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use futures::StreamExt as _;
use serde_json::{Value, json};
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{net::TcpListener, task::JoinSet};

/// A server that speaks 0.3 only, by passing everything on to a hub's guest.
struct Front {
    /// Where it is.
    url: String,
    shared: Arc<Shared>,
    /// Ends with it.
    _serving: JoinSet<io::Result<()>>,
}

struct Shared {
    /// Where the guest is.
    behind: String,
    /// What its card says of where it is.
    card_url: String,
    /// How many answers are cut after a few pieces.
    cuts: AtomicUsize,
    /// What it was shown, and asked.
    seen: Mutex<Vec<(Option<String>, String)>>,
}

impl Front {
    async fn start(hub: &TestHub, cuts: usize, elsewhere: Option<&str>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/old", listener.local_addr()?);
        let shared = Arc::new(Shared {
            behind: format!("http://{}/agents/guest", hub.http()),
            card_url: elsewhere.unwrap_or(&url).to_owned(),
            cuts: AtomicUsize::new(cuts),
            seen: Mutex::default(),
        });
        // Where cards were before 0.3.
        let router = Router::new()
            .route("/old/.well-known/agent.json", get(card))
            .route("/old", post(pass_on))
            .with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, shared, _serving: serving })
    }

    fn seen(&self) -> Vec<(Option<String>, String)> {
        self.shared.seen.lock().map(|seen| seen.clone()).unwrap_or_default()
    }
}

async fn card(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(json!({
        "name": "old", "description": "speaks 0.3", "version": "1", "protocolVersion": "0.3.0",
        "url": shared.card_url, "preferredTransport": "JSONRPC", "skills": [],
        "capabilities": { "streaming": true },
    }))
}

async fn pass_on(State(shared): State<Arc<Shared>>, headers: HeaderMap, asked: Bytes) -> Response {
    let shown = headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
    let method = serde_json::from_slice::<Value>(&asked).unwrap_or_default()["method"].take();
    if let Ok(mut seen) = shared.seen.lock() {
        seen.push((shown.map(str::to_owned), method.as_str().unwrap_or_default().to_owned()));
    }
    let request = reqwest::Client::new().post(&shared.behind).body(asked);
    let request = request.header("content-type", "application/json");
    let Ok(answer) = request.header("accept", "text/event-stream").send().await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let kind = answer.headers().get(header::CONTENT_TYPE).cloned();
    let pieces = answer.bytes_stream().map(|piece| piece.map_err(io::Error::other));
    let cut = shared.cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    let body = if cut.is_ok() {
        let broken = futures::stream::iter([Err(io::Error::other("cut"))]);
        Body::from_stream(pieces.take(3).chain(broken))
    } else {
        Body::from_stream(pieces)
    };
    (kind.map(|kind| [(header::CONTENT_TYPE, kind)]), body).into_response()
}

#[tokio::test]
async fn an_agent_elsewhere_answers_as_one_here_does() -> Result<()> {
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
async fn a_broken_stream_of_an_old_agent_is_taken_up_again() -> Result<()> {
    let hub = hub_with_guest().await?;
    let front = Front::start(&hub, 2, None).await?;
    // A variable that is there in any case.
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
async fn what_cannot_be_talked_to_is_said() -> Result<()> {
    let hub = hub_with_guest().await?;
    let there = format!("http://{}", hub.http());
    let front = Front::start(&hub, 0, Some(&there)).await?;
    let ran = run(&hub, &["send", &front.url, "hi", "--token-env", "HOME"]).await?;
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("and sends its clients to"), "{}", ran.stderr);
    assert!(front.seen().is_empty());
    let ran = run(&hub, &["send", &format!("{there}/nobody"), "hi"]).await?;
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("find the card of"), "{}", ran.stderr);
    let ran = run(&hub, &["send", &there, "hi", "--token-env", "A2A_NO_SUCH_TOKEN"]).await?;
    assert!(ran.stderr.contains("A2A_NO_SUCH_TOKEN is not set"), "{}", ran.stderr);
    Ok(())
}
