//! Server that speaks only an old A2A version, in front of a hub's guest.

use crate::Endpoints;
use anyhow::Result;
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

/// Server that speaks only 0.3 and forwards everything to a hub's guest.
pub struct Front {
    /// URL of the server.
    pub url: String,
    shared: Arc<Shared>,
    /// Task of the server, stopped on drop.
    _serving: JoinSet<io::Result<()>>,
}

struct Shared {
    /// URL of the guest.
    behind: String,
    card: Mutex<Value>,
    /// Number of responses to cut off after a few chunks.
    cuts: AtomicUsize,
    /// Received tokens and requests.
    seen: Mutex<Vec<(Option<String>, String)>>,
    /// Headers of each request.
    headers: Mutex<Vec<HeaderMap>>,
}

impl Front {
    /// Starts a server in front of this hub's guest. It cuts off `cuts` responses, and its card may
    /// direct clients to another URL.
    pub async fn start(hub: &Endpoints, cuts: usize, elsewhere: Option<&str>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/old", listener.local_addr()?);
        let shared = Arc::new(Shared {
            behind: format!("http://{}/agents/guest", hub.http()),
            card: Mutex::new(json!({
                "name": "old", "description": "speaks 0.3", "version": "1", "protocolVersion": "0.3.0",
                "url": elsewhere.unwrap_or(&url), "preferredTransport": "JSONRPC", "skills": [],
                "capabilities": { "streaming": true },
            })),
            cuts: AtomicUsize::new(cuts),
            seen: Mutex::default(),
            headers: Mutex::default(),
        });
        // Path of cards before 0.3.
        let router = Router::new()
            .route("/old/.well-known/agent.json", get(card))
            .route("/old", post(pass_on))
            .with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, shared, _serving: serving })
    }

    /// Changes the card.
    pub fn says(&self, change: impl FnOnce(&mut Value)) {
        if let Ok(mut card) = self.shared.card.lock() {
            change(&mut card);
        }
    }

    /// Received tokens and requests.
    pub fn seen(&self) -> Vec<(Option<String>, String)> {
        self.shared.seen.lock().map(|seen| seen.clone()).unwrap_or_default()
    }

    /// Headers of each request.
    pub fn headers(&self) -> Vec<HeaderMap> {
        self.shared.headers.lock().map(|headers| headers.clone()).unwrap_or_default()
    }
}

async fn card(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(shared.card.lock().map(|card| card.clone()).unwrap_or_default())
}

async fn pass_on(State(shared): State<Arc<Shared>>, headers: HeaderMap, asked: Bytes) -> Response {
    let shown = headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
    let method = serde_json::from_slice::<Value>(&asked).unwrap_or_default()["method"].take();
    if let Ok(mut seen) = shared.seen.lock() {
        seen.push((shown.map(str::to_owned), method.as_str().unwrap_or_default().to_owned()));
    }
    if let Ok(mut all) = shared.headers.lock() {
        all.push(headers);
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
