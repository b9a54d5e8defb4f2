//! `POST /join`: a person exchanges an invitation for an API key.

use crate::http::{body::read_json, paths::JOIN, reply::plain_error};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    error::ErrorKind,
    hub::join as operation_of,
    operation::{Answer, PeopleReport},
};
use a2a_hub_rpc::dispatcher::Dispatcher;
use axum::{
    Json, Router,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::post,
};

/// Largest body, in bytes.
const MAX_BODY: usize = 4_096;

/// Route of this module.
pub(crate) fn routes() -> Router<Dispatcher> {
    Router::new().route(JOIN, post(join))
}

async fn join(State(dispatcher): State<Dispatcher>, request: Request) -> Response {
    let body = match read_json(&dispatcher, request, MAX_BODY).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let operation = match operation_of(body) {
        Ok(operation) => operation,
        Err(why) => return plain_error(StatusCode::BAD_REQUEST, &why.message),
    };
    match dispatcher.hub().handle(&Principal::Anonymous, None, operation).await {
        // The answer holds a secret.
        Ok(Reply::One(Answer::People(PeopleReport::NewKey(key)))) => {
            ([(header::CACHE_CONTROL, "no-store")], Json(key)).into_response()
        }
        Ok(Reply::One(_) | Reply::Stream(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(why) if why.kind == ErrorKind::Authentication => {
            plain_error(StatusCode::FORBIDDEN, &why.message)
        }
        Err(why) => plain_error(StatusCode::CONFLICT, &why.message),
    }
}
