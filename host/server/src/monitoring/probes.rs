//! Liveness and readiness probes, for a supervisor or a load balancer.

use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    member,
    operation::{Answer, HubStatus, Operation},
};
use a2a_hub_rpc::{dispatcher::Dispatcher, retry_after::RETRY_AFTER_SECONDS};
use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};

/// Routes of the probes.
pub(crate) fn routes() -> Router<Dispatcher> {
    Router::new().route("/health", get(health)).route("/ready", get(ready))
}

/// Liveness: always 200, so that a supervisor does not restart a hub that runs. The body contains
/// warnings for the operator.
async fn health(State(dispatcher): State<Dispatcher>) -> impl IntoResponse {
    let version = env!("CARGO_PKG_VERSION");
    let warnings = dispatcher.hub().failures();
    Json(match warnings.is_empty() {
        true => json!({ "status": "ok", "version": version }),
        false => json!({ "status": "degraded", "version": version, "warnings": warnings }),
    })
}

/// Readiness: 200 if the hub accepts tasks and can store them, tested by a write at most once a
/// second.
async fn ready(State(dispatcher): State<Dispatcher>) -> Response {
    // Asked as the operator, because any admitted caller may know the readiness; the rest of the
    // status is not returned.
    let request = dispatcher.hub().handle(Principal::Operator, None, Operation::Status);
    let why = match request.await {
        Ok(Reply::One(Answer::Status(status))) => not_ready(&status),
        Ok(Reply::One(_) | Reply::Stream(_)) => Some(json!({ "reason": "internal" })),
        Err(why) => Some(json!({ "reason": "storage", "error": why.to_string() })),
    };
    let Some(mut why) = why else { return Json(json!({ "status": "ready" })).into_response() };
    member::set(&mut why, "status", "not-ready");
    let again = [(header::RETRY_AFTER, RETRY_AFTER_SECONDS.to_string())];
    (StatusCode::SERVICE_UNAVAILABLE, again, Json(why)).into_response()
}

fn not_ready(status: &HubStatus) -> Option<Value> {
    if status.storage.is_failing() {
        return Some(json!({ "reason": "storage", "storage": status.storage }));
    }
    status.stopping.then(|| json!({ "reason": "stopping" }))
}
