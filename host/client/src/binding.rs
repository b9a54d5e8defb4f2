//! Bindings of A2A that the client speaks, behind one type: writing requests, and reading
//! responses.

use crate::{
    answer::{BufferedResponse, MAX_QUOTE},
    error::ClientError,
    grpc,
    interface::SelectedInterface,
    jsonrpc, rest,
    sse::{self, ServerEvent},
};
use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::{
    binding::grpc::GrpcMethod,
    card::is_in_range,
    error::{A2aError, ErrorKind},
    interface::{Binding, Version},
    member,
    operation::Operation,
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE, request::Builder};
use serde_json::Value;

/// Reader of the responses to one request.
#[derive(Debug)]
pub(crate) enum AnswerReader {
    JsonRpc,
    Rest,
    Grpc(GrpcMethod),
}

/// Item of a stream.
#[derive(Debug)]
pub(crate) struct StreamItem {
    /// Name of the server-sent event; empty if it has none.
    name: String,
    data: Bytes,
}

/// Decoder of a stream.
#[derive(Debug)]
pub(crate) enum StreamDecoder {
    /// Server-sent events of JSON-RPC and REST.
    Events(sse::EventDecoder),
    /// Length-prefixed messages of gRPC.
    Messages(grpc::GrpcFrames),
}

impl SelectedInterface {
    /// Writes the request for an operation, without credentials, and selects the reader of its
    /// response.
    pub(crate) fn ask(
        &self,
        operation: &Operation,
    ) -> Result<(Builder, Bytes, AnswerReader), ClientError> {
        let plain = |(request, body), reader| (request, body, reader);
        let written = match self.wire.binding {
            Binding::JsonRpc => {
                jsonrpc::write(self, operation).map(|it| plain(it, AnswerReader::JsonRpc))
            }
            Binding::Rest => rest::write(self, operation).map(|it| plain(it, AnswerReader::Rest)),
            Binding::Grpc => grpc::write(self, operation)?
                .map(|(request, body, call)| (request, body, AnswerReader::Grpc(call))),
        };
        let (request, body, reader) = written.ok_or(ClientError::NotOfA2a)?;
        let (mut request, extensions) = match self.wire.version {
            Version::V1 => (request.header("A2A-Version", "1.0"), "A2A-Extensions"),
            Version::V03 => (request, "X-A2A-Extensions"),
        };
        if let Operation::SendMessage(send) | Operation::StreamMessage(send) = operation
            && !send.client.extensions.is_empty()
        {
            request = request.header(extensions, send.client.extensions.join(", "));
        }
        Ok((request, body, reader))
    }
}

impl AnswerReader {
    /// Decoder for a response with this head; `None` if the response is not a stream.
    pub(crate) fn decoder(&self, head: &HeaderMap) -> Option<StreamDecoder> {
        match self {
            Self::JsonRpc | Self::Rest => {
                let media = head.get(CONTENT_TYPE)?.to_str().ok()?;
                let is_stream = is_in_range(media, "text/event-stream");
                is_stream.then(|| StreamDecoder::Events(sse::EventDecoder::default()))
            }
            Self::Grpc(call) => {
                let is_stream = call.streams() && grpc::has_messages(head);
                is_stream.then(|| StreamDecoder::Messages(grpc::GrpcFrames::default()))
            }
        }
    }

    /// Reads a response that is not a stream.
    pub(crate) fn read(&self, answer: &BufferedResponse) -> Result<Value, ClientError> {
        match self {
            Self::JsonRpc => jsonrpc::read(answer.status, &answer.body),
            Self::Rest => rest::read(answer.status, &answer.body),
            Self::Grpc(call) => grpc::read(call, answer),
        }
    }

    /// Reads an item of a stream. Some servers of JSON-RPC send events without its envelope, and
    /// some of REST with it.
    pub(crate) fn item(&self, item: &StreamItem) -> Result<Value, ClientError> {
        let read = match self {
            Self::JsonRpc => jsonrpc::read(StatusCode::OK, &item.data),
            Self::Rest => rest::read(StatusCode::OK, &item.data),
            Self::Grpc(call) => return grpc::read_message(call, &item.data),
        };
        match read {
            Err(ClientError::Senseless { .. }) if item.name == "error" => {
                let text = String::from_utf8_lossy(&item.data);
                let why = A2aError::new(ErrorKind::Internal, plain_text::line(&text, MAX_QUOTE));
                Err(ClientError::Refused(why))
            }
            Err(why @ ClientError::Senseless { .. }) => {
                let bare = serde_json::from_slice(&item.data).ok();
                bare.filter(Value::is_object).ok_or(why)
            }
            Ok(mut value) if value.get("jsonrpc").is_some() && value.get("result").is_some() => {
                Ok(member::take(&mut value, "result"))
            }
            read => read,
        }
    }

    /// Checks the trailers of a stream for an error.
    pub(crate) fn end(&self, trailers: &HeaderMap) -> Result<(), ClientError> {
        match self {
            Self::JsonRpc | Self::Rest => Ok(()),
            Self::Grpc(_) => grpc::end(StatusCode::OK, trailers),
        }
    }
}

impl StreamDecoder {
    /// Decodes a chunk, and returns the items that are complete by now.
    pub(crate) fn decode(&mut self, piece: &[u8]) -> Result<Vec<StreamItem>, ClientError> {
        let broken = |why: String| ClientError::Broken(why);
        match self {
            Self::Events(decoder) => {
                let events = decoder.decode(piece).map_err(|why| broken(why.to_string()))?;
                let item = |ServerEvent { name, data }| StreamItem { name, data };
                Ok(events.into_iter().map(item).collect())
            }
            Self::Messages(frames) => {
                let messages = frames.decode(piece).map_err(|why| broken(why.to_string()))?;
                let item = |data| StreamItem { name: String::new(), data };
                Ok(messages.into_iter().map(item).collect())
            }
        }
    }
}
