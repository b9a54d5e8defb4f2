//! JSON-RPC 2.0 requests and their answers, in any dialect and whatever they travel on.

use super::telling::{Item, Telling};
use crate::hub::{Hub, Listening, Reply, Visit};
use a2a_hub_protocol::{
    card::official::{Grpc, Reach},
    compat,
    dialect::{Dialect, Version},
    error::{A2aError, ErrorKind},
    id::AgentId,
    jsonrpc::{self, Frame, Request, RequestId},
    operation::{Answer, CardOf, Operation},
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use std::{future::ready, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Where the hub itself is reached as official A2A has it.
pub(super) const HUB: &str = "/a2a";

/// Requests of one batch that are carried out at once.
const BATCH_AT_ONCE: usize = 16;

/// How soon a client that was sent away should come again, in seconds.
pub(super) const COME_AGAIN: u32 = 1;

/// Where requests are taken in, whatever they travel on. Cheap to clone.
#[derive(Clone)]
pub struct Desk {
    hub: Hub,
    whereabouts: Arc<Whereabouts>,
    streams: Arc<Semaphore>,
    max_streams: usize,
    patience: Duration,
}

/// Where others find this hub.
#[derive(Clone, Debug, Default)]
pub struct Whereabouts {
    /// The URL that others reach it by, without a slash at the end; where they reached it if none is set.
    pub public_url: Option<String>,
    /// Its unix socket.
    pub socket: Option<PathBuf>,
    /// Whose card is at its root; its own if none is named.
    pub root_agent: Option<AgentId>,
}

/// What a transport knows of a request beside its text.
pub(super) struct Circumstances<'a> {
    /// Where this hub is reached.
    pub(super) url: &'a str,
    /// The number of the event that the client heard last, if it was cut off.
    pub(super) heard: Option<u64>,
    /// How requests are spelled, unless their method says otherwise.
    pub(super) spelled: Dialect,
    /// Where the endpoint is reached.
    pub(super) reach: Reach,
    /// The agent whose endpoint it is.
    pub(super) agent: Option<AgentId>,
    /// URIs of the extensions that the client asks for.
    pub(super) extensions: Vec<String>,
    /// Whether the version is spoken that the client names.
    pub(super) version: Result<(), A2aError>,
}

impl<'a> Circumstances<'a> {
    /// Those of a request in the Local Hub's dialect.
    pub(super) fn of_hub(url: &'a str, heard: Option<u64>, reach: Reach) -> Self {
        let (agent, extensions) = (None, Vec::new());
        Self { url, heard, spelled: Dialect::Hub, reach, agent, extensions, version: Ok(()) }
    }

    /// The client, as one that speaks a version of official A2A.
    pub(super) fn visit(&self, version: Version) -> Visit {
        Visit { agent: self.agent.clone(), version, extensions: self.extensions.clone() }
    }
}

/// What a request comes to.
pub(super) enum Response {
    /// Nothing: it was a notification.
    None,
    /// One answer, ready to be sent.
    One(Vec<u8>),
    /// A refusal that is none of the request's making: there is no room now.
    Busy(Vec<u8>),
    /// Several, as they come.
    Stream(Box<Stream>),
}

/// What an operation comes to, without the envelope of what it travelled on.
pub(super) enum Done {
    /// One answer.
    One(Value),
    /// Several, as they come.
    Stream(Box<Telling>),
    /// A refusal.
    Refused(A2aError),
    /// A refusal that is none of the request's making: there is no room now.
    Busy(A2aError),
}

impl Desk {
    /// A desk before this hub that serves so many streams at once. A client may take so long to send what it began, and
    /// leave for so long what there is for it.
    pub fn new(hub: Hub, whereabouts: Whereabouts, max_streams: usize, patience: Duration) -> Self {
        let max_streams = max_streams.min(Semaphore::MAX_PERMITS);
        let (whereabouts, streams) = (Arc::new(whereabouts), Arc::new(Semaphore::new(max_streams)));
        Self { hub, whereabouts, streams, max_streams, patience }
    }

    /// How long a client may keep the hub waiting.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// The hub behind the desk.
    pub(super) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Where others find the hub.
    pub(super) fn whereabouts(&self) -> &Whereabouts {
        &self.whereabouts
    }

    /// How what is at `path` is reached, by a client that reached the hub at `url`.
    pub(super) fn reach(&self, url: &str, path: &str, needs_token: bool) -> Reach {
        let base = format!("{}{path}", url.trim_end_matches('/'));
        let socket = self.whereabouts.socket.as_ref().filter(|_| path == HUB);
        let socket = socket.map(|socket| format!("unix:{}", socket.display()));
        // gRPC has no path: its clients say by a tenant which agent they mean.
        let host = url.split_once("://").and_then(|(scheme, rest)| {
            let host = rest.strip_suffix('/').unwrap_or(rest);
            let port = if scheme == "https" { ":443" } else { ":80" };
            let port = if has_port(host) { "" } else { port };
            (!host.contains('/')).then(|| format!("{host}{port}"))
        });
        let tenant = path.strip_prefix("/agents/").map(str::to_owned);
        let grpc = host.map(|host| Grpc { host, tenant });
        Reach { base, socket, grpc, needs_token }
    }

    /// Reads what a client sent, has the hub carry it out, and writes the answer.
    pub(super) async fn respond(&self, sent: &[u8], of: &Circumstances<'_>) -> Response {
        match jsonrpc::read(sent, of.spelled) {
            Frame::One(request) => self.one(*request, of).await,
            Frame::Batch(requests) => self.batch(requests, of).await,
        }
    }

    async fn one(&self, request: Request, of: &Circumstances<'_>) -> Response {
        let Request { id, dialect, tenant, operation } = request;
        let done = match operation {
            Ok(operation) => self.carry_out(dialect, operation, of).await,
            Err(why) => Done::Refused(why),
        };
        let Some(id) = id else { return Response::None };
        match done {
            Done::One(mut answer) => {
                if let Dialect::Official(version) = dialect {
                    version.echo_tenant(&mut answer, tenant.as_deref());
                }
                Response::One(result(&id, &answer))
            }
            Done::Stream(telling) => {
                let envelope = Envelope::Response(id);
                Response::Stream(Box::new(Stream { envelope, dialect, telling }))
            }
            Done::Refused(why) => Response::One(error(&id, dialect, &why)),
            Done::Busy(why) => Response::Busy(error(&id, dialect, &why)),
        }
    }

    /// Has the hub carry out an operation that was asked in this dialect.
    pub(super) async fn carry_out(
        &self,
        dialect: Dialect,
        mut operation: Operation,
        of: &Circumstances<'_>,
    ) -> Done {
        if let Err(why) = &of.version {
            return Done::Refused(why.clone());
        }
        let permit = match operation.streams().then(|| self.admit()).transpose() {
            Ok(permit) => permit,
            Err(why) => return Done::Busy(why),
        };
        if let Operation::Resubscribe { after: after @ None, .. } = &mut operation {
            *after = of.heard;
        }
        let resume = of.heard.filter(|_| operation.resumes());
        let (is_new, sent) = (!operation.resumes(), matches!(operation, Operation::SendMessage(_)));
        let reply = match dialect {
            Dialect::Hub => self.hub.handle(operation).await,
            Dialect::Official(version) => self.hub.receive(&of.visit(version), operation).await,
        };
        match (reply, dialect) {
            (Ok(Reply::One(answer)), Dialect::Hub) => Done::One(answer_json(answer, of.url)),
            (Ok(Reply::One(answer)), Dialect::Official(version)) => {
                match version.write_answer(&answer, sent, &of.reach) {
                    Some(answer) => Done::One(answer),
                    None => {
                        Done::Refused(A2aError::new(ErrorKind::Internal, "A2A has no such answer"))
                    }
                }
            }
            (Ok(Reply::Stream(mut heard)), dialect) => {
                if let (Some(after), Listening::Task(heard)) = (resume, &mut heard) {
                    heard.resume(after);
                }
                Done::Stream(Box::new(Telling::new(dialect, heard, is_new, permit)))
            }
            (Err(why), _) => Done::Refused(why),
        }
    }

    /// The answers go back as one array, in the order in which they are ready.
    async fn batch(&self, requests: Vec<Request>, of: &Circumstances<'_>) -> Response {
        let answers = stream::iter(requests)
            .map(|request| Box::pin(self.one(in_batch(request), of)))
            .buffer_unordered(BATCH_AT_ONCE)
            .filter_map(|response| ready(response.into_one()));
        let answers: Vec<_> = answers.collect().await;
        if answers.is_empty() {
            return Response::None;
        }
        Response::One([b"[".as_slice(), &answers.join(&b","[..]), b"]"].concat())
    }

    /// Makes room for a stream.
    fn admit(&self) -> Result<OwnedSemaphorePermit, A2aError> {
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            let max = self.max_streams;
            let why = format!(
                "the hub serves {max} streams already; try again soon, or raise `max_streams`"
            );
            A2aError::new(ErrorKind::AgentUnavailable, why).with(json!({ "limit": max }))
        })
    }
}

impl Response {
    fn into_one(self) -> Option<Vec<u8>> {
        match self {
            Self::One(answer) | Self::Busy(answer) => Some(answer),
            // No stream gets into a batch.
            Self::None | Self::Stream(_) => None,
        }
    }
}

/// Whether a URL's host is followed by a port. An IPv6 address has colons of its own, in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit(']').next().is_some_and(|rest| rest.contains(':'))
}

/// A stream would hold up the answers that are to go back with it.
fn in_batch(request: Request) -> Request {
    let operation = request.operation.and_then(|operation| {
        if operation.streams() {
            let why = "a batch has one answer, which a stream is not; send the request by itself";
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, why));
        }
        Ok(operation)
    });
    Request { operation, ..request }
}

/// Why a client is hung up on that began to send something and did not go on.
pub(super) fn dawdled(what: &str, patience: Duration) -> A2aError {
    let why = format!(
        "the {what} did not come to its end within {patience:?}; send it in one go, or raise `clients.timeout_ms`"
    );
    A2aError::new(ErrorKind::InvalidRequest, why)
}

/// The answer to bytes that are no request at all.
pub(super) fn unreadable(dialect: Dialect, why: &A2aError) -> Vec<u8> {
    error(&RequestId::Null, dialect, why)
}

/// A stream of answers, each in the same envelope.
pub(super) struct Stream {
    envelope: Envelope,
    dialect: Dialect,
    telling: Box<Telling>,
}

/// What an answer travels in.
enum Envelope {
    /// A JSON-RPC response.
    Response(RequestId),
    /// Nothing: it stands by itself, as REST has it.
    None,
}

/// One answer of a stream.
pub(super) struct Update {
    /// The number of the event it tells, to go on after.
    pub(super) number: Option<u64>,
    /// The answer, ready to be sent.
    pub(super) text: Vec<u8>,
    /// Whether that stands by itself and tells why there is no more.
    pub(super) is_error: bool,
}

impl Stream {
    /// What is told, as REST has it.
    pub(super) fn bare(dialect: Dialect, telling: Box<Telling>) -> Self {
        Self { envelope: Envelope::None, dialect, telling }
    }

    /// The next answer; none at the end.
    pub(super) async fn next(&mut self) -> Option<Update> {
        let Item { number, told } = self.telling.next().await?;
        let is_error = told.is_err() && matches!(self.envelope, Envelope::None);
        let text = match (told, &self.envelope) {
            (Ok(told), Envelope::Response(id)) => result(id, &told),
            (Ok(told), Envelope::None) => line(&told),
            (Err(why), Envelope::Response(id)) => error(id, self.dialect, &why),
            (Err(why), Envelope::None) => line(&self.dialect.write_rest_error(&why)),
        };
        Some(Update { number, text, is_error })
    }

    /// The answer that tells the end of the stream, where the transport has no end of its own and the last answer did
    /// not tell.
    pub(super) fn end(&self) -> Option<Vec<u8>> {
        let (Listening::Task(heard), Envelope::Response(id)) =
            (self.telling.heard(), &self.envelope)
        else {
            return None;
        };
        let (task, context) = (heard.task(), heard.context());
        let end = json!({ "kind": "stream-end", "taskId": task, "contextId": context });
        Some(result(id, &end))
    }
}

/// The answer as JSON, from a hub that is reached at `url`.
pub(super) fn answer_json(answer: Answer, url: &str) -> Value {
    let reached = |card: &mut Value| card["url"] = json!(url);
    match answer {
        Answer::Task(task) => compat::write_task(&task, None),
        Answer::Message(message) => compat::write_message(&message),
        Answer::Tasks { tasks, artifacts } => {
            tasks.iter().map(|task| compat::write_listed(task, artifacts)).collect()
        }
        Answer::PushConfig(config) => compat::push::write(&config),
        Answer::PushConfigs(configs) => configs.iter().map(compat::push::write).collect(),
        Answer::Deliveries(deliveries) => json!(deliveries),
        Answer::PushKeys(keys) => json!({ "keys": keys }),
        Answer::PushConfigDeleted => Value::Null,
        Answer::Contexts(contexts) => json!(contexts),
        Answer::Context(info, said) => {
            let mut context = json!(info);
            context["messages"] = said.iter().map(compat::write_message).collect();
            context
        }
        Answer::Forgotten { context, tasks } => json!({ "id": context, "deletedTasks": tasks }),
        Answer::Status(status) => json!(status),
        Answer::Agents(mut agents) => {
            agents.iter_mut().for_each(|agent| reached(&mut agent.card));
            json!(agents)
        }
        Answer::Agent(mut agent) => {
            reached(&mut agent.card);
            json!(agent)
        }
        Answer::Health(health) => json!(health),
        Answer::Deregistered(agent) => json!(agent),
        Answer::Discovery(document) => document,
        Answer::Card(of) => published(&of, url),
        Answer::Cards(all) => all.iter().map(|of| published(of, url)).collect(),
        Answer::TaskPage { tasks, .. } => {
            tasks.iter().map(|task| compat::write_task(task, None)).collect()
        }
    }
}

/// A card as the Local Hub specification has it.
fn published(of: &CardOf, url: &str) -> Value {
    let mut card = of.card.published(of.agent.as_ref());
    card["url"] = json!(url);
    card
}

fn result(id: &RequestId, result: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id.to_json(), "result": result }))
}

fn error(id: &RequestId, dialect: Dialect, why: &A2aError) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id.to_json(), "error": dialect.write_error(why) }))
}

/// JSON text in one line: serde_json writes no line breaks.
fn line(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
