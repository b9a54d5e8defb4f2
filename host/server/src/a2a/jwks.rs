//! Public keys with which others verify the hub's notifications and cards: a JSON Web Key Set (RFC
//! 7517, section 5).

use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{hub, operation::Operation, push::JWKS_PATH};
use a2a_hub_rpc::dispatcher::Dispatcher;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

/// Path of the keys. It needs no authentication, because public keys do not allow signing, and
/// verifiers have no token.
pub(crate) const PATH: &str = JWKS_PATH;

/// Cache lifetime of the keys: the lifetime of a signature, in seconds.
const FRESH: &str = "public, max-age=300";

/// Route of the keys.
pub(crate) fn routes() -> Router<Dispatcher> {
    Router::new().route(PATH, get(keys))
}

async fn keys(State(dispatcher): State<Dispatcher>) -> Response {
    match dispatcher.hub().handle(&Principal::Anonymous, None, Operation::ListPushKeys).await {
        Ok(Reply::One(answer)) => {
            let head = [
                (header::CONTENT_TYPE, "application/jwk-set+json"),
                (header::CACHE_CONTROL, FRESH),
            ];
            (head, hub::answer::write(answer, "").to_string()).into_response()
        }
        // Unreachable: the keys always exist and are not a stream.
        Ok(Reply::Stream(_)) | Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
