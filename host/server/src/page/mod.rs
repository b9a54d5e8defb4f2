//! The web page: its files below `/ui`, and the pairing of a browser.

mod files;
mod pair;

use a2a_hub_rpc::dispatcher::Dispatcher;
use axum::{
    Router,
    response::Redirect,
    routing::{get, post},
};

/// Path of the page's first view.
pub(crate) const PAGE: &str = "/ui/";

/// Path at which a browser presents its key.
pub(crate) const PAIR: &str = "/ui/pair";

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

/// True for the path of a file or a view of the page.
pub(crate) fn is_path(path: &str) -> bool {
    path == "/ui" || path.starts_with(PAGE)
}
