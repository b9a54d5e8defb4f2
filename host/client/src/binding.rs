//! The bindings of A2A that the client speaks, behind one choice: what is sent to an interface, and how what comes back is read.

use crate::{
    answer::Answer, error::ClientError, grpc, interface::SelectedInterface, jsonrpc, rest, sse,
};
use a2a_hub_protocol::{
    binding::grpc::Call,
    interface::{Binding, Version},
    operation::Operation,
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE, request::Builder};
use serde_json::Value;

/// How the answers to one question are read.
#[derive(Debug)]
pub(crate) enum Reader {
    JsonRpc,
    Rest,
    Grpc(Call),
}

/// Takes a stream apart.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// Server-sent events, of JSON-RPC and REST.
    Events(sse::Decoder),
    /// Messages of gRPC, each behind its length.
    Messages(grpc::Frames),
}

impl SelectedInterface {
    /// The request that asks for this, all but who asks, and how its answers are read.
    pub(crate) fn ask(
        &self,
        operation: &Operation,
    ) -> Result<(Builder, Bytes, Reader), ClientError> {
        let plain = |(request, body), reader| (request, body, reader);
        let written = match self.wire.binding {
            Binding::JsonRpc => {
                jsonrpc::write(self, operation).map(|it| plain(it, Reader::JsonRpc))
            }
            Binding::Rest => rest::write(self, operation).map(|it| plain(it, Reader::Rest)),
            Binding::Grpc => grpc::write(self, operation)?
                .map(|(request, body, call)| (request, body, Reader::Grpc(call))),
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

impl Reader {
    /// Takes an answer with this head apart, if it is a stream.
    pub(crate) fn decoder(&self, head: &HeaderMap) -> Option<Decoder> {
        match self {
            Self::JsonRpc | Self::Rest => {
                let kind = head.get(CONTENT_TYPE)?.as_bytes();
                let is_stream = kind.starts_with(b"text/event-stream");
                is_stream.then(|| Decoder::Events(sse::Decoder::default()))
            }
            Self::Grpc(call) => {
                let is_stream = call.streams() && grpc::has_messages(head);
                is_stream.then(|| Decoder::Messages(grpc::Frames::default()))
            }
        }
    }

    /// What an answer says that is no stream.
    pub(crate) fn whole(&self, answer: &Answer) -> Result<Value, ClientError> {
        match self {
            Self::JsonRpc => jsonrpc::read(answer.status, &answer.body),
            Self::Rest => rest::read(answer.status, &answer.body),
            Self::Grpc(call) => grpc::read(call, answer),
        }
    }

    /// What an item of a stream says.
    pub(crate) fn item(&self, item: &[u8]) -> Result<Value, ClientError> {
        match self {
            Self::JsonRpc => jsonrpc::read(StatusCode::OK, item),
            Self::Rest => rest::read(StatusCode::OK, item),
            Self::Grpc(call) => grpc::read_message(call, item),
        }
    }

    /// Whether a stream with these trailers ended well.
    pub(crate) fn end(&self, trailers: &HeaderMap) -> Result<(), ClientError> {
        match self {
            Self::JsonRpc | Self::Rest => Ok(()),
            Self::Grpc(_) => grpc::end(StatusCode::OK, trailers),
        }
    }
}

impl Decoder {
    /// Takes a piece, and returns the items that are whole by now.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<Vec<Bytes>, ClientError> {
        match self {
            Self::Events(decoder) => {
                let events = decoder.take(piece).map_err(|why| why.to_string());
                events.map(|events| events.into_iter().map(Bytes::from).collect())
            }
            Self::Messages(frames) => frames.take(piece).map_err(|why| why.to_string()),
        }
        .map_err(ClientError::Broken)
    }
}
