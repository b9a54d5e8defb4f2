//! `GET /agents`: agent search in registry form, by skill, tags, words and version.

use crate::http::{
    context::hub_url,
    reply::{TODAYS, json_body, refusal},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    hub::registry::{self, HOPS},
    operation::{Answer, Operation},
};
use a2a_hub_rpc::dispatcher::Dispatcher;
use axum::{
    Extension, Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse as _, Response},
    routing::get,
};

/// Route of the search.
pub(crate) fn routes() -> Router<Dispatcher> {
    Router::new().route("/agents", get(find))
}

async fn find(
    State(dispatcher): State<Dispatcher>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let reply = match registry::read_query(uri.query()) {
        Ok(mut query) => {
            query.local_only = headers.contains_key(HOPS);
            dispatcher.hub().handle(&principal, None, Operation::FindAgents(query)).await
        }
        Err(why) => Err(why),
    };
    match reply {
        Ok(Reply::One(Answer::Found(found))) => json_body(
            registry::write(found, &hub_url(&dispatcher, &headers)).to_string().into_bytes(),
        ),
        // Unreachable: a search is answered with agents.
        Ok(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(why) => refusal(&why, TODAYS, None),
    }
}
