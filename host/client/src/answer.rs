//! An answer over HTTP: how long it may take, how long it may be, and what is left of it once it was read.

use crate::{
    error::ClientError,
    outbound::{Incoming, Outbound, OutboundError},
};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use std::time::Duration;
use tokio::time::timeout;

/// How long a card, or any answer that needs no work, may take.
pub(crate) const QUICK: Duration = Duration::from_secs(15);

/// The largest answer that is read, in bytes: twice what the hub takes in one request.
pub(crate) const MAX_ANSWER: usize = 16 << 20;

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct WholeAnswer {
    pub(crate) status: StatusCode,
    /// What was said after the body, or without one in the head.
    pub(crate) trailers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Asks somebody whom the operator named, and reads the answer to its end; both may take so long.
pub async fn fetch(
    outbound: &Outbound,
    request: Request<Full<Bytes>>,
    patience: Duration,
) -> Result<Response<Bytes>, ClientError> {
    let (head, body) = outbound.ask(request, patience).await?.into_parts();
    let read = whole(Response::from_parts(head.clone(), body), patience).await?;
    Ok(Response::from_parts(head, read.body))
}

/// The whole body of an answer.
pub(crate) async fn body(
    answer: Response<Incoming>,
    patience: Duration,
) -> Result<Bytes, ClientError> {
    Ok(whole(answer, patience).await?.body)
}

/// An answer, read to its end.
pub(crate) async fn whole(
    answer: Response<Incoming>,
    patience: Duration,
) -> Result<WholeAnswer, ClientError> {
    let (head, body) = answer.into_parts();
    let read = timeout(patience, Limited::new(body, MAX_ANSWER).collect()).await;
    let read = read.map_err(|_| ClientError::Lost(OutboundError::Late(patience)))?;
    let read = read.map_err(|why| ClientError::Broken(why.to_string()))?;
    // An answer without a body has what they say in its head.
    let trailers = read.trailers().cloned().unwrap_or(head.headers);
    Ok(WholeAnswer { status: head.status, trailers, body: read.to_bytes() })
}
