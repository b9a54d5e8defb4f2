//! Dispatches operations of every transport to the hub, together with their caller, origin and
//! protocol version, and writes the answers in the caller's dialect.

use crate::lineage::{Lineage, Lineages, NoLineage};
use crate::{
    catch_panic::caught,
    long_answers::LongAnswers,
    stream_quota::{StreamPermit, StreamQuota},
    task_stream::TaskStream,
};
use a2a_hub_config::token::TOKEN_FILE;
use a2a_hub_core::{
    access_control::{Caller, Principal},
    http_name::HttpName,
    scheduling::{
        connection_quota::{ConnectionBudget, QuotaReached},
        resources::SharedResource,
    },
    text::duration::Span,
};
use a2a_hub_engine::{ClientContext, Hub, Reply, TaskView};
use a2a_hub_protocol::{
    binding::jsonrpc::ParamsSource,
    card::Endpoints,
    dialect::{Dialect, Wire},
    error::{A2aError, ErrorKind},
    hub::{self, answer::AGENTS},
    id::{AgentId, TaskId, TenantId},
    interface::{Binding, Version, check_written},
    operation::{Answer, OpenStreams, Operation},
    trace::TraceContext,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use url::Url;

/// Path of the hub's endpoint for official A2A.
pub const HUB: &str = "/a2a";

/// Least number of HTTP connections that are admitted, if descriptors allow it. Each costs some ten
/// kilobytes.
const MIN_HTTP_CONNECTIONS: SharedResource = SharedResource::HttpConnections;

/// Number of admitted connections to the unix socket, if descriptors allow it. Each costs a few
/// kilobytes.
const SOCKET_CONNECTIONS: SharedResource = SharedResource::SocketConnections;

/// Entry point of requests from every transport. Cheap to clone.
#[derive(Clone)]
pub struct Dispatcher {
    hub: Hub,
    public_endpoints: Arc<PublicEndpoints>,
    streams: StreamQuota,
    connections: ConnectionBudget,
    long_answers: LongAnswers,
    timeout: Duration,
    lineage: Lineages,
    /// True if the hub offers the extension for generations.
    generations: bool,
}

/// Addresses at which others reach this hub.
#[derive(Clone, Debug, Default)]
pub struct PublicEndpoints {
    /// Public URL of the hub, without a trailing slash; if unset, the URL that the client used.
    pub public_url: Option<String>,
    /// Names under which clients call the HTTP server, in addition to its own address.
    pub names: Vec<HttpName>,
    /// Address of the HTTP server, if HTTP is served.
    pub http: Option<SocketAddr>,
    /// True if the HTTP server speaks TLS.
    pub is_tls: bool,
    /// Path of the unix socket, if it is served.
    pub socket: Option<PathBuf>,
    /// Agent whose card is served at the root; if unset, the hub's card is.
    pub root_agent: Option<AgentId>,
}

/// Facts that a transport knows about a request in addition to its text.
pub struct RequestContext<'a> {
    /// Caller that the transport identified.
    pub caller: Principal,
    /// URL at which the client reached this hub.
    pub url: &'a str,
    /// Id of the last event that the client received before it lost its connection
    /// (`Last-Event-ID`).
    pub last_event_id: Option<String>,
    /// Dialect of requests whose method does not determine one.
    pub spelled: Dialect,
    /// Addresses of the endpoint for official A2A; none where no A2A card is served.
    pub endpoints: Option<Endpoints>,
    /// Agent whose endpoint received the request.
    pub agent: Option<AgentId>,
    /// URIs of the extensions that the client requests.
    pub extensions: Vec<String>,
    /// Requested extensions that are active.
    pub active: Active,
    /// Version that the client names; an error if the hub does not speak it.
    pub version: Result<Option<Version>, A2aError>,
    /// Source of the agent, the extensions and the version: the headers, or the request's metadata.
    pub source: ParamsSource,
    /// Trace of the client, sent along with its request.
    pub trace: TraceContext,
}

/// Agent and tenant to which a request is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTarget {
    /// Addressed agent; `None` for the hub.
    pub agent: Option<AgentId>,
    /// Tenant of the caller.
    pub tenant: TenantId,
}

/// Extensions that are active for the operations of a request that were carried out so far.
#[derive(Default)]
pub struct Active(Mutex<Vec<String>>);

impl Active {
    fn add(&self, active: Vec<String>) {
        let mut all = self.0.lock();
        let new: Vec<_> = active.into_iter().filter(|uri| !all.contains(uri)).collect();
        all.extend(new);
    }

    /// URIs of these extensions.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl<'a> RequestContext<'a> {
    /// Creates the context of a request in the Local Hub's dialect.
    pub fn of_hub(caller: Principal, url: &'a str, last_event_id: Option<String>) -> Self {
        Self {
            caller,
            url,
            last_event_id,
            spelled: Dialect::Hub,
            endpoints: None,
            agent: None,
            extensions: Vec::new(),
            active: Active::default(),
            version: Ok(None),
            source: ParamsSource::Headers,
            trace: TraceContext::default(),
        }
    }

    /// Refuses a request of A2A if the client names another version than the one it is written in.
    /// The hub's own methods have no version.
    pub fn require_version(
        &self,
        dialect: Dialect,
        operation: Option<&Operation>,
    ) -> Result<(), A2aError> {
        let written = match dialect {
            Dialect::Official(wire) => wire.version,
            Dialect::Hub if operation.is_some_and(Operation::is_of_v03) => Version::V03,
            Dialect::Hub => return Ok(()),
        };
        check_written(self.version.clone()?, written)
    }

    /// Error for a request with invalid parameters: those of another version are invalid for this
    /// reason.
    pub fn unreadable(&self, dialect: Dialect, why: A2aError) -> A2aError {
        if why.kind != ErrorKind::InvalidParams {
            return why;
        }
        self.require_version(dialect, None).err().unwrap_or(why)
    }

    /// Describes the client as a client of this version of official A2A, at an agent or the hub.
    pub fn client_context(&self, wire: Wire, agent: Option<AgentId>) -> ClientContext {
        ClientContext { agent, version: wire.version, extensions: self.extensions.clone() }
    }
}

/// Result of an operation, written in its dialect, without the envelope of the transport.
pub type Spelled = Result<Reply<SpelledAnswer, Box<TaskStream>>, OperationRefusal>;

/// Answer written in the client's dialect.
pub enum SpelledAnswer {
    /// JSON values, for a transport that inspects or serializes them. gRPC always gets values.
    Tree(Value),
    /// JSON text on one line, ready to be sent.
    Text(Vec<u8>),
}

/// Refusal of an operation.
pub struct OperationRefusal {
    /// Error that the client receives.
    pub why: A2aError,
    /// True if the hub is at capacity, and the request itself is valid.
    pub is_busy: bool,
}

impl From<A2aError> for OperationRefusal {
    fn from(why: A2aError) -> Self {
        Self { why, is_busy: false }
    }
}

impl Dispatcher {
    /// Creates a dispatcher for this hub. `max_streams` bounds the open streams; the timeout bounds
    /// slow reads and writes of a client.
    pub fn new(
        hub: Hub,
        public_endpoints: PublicEndpoints,
        max_streams: usize,
        timeout: Duration,
    ) -> Self {
        let (public_endpoints, streams) =
            (Arc::new(public_endpoints), StreamQuota::new(max_streams));
        let lineage = Arc::new(NoLineage);
        // One connection for each stream, and as many for all other requests.
        let [min_http, socket] = [MIN_HTTP_CONNECTIONS, SOCKET_CONNECTIONS]
            .map(|resource| usize::try_from(resource.default_total()).unwrap_or(usize::MAX));
        let http = max_streams.saturating_mul(2).max(min_http);
        let connections = ConnectionBudget { http, socket };
        let long_answers = LongAnswers::default();
        let generations = false;
        Self {
            hub,
            public_endpoints,
            streams,
            connections,
            long_answers,
            timeout,
            lineage,
            generations,
        }
    }

    /// Offers the extension for generations of tasks, or not.
    #[must_use]
    pub fn with_generations(self, generations: bool) -> Self {
        Self { generations, ..self }
    }

    pub(crate) fn has_generations(&self) -> bool {
        self.generations
    }

    /// Reduces the connections of the endpoints to what a process with this limit on open files can
    /// hold.
    #[must_use]
    pub fn with_open_files(self, open_files: u64) -> Self {
        let wanted = self.connections;
        let connections = ConnectionBudget::within(wanted, open_files);
        if connections != wanted {
            let ConnectionBudget { http, socket } = connections;
            tracing::warn!(
                open_files,
                http,
                socket,
                "the limit on open files allows fewer connections; raise it (`ulimit -n 65536`; under systemd, `LimitNOFILE=`)"
            );
        }
        Self { connections, ..self }
    }

    /// Identifies clients by their processes. Without it, each program of the hub's own user counts
    /// as its operator.
    #[must_use]
    pub fn with_lineage(self, lineage: Arc<dyn Lineage>) -> Self {
        Self { lineage, ..self }
    }

    /// Lookup that identifies callers by their processes.
    pub fn lineage(&self) -> Lineages {
        Arc::clone(&self.lineage)
    }

    /// Number of open streams.
    pub fn streams(&self) -> OpenStreams {
        self.streams.count()
    }

    /// Maximum number of connections for each endpoint.
    pub fn connection_budget(&self) -> ConnectionBudget {
        self.connections
    }

    /// Timeout for slow reads and writes of a client.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The hub behind the dispatcher.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Addresses at which others reach the hub.
    pub fn public_endpoints(&self) -> &PublicEndpoints {
        &self.public_endpoints
    }

    /// Addresses of an agent, or of the hub itself, for a client that reached the hub at `url` over
    /// HTTP. The socket is for the hub's own user, who needs no token.
    pub fn endpoints(&self, url: &str, agent: Option<&AgentId>, needs_token: bool) -> Endpoints {
        let socket = if needs_token { None } else { self.socket_url() };
        Endpoints { socket, ..over_http(url, agent, needs_token) }
    }

    /// URL of the unix socket, if it is served.
    pub fn socket_url(&self) -> Option<String> {
        let path = std::path::absolute(self.public_endpoints.socket.as_ref()?).ok()?;
        let url = Url::from_file_path(path).ok()?;
        Some(format!("unix://{}", url.path()))
    }

    /// Resolves the `tenant` of a request without a path: a tenant of the hub, an agent, or both,
    /// separated by a slash. An unknown name is an error, because a message for one agent must not
    /// go to another.
    pub fn of_tenant(&self, value: Option<&str>) -> Result<(Option<AgentId>, TenantId), A2aError> {
        let Some(value) = value.filter(|said| !said.is_empty()) else {
            return Ok((None, TenantId::default()));
        };
        let agent = |name: &str| {
            AgentId::parse(name).ok().and_then(|name| self.hub.named(&name).ok()).ok_or_else(|| {
                let near = self.hub.did_you_mean(name);
                let why = format!(
                    "the tenant `{value}` is no agent; {near}leave it out to speak to the hub, or take it from an agent's card"
                );
                A2aError::new(ErrorKind::AgentNotFound, why)
            })
        };
        let both = value
            .split_once('/')
            .and_then(|(tenant, name)| Some((TenantId::parse(tenant).ok()?, name)));
        match both {
            Some((tenant, name)) => Ok((Some(agent(name)?), tenant)),
            None => match TenantId::parse(value).ok().filter(|tenant| self.hub.is_tenant(tenant)) {
                Some(tenant) => Ok((None, tenant)),
                None => Ok((Some(agent(value)?), TenantId::default())),
            },
        }
    }

    /// Resolves the `tenant` of a request of official A2A whose path names the agent. A hub without
    /// tenants accepts any value as the default tenant, because the value is opaque to clients
    /// there.
    pub fn opaque_tenant(&self, value: Option<&str>) -> Result<TenantId, A2aError> {
        self.tenant(value.filter(|_| self.hub.has_tenants()))
    }

    /// Resolves the `tenant` of a request in the hub's dialect: a name of no tenant is refused when
    /// the request is carried out. The name of an agent means the default tenant, because clients
    /// may copy it from the agent's card.
    pub fn tenant(&self, value: Option<&str>) -> Result<TenantId, A2aError> {
        let Some(value) = value.filter(|said| !said.is_empty()) else {
            return Ok(TenantId::default());
        };
        let name = value.split_once('/').map_or(value, |(tenant, _)| tenant);
        let tenant =
            TenantId::parse(name).map_err(|why| A2aError::invalid("tenant", why.to_string()))?;
        let is_agent = || AgentId::parse(name).is_ok_and(|agent| self.hub.named(&agent).is_ok());
        Ok(if !self.hub.is_tenant(&tenant) && is_agent() { TenantId::default() } else { tenant })
    }

    /// Resolves the `tenant` of a request of official A2A to an agent and a tenant. Where the URL
    /// names no agent, the tenant may, as over gRPC; otherwise both must name the same one.
    pub fn resolve_target(
        &self,
        value: Option<&str>,
        at: Option<&AgentId>,
    ) -> Result<RequestTarget, A2aError> {
        let tenant = self.opaque_tenant(value)?;
        let named = value.and_then(|value| self.agent_of_tenant(value));
        if let (Some(at), Some(named)) = (at, &named)
            && at != named
        {
            let why = format!(
                "names the agent `{named}`, and the URL names `{at}`; leave `tenant` out, or send to `{AGENTS}{named}`"
            );
            return Err(A2aError::invalid("tenant", why));
        }
        Ok(RequestTarget { agent: at.cloned().or(named), tenant })
    }

    /// Agent that a `tenant` names, alone or after a tenant and a slash. Other texts are opaque.
    fn agent_of_tenant(&self, value: &str) -> Option<AgentId> {
        if TenantId::parse(value).is_ok_and(|tenant| self.hub.is_tenant(&tenant)) {
            return None;
        }
        let name = value.split_once('/').map_or(value, |(_, name)| name);
        self.hub.named(&AgentId::parse(name).ok()?).ok()
    }

    /// Restricts the caller to this tenant. An operator may act as a client of any tenant.
    pub fn narrowed(&self, caller: Principal, tenant: TenantId) -> Result<Principal, A2aError> {
        if tenant.is_default() {
            return Ok(caller);
        }
        let name = tenant.to_string();
        let caller = Caller { principal: caller, tenant };
        self.hub.require_tenant(&caller, &TenantId::default())?;
        let Caller { principal, .. } = caller;
        Ok(if principal.is_operator() { Principal::Client(name) } else { principal })
    }

    /// Carries out an operation in this dialect, at the agent and for the tenant that the request
    /// names.
    pub async fn carry_out(
        &self,
        dialect: Dialect,
        operation: Operation,
        target: RequestTarget,
        of: &RequestContext<'_>,
    ) -> Spelled {
        caught(self.spelled(dialect, operation, target, of)).await.map_err(Into::into).flatten()
    }

    async fn spelled(
        &self,
        dialect: Dialect,
        mut operation: Operation,
        RequestTarget { agent, tenant }: RequestTarget,
        of: &RequestContext<'_>,
    ) -> Spelled {
        of.require_version(dialect, Some(&operation))?;
        let is_known = of.endpoints.as_ref().is_some_and(|it| it.needs_token);
        if let (Operation::GetCard { .. }, Dialect::Official(_), false) =
            (&operation, dialect, is_known)
        {
            return Err(no_extended_card().into());
        }
        let permit = operation.streams().then(|| self.admit(&of.caller)).transpose()?;
        if operation.resumes() {
            operation.go_on_after(of.last_event_id.as_deref());
        }
        operation.in_trace(&of.trace);
        let official = match dialect {
            Dialect::Hub => None,
            Dialect::Official(Wire { version, binding }) => Some((version, binding)),
        };
        operation.set_transport(official, of.source == ParamsSource::Metadata);
        let sent = matches!(operation, Operation::SendMessage(_));
        let caller = Caller { principal: of.caller.clone(), tenant };
        let (is_text, numbers) = (spells_text(dialect), self.numbers(dialect, of));
        if let (Operation::GetTask { id, history_length: None }, true, false) =
            (&operation, is_text, numbers)
        {
            return Ok(Reply::One(self.read_task(dialect, caller, (agent, id), of).await?));
        }
        let reply = match dialect {
            Dialect::Hub => self.hub.handle(caller, None, operation).await,
            Dialect::Official(wire) => {
                let client_context = self.client_context(of, wire, agent.clone());
                of.active.add(self.hub.activated(&client_context, &operation).await);
                self.for_client(caller, &client_context, operation, (of, numbers)).await
            }
        };
        Ok(match (reply?, dialect) {
            (Reply::One(answer), dialect) => {
                let text = match is_text {
                    true => self.long_answers.text(dialect, answer, sent).await?,
                    false => Err(Box::new(answer)),
                };
                Reply::One(match (text, dialect) {
                    (Ok(text), _) => SpelledAnswer::Text(text),
                    (Err(answer), Dialect::Hub) => {
                        SpelledAnswer::Tree(hub::answer::write(*answer, of.url))
                    }
                    (Err(answer), Dialect::Official(wire)) => {
                        let endpoints = of.endpoints.as_ref().map(|it| match of.agent == agent {
                            true => it.clone(),
                            false => self.endpoints(of.url, agent.as_ref(), it.needs_token),
                        });
                        let spelled = wire.write_answer(&answer, sent, endpoints.as_ref());
                        let unknown =
                            || A2aError::new(ErrorKind::Internal, "A2A has no such answer");
                        let mut spelled = spelled.ok_or_else(unknown)?;
                        if matches!(*answer, Answer::Card(_)) {
                            self.declare_generations(&mut spelled);
                            self.hub().sign_card(&mut spelled, of.url);
                        }
                        SpelledAnswer::Tree(spelled)
                    }
                })
            }
            (Reply::Stream(events), dialect) => {
                let stream = TaskStream::new(dialect, events, permit);
                Reply::Stream(Box::new(stream.with_generations(numbers)))
            }
        })
    }

    /// Reads a task in its current state. A finished task is passed on as stored.
    async fn read_task(
        &self,
        dialect: Dialect,
        caller: Caller,
        (agent, task): (Option<AgentId>, &TaskId),
        of: &RequestContext<'_>,
    ) -> Result<SpelledAnswer, A2aError> {
        let client_context = match dialect {
            Dialect::Hub => None,
            Dialect::Official(wire) => Some(self.client_context(of, wire, agent)),
        };
        let get = Operation::GetTask { id: task.clone(), history_length: None };
        if let Some(client_context) = &client_context {
            of.active.add(self.hub.activated(client_context, &get).await);
        }
        Ok(SpelledAnswer::Text(
            match self.hub.view_task(caller, client_context.as_ref(), get).await? {
                TaskView::Finished(task) => {
                    let broken = |why: serde_json::Error| {
                        tracing::error!(%why, "cannot read a stored task");
                        A2aError::new(ErrorKind::Internal, "the task that is kept cannot be read")
                    };
                    task.text(dialect).map_err(broken)?.as_bytes().to_vec()
                }
                TaskView::Task(stored) => {
                    let answer = Answer::Task(Box::new(stored.task));
                    self.long_answers.text(dialect, answer, false).await?.unwrap_or_default()
                }
            },
        ))
    }

    /// Carries out an operation for an endpoint that writes its own answers. A stream counts in the
    /// stream quota until the returned permit is dropped.
    pub async fn ask(
        &self,
        caller: &Principal,
        operation: Operation,
    ) -> Result<(Reply, Option<StreamPermit>), A2aError> {
        let permit = operation.streams().then(|| self.admit(caller)).transpose();
        let permit = permit.map_err(|refused| refused.why)?;
        Ok((caught(self.hub.handle(caller, None, operation)).await.flatten()?, permit))
    }

    /// Takes a permit from the stream quota for this principal.
    pub fn admit(&self, caller: &Principal) -> Result<StreamPermit, OperationRefusal> {
        self.streams.open(caller).map_err(|reached| {
            let (QuotaReached::PerHolder { limit: max, .. }
            | QuotaReached::Shared { max, .. }
            | QuotaReached::All { max, .. }) = reached;
            let why = A2aError::new(ErrorKind::AgentUnavailable, reached.to_string());
            OperationRefusal { why: why.with(json!({ "limit": max })), is_busy: true }
        })
    }
}

/// True if answers in this dialect are sent as JSON text.
fn spells_text(dialect: Dialect) -> bool {
    !matches!(dialect, Dialect::Official(Wire { binding: Binding::Grpc, .. }))
}

/// Addresses over HTTP of an agent, or of the hub itself, if the hub is at `url`.
fn over_http(url: &str, agent: Option<&AgentId>, needs_token: bool) -> Endpoints {
    let path = agent.map_or_else(|| HUB.to_owned(), |agent| format!("{AGENTS}{agent}"));
    let root = url.trim_end_matches('/').to_owned();
    let base = format!("{root}{path}");
    // gRPC has no path: its clients name the agent in the tenant.
    let grpc = url.split_once("://").and_then(|(scheme, rest)| {
        let host = rest.strip_suffix('/').unwrap_or(rest);
        let port = if scheme == "https" { ":443" } else { ":80" };
        let port = if has_port(host) { "" } else { port };
        (!host.contains('/')).then(|| format!("{host}{port}"))
    });
    let tenant = agent.map(AgentId::to_string);
    Endpoints { base, root, grpc, socket: None, tenant, needs_token }
}

/// Refuses the extended card: a client whose card had no security schemes cannot authenticate (A2A
/// 1.0, section 3.3.4).
fn no_extended_card() -> A2aError {
    let why = format!(
        "the card at `/.well-known/agent-card.json` is all there is for the hub's own user; the extended one is for \
         those who show `Authorization: Bearer` over HTTP and what the file `{TOKEN_FILE}` in the hub's data directory holds"
    );
    A2aError::new(ErrorKind::UnsupportedOperation, why)
}

/// True if the host of a URL is followed by a port. An IPv6 address has colons inside its brackets.
fn has_port(host: &str) -> bool {
    host.rsplit(']').next().is_some_and(|rest| rest.contains(':'))
}

/// Error for a client that did not finish sending before the timeout.
pub fn request_timeout(subject: &str, timeout: Duration) -> A2aError {
    let timeout = Span(timeout);
    let why = format!(
        "the {subject} did not come to its end within {timeout}; send it in one go, or raise `clients.timeout_ms`"
    );
    A2aError::new(ErrorKind::InvalidRequest, why)
}
