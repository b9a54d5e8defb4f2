//! A server at a URL. Its requests follow the agent's own rules for HTTP: the headers of the
//! operator's grant for the host, and the addresses that it allows.

use super::message_reader::MessageReader;
use crate::port::{http::AgentHttp, live_grant::LiveGrant};
use a2a_hub_client::sse::EventDecoder;
use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::{card::is_in_range, id::AgentId, member};
use a2a_hub_runtime::{
    Failure,
    port::http::{BodyPort, HttpPort as _, HttpResponse, PermittedRequest},
};
use futures::{StreamExt as _, stream};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use serde_json::{Value, json};
use sse_stream::Sse;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

/// Timeout for the head of a response. A call has its own deadline.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Longest response that is read, in bytes: a result and its notifications.
const MAX_ANSWER: usize = 16 << 20;

/// Longest excerpt of an answer that a failure quotes, in characters.
const MAX_QUOTE: usize = 200;

/// Failure of a request whose stream ended before the answer.
pub(super) const BROKE_OFF: &str = "its stream ended before the answer";

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

type TransportError = StreamableHttpError<Failure>;

/// HTTP client for requests to an agent's servers.
#[derive(Clone)]
pub(super) struct RemoteTransport {
    pub(super) agent: AgentId,
    pub(super) live: LiveGrant,
    pub(super) http: Option<Arc<AgentHttp>>,
    pub(super) refused: Refusals,
    pub(super) reader: MessageReader,
}

/// Failure of the latest request, for callers that receive a generic error only. Clones share
/// state.
#[derive(Clone, Default)]
pub(super) struct Refusals(Arc<Mutex<Option<String>>>);

impl Refusals {
    pub(super) fn latest(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn note(&self, why: Option<String>) {
        *self.0.lock() = why;
    }
}

impl RemoteTransport {
    async fn send(
        &self,
        method: &Method,
        uri: &str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<HttpResponse, TransportError> {
        let admitted = self.live.now().http.admit(self.agent.as_str(), method.as_str(), uri);
        let admitted = admitted.map_err(|why| Failure::Denied(why.to_string()));
        let sent = async {
            let Some(http) = &self.http else {
                let why = "send a request: no host was granted when this agent joined";
                return Err(Failure::Denied(why.to_owned()));
            };
            let outgoing =
                PermittedRequest { admitted: admitted?, headers, body, timeout: RESPONSE_TIMEOUT };
            http.send(outgoing).await
        };
        let sent = sent.await;
        self.refused.note(sent.as_ref().err().map(ToString::to_string));
        sent.map_err(TransportError::Client)
    }

    /// Failure of a request that the server answered in this way.
    fn refuse(&self, why: String) -> TransportError {
        self.refused.note(Some(why.clone()));
        TransportError::UnexpectedServerResponse(why.into())
    }

    /// Reads the answer to the request `id` from the messages of a JSON body.
    fn read_json(
        &self,
        id: &Value,
        bytes: &[u8],
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let mut messages = self.reader.read(bytes, Some(id));
        let mut answers: Vec<_> = messages.iter_mut().filter(|it| is_answer(it)).collect();
        // The only answer belongs to the only request: some servers write a text as its id.
        if let [answer] = answers.as_mut_slice() {
            member::set(answer, "id", id.clone());
        }
        if !messages.iter().any(|message| is_answer_to(message, id)) {
            return Err(self.refuse(format!("its answer has no result: {}", quoted(bytes))));
        }
        if let [answer] = messages.as_slice() {
            let message = serde_json::from_value(answer.clone())?;
            return Ok(StreamableHttpPostResponse::Json(message, session));
        }
        let events =
            messages.into_iter().map(|message| Ok(Sse::default().data(message.to_string())));
        Ok(StreamableHttpPostResponse::Sse(
            stream::iter(events.collect::<Vec<_>>()).boxed(),
            session,
        ))
    }

    /// Reads the answer to the request `id`, which came with this status and media type.
    async fn read(
        &self,
        id: Value,
        answer: HttpResponse,
        session: Option<&str>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
        match status {
            StatusCode::NOT_FOUND if session.is_some() => {
                return Err(TransportError::SessionExpired);
            }
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                return Err(
                    self.refuse(format!("it answers a request with {status}, and no result"))
                );
            }
            status if status.is_success() => {}
            status => {
                let bytes = read_body(answer.body).await?;
                let is_refusal = |message: &Value| message.get("error").is_some();
                if self.reader.read(&bytes, Some(&id)).iter().any(is_refusal) {
                    return self.read_json(&id, &bytes, None);
                }
                return Err(self.refuse(format!("it answers {status}: {}", quoted(&bytes))));
            }
        }
        let session = named(&answer, &SESSION).map(str::to_owned);
        let media = named(&answer, &header::CONTENT_TYPE).unwrap_or_default().to_owned();
        if is_in_range(&media, EVENTS) {
            let events = ServerSentEvents::new(answer.body, id, self.reader.clone());
            return Ok(StreamableHttpPostResponse::Sse(events.stream(), session));
        }
        let bytes = read_body(answer.body).await?;
        let is_json =
            is_in_range(&media, JSON) || self.reader.read(&bytes, Some(&id)).iter().any(is_answer);
        if !is_json {
            let (media, text) = (plain_text::line(&media, MAX_QUOTE), quoted(&bytes));
            let why = format!("it answers with `{media}`, and neither JSON nor events: {text}");
            return Err(self.refuse(why));
        }
        self.read_json(&id, &bytes, session)
    }
}

/// True if a message is a result or an error.
fn is_answer(message: &Value) -> bool {
    message.get("method").is_none()
}

/// True if a message is the result or the error of the request `id`.
fn is_answer_to(message: &Value, id: &Value) -> bool {
    is_answer(message) && message.get("id") == Some(id)
}

/// Beginning of a text of the server, in one plain line.
fn quoted(bytes: &[u8]) -> String {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MAX_QUOTE)]);
    format!("\"{}\"", plain_text::line(&start, MAX_QUOTE))
}

/// Request headers as text.
fn headers(
    session: Option<&str>,
    custom: &HashMap<HeaderName, HeaderValue>,
) -> Vec<(String, String)> {
    let custom = custom.iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    let session = session.map(|session| (SESSION.as_str().to_owned(), session.to_owned()));
    custom.chain(session).collect()
}

fn named<'a>(answer: &'a HttpResponse, name: &HeaderName) -> Option<&'a str> {
    let found = answer.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.as_str()));
    std::str::from_utf8(&found?.1).ok()
}

/// Reads a whole body.
async fn read_body(mut body: Box<dyn BodyPort>) -> Result<Vec<u8>, TransportError> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await.map_err(TransportError::Client)? {
        if bytes.len() + piece.len() > MAX_ANSWER {
            return Err(TransportError::ResponseBodyTooLarge { max_size: MAX_ANSWER });
        }
        bytes.extend(piece);
    }
    Ok(bytes)
}

/// Server-sent events that answer one request.
struct ServerSentEvents {
    body: Option<Box<dyn BodyPort>>,
    decoder: EventDecoder,
    ready: VecDeque<Sse>,
    /// Bytes read.
    read: usize,
    id: Value,
    /// True after the answer.
    is_answered: bool,
    reader: MessageReader,
}

impl ServerSentEvents {
    fn new(body: Box<dyn BodyPort>, id: Value, reader: MessageReader) -> Self {
        let (decoder, ready) = Default::default();
        Self { body: Some(body), decoder, ready, read: 0, id, is_answered: false, reader }
    }

    /// Messages as events without ids: an interrupted stream is not resumed. A stream that ends
    /// before the answer ends with an error as the answer, since nothing else follows.
    fn stream(self) -> stream::BoxStream<'static, Result<Sse, SseError>> {
        let next = |mut events: Self| async move { Some((Ok(events.next().await?), events)) };
        stream::unfold(self, next).boxed()
    }

    async fn next(&mut self) -> Option<Sse> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let body = self.body.as_mut()?;
            let events = match body.next().await {
                Ok(Some(piece)) => {
                    self.read += piece.len();
                    let events = self.decoder.decode(&piece).map_err(|why| format!(": {why}"));
                    let too_long = || format!(": it is longer than {} MiB", MAX_ANSWER >> 20);
                    if self.read > MAX_ANSWER { Err(too_long()) } else { events }
                }
                Ok(None) => Err(String::new()),
                Err(why) => Err(format!(": {why}")),
            };
            let events = match events {
                Ok(events) => events,
                Err(why) => {
                    self.body = None;
                    if !self.is_answered {
                        let error =
                            json!({ "code": -32603, "message": format!("{BROKE_OFF}{why}") });
                        self.push(&json!({ "jsonrpc": "2.0", "id": self.id, "error": error }));
                    }
                    continue;
                }
            };
            for event in events {
                for message in self.reader.read(&event.data, Some(&self.id)) {
                    self.push(&message);
                }
            }
        }
    }

    fn push(&mut self, message: &Value) {
        self.is_answered |= is_answer_to(message, &self.id);
        self.ready.push_back(Sse::default().data(message.to_string()));
    }
}

impl StreamableHttpClient for RemoteTransport {
    type Error = Failure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let mut headers = headers(session.as_deref(), &custom);
        headers.push((header::ACCEPT.to_string(), format!("{EVENTS}, {JSON}")));
        headers.push((header::CONTENT_TYPE.to_string(), JSON.to_owned()));
        let body = serde_json::to_vec(&message)?;
        let answer = self.send(&Method::POST, &uri, headers, body).await?;
        let ClientJsonRpcMessage::Request(request) = &message else {
            // Nothing answers a notification or a response, whatever the server sends.
            if answer.status == StatusCode::NOT_FOUND.as_u16() && session.is_some() {
                return Err(TransportError::SessionExpired);
            }
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        let id = serde_json::to_value(&request.id)?;
        self.read(id, answer, session.as_deref()).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), TransportError> {
        // If the grant does not allow DELETE, the server expires the session itself.
        let headers = headers(Some(&*session), &custom);
        self.send(&Method::DELETE, &uri, headers, Vec::new()).await.map(drop)
    }

    /// Unsolicited messages of a server are not used.
    async fn get_stream(
        &self,
        _: Arc<str>,
        _: Option<Arc<str>>,
        _: Option<String>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<stream::BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        Err(TransportError::ServerDoesNotSupportSse)
    }
}
