//! Agentic Resource Discovery (ARD v0.91): the hub's agents as a catalogue at well-known URLs, and
//! as a registry below `/ard`. A caller sees the agents that it may list.
//!
//! `GET /agents` of the root has another form, of the hub's own search; see `registry`.

mod entry;

use crate::http::{body::read_body, context::hub_url, origin_guard, reply};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    foreign,
    hub::registry,
    member,
    operation::{Answer, MAX_FOUND, Operation},
};
use a2a_hub_rpc::dispatcher::Dispatcher;
use axum::{
    Extension, Json, Router,
    extract::{Path, Request, State},
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use entry::{EntryFilter, Publisher};
use serde_json::{Value, json};
use url::form_urlencoded;

/// Cache lifetime of entries. They differ between callers, so no shared cache may store them.
const FRESH: &str = "private, max-age=60";

/// Default and maximum numbers of entries on a page of a search, and the default of a list.
const SEARCH_PAGE: u64 = 10;
const LIST_PAGE: u64 = 20;
const MAX_PAGE: u64 = 100;

/// Routes of the catalogue and the registry.
pub(crate) fn routes() -> Router<Dispatcher> {
    Router::new()
        .route("/.well-known/ard.json", get(catalogue))
        // The name of the earlier versions.
        .route("/.well-known/ai-catalog.json", get(catalogue))
        .route("/ard/agents", get(list))
        .route("/ard/agents/{identifier}", get(retrieve))
        .route("/ard/search", post(search))
        .route("/search", post(search))
        .route("/ard/explore", post(explore))
}

/// Error of a request.
struct ArdError {
    status: StatusCode,
    code: &'static str,
    why: String,
}

impl ArdError {
    fn argument(why: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: "INVALID_ARGUMENT", why: why.into() }
    }

    /// Error for a refusal of the hub.
    fn from_error(why: &A2aError) -> Self {
        let status = reply::status(why);
        let code = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "UNAUTHENTICATED",
            StatusCode::NOT_FOUND => "NOT_FOUND",
            StatusCode::TOO_MANY_REQUESTS => "RATE_LIMIT_EXCEEDED",
            status if status.is_client_error() => "INVALID_ARGUMENT",
            _ => "INTERNAL_ERROR",
        };
        Self { status, code, why: why.message.to_string() }
    }

    fn response(self) -> Response {
        let body = json!({ "errorCode": self.code, "message": self.why });
        (self.status, Json(body)).into_response()
    }
}

/// Entries of the agents that the caller may list.
async fn entries(
    dispatcher: &Dispatcher,
    caller: &Principal,
    publisher: &Publisher,
) -> Result<Vec<Value>, ArdError> {
    let list = Operation::ListAgents { include_health: false };
    match dispatcher.hub().handle(caller, None, list).await {
        Ok(Reply::One(Answer::Agents(agents))) => Ok(agents
            .iter()
            .filter(|agent| !agent.unlisted)
            .map(|agent| publisher.agent(&agent.id, &agent.card, Some(&agent.registered_at)))
            .collect()),
        // Unreachable: a list of agents is answered with agents.
        Ok(_) => Err(ArdError::from_error(&A2aError::new(ErrorKind::Internal, "the list failed"))),
        Err(why) => Err(ArdError::from_error(&why)),
    }
}

async fn catalogue(
    State(dispatcher): State<Dispatcher>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Response {
    let publisher = Publisher::new(&hub_url(&dispatcher, &headers));
    match entries(&dispatcher, &principal, &publisher).await {
        Ok(mut entries) => {
            entries.insert(0, publisher.registry());
            let host = json!({ "displayName": "A2A Local Hub" });
            fresh(json!({ "specVersion": "1.0", "host": host, "entries": entries }))
        }
        Err(refused) => refused.response(),
    }
}

/// Parameters of a list.
#[derive(Debug, Default)]
struct ListParameters {
    filter: String,
    order_by: String,
    page_size: Option<String>,
    page_token: Option<String>,
}

impl ListParameters {
    /// Reads a URL's query. Other parameters, such as the A2A version, do not matter.
    fn read(query: Option<&str>) -> Self {
        let mut params = Self::default();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "filter" => params.filter = value.into_owned(),
                "orderBy" => params.order_by = value.into_owned(),
                "pageSize" => params.page_size = Some(value.into_owned()),
                "pageToken" => params.page_token = Some(value.into_owned()),
                _ => {}
            }
        }
        params
    }
}

async fn list(
    State(dispatcher): State<Dispatcher>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let publisher = Publisher::new(&hub_url(&dispatcher, &headers));
    let params = ListParameters::read(uri.query());
    let listed = async {
        let filter = EntryFilter::read_list(&params.filter).map_err(ArdError::argument)?;
        let size = params.page_size.as_deref().map(str::parse);
        let size = size.transpose().map_err(|_| ArdError::argument(wrong_size()))?;
        let size = page_size(size, LIST_PAGE)?;
        let mut entries = entries(&dispatcher, &principal, &publisher).await?;
        entries.retain(|entry| filter.matches(entry));
        entry::sort(&mut entries, &params.order_by).map_err(ArdError::argument)?;
        let total = entries.len();
        let (items, next) =
            entry::page(entries, size, params.page_token.as_deref()).map_err(ArdError::argument)?;
        Ok(paged(json!({ "items": items, "total": total }), next))
    };
    listed.await.map_or_else(ArdError::response, fresh)
}

async fn retrieve(
    State(dispatcher): State<Dispatcher>,
    Extension(principal): Extension<Principal>,
    Path(identifier): Path<String>,
    headers: HeaderMap,
) -> Response {
    let publisher = Publisher::new(&hub_url(&dispatcher, &headers));
    let found = async {
        if !entry::is_identifier(&identifier) {
            return Err(ArdError::argument("an identifier is like urn:air:HOST:agent:NAME"));
        }
        let entries = entries(&dispatcher, &principal, &publisher).await?;
        let mut all = entries.into_iter().chain([publisher.registry()]);
        let none = || {
            let why = "no entry has this identifier; `GET /ard/agents` lists them".to_owned();
            ArdError { status: StatusCode::NOT_FOUND, code: "NOT_FOUND", why }
        };
        all.find(|entry| entry["identifier"] == identifier).ok_or_else(none)
    };
    found.await.map_or_else(ArdError::response, fresh)
}

async fn search(State(dispatcher): State<Dispatcher>, request: Request) -> Response {
    let principal = origin_guard::principal(&request);
    let publisher = Publisher::new(&hub_url(&dispatcher, request.headers()));
    let body = match read_body(&dispatcher, request).await {
        Ok(body) => body,
        Err(unread) => return unread.answer(ArdError::from_error(&unread.why).response()),
    };
    let found = async {
        let params = foreign::read(&body)
            .map_err(|why| ArdError::argument(format!("the body is not JSON: {}", why.why)))?;
        found(&dispatcher, &principal, &publisher, &params).await
    };
    found.await.map_or_else(ArdError::response, |result| Json(result).into_response())
}

/// Result of a search over the hub's own agents.
async fn found(
    dispatcher: &Dispatcher,
    caller: &Principal,
    publisher: &Publisher,
    params: &Value,
) -> Result<Value, ArdError> {
    let text = params["query"]["text"].as_str().map(str::trim).filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| {
        ArdError::argument("`query.text` must say what is needed, such as \"review a patch\"")
    })?;
    let filter = EntryFilter::read(&params["query"]["filter"]).map_err(ArdError::argument)?;
    if !matches!(params["federation"].as_str(), Some("auto" | "referrals" | "none"))
        && !params["federation"].is_null()
    {
        return Err(ArdError::argument("`federation` must be auto, referrals or none"));
    }
    let param = |name: &str| params.get(name).filter(|value| !value.is_null());
    let size = param("pageSize").map(|size| size.as_u64().ok_or_else(wrong_size)).transpose();
    let size = page_size(size.map_err(ArdError::argument)?, SEARCH_PAGE)?;
    let wrong_token = || ArdError::argument(entry::WRONG_TOKEN);
    let token =
        param("pageToken").map(|token| token.as_str().ok_or_else(wrong_token)).transpose()?;
    let mut query = registry::read_query(None).map_err(|why| ArdError::from_error(&why))?;
    query.text = Some(text.to_owned());
    query.limit = MAX_FOUND;
    // Entries of other registries have no identifier that this one could retrieve.
    query.local_only = true;
    let reply = dispatcher.hub().handle(caller, None, Operation::FindAgents(query)).await;
    let found = match reply {
        Ok(Reply::One(Answer::Found(found))) => found,
        Ok(_) => {
            return Err(ArdError::from_error(&A2aError::new(
                ErrorKind::Internal,
                "the search failed",
            )));
        }
        Err(why) => return Err(ArdError::from_error(&why)),
    };
    let best = found.agents.iter().map(|agent| agent.score).fold(0.0, f64::max);
    let results = found.agents.iter().filter_map(|agent| {
        let mut entry = publisher.agent(&agent.id, &agent.card, None);
        if !filter.matches(&entry) {
            return None;
        }
        if let Some(members) = entry.as_object_mut() {
            // They serve the index of a registry.
            members.remove("representativeQueries");
        }
        member::set(&mut entry, "score", entry::percent(agent.score, best));
        member::set(&mut entry, "source", publisher.registry_url());
        Some(entry)
    });
    let (results, next) =
        entry::page(results.collect(), size, token).map_err(ArdError::argument)?;
    Ok(paged(json!({ "results": results }), next))
}

async fn explore() -> Response {
    let why = "this registry has no facets; search by `POST /ard/search`".to_owned();
    let status = StatusCode::NOT_IMPLEMENTED;
    ArdError { status, code: "NOT_IMPLEMENTED", why }.response()
}

fn page_size(requested: Option<u64>, default: u64) -> Result<usize, ArdError> {
    let size = requested.unwrap_or(default);
    let size = (1..=MAX_PAGE).contains(&size).then(|| usize::try_from(size).ok()).flatten();
    size.ok_or_else(|| ArdError::argument(wrong_size()))
}

fn wrong_size() -> String {
    format!("`pageSize` must be 1 to {MAX_PAGE}")
}

fn paged(mut page: Value, next: Option<String>) -> Value {
    if let Some(next) = next {
        member::set(&mut page, "pageToken", next);
    }
    page
}

fn fresh(body: Value) -> Response {
    ([(header::CACHE_CONTROL, FRESH)], Json(body)).into_response()
}
