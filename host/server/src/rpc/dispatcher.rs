//! Where operations are handed in, whatever they travelled on: who asks, from where, on what terms; and what comes of them.

use super::{catch_panic::caught, task_stream::TaskStream};
use crate::peer::identity::{Lineage, Lineages, NoLineage};
use a2a_hub_core::{
    access_control::{Caller, Principal},
    text::duration::Span,
};
use a2a_hub_engine::{Hub, Looked, Reply, Visit, token::TOKEN_FILE};
use a2a_hub_protocol::{
    binding::jsonrpc::Beside,
    card::Endpoints,
    dialect::{Dialect, Wire},
    error::{A2aError, ErrorKind},
    hub::{self, answer::AGENTS},
    id::{AgentId, TaskId, TenantId},
    interface::Binding,
    operation::{Answer, OpenStreams, Operation},
    trace::TraceContext,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

/// Where the hub itself is reached as official A2A has it.
pub(crate) const HUB: &str = "/a2a";

/// How soon a client that was sent away should come again, in seconds.
pub(crate) const COME_AGAIN: u32 = 1;

/// How many HTTP connections are let in at the least.
const LEAST_CONNECTIONS: usize = 4_000;

/// Where requests are taken in, whatever they travel on. Cheap to clone.
#[derive(Clone)]
pub struct Dispatcher {
    hub: Hub,
    public_endpoints: Arc<PublicEndpoints>,
    streams: Arc<Semaphore>,
    max_streams: usize,
    patience: Duration,
    lineage: Lineages,
}

/// Where others find this hub.
#[derive(Clone, Debug, Default)]
pub struct PublicEndpoints {
    /// The URL that others reach it by, without a slash at the end; where they reached it if none is set.
    pub public_url: Option<String>,
    /// Where it serves HTTP, if it does.
    pub http: Option<SocketAddr>,
    /// The path of its unix socket; none if it has none.
    pub socket: Option<PathBuf>,
    /// Whose card is at its root; its own if none is named.
    pub root_agent: Option<AgentId>,
}

/// What a transport knows of a request beside its text.
pub(crate) struct RequestContext<'a> {
    /// Who asks, as the transport found.
    pub(crate) caller: Principal,
    /// Where this hub is reached.
    pub(crate) url: &'a str,
    /// The number of the event that the client heard last, if it was cut off.
    pub(crate) heard: Option<u64>,
    /// How requests are spelled, unless their method says otherwise.
    pub(crate) spelled: Dialect,
    /// Where the endpoint of official A2A is reached; none where no card of A2A is told.
    pub(crate) endpoints: Option<Endpoints>,
    /// The agent whose endpoint it is.
    pub(crate) agent: Option<AgentId>,
    /// URIs of the extensions that the client asks for.
    pub(crate) extensions: Vec<String>,
    /// Those that turned out to be active.
    pub(crate) active: Active,
    /// Whether the version is spoken that the client names.
    pub(crate) version: Result<(), A2aError>,
    /// Where the client says what goes with its requests, of the three above.
    pub(crate) beside: Beside,
    /// The trace that the client is in, as it says beside its request.
    pub(crate) trace: TraceContext,
}

/// The extensions that are active in what a client asked, as far as that was carried out.
#[derive(Default)]
pub(crate) struct Active(Mutex<Vec<String>>);

impl Active {
    fn add(&self, active: Vec<String>) {
        let mut all = self.0.lock();
        let new: Vec<_> = active.into_iter().filter(|uri| !all.contains(uri)).collect();
        all.extend(new);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl<'a> RequestContext<'a> {
    /// Those of a request in the Local Hub's dialect.
    pub(crate) fn of_hub(caller: Principal, url: &'a str, heard: Option<u64>) -> Self {
        Self {
            caller,
            url,
            heard,
            spelled: Dialect::Hub,
            endpoints: None,
            agent: None,
            extensions: Vec::new(),
            active: Active::default(),
            version: Ok(()),
            beside: Beside::Headers,
            trace: TraceContext::default(),
        }
    }

    /// The client, as one that speaks a version of official A2A.
    pub(crate) fn visit(&self, wire: Wire) -> Visit {
        Visit {
            agent: self.agent.clone(),
            version: wire.version,
            extensions: self.extensions.clone(),
        }
    }
}

/// What an operation comes to, spelled in its dialect, without the envelope of what it travelled on.
pub(crate) type Spelled = Result<Reply<SpelledAnswer, Box<TaskStream>>, OperationRefusal>;

/// An answer as it is spelled.
pub(crate) enum SpelledAnswer {
    /// Values, which are looked into, or written by whoever sends them. Over gRPC all are.
    Tree(Value),
    /// JSON text in one line, ready to be sent.
    Text(Vec<u8>),
}

/// Why an operation comes to nothing.
pub(crate) struct OperationRefusal {
    /// What its client is told.
    pub(crate) why: A2aError,
    /// Whether that is none of the request's making: there is no room now.
    pub(crate) is_busy: bool,
}

impl From<A2aError> for OperationRefusal {
    fn from(why: A2aError) -> Self {
        Self { why, is_busy: false }
    }
}

impl Dispatcher {
    /// A dispatcher before this hub that serves so many streams at once. A client may take so long to send what it began, and
    /// leave for so long what there is for it.
    pub fn new(
        hub: Hub,
        public_endpoints: PublicEndpoints,
        max_streams: usize,
        patience: Duration,
    ) -> Self {
        let max_streams = max_streams.min(Semaphore::MAX_PERMITS);
        let (public_endpoints, streams) =
            (Arc::new(public_endpoints), Arc::new(Semaphore::new(max_streams)));
        let lineage = Arc::new(NoLineage);
        Self { hub, public_endpoints, streams, max_streams, patience, lineage }
    }

    /// The same, whose clients are told apart by the processes that they are. Without it, each program of the hub's own user
    /// is its operator.
    #[must_use]
    pub fn with_lineage(self, lineage: Arc<dyn Lineage>) -> Self {
        Self { lineage, ..self }
    }

    /// Who asks, by the processes that do.
    pub(crate) fn lineage(&self) -> Lineages {
        Arc::clone(&self.lineage)
    }

    /// How many streams are open.
    pub(crate) fn streams(&self) -> OpenStreams {
        let open = self.max_streams.saturating_sub(self.streams.available_permits());
        OpenStreams { open, most: self.max_streams }
    }

    /// How many HTTP connections are let in at once: as many as there may be streams, and as many for all else.
    pub(crate) fn max_connections(&self) -> usize {
        self.max_streams.saturating_mul(2).max(LEAST_CONNECTIONS)
    }

    /// How long a client may keep the hub waiting.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// The hub behind the dispatcher.
    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Where others find the hub.
    pub(crate) fn public_endpoints(&self) -> &PublicEndpoints {
        &self.public_endpoints
    }

    /// How an agent is reached, or the hub itself, by a client that reached the hub at `url` over HTTP. The socket is for
    /// the hub's own user, who needs no token.
    pub(crate) fn endpoints(
        &self,
        url: &str,
        agent: Option<&AgentId>,
        needs_token: bool,
    ) -> Endpoints {
        let socket = if needs_token { None } else { self.socket_url() };
        Endpoints { socket, ..over_http(url, agent, needs_token) }
    }

    /// The socket's URL, if there is one.
    pub(crate) fn socket_url(&self) -> Option<String> {
        let path = std::path::absolute(self.public_endpoints.socket.as_ref()?).ok()?;
        let url = Url::from_file_path(path).ok()?;
        Some(format!("unix://{}", url.path()))
    }

    /// The agent and the tenant that the `tenant` of a request names where there are no paths: a tenant of the hub, an agent, or
    /// both with a slash between them. There is no agent to guess: what is for one must not go to another.
    pub(crate) fn of_tenant(
        &self,
        said: Option<&str>,
    ) -> Result<(Option<AgentId>, TenantId), A2aError> {
        let Some(said) = said.filter(|said| !said.is_empty()) else {
            return Ok((None, TenantId::default()));
        };
        let agent = |name: &str| {
            AgentId::parse(name).ok().and_then(|name| self.hub.named(&name).ok()).ok_or_else(|| {
                let near = self.hub.did_you_mean(name);
                let why = format!(
                    "the tenant `{said}` is no agent; {near}leave it out to speak to the hub, or take it from an agent's card"
                );
                A2aError::new(ErrorKind::AgentNotFound, why)
            })
        };
        let both = said
            .split_once('/')
            .and_then(|(tenant, name)| Some((TenantId::parse(tenant).ok()?, name)));
        match both {
            Some((tenant, name)) => Ok((Some(agent(name)?), tenant)),
            None => match TenantId::parse(said).ok().filter(|tenant| self.hub.is_tenant(tenant)) {
                Some(tenant) => Ok((None, tenant)),
                None => Ok((Some(agent(said)?), TenantId::default())),
            },
        }
    }

    /// The tenant that the `tenant` of a request names where a path says which agent is meant. A hub that no tenants share takes any
    /// for none, and so does every hub with the name of an agent, which a client may have from its card.
    pub(crate) fn tenant(&self, said: Option<&str>) -> Result<TenantId, A2aError> {
        let Some(said) = said.filter(|said| !said.is_empty() && self.hub.has_tenants()) else {
            return Ok(TenantId::default());
        };
        let name = said.split_once('/').map_or(said, |(tenant, _)| tenant);
        let tenant =
            TenantId::parse(name).map_err(|why| A2aError::invalid("tenant", why.to_string()))?;
        let is_agent = || AgentId::parse(name).is_ok_and(|agent| self.hub.named(&agent).is_ok());
        Ok(if !self.hub.is_tenant(&tenant) && is_agent() { TenantId::default() } else { tenant })
    }

    /// Whoever asks for this tenant, as a client of it: an operator may be one of any tenant.
    pub(crate) fn narrowed(
        &self,
        caller: Principal,
        tenant: TenantId,
    ) -> Result<Principal, A2aError> {
        if tenant.is_default() {
            return Ok(caller);
        }
        let name = tenant.to_string();
        let is_operator = matches!(caller, Principal::Operator | Principal::OperatorToken);
        let caller = Caller { principal: caller, tenant };
        let tenant = caller.tenant_among(|named| self.hub.is_tenant(named), &TenantId::default());
        tenant.map_err(|why| A2aError::invalid("tenant", why.to_string()))?;
        Ok(if is_operator { Principal::Client(name) } else { caller.principal })
    }

    /// Has the hub carry out an operation that was asked in this dialect, for the tenant that the request names.
    pub(crate) async fn carry_out(
        &self,
        dialect: Dialect,
        operation: Operation,
        tenant: TenantId,
        of: &RequestContext<'_>,
    ) -> Spelled {
        caught(self.spelled(dialect, operation, tenant, of)).await.map_err(Into::into).flatten()
    }

    async fn spelled(
        &self,
        dialect: Dialect,
        mut operation: Operation,
        tenant: TenantId,
        of: &RequestContext<'_>,
    ) -> Spelled {
        if let (Err(why), Dialect::Official(_)) = (&of.version, dialect) {
            return Err(why.clone().into());
        }
        let is_known = of.endpoints.as_ref().is_some_and(|it| it.needs_token);
        if let (Operation::GetCard { .. }, Dialect::Official(_), false) =
            (&operation, dialect, is_known)
        {
            return Err(no_extended_card().into());
        }
        let permit = operation.streams().then(|| self.admit()).transpose()?;
        if operation.resumes() {
            operation.go_on_after(of.heard);
        }
        operation.in_trace(&of.trace);
        let (is_new, sent) = (!operation.resumes(), matches!(operation, Operation::SendMessage(_)));
        let caller = Caller { principal: of.caller.clone(), tenant };
        let is_text = spells_text(dialect);
        if let (Operation::GetTask { id, history_length: None }, true) = (&operation, is_text) {
            return Ok(Reply::One(self.look(dialect, caller, id, of).await?));
        }
        let reply = match dialect {
            Dialect::Hub => self.hub.handle(caller, None, operation).await,
            Dialect::Official(wire) => {
                let visit = of.visit(wire);
                of.active.add(self.hub.activated(&visit, &operation).await);
                self.hub.handle(caller, Some(&visit), operation).await
            }
        };
        Ok(match (reply?, dialect) {
            (Reply::One(answer), dialect) => {
                let text = is_text.then(|| dialect.answer_text(&answer, sent)).flatten();
                Reply::One(match (text, dialect) {
                    (Some(text), _) => SpelledAnswer::Text(text),
                    (None, Dialect::Hub) => SpelledAnswer::Tree(hub::answer::write(answer, of.url)),
                    (None, Dialect::Official(wire)) => {
                        let spelled = wire.write_answer(&answer, sent, of.endpoints.as_ref());
                        let unknown =
                            || A2aError::new(ErrorKind::Internal, "A2A has no such answer");
                        SpelledAnswer::Tree(spelled.ok_or_else(unknown)?)
                    }
                })
            }
            (Reply::Stream(heard), dialect) => {
                Reply::Stream(Box::new(TaskStream::new(dialect, heard, is_new, permit)))
            }
        })
    }

    /// A task as it stands: one that is over is passed on as it is kept.
    async fn look(
        &self,
        dialect: Dialect,
        caller: Caller,
        task: &TaskId,
        of: &RequestContext<'_>,
    ) -> Result<SpelledAnswer, A2aError> {
        let visit = match dialect {
            Dialect::Hub => None,
            Dialect::Official(wire) => Some(of.visit(wire)),
        };
        let get = Operation::GetTask { id: task.clone(), history_length: None };
        if let Some(visit) = &visit {
            of.active.add(self.hub.activated(visit, &get).await);
        }
        Ok(SpelledAnswer::Text(match self.hub.look(caller, visit.as_ref(), get).await? {
            Looked::Finished(task) => {
                let broken = |why: serde_json::Error| {
                    tracing::error!(%why, "a task that is kept cannot be read");
                    A2aError::new(ErrorKind::Internal, "the task that is kept cannot be read")
                };
                task.text(dialect).map_err(broken)?.as_bytes().to_vec()
            }
            Looked::Task(stored) => {
                let answer = Answer::Task(Box::new(stored.task));
                dialect.answer_text(&answer, false).unwrap_or_default()
            }
        }))
    }

    /// Has the hub carry out an operation for a door that writes the answer in its own words. A stream takes one of the places
    /// that there are for streams, until what comes with it is dropped.
    pub(crate) async fn ask(
        &self,
        caller: &Principal,
        operation: Operation,
    ) -> Result<(Reply, Option<OwnedSemaphorePermit>), A2aError> {
        let permit = operation.streams().then(|| self.admit()).transpose();
        let permit = permit.map_err(|refused| refused.why)?;
        Ok((caught(self.hub.handle(caller, None, operation)).await.flatten()?, permit))
    }

    /// Makes room for a stream.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, OperationRefusal> {
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            let max = self.max_streams;
            let why = format!(
                "the hub serves {max} streams already; try again soon, or raise `max_streams`"
            );
            let why = A2aError::new(ErrorKind::AgentUnavailable, why).with(json!({ "limit": max }));
            OperationRefusal { why, is_busy: true }
        })
    }
}

/// Whether answers go out as JSON text.
fn spells_text(dialect: Dialect) -> bool {
    !matches!(dialect, Dialect::Official(Wire { binding: Binding::Grpc, .. }))
}

/// How an agent is reached over HTTP, or the hub itself, where the hub is at `url`.
fn over_http(url: &str, agent: Option<&AgentId>, needs_token: bool) -> Endpoints {
    let path = agent.map_or_else(|| HUB.to_owned(), |agent| format!("{AGENTS}{agent}"));
    let root = url.trim_end_matches('/').to_owned();
    let base = format!("{root}{path}");
    // gRPC has no path: its clients say by a tenant which agent they mean.
    let grpc = url.split_once("://").and_then(|(scheme, rest)| {
        let host = rest.strip_suffix('/').unwrap_or(rest);
        let port = if scheme == "https" { ":443" } else { ":80" };
        let port = if has_port(host) { "" } else { port };
        (!host.contains('/')).then(|| format!("{host}{port}"))
    });
    let tenant = agent.map(AgentId::to_string);
    Endpoints { base, root, grpc, socket: None, tenant, needs_token }
}

/// A client that was shown a card without security schemes has none to show who it is by (A2A 1.0, section 3.3.4).
fn no_extended_card() -> A2aError {
    let why = format!(
        "the card at `/.well-known/agent-card.json` is all there is for the hub's own user; the extended one is for \
         those who show `Authorization: Bearer` over HTTP and what the file `{TOKEN_FILE}` in the hub's data directory holds"
    );
    A2aError::new(ErrorKind::UnsupportedOperation, why)
}

/// Whether a URL's host is followed by a port. An IPv6 address has colons of its own, in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit(']').next().is_some_and(|rest| rest.contains(':'))
}

/// Why a client is hung up on that began to send something and did not go on.
pub(crate) fn dawdled(what: &str, patience: Duration) -> A2aError {
    let patience = Span(patience);
    let why = format!(
        "the {what} did not come to its end within {patience}; send it in one go, or raise `clients.timeout_ms`"
    );
    A2aError::new(ErrorKind::InvalidRequest, why)
}

#[cfg(test)]
mod tests;
