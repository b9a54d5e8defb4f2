//! JSON-RPC 2.0 requests and their answers, in any dialect and whatever they travel on.

use super::{
    dispatcher::{Dispatcher, Done, RequestContext},
    task_stream::{Item, TaskStream},
};
use a2a_hub_hub::ReplyStream;
use a2a_hub_protocol::{
    binding::{
        jsonrpc::{Beside, Envelope, Frame},
        service_params::{self, ServiceParams},
    },
    dialect::{self, Dialect, jsonrpc::Request},
    error::{A2aError, ErrorKind},
    interface::check_version,
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use std::future::ready;

/// Requests of one batch that are carried out at once.
const BATCH_AT_ONCE: usize = 16;

/// What a request comes to.
pub(super) enum Response {
    /// Nothing: it was a notification.
    None,
    /// A result, ready to be sent.
    Result(Vec<u8>),
    /// A refusal.
    Refused(Vec<u8>),
    /// The answers to a batch, in one.
    Batch(Vec<u8>),
    /// A refusal that is none of the request's making: there is no room now.
    Busy(Vec<u8>),
    /// Several, as they come.
    Stream(Box<Stream>),
}

impl Dispatcher {
    /// Reads what a client sent, has the hub carry it out, and writes the answer.
    pub(super) async fn respond(&self, sent: &[u8], of: &RequestContext<'_>) -> Response {
        match dialect::jsonrpc::read(sent, of.spelled, of.beside) {
            Frame::One(request) => self.one(*request, of).await,
            Frame::Batch(requests) => self.batch(requests, of).await,
        }
    }

    async fn one(&self, request: Request, of: &RequestContext<'_>) -> Response {
        let Request { id, dialect, tenant, service_params, operation } = request;
        let own = match (of.beside, dialect) {
            (Beside::Metadata, Dialect::Official(_)) => {
                Some(self.in_metadata(of, service_params.unwrap_or_default(), tenant.as_deref()))
            }
            (Beside::Metadata, Dialect::Hub) | (Beside::Headers, _) => None,
        };
        let of = match own.as_ref() {
            Some(Ok(own)) => own,
            Some(Err(_)) | None => of,
        };
        let done = match (operation, &own) {
            (Err(why), _) => Done::Refused(why),
            (Ok(_), Some(Err(why))) => Done::Refused(why.clone()),
            (Ok(operation), Some(Ok(_)) | None) => self.carry_out(dialect, operation, of).await,
        };
        let Some(id) = id else { return Response::None };
        let service_params = match of.beside {
            Beside::Metadata => service_params::activated(&of.active.all()),
            Beside::Headers => None,
        };
        let envelope = Envelope { id, service_params };
        match done {
            Done::One(mut answer) => {
                if let Dialect::Official(wire) = dialect {
                    wire.echo_tenant(&mut answer, tenant.as_deref());
                }
                Response::Result(envelope.result(&answer))
            }
            Done::Stream(stream) => {
                let envelope = Some(envelope);
                Response::Stream(Box::new(Stream { envelope, dialect, stream, failed: false }))
            }
            Done::Refused(why) => Response::Refused(envelope.error(&dialect.write_error(&why))),
            Done::Busy(why) => Response::Busy(envelope.error(&dialect.write_error(&why))),
        }
    }

    /// The context of a request that says in its own metadata what others say in headers, and by its tenant which
    /// agent is meant.
    fn in_metadata<'a>(
        &self,
        of: &RequestContext<'a>,
        said: ServiceParams,
        tenant: Option<&str>,
    ) -> Result<RequestContext<'a>, A2aError> {
        let agent = self.of_tenant(tenant)?;
        Ok(RequestContext {
            agent,
            extensions: said.extensions,
            version: check_version(said.version.as_deref()),
            beside: of.beside,
            ..RequestContext::of_hub(of.caller.clone(), of.url, of.heard)
        })
    }

    /// The answers go back as one array, in the order in which they are ready.
    async fn batch(&self, requests: Vec<Request>, of: &RequestContext<'_>) -> Response {
        let answers = stream::iter(requests)
            .map(|request| Box::pin(self.one(in_batch(request), of)))
            .buffer_unordered(BATCH_AT_ONCE)
            .filter_map(|response| ready(response.into_one()));
        let answers: Vec<_> = answers.collect().await;
        if answers.is_empty() {
            return Response::None;
        }
        Response::Batch([b"[".as_slice(), &answers.join(&b","[..]), b"]"].concat())
    }
}

impl Response {
    fn into_one(self) -> Option<Vec<u8>> {
        match self {
            Self::Result(answer) | Self::Refused(answer) | Self::Busy(answer) => Some(answer),
            // No stream gets into a batch, and no batch.
            Self::None | Self::Batch(_) | Self::Stream(_) => None,
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

/// The answer to bytes that are no request at all.
pub(super) fn unreadable(dialect: Dialect, why: &A2aError) -> Vec<u8> {
    Envelope::of_no_request().error(&dialect.write_error(why))
}

/// A stream of answers, each in the same envelope.
pub(super) struct Stream {
    /// What each answer travels in; nothing where it stands by itself, as REST has it.
    envelope: Option<Envelope>,
    dialect: Dialect,
    stream: Box<TaskStream>,
    /// Whether it has told why there is no more.
    failed: bool,
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
    pub(super) fn bare(dialect: Dialect, stream: Box<TaskStream>) -> Self {
        Self { envelope: None, dialect, stream, failed: false }
    }

    /// The next answer; none at the end.
    pub(super) async fn next(&mut self) -> Option<Update> {
        let Item { number, told } = self.stream.next().await?;
        self.failed = told.is_err();
        let is_error = self.failed && self.envelope.is_none();
        let text = match (told, &self.envelope) {
            (Ok(told), Some(envelope)) => envelope.result(&told),
            (Ok(told), None) => line(&told),
            (Err(why), Some(envelope)) => envelope.error(&self.dialect.write_error(&why)),
            (Err(why), None) => line(&self.dialect.write_rest_error(&why)),
        };
        Some(Update { number, text, is_error })
    }

    /// The answer that tells the end of the stream, where the transport has no end of its own and the last answer did
    /// not tell, as an error does.
    pub(super) fn end(&self) -> Option<Vec<u8>> {
        let (ReplyStream::Task(heard), Some(envelope), false) =
            (self.stream.heard(), &self.envelope, self.failed)
        else {
            return None;
        };
        let (task, context) = (heard.task(), heard.context());
        let end = json!({ "kind": "stream-end", "taskId": task, "contextId": context });
        Some(envelope.result(&end))
    }
}

/// JSON text in one line: serde_json writes no line breaks.
fn line(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
