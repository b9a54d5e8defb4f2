//! Five-step protocol: tasks are submitted at `/submit_task` and observed at
//! `/task_updates/{task_id}`, at the hub's root and below each agent. A submission becomes an
//! ordinary message. The requesting agent's name in it is not verified and grants no rights.
//!
//! ```text
//! refusals     lookup of a path's agent, and error responses
//! submit       the body, the agent that has the skill, the schema of its input, the message
//! schemas      cache of compiled schemas, the latest of each skill
//! updates      the events of a task, each as an update
//! ```
//!
//! The module `model` has the form of submissions and updates, and selects the agent of a skill.

pub(crate) mod model;
mod refusals;
mod schemas;
mod submit;
mod updates;

use a2a_hub_rpc::dispatcher::Dispatcher;
use axum::{
    Extension, Router,
    routing::{get, post},
};
pub(super) use schemas::InputSchemas;

/// Routes of the endpoints.
pub(super) fn routes() -> Router<Dispatcher> {
    Router::new()
        .route("/submit_task", post(submit::at_root))
        .route("/agents/{id}/submit_task", post(submit::of_agent))
        .route("/task_updates/{task}", get(updates::at_root))
        .route("/agents/{id}/task_updates/{task}", get(updates::of_agent))
        .layer(Extension(InputSchemas::default()))
}
