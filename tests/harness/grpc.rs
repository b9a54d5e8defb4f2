//! gRPC client of the hub. Its calls take and return ProtoJSON; the transport uses the protocol's
//! encoding.

use crate::{Endpoints, RpcError};
use a2a_hub_protocol::binding::grpc::{GrpcMethod, SERVICES, read_details};
use anyhow::{Context as _, Result};
use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, HeaderValue, Uri, uri::PathAndQuery},
};
use bytes::{Buf as _, BufMut as _};
use futures::TryStreamExt as _;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use tonic::{
    Request, Status,
    body::Body,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// Timeout of a test for a response, or for the end of a stream.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Client of one of the two services.
#[derive(Clone, Debug)]
pub struct GrpcClient {
    grpc: Grpc<Client<HttpConnector, Body>>,
    service: &'static str,
    headers: HeaderMap,
}

impl GrpcClient {
    /// Creates a client of A2A 1.0.
    pub fn v1(hub: &Endpoints) -> Result<Self> {
        Self::of(hub, SERVICES[0])
    }

    /// Creates a client of A2A 0.3.
    pub fn v03(hub: &Endpoints) -> Result<Self> {
        Self::of(hub, SERVICES[1])
    }

    fn of(hub: &Endpoints, service: &'static str) -> Result<Self> {
        let origin: Uri = format!("http://{}", hub.http()).parse()?;
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        Ok(Self { grpc: Grpc::with_origin(client, origin), service, headers: HeaderMap::new() })
    }

    /// Adds metadata to every call.
    pub fn with(mut self, name: &'static str, value: &str) -> Result<Self> {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value)?);
        Ok(self)
    }

    /// Calls a unary method. Returns the response with its metadata.
    pub async fn call(&self, method: &str, params: Value) -> Result<(Value, HeaderMap), RpcError> {
        let (call, request, path) = self.prepare(method, params).map_err(lost)?;
        let mut grpc = self.grpc.clone();
        let answer = async {
            grpc.ready().await.map_err(lost)?;
            grpc.unary(request, path, Whole).await.map_err(|why| refused(&why))
        };
        let answer = timeout(ANSWER_WITHIN, answer).await.map_err(lost)??;
        let (head, body, _) = answer.into_parts();
        Ok((call.read_answer(&body).map_err(lost)?, head.into_headers()))
    }

    /// Calls a streaming method, and reads the stream to its end.
    pub async fn stream(&self, method: &str, params: Value) -> Result<Vec<Value>, RpcError> {
        let (call, request, path) = self.prepare(method, params).map_err(lost)?;
        let mut grpc = self.grpc.clone();
        let told = async {
            grpc.ready().await.map_err(lost)?;
            let told = grpc.server_streaming(request, path, Whole).await;
            let told: Vec<_> = told
                .map_err(|why| refused(&why))?
                .into_inner()
                .try_collect()
                .await
                .map_err(|why| refused(&why))?;
            told.iter().map(|told| call.read_answer(told).map_err(lost)).collect()
        };
        timeout(ANSWER_WITHIN, told).await.map_err(lost)?
    }

    fn prepare(
        &self,
        method: &str,
        params: Value,
    ) -> Result<(GrpcMethod, Request<Vec<u8>>, PathAndQuery)> {
        let call = GrpcMethod::named(self.service, method)?;
        let mut request = Request::new(call.write_request(params)?);
        request.metadata_mut().as_mut().extend(self.headers.clone());
        let path = format!("/{}/{method}", self.service).parse().context("no path")?;
        Ok((call, request, path))
    }
}

fn lost(why: impl std::fmt::Display) -> RpcError {
    RpcError::Lost(why.to_string())
}

/// Converts a status: the code is gRPC's, the data are the status details.
fn refused(why: &Status) -> RpcError {
    let data = read_details(why.details()).unwrap_or_default();
    RpcError::Refused {
        code: i32::from(why.code()).into(),
        message: why.message().to_owned(),
        data,
    }
}

/// Codec that leaves messages as they are.
struct Whole;

impl Codec for Whole {
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

impl Encoder for Whole {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Whole {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
