//! The five-step protocol: tasks are submitted at `/submit_task` and told of at `/task_updates/{task_id}`, at the hub's root and below
//! each agent. What comes in is a message like any other, and who calls itself what in it is no more than that.
//!
//! ```text
//! submit   the body, the agent that has the skill, the schema of its input, the message
//! schemas  those that were compiled, of each skill the latest
//! updates  the events of a task, each as an update
//! told     an update
//! ```

mod schemas;
mod submit;
mod told;
mod updates;

use crate::dispatcher::{COME_AGAIN, Dispatcher};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    five_step,
    id::AgentId,
};
use axum::{
    Extension, Json, Router,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use schemas::InputSchemas;

/// The paths of the endpoints.
pub(super) fn routes() -> Router<Dispatcher> {
    Router::new()
        .route("/submit_task", post(submit::at_root))
        .route("/agents/{id}/submit_task", post(submit::of_agent))
        .route("/task_updates/{task}", get(updates::at_root))
        .route("/agents/{id}/task_updates/{task}", get(updates::of_agent))
        .layer(Extension(InputSchemas::default()))
}

/// The agent that a path names.
fn named(dispatcher: &Dispatcher, id: &str) -> Result<AgentId, A2aError> {
    let name = AgentId::parse(id)
        .map_err(|why| A2aError::new(ErrorKind::AgentNotFound, why.to_string()))?;
    dispatcher.hub().named(&name)
}

/// What was refused, with the status that says so.
fn refused(why: &A2aError) -> Response {
    let (status, body) = five_step::refusal(why);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let again = (status == StatusCode::SERVICE_UNAVAILABLE)
        .then(|| [(header::RETRY_AFTER, COME_AGAIN.to_string())]);
    (status, again, Json(body)).into_response()
}
