//! The five-step protocol: tasks are submitted at `/submit_task` and told of at `/task_updates/{task_id}`, at the hub's root and below
//! each agent. What comes in is a message like any other, and who calls itself what in it is no more than that.
//!
//! ```text
//! refusals who is named, and what was refused
//! submit   the body, the agent that has the skill, the schema of its input, the message
//! schemas  those that were compiled, of each skill the latest
//! updates  the events of a task, each as an update
//! told     an update
//! ```

mod refusals;
mod schemas;
mod submit;
mod told;
mod updates;

use crate::dispatcher::Dispatcher;
use axum::{
    Extension, Router,
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
