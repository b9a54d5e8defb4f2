//! gRPC: one path per method, length-prefixed messages, and the status in the trailers.

use crate::{
    answer::{BufferedResponse, MAX_ANSWER},
    error::ClientError,
    interface::SelectedInterface,
};
use a2a_hub_protocol::{
    binding::grpc::{self, GrpcMethod},
    dialect,
    error::{A2aError, ErrorKind},
    operation::Operation,
};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::{
    HeaderMap, Request, StatusCode, Version,
    header::{CONTENT_TYPE, TE},
    request::Builder,
};
use serde_json::Value;

/// Size of a message's prefix: a flag for compression, and the length in four bytes.
const HEAD: usize = 5;

const MEDIA: &str = "application/grpc";

/// Writes the request for an operation, and returns its call for reading the response; `None` if
/// the version has no such operation.
pub(crate) fn write(
    interface: &SelectedInterface,
    operation: &Operation,
) -> Result<Option<(Builder, Bytes, GrpcMethod)>, ClientError> {
    let asking =
        dialect::grpc::write(interface.wire.version, interface.tenant.as_deref(), operation);
    let Some((call, message)) = asking.map_err(ClientError::Refused)? else { return Ok(None) };
    let length = u32::try_from(message.len()).map_err(|_| {
        let why = format!("a message of {} bytes is too long for gRPC", message.len());
        ClientError::Refused(A2aError::new(ErrorKind::InvalidRequest, why))
    })?;
    // gRPC paths consist of service and method only, so the path of the interface's URL is dropped.
    let url = interface.url.join(&call.path());
    let url = url.map_err(|_| ClientError::NotUrl(interface.url.to_string()))?;
    let request = Request::post(url.as_str())
        .version(Version::HTTP_2)
        .header(CONTENT_TYPE, MEDIA)
        .header(TE, "trailers");
    let mut framed = BytesMut::with_capacity(HEAD + message.len());
    framed.put_u8(0);
    framed.put_u32(length);
    framed.put_slice(&message);
    Ok(Some((request, framed.freeze(), call)))
}

/// True if messages follow this head. A refusal has only a head.
pub(crate) fn has_messages(head: &HeaderMap) -> bool {
    let media = head.get(CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    let is_grpc = media.get(..MEDIA.len()).is_some_and(|it| it.eq_ignore_ascii_case(MEDIA));
    is_grpc && !head.contains_key("grpc-status")
}

/// Reads the single message of a response.
pub(crate) fn read(call: &GrpcMethod, answer: &BufferedResponse) -> Result<Value, ClientError> {
    end(answer.status, &answer.trailers)?;
    let message = GrpcFrames::default().decode(&answer.body).map_err(|why| broken(&why))?.pop();
    let message = message.ok_or_else(|| broken("it has no message"))?;
    read_message(call, &message)
}

/// Reads a message.
pub(crate) fn read_message(call: &GrpcMethod, message: &[u8]) -> Result<Value, ClientError> {
    call.read_answer(message).map_err(|why| ClientError::senseless(StatusCode::OK, &why))
}

/// Checks the final status in the trailers.
pub(crate) fn end(status: StatusCode, trailers: &HeaderMap) -> Result<(), ClientError> {
    let trailer = |name: &str| trailers.get(name).map_or(&b""[..], |value| value.as_bytes());
    if !trailers.contains_key("grpc-status") {
        return Err(ClientError::senseless(
            status,
            "it is no gRPC, which ends with a `grpc-status`",
        ));
    }
    let details = trailer("grpc-status-details-bin");
    match grpc::read_refusal(trailer("grpc-status"), trailer("grpc-message"), details) {
        None => Ok(()),
        // Proxies and stopping servers answer like this: the agent itself decided nothing.
        Some(why)
            if why.details.is_none()
                && matches!(why.kind, ErrorKind::AgentUnavailable | ErrorKind::Timeout) =>
        {
            Err(broken(&why))
        }
        Some(why) => Err(ClientError::Refused(why)),
    }
}

fn broken(why: &(impl ToString + ?Sized)) -> ClientError {
    ClientError::Broken(why.to_string())
}

/// Decoder of messages that arrive in chunks.
#[derive(Debug, Default)]
pub(crate) struct GrpcFrames(BytesMut);

/// Error of a malformed message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadFrame {
    /// The message is compressed, although the request allowed no compression.
    #[error("a message is compressed")]
    Compressed,
    /// The message exceeds the size limit.
    #[error("a message is longer than {} MiB", MAX_ANSWER >> 20)]
    TooLong,
}

impl GrpcFrames {
    /// Decodes a chunk, and returns the messages that are complete by now.
    pub(crate) fn decode(&mut self, piece: &[u8]) -> Result<Vec<Bytes>, BadFrame> {
        self.0.extend_from_slice(piece);
        let mut messages = Vec::new();
        while let Some([compressed, length @ ..]) = self.0.first_chunk::<HEAD>() {
            if *compressed != 0 {
                return Err(BadFrame::Compressed);
            }
            let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
            if length > MAX_ANSWER {
                return Err(BadFrame::TooLong);
            }
            if self.0.len() < HEAD + length {
                break;
            }
            self.0.advance(HEAD);
            messages.push(self.0.split_to(length).freeze());
        }
        Ok(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        dialect::Wire,
        id::TaskId,
        interface::{self, Binding},
    };
    use proptest::prelude::*;
    use url::Url;

    /// Two messages, one of them empty, and the beginning of a third.
    const STREAM: &[u8] = b"\0\0\0\0\x03abc\0\0\0\0\0\0\0\0\0\x09cut";

    #[test]
    fn length_prefixed_messages_are_decoded() {
        let messages = GrpcFrames::default().decode(STREAM).unwrap();
        assert_eq!(messages, [&b"abc"[..], &b""[..]]);
        assert_eq!(GrpcFrames::default().decode(b"\x01\0\0\0\0"), Err(BadFrame::Compressed));
        assert_eq!(GrpcFrames::default().decode(b"\0\xff\0\0\0"), Err(BadFrame::TooLong));
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_affect_messages(mut cuts in proptest::collection::vec(0..STREAM.len(), 0..9)) {
            cuts.sort_unstable();
            let (mut frames, mut messages, mut from) = (GrpcFrames::default(), Vec::new(), 0);
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                messages.extend(frames.decode(&STREAM[from..cut]).unwrap());
                from = cut;
            }
            prop_assert_eq!(messages, GrpcFrames::default().decode(STREAM).unwrap());
        }
    }

    fn call(version: interface::Version) -> (Request<()>, Bytes, GrpcMethod) {
        let url = Url::parse("https://x:1/what/ever").unwrap();
        let wire = Wire { version, binding: Binding::Grpc };
        let interface = SelectedInterface { url, wire, tenant: Some("me".to_owned()) };
        let get = Operation::GetTask { id: TaskId::new("t"), history_length: None };
        let (request, body, call) = write(&interface, &get).unwrap().unwrap();
        (request.body(()).unwrap(), body, call)
    }

    #[test]
    fn request_has_method_path_and_frame() {
        let (request, body, _) = call(interface::Version::V1);
        assert_eq!(request.uri(), "https://x:1/lf.a2a.v1.A2AService/GetTask");
        assert_eq!(&body[..], b"\0\0\0\0\x07\x0a\x02me\x12\x01t");
        let (request, body, _) = call(interface::Version::V03);
        assert_eq!(request.uri(), "https://x:1/a2a.v1.A2AService/GetTask");
        assert_eq!(&body[..], b"\0\0\0\0\x09\x0a\x07tasks/t");
    }

    #[test]
    fn trailers_determine_result() {
        let (_, _, call) = call(interface::Version::V1);
        let told = |status: u16, trailers: &[(&'static str, &str)], body: &'static [u8]| {
            let trailers = trailers
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
            let status = StatusCode::from_u16(status).unwrap();
            let body = Bytes::from_static(body);
            match read(&call, &BufferedResponse { status, trailers: trailers.collect(), body }) {
                Ok(said) => said.to_string(),
                Err(why) => format!("{why}, passing: {}", why.is_passing()),
            }
        };
        let ok = ("grpc-status", "0");
        let told = [
            told(200, &[ok], b"\0\0\0\0\x03\x0a\x01t"),
            told(200, &[ok], b"\0\0\0\0\x03\xff\xff\xff"),
            told(200, &[ok], b""),
            told(200, &[("grpc-status", "5"), ("grpc-message", "no%20such task")], b""),
            told(200, &[("grpc-status", "14"), ("grpc-message", "it stops")], b""),
            told(502, &[], b"<html>"),
            told(404, &[], b""),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        {"id":"t"}
        read the answer, which came with HTTP status 200 OK: this is no `lf.a2a.v1.Task`: failed to decode Protobuf message: invalid varint, passing: false
        read the answer: it has no message, passing: true
        the agent refused: no such task (NOT_FOUND), passing: false
        read the answer: it stops (UNAVAILABLE), passing: true
        read the answer, which came with HTTP status 502 Bad Gateway: it is no gRPC, which ends with a `grpc-status`, passing: true
        read the answer, which came with HTTP status 404 Not Found: it is no gRPC, which ends with a `grpc-status`, passing: false
        "#);
        let head = |kind: &'static str| -> HeaderMap {
            [(CONTENT_TYPE, http::HeaderValue::from_static(kind))].into_iter().collect()
        };
        assert!(has_messages(&head("application/grpc+proto")) && !has_messages(&head("text/html")));
        let mut refused = head(MEDIA);
        refused.insert("grpc-status", http::HeaderValue::from_static("5"));
        assert!(!has_messages(&refused));
    }
}
