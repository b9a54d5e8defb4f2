//! Challenge: before notifications are first sent to a URL, the receiver there must prove that it
//! expects them.
//!
//! The form is that of A2A's samples (`push_notification_auth.py`): a GET with
//! `?validationToken=…`, which the receiver must answer with 200 and the token as the whole body.
//! The request carries none of the client's secrets.

use a2a_hub_client::{Outbound, OutboundError};
use a2a_hub_config::token::Token;
use a2a_hub_core::text::duration::Span;
use bytes::Bytes;
use http::{Request, StatusCode, header::USER_AGENT};
use http_body_util::{BodyExt as _, Full, Limited};
use std::{io, time::Duration};
use tokio::time::timeout;
use url::Url;

/// Time limit of the whole answer; short, since a client waits for it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Largest answer in bytes; a token has 64.
const MAX_ANSWER: usize = 1 << 10;

/// Reason why a receiver has failed the challenge.
#[derive(Debug, thiserror::Error)]
pub enum ChallengeError {
    /// No random token could be made.
    #[error("the hub cannot make a token: {0}")]
    Token(#[from] io::Error),
    /// The URL fits into no request.
    #[error(transparent)]
    Request(#[from] http::Error),
    /// No answer arrived.
    #[error(transparent)]
    Lost(#[from] OutboundError),
    /// The answer did not arrive in time.
    #[error("no complete answer within {}", Span(TIMEOUT))]
    Late,
    /// The status was not 200.
    #[error("it answered with HTTP status {}", .0.as_u16())]
    Status(StatusCode),
    /// The body was not the token.
    #[error("its answer was not the token")]
    Other,
}

/// Challenges the receiver at `url`, whose host has been found to be allowed.
pub(crate) async fn challenge(client: &Outbound, url: &Url) -> Result<(), ChallengeError> {
    let token = Token::fresh()?;
    let mut url = url.clone();
    url.query_pairs_mut().append_pair("validationToken", token.expose());
    let request = Request::get(url.as_str())
        .header(USER_AGENT, concat!("a2a-hub/", env!("CARGO_PKG_VERSION")))
        .body(Full::<Bytes>::default())?;
    let body = timeout(TIMEOUT, answer(client, request)).await;
    let body = body.map_err(|_| ChallengeError::Late)??;
    // Some frameworks append a line break.
    let same = str::from_utf8(&body).is_ok_and(|text| token.is(text.trim()));
    if same { Ok(()) } else { Err(ChallengeError::Other) }
}

async fn answer(client: &Outbound, request: Request<Full<Bytes>>) -> Result<Bytes, ChallengeError> {
    let answer = client.ask(request, TIMEOUT).await?;
    if answer.status() != StatusCode::OK {
        return Err(ChallengeError::Status(answer.status()));
    }
    let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
    Ok(body.map_err(|_| ChallengeError::Other)?.to_bytes())
}
