//! Execution of JSON-RPC 2.0 requests, in any dialect and over any transport.

use crate::{
    dispatcher::{Dispatcher, OperationRefusal, RequestContext, RequestTarget, SpelledAnswer},
    task_stream::{EventId, Item, ItemContent, TaskStream},
};
use a2a_hub_core::scheduling::connection_quota::QuotaReached;
use a2a_hub_engine::{Reply, ReplyStream};
use a2a_hub_protocol::{
    binding::{
        jsonrpc::{Envelope, Frame, ParamsSource},
        service_params::{self, ServiceParams},
    },
    dialect::{self, Dialect, jsonrpc::Request},
    error::{A2aError, ErrorKind},
    id::AgentId,
    interface::check_version,
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use std::future::ready;

/// Maximum number of concurrent requests of a batch.
const BATCH_AT_ONCE: usize = 16;

/// Initial buffer capacity in bytes for an event, enough for most events.
const USUAL: usize = 1 << 10;

/// Encoded answer of a request; `None` for a notification.
pub type Enveloped = Result<Option<Reply<Vec<u8>, Box<Stream>>>, EncodedRefusal>;

/// An encoded refusal.
pub struct EncodedRefusal {
    /// Encoded error response.
    pub text: Vec<u8>,
    /// True if the hub is at capacity, so that the client may retry.
    pub is_busy: bool,
}

impl Dispatcher {
    /// Executes a request and encodes the answer. The input is dropped after parsing, because a
    /// task may take days, and parts of a request keep a connection's buffer alive.
    pub async fn respond(&self, sent: impl AsRef<[u8]>, of: &RequestContext<'_>) -> Enveloped {
        let read = dialect::jsonrpc::read(sent.as_ref(), of.spelled, of.source);
        drop(sent);
        match read {
            Frame::One(request) => self.one(*request, of).await,
            Frame::Batch(requests) => Ok(self.batch(requests, of).await.map(Reply::One)),
        }
    }

    async fn one(&self, request: Request, of: &RequestContext<'_>) -> Enveloped {
        let Request { id, dialect, tenant, service_params, operation } = request;
        let tenant_param = tenant.as_deref();
        let target = match (of.source, dialect) {
            (ParamsSource::Metadata, Dialect::Official(_)) => {
                self.of_tenant(tenant_param).map(|(agent, tenant)| {
                    let context = in_metadata(of, service_params, agent.clone());
                    (Some(context), RequestTarget { agent, tenant })
                })
            }
            (ParamsSource::Headers, Dialect::Official(_)) => {
                self.resolve_target(tenant_param, of.agent.as_ref()).map(|target| (None, target))
            }
            (_, Dialect::Hub) => self
                .tenant(tenant_param)
                .map(|tenant| (None, RequestTarget { agent: None, tenant })),
        };
        let context = target.as_ref().ok().and_then(|(context, _)| context.as_ref());
        let of = context.unwrap_or(of);
        let spelled = match (operation, &target) {
            (Err(why), _) => Err(of.unreadable(dialect, why).into()),
            (Ok(_), Err(why)) => Err(why.clone().into()),
            (Ok(operation), Ok((_, target))) => {
                self.carry_out(dialect, operation, target.clone(), of).await
            }
        };
        let Some(id) = id else { return Ok(None) };
        let service_params = match of.source {
            ParamsSource::Metadata => service_params::activated(&of.active.all()),
            ParamsSource::Headers => None,
        };
        let envelope = Envelope { id, service_params };
        match spelled {
            Ok(Reply::One(SpelledAnswer::Text(answer))) => {
                Ok(Some(Reply::One(envelope.result_text(&answer))))
            }
            Ok(Reply::One(SpelledAnswer::Tree(mut answer))) => {
                if let Dialect::Official(wire) = dialect {
                    wire.echo_tenant(&mut answer, tenant.as_deref());
                }
                Ok(Some(Reply::One(envelope.result(&answer))))
            }
            Ok(Reply::Stream(stream)) => {
                let around = Some((envelope.opening(), envelope));
                let stream = Stream { around, dialect, stream, failed: false };
                Ok(Some(Reply::Stream(Box::new(stream))))
            }
            Err(OperationRefusal { why, is_busy }) => {
                Err(EncodedRefusal { text: envelope.error(&dialect.write_error(&why)), is_busy })
            }
        }
    }

    /// Executes a batch; the answers form one array, in order of completion.
    async fn batch(&self, requests: Vec<Request>, of: &RequestContext<'_>) -> Option<Vec<u8>> {
        let answers = stream::iter(requests)
            .map(|request| Box::pin(self.one(in_batch(request), of)))
            .buffer_unordered(BATCH_AT_ONCE)
            .filter_map(|enveloped| ready(text(enveloped)));
        let answers: Vec<_> = answers.collect().await;
        let all = || [b"[".as_slice(), &answers.join(&b","[..]), b"]"].concat();
        (!answers.is_empty()).then(all)
    }
}

/// Context of a request whose metadata holds the service parameters and whose tenant selects the
/// agent.
fn in_metadata<'a>(
    of: &RequestContext<'a>,
    params: Option<ServiceParams>,
    agent: Option<AgentId>,
) -> RequestContext<'a> {
    let params = params.unwrap_or_default();
    RequestContext {
        agent,
        extensions: params.extensions,
        version: check_version(params.version.as_deref()),
        source: of.source,
        trace: params.trace,
        ..RequestContext::of_hub(of.caller.clone(), of.url, of.last_event_id.clone())
    }
}

/// The single answer, if any; batches contain no streams.
fn text(enveloped: Enveloped) -> Option<Vec<u8>> {
    match enveloped {
        Ok(Some(Reply::One(text))) | Err(EncodedRefusal { text, .. }) => Some(text),
        Ok(Some(Reply::Stream(_)) | None) => None,
    }
}

/// Refuses streams in a batch, because the batch's answer would have to wait for them.
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

/// Error response to unreadable input.
pub fn unreadable(dialect: Dialect, why: &A2aError) -> Vec<u8> {
    Envelope::of_no_request().error(&dialect.write_error(why))
}

/// Answer to every request on a refused connection, in the hub's own dialect.
pub fn quota_error(why: &QuotaReached) -> Vec<u8> {
    unreadable(Dialect::Hub, &A2aError::new(ErrorKind::AgentUnavailable, why.to_string()))
}

/// A stream of answers, each in the same envelope.
pub struct Stream {
    /// Envelope of the answers with its first part; `None` for REST, which has no envelope.
    around: Option<(Vec<u8>, Envelope)>,
    dialect: Dialect,
    stream: Box<TaskStream>,
    /// True after an error, which ends the stream.
    failed: bool,
}

/// An answer of a stream.
pub struct Update {
    /// Id of the event, after which a client can resume.
    pub id: Option<EventId>,
    /// Encoded answer.
    pub text: Vec<u8>,
    /// True for an error without an envelope, which ends the stream.
    pub is_error: bool,
}

impl Stream {
    /// Creates a stream without envelopes, for REST.
    pub fn bare(dialect: Dialect, stream: Box<TaskStream>) -> Self {
        Self { around: None, dialect, stream, failed: false }
    }

    /// Next answer; `None` at the end.
    pub async fn next(&mut self) -> Option<Update> {
        let Item { id, content } = self.stream.next().await?;
        self.failed = content.is_err();
        let is_error = self.failed && self.around.is_none();
        let text = match (content, &self.around) {
            (Ok(ItemContent::Event(event)), Some((opening, _))) => {
                let mut text = Vec::with_capacity(opening.len() + USUAL);
                text.extend_from_slice(opening);
                event.write(self.dialect, &mut text);
                text.push(Envelope::END);
                text
            }
            (Ok(ItemContent::Event(event)), None) => {
                let mut text = Vec::with_capacity(USUAL);
                event.write(self.dialect, &mut text);
                text
            }
            (Ok(ItemContent::Value(value)), Some((_, envelope))) => envelope.result(&value),
            (Ok(ItemContent::Value(value)), None) => line(&value),
            (Err(why), Some((_, envelope))) => envelope.error(&self.dialect.write_error(&why)),
            (Err(why), None) => line(&self.dialect.write_rest_error(&why)),
        };
        Some(Update { id, text, is_error })
    }

    /// Final answer for transports that cannot signal the end of a stream; `None` after an error,
    /// and for streams other than a task's.
    pub fn end(&self) -> Option<Vec<u8>> {
        let (ReplyStream::Task(events), Some((_, envelope)), false) =
            (self.stream.events(), &self.around, self.failed)
        else {
            return None;
        };
        let (task, context) = (events.task(), events.context());
        let end = json!({ "kind": "stream-end", "taskId": task, "contextId": context });
        Some(envelope.result(&end))
    }
}

/// Serializes a value as one line; serde_json writes no line breaks.
fn line(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
