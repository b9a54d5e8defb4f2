//! `wasi:http/outgoing-handler`, so that each language's usual HTTP library works: its requests use
//! the same egress as `http.fetch`, with the same grant and limits.

use crate::store::http_egress::{
    DEFAULT_TIMEOUT, HttpEgress, MAX_TIMEOUT, OpenResponse, PendingRequest,
};
use a2a_hub_core::grant::http_header;
use a2a_hub_runtime::{
    Failure,
    port::http::{BodyPort, HttpResponse},
};
use bytes::Bytes;
use futures::stream;
use http::{Request, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use wasmtime::component::ResourceTable;
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView,
    WasiHttpHooks,
};

/// Longest request body, in bytes: it is sent once complete, so that its length is known.
const MAX_BODY: usize = 4 << 20;

/// State of `wasi:http` for one instance.
pub(crate) struct WasiHttp {
    ctx: WasiHttpCtx,
    hooks: Hooks,
}

impl WasiHttp {
    pub(crate) fn new(egress: HttpEgress) -> Self {
        Self { ctx: WasiHttpCtx::new(), hooks: Hooks(egress) }
    }

    /// View for wasmtime's functions, with the guest's resource table.
    pub(crate) fn view<'a>(&'a mut self, table: &'a mut ResourceTable) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView { hooks: &mut self.hooks, table, ctx: &mut self.ctx }
    }
}

/// Sends requests made through `wasi:http`.
struct Hooks(HttpEgress);

/// Response, and the future that drives its connection, which does nothing here.
type Sent = Result<(Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

impl WasiHttpHooks for Hooks {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        // Many libraries set a length; the hub checks it and sets its own.
        Arc::new(|name| {
            *name != header::CONTENT_LENGTH && !http_header::guest_may_set(name.as_str())
        })
    }

    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let egress = self.0.clone();
        let method = request.method().as_str();
        let begun = egress.begin(method, &request.uri().to_string());
        Box::new(answered(egress, begun, request, options.unwrap_or_default()))
    }
}

async fn answered(
    egress: HttpEgress,
    begun: Result<PendingRequest, Failure>,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Sent {
    let begun = begun.map_err(WasiHttpError::from)?;
    let answer = send(&egress, begun, request, options).await?;
    Ok((answer, Box::new(async { Ok(()) })))
}

async fn send(
    egress: &HttpEgress,
    begun: PendingRequest,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<Response<WasiBody>, WasiHttpError> {
    let response_timeout = options.first_byte_timeout.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT);
    let (head, body) = request.into_parts();
    let mut headers = Vec::new();
    for (name, value) in head.headers.iter().filter(|(name, _)| *name != header::CONTENT_LENGTH) {
        let value = value.to_str().map_err(|_| Error::HttpRequestHeaderSize {
            field_name: Some(name.to_string()),
            field_size: None,
        })?;
        headers.push((name.to_string(), value.to_owned()));
    }
    let body = timeout(response_timeout, read_body(egress, body)).await;
    let body = body.map_err(|_| Error::HttpResponseTimeout)??;
    let OpenResponse { answer, permit } =
        egress.send(begun, headers, body, response_timeout).await?;
    let HttpResponse { status, headers, body } = answer;
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let silence = options.between_bytes_timeout.unwrap_or(MAX_TIMEOUT);
    let pieces = stream::unfold(Some((body, egress.clone(), permit)), move |reading| async move {
        let (mut body, egress, permit) = reading?;
        match next(&mut *body, &egress, silence).await {
            Ok(None) => None,
            Ok(Some(piece)) => {
                let frame = Frame::data(Bytes::from(piece));
                Some((Ok(frame), Some((body, egress, permit))))
            }
            Err(why) => Some((Err(why.0), None)),
        }
    });
    let response = response.body(StreamBody::new(pieces).boxed_unsync());
    response.map_err(|_| WasiHttpError(Error::HttpProtocolError))
}

/// Next piece of a response's body, charged to the limits.
async fn next(
    body: &mut dyn BodyPort,
    egress: &HttpEgress,
    silence: Duration,
) -> Result<Option<Vec<u8>>, WasiHttpError> {
    let piece = timeout(silence, body.next()).await.map_err(|_| Error::ConnectionReadTimeout)??;
    if let Some(piece) = &piece {
        egress.count(piece)?;
    }
    Ok(piece)
}

/// Whole body of a request, once the guest has ended it.
async fn read_body(egress: &HttpEgress, mut body: WasiBody) -> Result<Vec<u8>, WasiHttpError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        egress.count(&piece)?;
        if bytes.len() + piece.len() > MAX_BODY {
            return Err(WasiHttpError(Error::HttpRequestBodySize(u64::try_from(MAX_BODY).ok())));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Error in the codes of `wasi:http`.
struct WasiHttpError(Error);

impl From<Error> for WasiHttpError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<WasiHttpError> for Error {
    fn from(refused: WasiHttpError) -> Self {
        refused.0
    }
}

impl From<Failure> for WasiHttpError {
    /// Codes without text are used only for failures without details: a refusal names its remedy.
    fn from(failure: Failure) -> Self {
        Self(match failure {
            Failure::Timeout => Error::HttpResponseTimeout,
            Failure::Cancelled => Error::ConnectionTerminated,
            other @ (Failure::Invalid(_)
            | Failure::Unsupported(_)
            | Failure::Denied(_)
            | Failure::Unavailable(_)
            | Failure::HubNotUp(_)
            | Failure::HubFull
            | Failure::Exhausted(_)
            | Failure::Internal(_)
            | Failure::Diverged(_)
            | Failure::Trapped(_)) => Error::InternalError(Some(other.to_string())),
        })
    }
}
