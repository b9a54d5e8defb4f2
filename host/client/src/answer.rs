//! HTTP responses: their timeout, their size limit, and the parts left after reading.

use crate::{
    error::ClientError,
    outbound::{Incoming, Outbound, OutboundError},
};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use std::time::Duration;
use tokio::time::timeout;

/// Timeout for a card, and for any other response that needs no work.
pub(crate) const QUICK: Duration = Duration::from_secs(15);

/// Maximum size of a response in bytes: twice what the hub accepts in one request.
pub(crate) const MAX_ANSWER: usize = 16 << 20;

/// Response whose body was read to its end.
#[derive(Debug)]
pub(crate) struct WholeAnswer {
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
    patience: Duration,
) -> Result<Response<Bytes>, ClientError> {
    let (head, body) = outbound.ask(request, patience).await?.into_parts();
    let read = whole(Response::from_parts(head.clone(), body), patience).await?;
    Ok(Response::from_parts(head, read.body))
}

/// Reads the whole body of a response.
pub(crate) async fn body(
    answer: Response<Incoming>,
    patience: Duration,
) -> Result<Bytes, ClientError> {
    Ok(whole(answer, patience).await?.body)
}

/// Reads a response to its end.
pub(crate) async fn whole(
    answer: Response<Incoming>,
    patience: Duration,
) -> Result<WholeAnswer, ClientError> {
    let (head, body) = answer.into_parts();
    let read = timeout(patience, Limited::new(body, MAX_ANSWER).collect()).await;
    let read = read.map_err(|_| ClientError::Lost(OutboundError::Late(patience)))?;
    let read = read.map_err(|why| ClientError::Broken(why.to_string()))?;
    // A response without a body carries its trailers in the head.
    let trailers = read.trailers().cloned().unwrap_or(head.headers);
    Ok(WholeAnswer { status: head.status, trailers, body: read.to_bytes() })
}
