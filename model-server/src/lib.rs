//! A loopback server that answers as four model vendors would, so that the real CLIs run offline.
//!
//! It says `ECHO: ` and the last prompt, unless the prompt asks for something else with a marker:
//!
//! | marker | what happens |
//! | --- | --- |
//! | `[[words:N]]` | the answer is `w1 w2 … wN` |
//! | `[[slow:MS]]` | a pause after each word |
//! | `[[think]]` | some reasoning before the answer |
//! | `[[error:CODE]]` | an HTTP error, always |
//! | `[[error:CODE:N]]` | an HTTP error, the first N times this prompt comes |
//! | `[[usedup:5]]` | in place of the last answer: the error 429, for 5 seconds from the first on |
//! | `[[errstream]]` | an error event in the middle of the answer |
//! | `[[drop]]` | the connection is cut in the middle of the answer |
//! | `[[hang]]` | no answer at all |
//! | `[[tool:shell:CMD]]` `[[tool:read:PATH]]` | the agent is asked to use its tool for it |
//! | `[[tool:write:PATH:TEXT]]` | the agent is asked to use its tool for it |
//! | `[[tool:raw:NAME:{json}]]` | the agent is asked to use the tool of that name |
//! | `[[tool:raw:NAMESPACE/NAME:{json}]]` | the same, in the Responses API |
//!
//! Several tools are asked for one after the other, one a turn; the answer then ends with what they
//! gave.

mod anthropic;
mod canned;
mod chat;
mod dialect;
mod dialogue;
mod gemini;
mod marker;
mod parsed_request;
mod plan;
mod responses;
mod script;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Method, StatusCode, Uri, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
pub use canned::CannedAnswer;
use dialect::{Dialect, Turn};
pub use dialogue::Dialogue;
use marker::Refusal;
use parking_lot::Mutex;
use parsed_request::ParsedRequest;
use plan::Plan;
use serde_json::{Value, json};
use std::{collections::HashMap, future, io, net::TcpListener, sync::Arc, time::Duration};
use tokio::{
    runtime::{Builder, Runtime},
    time::Instant,
};

/// CLIs send their whole history with each turn; the largest prompt that one of them takes is 10
/// MB.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// A model server on a free loopback port. It stops, and drops its connections, when it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    url: String,
    shared: Arc<Shared>,
    /// Its own, so that it also serves tests that block, and takes its connections with it.
    runtime: Option<Runtime>,
}

/// A request the server has seen.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedRequest {
    /// Such as `POST`.
    pub method: String,
    /// Path and query, such as `/v1/messages?beta=true`.
    pub path: String,
    /// The body, or null when it was not JSON.
    pub body: Value,
    /// The key that came with it, in any of the headers that the vendors use.
    pub key: Option<String>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: Mutex<Vec<ReceivedRequest>>,
    key: Mutex<Option<String>>,
    dialogue: Mutex<Option<Dialogue>>,
    canned: Mutex<Vec<CannedAnswer>>,
    /// How often each prompt was refused already.
    refused: Mutex<HashMap<String, u32>>,
    /// When the quota of each prompt with `usedup` resets: counted from its first refusal.
    resets: Mutex<HashMap<String, Instant>>,
}

impl ModelServer {
    /// Starts a server that takes any key.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::<Shared>::default();
        let router = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
            .with_state(Arc::clone(&shared));
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("model-server")
            .enable_all()
            .build()?;
        let _entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, shared, runtime: Some(runtime) })
    }

    /// From now on answers 401 to whoever does not bring `key`.
    pub fn with_key(self, key: &str) -> Self {
        *self.shared.key.lock() = Some(key.to_owned());
        self
    }

    /// Answers the prompt of `dialogue` as scripted, and every other one as before.
    pub fn with_dialogue(self, dialogue: Dialogue) -> Self {
        *self.shared.dialogue.lock() = Some(dialogue);
        self
    }

    /// Answers each prompt as the first of `answers` that fits says, and every other one as before.
    pub fn with_answers(self, answers: impl IntoIterator<Item = CannedAnswer>) -> Self {
        *self.shared.canned.lock() = answers.into_iter().collect();
        self
    }

    /// Where it listens, such as `http://127.0.0.1:40000`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it has seen so far, oldest first.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.requests.lock().clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    shared.requests.lock().push(ReceivedRequest {
        method: method.to_string(),
        path: uri.to_string(),
        body: request.clone(),
        key: presented_key(&headers).map(str::to_owned),
    });
    let path = uri.path();
    match (&method, dialect(path)) {
        (&Method::POST, Some(dialect)) => speak(dialect, &shared, path, &headers, &request).await,
        (&Method::POST, None) if path.ends_with("/count_tokens") => {
            Json(json!({"input_tokens": 42})).into_response()
        }
        (&Method::POST, None) if path.ends_with(":countTokens") => {
            Json(json!({"totalTokens": 42})).into_response()
        }
        (&Method::GET, _) if path.ends_with("/models") => {
            let model =
                json!({"id": "mock-model", "object": "model", "created": 0, "owned_by": "mock"});
            Json(json!({"object": "list", "data": [model]})).into_response()
        }
        (&Method::HEAD, _) => StatusCode::OK.into_response(),
        _ => {
            let error =
                json!({"type": "not_found_error", "message": format!("no such path: {path}")});
            (StatusCode::NOT_FOUND, Json(json!({"error": error}))).into_response()
        }
    }
}

/// Who speaks at `path`. Suffixes, for CLIs put prefixes of their own before them.
fn dialect(path: &str) -> Option<&'static dyn Dialect> {
    if path.ends_with("/messages") {
        Some(&anthropic::Messages)
    } else if path.ends_with("/responses") {
        Some(&responses::Responses)
    } else if path.ends_with("/chat/completions") {
        Some(&chat::ChatCompletions)
    } else if path.contains(":generateContent") || path.contains(":streamGenerateContent") {
        Some(&gemini::GenerateContent)
    } else {
        None
    }
}

async fn speak(
    dialect: &dyn Dialect,
    shared: &Shared,
    path: &str,
    headers: &HeaderMap,
    request: &Value,
) -> Response {
    if shared.key.lock().as_deref().is_some_and(|key| presented_key(headers) != Some(key)) {
        return refuse(dialect, 401, "invalid api key");
    }
    let parsed = dialect.parse_request(request);
    let scripted = shared.dialogue.lock().as_ref().and_then(|it| Plan::scripted(it, &parsed));
    let canned = || shared.canned_answer(path, &parsed).map(|it| Plan::canned(&it, &parsed));
    let plan = scripted.or_else(canned).unwrap_or_else(|| Plan::for_request(&parsed));
    if let Some(seconds) = plan.refusal.and_then(|refusal| refusal.resets_in) {
        if let Some(remaining) = shared.until_reset(&parsed.prompt, seconds) {
            let remaining = remaining.as_secs() + 1;
            let message = format!("the quota is used up, try again in {remaining} seconds");
            return refuse(dialect, 429, &format!("mock error 429: {message}"));
        }
    } else if let Some(status) =
        plan.refusal.and_then(|refusal| shared.refuses(refusal, &parsed.prompt))
    {
        return refuse(dialect, status, &format!("mock error {status}"));
    }
    if plan.hangs {
        future::pending::<()>().await;
    }
    let turn = Turn::new(path, request, plan);
    if request["stream"] == true || path.contains(":stream") {
        dialect.script(&turn).into_response()
    } else {
        Json(dialect.document(&turn)).into_response()
    }
}

/// The key in any of the headers that the vendors use.
fn presented_key(headers: &HeaderMap) -> Option<&str> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    text("x-api-key")
        .or_else(|| text("x-goog-api-key"))
        .or_else(|| text("authorization")?.strip_prefix("Bearer "))
}

fn refuse(dialect: &dyn Dialect, status: u16, message: &str) -> Response {
    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (code, Json(dialect.refusal(status, message))).into_response();
    if matches!(status, 429 | 503 | 529) {
        response.headers_mut().insert(RETRY_AFTER, 1.into());
    }
    response
}

impl Shared {
    /// The first canned answer that fits; `None` for requests without tools, such as one for the
    /// title of a session.
    fn canned_answer(&self, path: &str, parsed: &ParsedRequest) -> Option<String> {
        if parsed.tools.is_empty() {
            return None;
        }
        let canned = self.canned.lock();
        let fitting = canned.iter().find(|it| it.fits(path, &parsed.prompt))?;
        Some(fitting.answer.clone())
    }

    /// Time until the quota of `prompt` resets, `seconds` after the first call; `None` afterwards.
    fn until_reset(&self, prompt: &str, seconds: u32) -> Option<Duration> {
        let now = Instant::now();
        let mut resets = self.resets.lock();
        let first = now + Duration::from_secs(seconds.into());
        let until = *resets.entry(prompt.to_owned()).or_insert(first);
        until.checked_duration_since(now).filter(|remaining| !remaining.is_zero())
    }

    /// The status to refuse `prompt` with, until it was refused as often as the plan says.
    fn refuses(&self, Refusal { status, times, .. }: Refusal, prompt: &str) -> Option<u16> {
        let Some(times) = times else { return Some(status) };
        let mut refused = self.refused.lock();
        let so_far = refused.entry(prompt.to_owned()).or_default();
        *so_far += 1;
        (*so_far <= times).then_some(status)
    }
}

#[cfg(test)]
mod tests;
