//! The keys by which receivers of notifications know that they are this hub's: a JSON Web Key Set (RFC 7517, section 5).

use super::dispatcher::Dispatcher;
use a2a_hub_core::access::Principal;
use a2a_hub_hub::Reply;
use a2a_hub_protocol::{hub, operation::Operation};
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

/// Where they are. Whoever asks gets them, for a public key helps nobody to sign, and what checks a signature has no token.
pub(super) const PATH: &str = "/.well-known/jwks.json";

/// For how long they may be used without asking again, in seconds: as long as a signature is good.
const FRESH: &str = "public, max-age=300";

/// The path at which they are found.
pub(super) fn routes() -> Router<Dispatcher> {
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
        // They are no stream, and always there.
        Ok(Reply::Stream(_)) | Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
