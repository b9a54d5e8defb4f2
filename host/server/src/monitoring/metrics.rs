//! Metrics endpoint, in the format OpenMetrics 1.0, which Prometheus reads since its version 2.5.

use crate::http::reply;
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::operation::{Answer, Operation};
use a2a_hub_rpc::dispatcher::Dispatcher;
use axum::{
    Extension, Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

/// Content type of the metrics (OpenMetrics 1.0, section "Media Type").
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Route of the metrics.
pub(crate) fn routes() -> Router<Dispatcher> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(
    State(dispatcher): State<Dispatcher>,
    Extension(principal): Extension<Principal>,
) -> Response {
    let read = Operation::ReadMetrics { streams: dispatcher.streams() };
    match dispatcher.hub().handle(&principal, None, read).await {
        Ok(Reply::One(Answer::Metrics(text))) => {
            ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response()
        }
        Ok(Reply::One(_) | Reply::Stream(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(why) => (reply::status(&why), why.to_string()).into_response(),
    }
}
