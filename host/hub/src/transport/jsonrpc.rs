//! JSON-RPC 2.0 requests in the hub's dialect, and their answers, whatever they travel on.

use crate::hub::{Hub, Listening, Reply};
use a2a_hub_protocol::{
    compat,
    error::{A2aError, ErrorKind},
    hub_event::HubEvent,
    jsonrpc::{self, Frame, Request, RequestId},
    operation::Answer,
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use std::{fmt::Display, future::ready, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests of one batch that are carried out at once.
const BATCH_AT_ONCE: usize = 16;

/// How soon a client that was sent away should come again, in seconds.
pub(super) const COME_AGAIN: u32 = 1;

/// Where requests are taken in, whatever they travel on. Cheap to clone.
#[derive(Clone)]
pub struct Desk {
    hub: Hub,
    streams: Arc<Semaphore>,
    max_streams: usize,
    patience: Duration,
}

/// What a transport knows of a request beside its text.
pub(super) struct Circumstances<'a> {
    /// Where this hub is reached.
    pub(super) url: &'a str,
    /// The number of the event that the client heard last, if it was cut off.
    pub(super) heard: Option<u64>,
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

impl Desk {
    /// A desk before this hub that serves so many streams at once. A client may take so long to send what it began, and
    /// leave for so long what there is for it.
    pub fn new(hub: Hub, max_streams: usize, patience: Duration) -> Self {
        let max_streams = max_streams.min(Semaphore::MAX_PERMITS);
        Self { hub, streams: Arc::new(Semaphore::new(max_streams)), max_streams, patience }
    }

    /// How long a client may keep the hub waiting.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// The hub behind the desk.
    pub(super) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Reads what a client sent, has the hub carry it out, and writes the answer.
    pub(super) async fn respond(&self, sent: &[u8], of: &Circumstances<'_>) -> Response {
        match jsonrpc::read(sent) {
            Frame::One(request) => self.one(*request, of).await,
            Frame::Batch(requests) => self.batch(requests, of).await,
        }
    }

    async fn one(&self, request: Request, of: &Circumstances<'_>) -> Response {
        let Request { id, operation } = request;
        let refused = |id: Option<RequestId>, why| id.map(|id| error(&id, &why));
        let operation = match operation {
            Ok(operation) => operation,
            Err(why) => return refused(id, why).map_or(Response::None, Response::One),
        };
        let permit = match operation.streams().then(|| self.admit()).transpose() {
            Ok(permit) => permit,
            Err(why) => return refused(id, why).map_or(Response::None, Response::Busy),
        };
        let resume = of.heard.filter(|_| operation.resumes());
        let reply = self.hub.handle(operation).await;
        let Some(id) = id else { return Response::None };
        match reply {
            Ok(Reply::One(answer)) => Response::One(result(&id, &answer_json(answer, of.url))),
            Ok(Reply::Stream(mut heard)) => {
                if let (Some(after), Listening::Task(heard)) = (resume, &mut heard) {
                    heard.resume(after);
                }
                Response::Stream(Box::new(Stream { id, heard, over: false, _permit: permit }))
            }
            Err(why) => Response::One(error(&id, &why)),
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
pub(super) fn unreadable(why: &A2aError) -> Vec<u8> {
    error(&RequestId::Null, why)
}

/// A stream of answers under one id.
pub(super) struct Stream {
    id: RequestId,
    heard: Listening,
    over: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

/// One answer of a stream.
pub(super) struct Update {
    /// The number of the event it tells, to go on after.
    pub(super) number: Option<u64>,
    /// The answer, ready to be sent.
    pub(super) text: Vec<u8>,
}

impl Stream {
    /// The next answer; none at the end.
    pub(super) async fn next(&mut self) -> Option<Update> {
        let heard = match &mut self.heard {
            _ if self.over => return None,
            Listening::Task(heard) => heard,
            Listening::Hub(heard) => {
                let answer = match heard.next().await {
                    Ok(event) => hub_event(&event),
                    // Told on every transport: there is more, and the client is to ask anew.
                    Err(end) => {
                        self.over = true;
                        json!({ "kind": "stream-end", "reason": end, "retryable": true })
                    }
                };
                return Some(Update { number: None, text: result(&self.id, &answer) });
            }
        };
        loop {
            match heard.next().await? {
                Ok(event) => {
                    // What the client itself said, it need not hear.
                    if let Some(told) = compat::write_event(&event) {
                        let text = result(&self.id, &told);
                        return Some(Update { number: Some(event.seq), text });
                    }
                }
                Err(why) => {
                    let text = error(&self.id, &broken(&why));
                    return Some(Update { number: None, text });
                }
            }
        }
    }

    /// The answer that tells the end of the stream, where the transport has no end of its own and the last answer did
    /// not tell.
    pub(super) fn end(&self) -> Option<Vec<u8>> {
        let Listening::Task(heard) = &self.heard else { return None };
        let (task, context) = (heard.task(), heard.context());
        let end = json!({ "kind": "stream-end", "taskId": task, "contextId": context });
        Some(result(&self.id, &end))
    }
}

fn hub_event(event: &HubEvent) -> Value {
    let mut told = json!(event);
    told["kind"] = json!("hub-event");
    told
}

fn broken(why: &impl Display) -> A2aError {
    tracing::error!(%why, "a stream broke");
    A2aError::new(
        ErrorKind::Internal,
        "the stream broke; `tasks/get` tells what became of the task",
    )
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
        Answer::Card(mut card) => {
            reached(&mut card);
            card
        }
        Answer::Cards(mut cards) => {
            cards.iter_mut().for_each(reached);
            json!(cards)
        }
    }
}

fn result(id: &RequestId, result: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id.to_json(), "result": result }))
}

fn error(id: &RequestId, why: &A2aError) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id.to_json(), "error": why.to_hub_json() }))
}

/// JSON text in one line: serde_json writes no line breaks.
fn line(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
