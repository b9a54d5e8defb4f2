//! The web page: its files below `/ui`, and the pairing of a browser.

mod files;
mod pair;

use crate::http::paths::{PAGE, PAIR};
use a2a_hub_rpc::dispatcher::Dispatcher;
use axum::{
    Router,
    response::Redirect,
    routing::{get, post},
};

/// Routes of the page.
pub(crate) fn routes() -> Router<Dispatcher> {
    let leads_on = async || Redirect::to(PAGE);
    Router::new()
        .route("/ui", get(leads_on))
        .route(PAGE, get(files::file))
        .route("/ui/{*path}", get(files::file))
        // The view of a pairing has the same path.
        .route(PAIR, post(pair::pair).get(files::file))
}
