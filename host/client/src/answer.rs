//! HTTP responses: their timeout, their size limit, and the parts left after reading.

use crate::{
    error::ClientError,
    outbound::{Incoming, Outbound, OutboundError},
};
use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::foreign::{self, NotJson};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{CONTENT_ENCODING, LOCATION},
};
use http_body_util::{BodyExt as _, Full, Limited};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Timeout for a card, and for any other response that needs no work.
pub(crate) const QUICK: Duration = Duration::from_secs(15);

/// Maximum size of a response in bytes: twice what the hub accepts in one request.
pub(crate) const MAX_ANSWER: usize = 16 << 20;

/// Longest excerpt of a response that an error quotes, in characters.
pub(crate) const MAX_QUOTE: usize = 200;

/// Response whose body was read to its end.
#[derive(Debug)]
pub(crate) struct BufferedResponse {
    pub(crate) status: StatusCode,
    /// Trailers, or the head's headers if the response has no trailers.
    pub(crate) trailers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Sends a request to a server that the operator named, and reads the whole response. The timeout
/// applies to the head, and again to the body.
pub async fn fetch(
    outbound: &Outbound,
    request: Request<Full<Bytes>>,
    timeout: Duration,
) -> Result<Response<Bytes>, ClientError> {
    let (head, body) = outbound.ask(request, timeout).await?.into_parts();
    let read = buffer_response(Response::from_parts(head.clone(), body), timeout).await?;
    Ok(Response::from_parts(head, read.body))
}

/// Parses a JSON response; an error says what the response is instead.
pub(crate) fn json(status: StatusCode, text: &[u8]) -> Result<Value, ClientError> {
    let start = text.trim_ascii_start();
    foreign::read(text).map_err(|NotJson { why, .. }| {
        let why = if start.is_empty() {
            "it is empty".to_owned()
        } else if start.starts_with(b"<") {
            "it is a web page, and no JSON; look whether the URL is that of the agent".to_owned()
        } else if why.is_eof() {
            format!("it broke off: {why}")
        } else {
            let start = String::from_utf8_lossy(&start[..start.len().min(4 * MAX_QUOTE)]);
            format!("it is no JSON ({why}): \"{}\"", plain_text::line(&start, MAX_QUOTE))
        };
        ClientError::senseless(status, &why)
    })
}

/// Refuses a redirect, or a response that is compressed although the request allowed no
/// compression.
pub(crate) fn check_head<T>(answer: &Response<T>) -> Result<(), ClientError> {
    let header =
        |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let why = if answer.status().is_redirection() {
        let to = header(LOCATION).map(|to| format!(" to \"{}\"", plain_text::line(to, MAX_QUOTE)));
        let to = to.unwrap_or_default();
        format!(
            "it points elsewhere{to}, and nobody is followed unseen; give that URL if it is the right one"
        )
    } else {
        let coding = header(CONTENT_ENCODING).map(|coding| plain_text::line(coding, MAX_QUOTE));
        match coding.filter(|coding| !coding.eq_ignore_ascii_case("identity")) {
            None => return Ok(()),
            Some(coding) => {
                format!("it is compressed with \"{coding}\", which the request did not allow")
            }
        }
    };
    Err(ClientError::senseless(answer.status(), &why))
}

/// Reads the whole body of a response.
pub(crate) async fn body(
    answer: Response<Incoming>,
    timeout: Duration,
) -> Result<Bytes, ClientError> {
    Ok(buffer_response(answer, timeout).await?.body)
}

/// Reads a response to its end.
pub(crate) async fn buffer_response(
    answer: Response<Incoming>,
    read_timeout: Duration,
) -> Result<BufferedResponse, ClientError> {
    let (head, body) = answer.into_parts();
    let read = timeout(read_timeout, Limited::new(body, MAX_ANSWER).collect()).await;
    let read = read.map_err(|_| ClientError::Lost(OutboundError::Late(read_timeout)))?;
    let read = read.map_err(|why| ClientError::Broken(why.to_string()))?;
    // A response without a body carries its trailers in the head.
    let trailers = read.trailers().cloned().unwrap_or(head.headers);
    Ok(BufferedResponse { status: head.status, trailers, body: read.to_bytes() })
}
