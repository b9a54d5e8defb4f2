//! Agent lookup by path, and error responses.

use crate::five_step::model as five_step;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::AgentId,
};
use a2a_hub_rpc::{dispatcher::Dispatcher, retry_after::RETRY_AFTER_SECONDS};
use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};

/// Resolves the agent that a path names.
pub(super) fn named(dispatcher: &Dispatcher, id: &str) -> Result<AgentId, A2aError> {
    let name = AgentId::parse(id)
        .map_err(|why| A2aError::new(ErrorKind::AgentNotFound, why.to_string()))?;
    dispatcher.hub().named(&name)
}

/// Error response for a refusal.
pub(super) fn refused(why: &A2aError) -> Response {
    let (status, body) = five_step::refusal(why);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let again = (status == StatusCode::SERVICE_UNAVAILABLE)
        .then(|| [(header::RETRY_AFTER, RETRY_AFTER_SECONDS.to_string())]);
    (status, again, Json(body)).into_response()
}
