//! HTTP server: JSON-RPC on `POST /`, a page on `GET /`, streams as server-sent events on `POST
//! /stream`, methods over REST below `/hub`, `GET /health`, `/ready` and `/metrics`, cards, keys,
//! gRPC, MCP on `/mcp`, the five-step protocol, and webhooks for triggers.

use super::{
    body::read_body,
    context::{extensions_header, hub_url, last_event, with_extensions, with_headers},
    front_page::front_page,
    hub_names::HubNames,
    listener::HttpListener,
    origin_guard::{self, OriginGuard},
    reply::{answer, json_body},
    starting::react,
};
use crate::{
    a2a::{ard, cards, grpc, jwks, registry, rest},
    five_step, hooks, hub_methods, join,
    mcp::McpHttp,
    monitoring::{metrics, probes},
    page,
    starting::{self, StartProgress, StartReaction},
};
use a2a_hub_config::token::Tokens;
use a2a_hub_core::http_name::HttpName;
use a2a_hub_protocol::dialect::Dialect;
use a2a_hub_rpc::{
    dispatcher::{Dispatcher, PublicEndpoints, RequestContext},
    jsonrpc,
};
use a2a_hub_tls::ServerTls;
use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::post,
};
use std::{collections::VecDeque, io, net::SocketAddr};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

/// Length of the queue of connections to accept (`listen(2)`; the system may limit it further). The
/// kernel drops excess connections, and their clients retry after one, two and four seconds.
pub(crate) const BACKLOG: u32 = 4096;

/// A bound HTTP server.
pub struct HttpServer {
    listener: TcpListener,
    /// Connections from before the start, which are served first.
    waiting: VecDeque<TcpStream>,
    address: SocketAddr,
    tls: Option<ServerTls>,
}

impl HttpServer {
    /// Binds to `address`; port 0 selects a free port.
    ///
    /// # Errors
    ///
    /// The system's error, for example if the port is in use.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, waiting: VecDeque::new(), address, tls: None })
    }

    /// Serves TLS, and no plain HTTP.
    #[must_use]
    pub fn with_tls(self, tls: Option<ServerTls>) -> Self {
        Self { tls, ..self }
    }

    /// Bound address with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers the probes until `started`; all other requests wait until then, and with TLS the
    /// probes as well. The host of a request may be one of the `names`, or that of the public URL.
    pub async fn serve_until_started(
        &mut self,
        names: &[HttpName],
        public_url: Option<&str>,
        progress: StartProgress,
        started: CancellationToken,
    ) {
        let is_tls = self.tls.is_some();
        let names = HubNames::of_server(self.address, is_tls, names, public_url);
        // A handshake waits until the start is over: its bytes are no request.
        let reaction = move |bytes: &[u8]| match is_tls {
            true => StartReaction::Incomplete,
            false => react(bytes, &names, &progress()),
        };
        let listener = &self.listener;
        let accept = async || Ok(listener.accept().await?.0);
        self.waiting = starting::accept_until_started(accept, reaction, started).await.into();
    }

    /// Serves until `stop`, then finishes the requests in progress.
    pub async fn serve(self, dispatcher: Dispatcher, tokens: Tokens, stop: CancellationToken) {
        let (timeout, lineage) = (dispatcher.timeout(), dispatcher.lineage());
        let connections = dispatcher.connection_budget().http;
        let PublicEndpoints { names, public_url, .. } = dispatcher.public_endpoints();
        let is_tls = self.tls.is_some();
        let names = HubNames::of_server(self.address, is_tls, names, public_url.as_deref());
        let guard =
            OriginGuard::new(names, tokens, dispatcher.hub().devices(), dispatcher.hub().people());
        let routes = Router::new()
            .route("/", post(call).get(front_page))
            .route("/stream", post(call_streaming))
            .merge(probes::routes())
            .merge(metrics::routes())
            .merge(cards::routes())
            .merge(registry::routes())
            .merge(ard::routes())
            .merge(hooks::routes())
            .merge(hub_methods::routes())
            .merge(page::routes())
            .merge(join::routes())
            .merge(jwks::routes())
            .merge(rest::routes())
            .merge(five_step::routes())
            .merge(grpc::routes())
            .merge(McpHttp::new(dispatcher.clone(), stop.clone()).routes())
            .with_state(dispatcher);
        let listener = HttpListener::new(self.listener, connections, timeout, lineage);
        let listener = listener.with_waiting(self.waiting).with_tls(self.tls);
        listener.serve(guard, routes, stop).await;
    }
}

async fn call(State(dispatcher): State<Dispatcher>, request: Request) -> Response {
    respond(&dispatcher, request, false).await
}

async fn call_streaming(State(dispatcher): State<Dispatcher>, request: Request) -> Response {
    respond(&dispatcher, request, true).await
}

/// Handles `POST /` and `POST /stream`. With `sse`, a single answer becomes one event.
async fn respond(dispatcher: &Dispatcher, request: Request, sse: bool) -> Response {
    let (caller, headers) = (origin_guard::principal(&request), request.headers());
    let (url, named_in) = (hub_url(dispatcher, headers), extensions_header(headers));
    let of = RequestContext::of_hub(caller, &url, last_event(headers));
    let of = with_headers(of, headers, request.uri().query());
    match read_body(dispatcher, request).await {
        Ok(body) => {
            // A batch is answered with one array, which is not an event.
            let sse = sse && !body.trim_ascii_start().starts_with(b"[");
            let response = answer(dispatcher.respond(body, &of).await, sse);
            with_extensions(response, &of.active, named_in)
        }
        Err(unread) => unread.answer(json_body(jsonrpc::unreadable(Dialect::Hub, &unread.why))),
    }
}
