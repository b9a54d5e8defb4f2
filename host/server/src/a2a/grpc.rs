//! gRPC server for A2A's services of both versions, on the HTTP port. Operations are shared with
//! REST. This module adds the parts specific to gRPC: the agent's selection by tenant, deadlines,
//! and error statuses.

use crate::{
    MAX_REQUEST,
    http::{
        body::read_body,
        caller::HttpPeer,
        context::{self, hub_url, is_grpc},
        origin_guard,
    },
};
use a2a_hub_core::{access_control::Principal, text::duration::Span};
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    binding::grpc::{self, GrpcMethod},
    dialect::{self, Dialect},
    error::A2aError,
    id::{AgentId, TenantId},
    operation::Operation,
};
use a2a_hub_rpc::{
    dispatcher::{Dispatcher, RequestTarget, Spelled, SpelledAnswer},
    task_stream::{Item, ItemContent, TaskStream},
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{ConnectInfo, Path, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
    routing::post,
};
use bytes::{Buf as _, BufMut as _};
use futures::{Stream, StreamExt as _, future::BoxFuture, stream, stream::BoxStream};
use std::{future::pending, pin::pin, time::Duration};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tonic::{
    Code, Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server::{Grpc, ServerStreamingService, UnaryService},
};

/// Routes of both services.
pub(crate) fn routes() -> Router<Dispatcher> {
    let services = grpc::SERVICES.into_iter();
    services.fold(Router::new(), |router, service| {
        let call = move |dispatcher: State<Dispatcher>,
                         caller: ConnectInfo<HttpPeer>,
                         Path(method): Path<String>,
                         request| async move {
            enter(service, &method, dispatcher, caller, request).await
        };
        router.route(&format!("/{service}/{{method}}"), post(call))
    })
}

async fn enter(
    service: &'static str,
    method: &str,
    State(dispatcher): State<Dispatcher>,
    ConnectInfo(caller): ConnectInfo<HttpPeer>,
    request: Request,
) -> Response {
    if !is_grpc(request.headers()) {
        let why = "gRPC is spoken here; send `Content-Type: application/grpc`";
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, why).into_response();
    }
    let call = match GrpcMethod::named(service, method) {
        Ok(call) => call,
        Err(why) => return status(&why).into_http(),
    };
    let deadline = match deadline(request.headers()) {
        Ok(deadline) => deadline,
        Err(why) => return status(&why).into_http(),
    };
    let principal = origin_guard::principal(&request);
    let (head, body) = request.into_parts();
    let body = match read_body(&dispatcher, Request::from_parts(head.clone(), body)).await {
        Ok(body) => body,
        Err(unread) => return status(&unread.why).into_http(),
    };
    let (headers, request) = (head.headers.clone(), Request::from_parts(head, Body::from(body)));
    let streams = call.streams();
    let grpc_call = GrpcCall { dispatcher, call, caller, principal, headers, deadline };
    let mut grpc = Grpc::new(PassThroughCodec).max_decoding_message_size(MAX_REQUEST);
    if streams {
        return grpc.server_streaming(grpc_call, request).await.map(Body::new);
    }
    tokio::select! {
        answer = grpc.unary(grpc_call, request) => answer.map(Body::new),
        () = passed(deadline) => late().into_http(),
    }
}

/// Deadline of the client; `None` if it set no timeout.
fn deadline(headers: &HeaderMap) -> Result<Option<Instant>, A2aError> {
    let Some(value) = headers.get(grpc::TIMEOUT) else { return Ok(None) };
    let timeout = grpc::read_timeout(value.to_str().unwrap_or_default())?;
    Ok(Some(Instant::now() + timeout))
}

/// Sleeps until the deadline, or forever without one.
async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// Status for an exceeded deadline. The task continues, as after a disconnect.
fn late() -> Status {
    Status::deadline_exceeded(
        "the call took longer than its `grpc-timeout`; a task that it began goes on",
    )
}

/// A call of a client.
#[derive(Clone)]
struct GrpcCall {
    dispatcher: Dispatcher,
    call: GrpcMethod,
    caller: HttpPeer,
    principal: Principal,
    headers: HeaderMap,
    /// Deadline of the client.
    deadline: Option<Instant>,
}

/// A message of a stream, or the error that ends it.
type Encoded = Result<Vec<u8>, Status>;

/// Result of a call, with the header for activated extensions.
type GrpcAnswer = (Spelled, Option<(HeaderName, HeaderValue)>);

impl GrpcCall {
    async fn carry_out(&self, sent: &[u8]) -> GrpcAnswer {
        let dialect::grpc::Request { tenant, operation } = dialect::grpc::read(&self.call, sent);
        match self.dispatcher.of_tenant(tenant.as_deref()) {
            Ok(target) => self.ask(operation, target, tenant.as_deref()).await,
            Err(why) => (Err(operation.err().unwrap_or(why).into()), None),
        }
    }

    async fn ask(
        &self,
        operation: Result<Operation, A2aError>,
        (agent, tenant): (Option<AgentId>, TenantId),
        tenant_param: Option<&str>,
    ) -> GrpcAnswer {
        let Self { dispatcher, call, caller, principal, headers, deadline: _ } = self;
        let url = hub_url(dispatcher, headers);
        let wire = dialect::grpc::wire(call);
        let dialect = Dialect::Official(wire);
        let endpoints = dispatcher.endpoints(
            &url,
            agent.as_ref(),
            origin_guard::by_token(caller, headers).await,
        );
        let of =
            context::context(principal.clone(), &url, endpoints, agent, dialect, headers, None);
        let target = RequestTarget { agent: of.agent.clone(), tenant };
        let mut spelled = match operation {
            Ok(operation) => dispatcher.carry_out(dialect, operation, target, &of).await,
            Err(why) => Err(of.unreadable(dialect, why).into()),
        };
        if let Ok(Reply::One(SpelledAnswer::Tree(answer))) = &mut spelled {
            wire.echo_tenant(answer, tenant_param);
        }
        (spelled, context::activated(&of.active, context::extensions_header(headers)))
    }
}

impl UnaryService<Bytes> for GrpcCall {
    type Response = Vec<u8>;
    type Future = BoxFuture<'static, Result<tonic::Response<Vec<u8>>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let grpc_call = self.clone();
        Box::pin(async move {
            let (spelled, active) = grpc_call.carry_out(&request.into_inner()).await;
            match spelled {
                Ok(Reply::One(SpelledAnswer::Text(_))) => {
                    Err(Status::internal("the answer is text"))
                }
                Ok(Reply::One(SpelledAnswer::Tree(answer))) => {
                    let answer = grpc_call.call.write(answer).map_err(|why| status(&why))?;
                    Ok(with_metadata(answer, active))
                }
                // Unreachable: this method has a single answer.
                Ok(Reply::Stream(_)) => Err(Status::internal("the answer is a stream")),
                Err(refusal) => Err(status(&refusal.why)),
            }
        })
    }
}

impl ServerStreamingService<Bytes> for GrpcCall {
    type Response = Vec<u8>;
    type ResponseStream = BoxStream<'static, Encoded>;
    type Future = BoxFuture<'static, Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let grpc_call = self.clone();
        Box::pin(async move {
            let (spelled, active) = grpc_call.carry_out(&request.into_inner()).await;
            match spelled {
                Ok(Reply::Stream(stream)) => {
                    let timeout = grpc_call.dispatcher.timeout();
                    let encoded = messages(grpc_call.call, stream);
                    let encoded = patiently(encoded, timeout, grpc_call.deadline);
                    Ok(with_metadata(encoded.boxed(), active))
                }
                // Unreachable: this method answers with a stream.
                Ok(Reply::One(_)) => Err(Status::internal("the answer is no stream")),
                Err(refusal) => Err(status(&refusal.why)),
            }
        })
    }
}

/// Encodes the items of a stream.
fn messages(
    call: GrpcMethod,
    stream: Box<TaskStream>,
) -> impl Stream<Item = Encoded> + Send + 'static {
    stream::unfold((call, stream), async |(call, mut stream)| {
        let wire = dialect::grpc::wire(&call);
        let Item { content, .. } = stream.next().await?;
        let encoded = content.and_then(|told| match told {
            ItemContent::Event(event) => call.write(wire.write_event(&event).unwrap_or_default()),
            ItemContent::Value(value) => call.write(value),
        });
        let encoded = encoded.map_err(|why| status(&why));
        Some((encoded, (call, stream)))
    })
}

/// Limits a stream by the client's deadline, and by a timeout for each message that the client does
/// not take. HTTP/2 lets a client stop reading one stream while it reads others, so a timeout of
/// the connection does not notice it. Ending the stream frees its permit.
fn patiently(
    encoded: impl Stream<Item = Encoded> + Send + 'static,
    timeout: Duration,
    deadline: Option<Instant>,
) -> impl Stream<Item = Encoded> {
    let (send, receiver) = mpsc::channel(1);
    // Aborted when the stream is dropped.
    let mut pump = JoinSet::new();
    pump.spawn(async move {
        let (mut encoded, mut late_at) = (pin!(encoded), pin!(passed(deadline)));
        loop {
            let next = tokio::select! {
                next = encoded.next() => next,
                () = &mut late_at => return Err(late()),
            };
            let Some(message) = next else { return Ok(()) };
            if send.send_timeout(message, timeout).await.is_err() {
                let timeout = Span(timeout);
                let why = format!("the client took nothing for {timeout}; subscribe again");
                return Err(Status::deadline_exceeded(why));
            }
        }
    });
    stream::unfold((receiver, pump), async |(mut heard, mut pump)| {
        if let Some(message) = heard.recv().await {
            return Some((message, (heard, pump)));
        }
        let broke = || Err(Status::internal("the stream broke; subscribe again"));
        let end = pump.join_next().await?.unwrap_or_else(|_| broke());
        end.err().map(|why| (Err(why), (heard, pump)))
    })
}

fn with_metadata<T>(answer: T, active: Option<(HeaderName, HeaderValue)>) -> tonic::Response<T> {
    let mut response = tonic::Response::new(answer);
    let headers: &mut HeaderMap = response.metadata_mut().as_mut();
    headers.extend(active);
    response
}

fn status(why: &A2aError) -> Status {
    let (code, details) = grpc::write_status(why);
    Status::with_details(Code::from_i32(code), &why.message, details.into())
}

/// Codec that passes encoded messages through, because `grpc::GrpcMethod` encodes and decodes them.
struct PassThroughCodec;

impl Codec for PassThroughCodec {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for PassThroughCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(&item);
        Ok(())
    }
}

impl Decoder for PassThroughCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn numbers(of: u8) -> impl Stream<Item = Encoded> + Send + 'static {
        stream::iter((0..of).map(|n| Ok(vec![n])))
    }

    #[tokio::test(start_paused = true)]
    async fn reading_client_receives_whole_stream() {
        let mut told = pin!(patiently(numbers(4), PATIENCE, None));
        for n in 0..4 {
            tokio::time::sleep(PATIENCE - Duration::from_millis(1)).await;
            assert_eq!(told.next().await.unwrap().unwrap(), [n]);
        }
        assert!(told.next().await.is_none());
        let broken = stream::iter([Err(Status::not_found("gone"))]);
        let told: Vec<_> = patiently(broken, PATIENCE, None).collect().await;
        assert_eq!(told[0].as_ref().unwrap_err().code(), Code::NotFound);
    }

    #[tokio::test(start_paused = true)]
    async fn unread_stream_ends_with_deadline_exceeded() {
        let told = patiently(numbers(4), PATIENCE, None);
        tokio::time::sleep(PATIENCE * 2).await;
        let told: Vec<_> = told.collect().await;
        assert_eq!(told.len(), 2, "one was held for the client, and then there is the reason");
        assert_eq!(told[1].as_ref().unwrap_err().code(), Code::DeadlineExceeded);
    }
    #[tokio::test(start_paused = true)]
    async fn stream_ends_at_client_deadline() {
        let endless = stream::iter([Ok(vec![1])]).chain(stream::pending());
        let started = Instant::now();
        let told = patiently(endless, PATIENCE, Some(started + PATIENCE * 3));
        let told: Vec<_> = told.collect().await;
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[1].as_ref().unwrap_err().code(), Code::DeadlineExceeded);
        assert_eq!(started.elapsed(), PATIENCE * 3);
    }
}
