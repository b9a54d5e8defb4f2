//! `POST /ui/pair`: a browser presents its key with the token of a pairing, until the operator has
//! decided in the terminal.

use crate::http::{
    body::read_json,
    origin_guard::{self, PresentedThumbprint},
    reply::plain_error,
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    error::A2aError,
    hub::presented_key,
    operation::{Answer, DeviceReport, PresentedReport},
};
use a2a_hub_rpc::dispatcher::Dispatcher;
use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};

/// Largest body, in bytes.
const MAX_BODY: usize = 4_096;

/// Answers a browser that presents its key.
pub(super) async fn pair(State(dispatcher): State<Dispatcher>, request: Request) -> Response {
    let devices = dispatcher.hub().devices();
    let caller = origin_guard::principal(&request);
    let thumbprint = request.extensions().get().cloned();
    let body = match read_json(&dispatcher, request, MAX_BODY).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    if let Principal::Device { id } = caller {
        let token = body["token"].as_str().unwrap_or_default();
        return answer(devices.end_pairing_for(token, &id));
    }
    // The guard admits nobody else.
    let Some(PresentedThumbprint(thumbprint)) = thumbprint else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let operation = match presented_key(body, thumbprint) {
        Ok(operation) => operation,
        Err(why) => return invalid(&why),
    };
    match dispatcher.hub().handle(&Principal::Anonymous, None, operation).await {
        Ok(Reply::One(Answer::Device(DeviceReport::Presented(report)))) => answer(report),
        Ok(Reply::One(_) | Reply::Stream(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(why) => invalid(&why),
    }
}

fn invalid(why: &A2aError) -> Response {
    plain_error(StatusCode::BAD_REQUEST, &why.message)
}

fn answer(report: PresentedReport) -> Response {
    let status = match &*report.pairing {
        "paired" => 200,
        "pending" => 202,
        "refused" => 403,
        _ => 410,
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match &report.reason {
        Some(why) => plain_error(status, why),
        // The answer may hold an access token.
        None => (status, [(header::CACHE_CONTROL, "no-store")], Json(report)).into_response(),
    }
}
