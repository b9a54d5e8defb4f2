//! Methods of the hub over REST: `POST /hub/{rest of the name}` with the parameters as JSON.
//!
//! The method `hub/questions/list` is `POST /hub/questions/list`. The response is its result, a
//! stream as server-sent events, and an error has the form of A2A's REST binding.

use crate::http::{
    body::read_body,
    context::{hub_url, last_event, with_headers},
    origin_guard,
    paths::HUB_METHODS,
    reply::{media, refusal, rest_answer},
};
use a2a_hub_protocol::dialect::{
    Dialect,
    rest::{HubMethodCall, read_hub},
};
use a2a_hub_rpc::dispatcher::{Dispatcher, RequestContext, RequestTarget};
use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::post,
};

/// Routes of all methods. The table of methods decides which paths exist.
pub(crate) fn routes() -> Router<Dispatcher> {
    let paths = [HUB_METHODS.to_owned(), format!("{HUB_METHODS}{{*name}}")];
    paths.iter().fold(Router::new(), |router, path| router.route(path, post(call)))
}

/// Calls the method that the path names.
pub(crate) async fn call(State(dispatcher): State<Dispatcher>, request: Request) -> Response {
    let (caller, headers) = (origin_guard::principal(&request), request.headers());
    let (url, media) = (hub_url(&dispatcher, headers), media(headers));
    let of = RequestContext::of_hub(caller, &url, last_event(headers));
    let of = with_headers(of, headers, request.uri().query());
    let method = request.uri().path().strip_prefix('/').unwrap_or_default().to_owned();
    let body = match read_body(&dispatcher, request).await {
        Ok(body) => body,
        Err(unread) => return unread.answer(refusal(&unread.why, Dialect::Hub, media)),
    };
    let HubMethodCall { tenant, operation } = read_hub(&method, &body);
    // The body shares the connection's buffer, which a long method would keep alive.
    drop(body);
    let resolved =
        operation.and_then(|operation| Ok((operation, dispatcher.tenant(tenant.as_deref())?)));
    let spelled = match resolved {
        Ok((operation, tenant)) => {
            let target = RequestTarget { agent: None, tenant };
            dispatcher.carry_out(Dialect::Hub, operation, target, &of).await
        }
        Err(why) => Err(why.into()),
    };
    rest_answer(spelled, Dialect::Hub, media, |_| {})
}
