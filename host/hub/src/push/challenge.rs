//! A challenge: before notifications are first sent to a URL, what is there shows that it waits for them.
//!
//! The form is that of A2A's samples (`push_notification_auth.py`): a GET with `?validationToken=…`, to be answered with
//! 200 and the token as the whole body. The request carries none of the client's secrets.

use crate::token::Token;
use a2a_hub_client::{Outbound, OutboundError};
use a2a_hub_core::span::Span;
use bytes::Bytes;
use http::{Request, StatusCode, header::USER_AGENT};
use http_body_util::{BodyExt as _, Full, Limited};
use std::{io, time::Duration};
use tokio::time::timeout;
use url::Url;

/// How long an answer may take, body and all: a client waits for it.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The largest answer, in bytes: a token is 64.
const MAX_ANSWER: usize = 1 << 10;

/// Why a receiver has not shown that it waits for notifications.
#[derive(Debug, thiserror::Error)]
pub enum ChallengeError {
    /// There is no random number to ask with.
    #[error("the hub cannot make a token: {0}")]
    Token(#[from] io::Error),
    /// The URL fits into no request.
    #[error(transparent)]
    Request(#[from] http::Error),
    /// There was no answer.
    #[error(transparent)]
    Lost(#[from] OutboundError),
    /// It did not all come in time.
    #[error("no whole answer within {}", Span(PATIENCE))]
    Late,
    /// It was not 200.
    #[error("it answered with HTTP status {}", .0.as_u16())]
    Status(StatusCode),
    /// It was something else.
    #[error("its answer was not the token")]
    Other,
}

/// Asks what is at `url`, whose host was found to be one that may be asked.
pub(super) async fn challenge(client: &Outbound, url: &Url) -> Result<(), ChallengeError> {
    let token = Token::fresh()?;
    let mut url = url.clone();
    url.query_pairs_mut().append_pair("validationToken", token.expose());
    let request = Request::get(url.as_str())
        .header(USER_AGENT, concat!("a2a-hub/", env!("CARGO_PKG_VERSION")))
        .body(Full::<Bytes>::default())?;
    let said = timeout(PATIENCE, answer(client, request)).await;
    let said = said.map_err(|_| ChallengeError::Late)??;
    // Some frameworks end a text with a line break.
    let same = str::from_utf8(&said).is_ok_and(|said| token.is(said.trim()));
    if same { Ok(()) } else { Err(ChallengeError::Other) }
}

async fn answer(client: &Outbound, request: Request<Full<Bytes>>) -> Result<Bytes, ChallengeError> {
    let answer = client.ask(request, PATIENCE).await?;
    if answer.status() != StatusCode::OK {
        return Err(ChallengeError::Status(answer.status()));
    }
    let whole = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
    Ok(whole.map_err(|_| ChallengeError::Other)?.to_bytes())
}
