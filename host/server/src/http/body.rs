//! Reader for HTTP request bodies with limits on size and time.

use super::reply::plain_error;
use crate::MAX_REQUEST;
use a2a_hub_protocol::error::{A2aError, ErrorKind};
use a2a_hub_rpc::dispatcher::{Dispatcher, request_timeout};
use axum::{
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest as _, Request},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde_json::Value;
use tokio::time::timeout;

/// Error for a body that could not be read.
pub(crate) struct BodyError {
    /// Status of the response.
    pub(crate) status: StatusCode,
    /// Cause, for the client.
    pub(crate) why: A2aError,
}

impl BodyError {
    /// Error response with this content. After a timeout it closes the connection, because the rest
    /// of the body is not read.
    pub(crate) fn answer(&self, response: Response) -> Response {
        let slow = self.status == StatusCode::REQUEST_TIMEOUT;
        let hang_up = slow.then_some([(header::CONNECTION, "close")]);
        (self.status, hang_up, response).into_response()
    }
}

/// Reads the whole body within the hub's timeout, to withstand slow clients (slow loris).
pub(crate) async fn read_body(
    dispatcher: &Dispatcher,
    request: Request,
) -> Result<Bytes, BodyError> {
    read_body_of(dispatcher, request, MAX_REQUEST).await
}

/// Reads a whole body of at most `max` bytes.
pub(crate) async fn read_body_of(
    dispatcher: &Dispatcher,
    mut request: Request,
    max: usize,
) -> Result<Bytes, BodyError> {
    DefaultBodyLimit::max(max).apply(&mut request);
    match timeout(dispatcher.timeout(), Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(why)) => {
            let text = if why.status() == StatusCode::PAYLOAD_TOO_LARGE {
                format!("the request is larger than {max} bytes")
            } else {
                why.body_text()
            };
            let text = A2aError::new(ErrorKind::InvalidRequest, text);
            Err(BodyError { status: why.status(), why: text })
        }
        Err(_) => {
            let why = request_timeout("request", dispatcher.timeout());
            Err(BodyError { status: StatusCode::REQUEST_TIMEOUT, why })
        }
    }
}

/// Reads a whole body of at most `max` bytes as JSON, for a path that is no binding's; or returns
/// the error response.
pub(crate) async fn read_json(
    dispatcher: &Dispatcher,
    request: Request,
    max: usize,
) -> Result<Value, Response> {
    let body = read_body_of(dispatcher, request, max).await;
    let body =
        body.map_err(|unread| unread.answer(plain_error(unread.status, &unread.why.message)))?;
    serde_json::from_slice(&body)
        .map_err(|_| plain_error(StatusCode::BAD_REQUEST, "the body must be JSON"))
}
