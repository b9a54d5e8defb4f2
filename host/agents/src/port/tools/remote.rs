//! A server at a URL. Its requests follow the agent's own rules for HTTP: the headers of the
//! operator's grant for the host, and the addresses that it allows.

use super::lines::LossyText;
use crate::port::{http::Http, live_grant::LiveGrant};
use a2a_hub_protocol::{foreign, id::AgentId};
use a2a_hub_runtime::{
    Failure,
    port::http::{Answer, BodyPort, HttpPort as _, Outgoing},
};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Sse, SseStream};
use std::{collections::HashMap, io, sync::Arc, time::Duration};

/// Timeout for the head of a response. A call has its own deadline.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Longest response that is read, in bytes: a result and its notifications.
const MAX_ANSWER: usize = 16 << 20;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

type Refused = StreamableHttpError<Failure>;

/// HTTP client for requests to an agent's servers.
#[derive(Clone)]
pub(super) struct Elsewhere {
    pub(super) agent: AgentId,
    pub(super) live: LiveGrant,
    pub(super) http: Option<Arc<Http>>,
    pub(super) refused: Refusals,
}

/// Failure of the latest request, for callers that receive a generic error only. Clones share
/// state.
#[derive(Clone, Default)]
pub(super) struct Refusals(Arc<Mutex<Option<String>>>);

impl Refusals {
    pub(super) fn latest(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn note(&self, why: Option<&Failure>) {
        *self.0.lock() = why.map(ToString::to_string);
    }
}

impl Elsewhere {
    async fn send(
        &self,
        method: &Method,
        uri: &str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<Answer, Refused> {
        let admitted = self.live.now().http.admit(self.agent.as_str(), method.as_str(), uri);
        let admitted = admitted.map_err(|why| Failure::Denied(why.to_string()));
        let sent = async {
            let Some(http) = &self.http else {
                let why = "send a request: no host was granted when this agent joined";
                return Err(Failure::Denied(why.to_owned()));
            };
            let outgoing = Outgoing { admitted: admitted?, headers, body, patience: PATIENCE };
            http.send(outgoing).await
        };
        let sent = sent.await;
        self.refused.note(sent.as_ref().err());
        sent.map_err(Refused::Client)
    }
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

fn named<'a>(answer: &'a Answer, name: &HeaderName) -> Option<&'a str> {
    let found = answer.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.as_str()));
    std::str::from_utf8(&found?.1).ok()
}

/// Reads a whole body.
async fn whole(mut body: Box<dyn BodyPort>) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await.map_err(Refused::Client)? {
        if bytes.len() + piece.len() > MAX_ANSWER {
            return Err(Refused::ResponseBodyTooLarge { max_size: MAX_ANSWER });
        }
        bytes.extend(piece);
    }
    Ok(bytes)
}

/// Streams a body up to [`MAX_ANSWER`] bytes.
fn in_pieces(body: Box<dyn BodyPort>) -> stream::BoxStream<'static, io::Result<Bytes>> {
    let next = |(mut body, read, mut text): (Box<dyn BodyPort>, usize, LossyText)| async move {
        let piece = match body.next().await {
            Ok(Some(piece)) if read + piece.len() > MAX_ANSWER => Err(too_long()),
            Ok(Some(piece)) => Ok(Bytes::from(text.take(&piece))),
            Ok(None) => return None,
            Err(why) => Err(io::Error::other(why)),
        };
        let read = piece.as_ref().map_or(usize::MAX / 2, |piece| read + piece.len());
        Some((piece, (body, read, text)))
    };
    stream::unfold((body, 0, LossyText::default()), next).boxed()
}

/// Mends the JSON of an event.
fn with_mended_data(mut event: Sse) -> Sse {
    event.data = event
        .data
        .map(|data| String::from_utf8_lossy(&foreign::mended(data.as_bytes())).into_owned());
    event
}

fn too_long() -> io::Error {
    io::Error::other(format!("its answer is longer than {} MiB", MAX_ANSWER >> 20))
}

impl StreamableHttpClient for Elsewhere {
    type Error = Failure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Refused> {
        let mut headers = headers(session.as_deref(), &custom);
        headers.push((header::ACCEPT.to_string(), format!("{EVENTS}, {JSON}")));
        headers.push((header::CONTENT_TYPE.to_string(), JSON.to_owned()));
        let body = serde_json::to_vec(&message)?;
        let answer = self.send(&Method::POST, &uri, headers, body).await?;
        match StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY) {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            StatusCode::NOT_FOUND if session.is_some() => return Err(Refused::SessionExpired),
            status if status.is_success() => {}
            status => {
                let why = format!("it answers {status}");
                return Err(Refused::UnexpectedServerResponse(why.into()));
            }
        }
        let session = named(&answer, &SESSION).map(str::to_owned);
        match named(&answer, &header::CONTENT_TYPE) {
            Some(media) if media.starts_with(JSON) => {
                let bytes = whole(answer.body).await?;
                let message: ServerJsonRpcMessage = foreign::read_as(&bytes)?;
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            Some(media) if media.starts_with(EVENTS) => {
                let events = SseStream::from_bytes_stream(in_pieces(answer.body));
                let events = events.map(|event| event.map(with_mended_data)).boxed();
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            media => Err(Refused::UnexpectedContentType(media.map(str::to_owned))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Refused> {
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
    ) -> Result<stream::BoxStream<'static, Result<Sse, SseError>>, Refused> {
        Err(Refused::ServerDoesNotSupportSse)
    }
}
