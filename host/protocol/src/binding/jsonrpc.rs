//! JSON-RPC 2.0 envelope (jsonrpc.org/specification), independent of the methods: requests and
//! responses, read and written.

use crate::{
    binding::service_params::ServiceParams,
    codec::limits::{self, MAX_BATCH},
    model::{
        error::{A2aError, ErrorKind},
        id::MAX_ID,
    },
};
use serde::Serialize;
use serde_json::{Map, Value};

/// The `id` of a request; the response repeats it with the same type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A string, as most clients send.
    Text(String),
    /// A number, preserved as written.
    Number(serde_json::Number),
    /// `null`: allowed but discouraged, and the id in responses to unreadable requests.
    Null,
}

/// A decoded request, valid or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Id for the response; `None` for a notification, which gets no response.
    pub id: Option<RequestId>,
    /// The `method`; `None` if it is missing or not a string.
    pub method: Option<String>,
    /// Service parameters in the metadata, if the transport has no headers.
    pub service_params: Option<ServiceParams>,
    /// The `params`, empty if absent; or the error of an invalid request.
    pub params: Result<Map<String, Value>, A2aError>,
}

/// A single request or a batch (JSON-RPC 2.0, section 6).
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<T> {
    /// A single request, boxed because of its size.
    One(Box<T>),
    /// A batch of at least one request, whose responses are sent together.
    Batch(Vec<T>),
}

impl<T> Frame<T> {
    /// Converts each request.
    pub fn map<U>(self, read: impl Fn(T) -> U) -> Frame<U> {
        match self {
            Self::One(request) => Frame::One(Box::new(read(*request))),
            Self::Batch(requests) => Frame::Batch(requests.into_iter().map(read).collect()),
        }
    }
}

/// Source of a request's service parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamsSource {
    /// HTTP headers or gRPC metadata.
    Headers,
    /// The metadata of each request, on transports without headers. A version in it selects the
    /// official dialect.
    Metadata,
}

/// Parses input from a client. Invalid input yields a request with an error.
pub fn read(text: &[u8], source: ParamsSource) -> Frame<Request> {
    let one = |request| Frame::One(Box::new(request));
    match limits::read(text) {
        Ok(Value::Array(batch)) if batch.is_empty() => {
            one(Request::refused(invalid("a batch holds at least one request")))
        }
        Ok(Value::Array(batch)) if batch.len() > MAX_BATCH => {
            let why =
                format!("the batch holds {} requests; at most {MAX_BATCH} are read", batch.len());
            one(Request::refused(invalid(why)))
        }
        Ok(Value::Array(batch)) => {
            Frame::Batch(batch.into_iter().map(|one| Request::read(one, source)).collect())
        }
        Ok(value) => one(Request::read(value, source)),
        Err(why) => one(Request::refused(why)),
    }
}

impl Request {
    /// Creates a request for invalid input; its response has the id `null`.
    fn refused(why: A2aError) -> Self {
        Self { id: Some(RequestId::Null), method: None, service_params: None, params: Err(why) }
    }

    fn read(request: Value, source: ParamsSource) -> Self {
        let Value::Object(mut request) = request else {
            return Self::refused(invalid("a request is a JSON object, or an array of them"));
        };
        let service_params = match (source, request.get("params")) {
            (ParamsSource::Metadata, Some(params)) => ServiceParams::of_metadata(params),
            (ParamsSource::Metadata, None) | (ParamsSource::Headers, _) => Ok(None),
        };
        let id = read_id(request.remove("id"));
        let method = request.get("method").and_then(Value::as_str).map(str::to_owned);
        let params = match &id {
            Ok(_) => read_params(request),
            Err(why) => Err(why.clone()),
        };
        let (service_params, params) = match (service_params, params) {
            (Ok(service_params), params) => (service_params, params),
            (Err(_), Err(why)) | (Err(why), Ok(_)) => (None, Err(why)),
        };
        let id = match id {
            // An invalid request without an id is not a notification, so it gets a response.
            Ok(None) if params.is_err() => Some(RequestId::Null),
            Ok(id) => id,
            Err(_) => Some(RequestId::Null),
        };
        Self { id, method, service_params, params }
    }
}

fn read_id(id: Option<Value>) -> Result<Option<RequestId>, A2aError> {
    match id {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(RequestId::Null)),
        Some(Value::String(text)) if text.len() > MAX_ID => {
            Err(invalid(format!("`id` is at most {MAX_ID} bytes long")))
        }
        Some(Value::String(text)) => Ok(Some(RequestId::Text(text))),
        Some(Value::Number(number)) => Ok(Some(RequestId::Number(number))),
        Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
            Err(invalid("`id` is a string or a number"))
        }
    }
}

/// Reads the parameters of a request whose id was removed, and validates the rest of it.
fn read_params(mut request: Map<String, Value>) -> Result<Map<String, Value>, A2aError> {
    if request.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    limits::check(&request)?;
    if !matches!(request.get("method"), Some(Value::String(_))) {
        return Err(invalid("`method` is missing, or is not a string"));
    }
    match request.remove("params") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(params)) => Ok(params),
        // JSON-RPC allows positional parameters, but no method here defines an order.
        Some(Value::Array(_)) => {
            Err(A2aError::invalid("params", "must be an object: parameters are given by name"))
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            Err(invalid("`params` must be an object"))
        }
    }
}

fn invalid(why: impl Into<String>) -> A2aError {
    A2aError::new(ErrorKind::InvalidRequest, why)
}

/// Common members of all responses to a request. A result is serialized from its place, without a
/// copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// Id of the request.
    pub id: RequestId,
    /// Activated service parameters, for transports without headers.
    pub service_params: Option<Value>,
}

impl Envelope {
    /// Envelope for responses to invalid requests.
    pub fn of_no_request() -> Self {
        Self { id: RequestId::Null, service_params: None }
    }

    /// Response with a result, as one line.
    pub fn result(&self, result: &Value) -> Vec<u8> {
        self.line(None, Some(result))
    }

    /// First part of a response, before a result that exists as text. The result and
    /// [`Envelope::END`] follow.
    pub fn opening(&self) -> Vec<u8> {
        self.opening_before(0)
    }

    /// Same as [`opening`](Self::opening), with extra buffer capacity of `bytes`.
    fn opening_before(&self, bytes: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(OPENING + bytes);
        self.write(&mut text, None, None);
        // Removes the closing brace, because `result` is the last member.
        text.pop();
        text.extend_from_slice(b",\"result\":");
        text
    }

    /// Last byte of a response that began with [`opening`](Self::opening).
    pub const END: u8 = b'}';

    /// Response with a result that exists as text of one line.
    pub fn result_text(&self, result: &[u8]) -> Vec<u8> {
        let mut text = self.opening_before(result.len() + 1);
        text.extend_from_slice(result);
        text.push(Self::END);
        text
    }

    /// Response with an error object, as one line.
    pub fn error(&self, error: &Value) -> Vec<u8> {
        self.line(Some(error), None)
    }

    fn line(&self, error: Option<&Value>, result: Option<&Value>) -> Vec<u8> {
        let mut text = Vec::with_capacity(OPENING);
        self.write(&mut text, error, result);
        text
    }

    fn write(&self, text: &mut Vec<u8>, error: Option<&Value>, result: Option<&Value>) {
        let Self { id, service_params } = self;
        let service_params = service_params.as_ref();
        write(text, &ResponseObject { service_params, error, id, jsonrpc: VERSION, result });
    }
}

/// Initial buffer capacity in bytes, enough for most responses without their result.
const OPENING: usize = 128;

/// Writes a client's request as one line.
pub fn write_request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    line(&RequestObject { id, jsonrpc: VERSION, method, params })
}

/// Version of JSON-RPC.
const VERSION: &str = "2.0";

/// A response object (JSON-RPC 2.0, section 5). Members are sorted by name, like all JSON of the
/// hub.
#[derive(Serialize)]
struct ResponseObject<'a> {
    #[serde(rename = "a2a-service-parameters", skip_serializing_if = "Option::is_none")]
    service_params: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Value>,
    id: &'a RequestId,
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
}

/// A request object (JSON-RPC 2.0, section 4).
#[derive(Serialize)]
struct RequestObject<'a> {
    id: u64,
    jsonrpc: &'static str,
    method: &'a str,
    params: &'a Value,
}

/// Serializes an object as one line.
fn line(object: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::new();
    write(&mut text, object);
    text
}

/// Appends the JSON of an object to a buffer. serde_json writes no line breaks.
fn write(text: &mut Vec<u8>, object: &impl Serialize) {
    // Cannot fail: a buffer accepts every write, and JSON values always serialize.
    let _ = serde_json::to_writer(text, object);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::service_params::{MEMBER, activated};
    use proptest::prelude::*;
    use serde_json::json;

    fn one(text: &[u8], beside: ParamsSource) -> Request {
        let Frame::One(request) = read(text, beside) else { panic!("a batch") };
        *request
    }

    #[test]
    fn request_id_keeps_its_json_type() {
        for id in [json!("7"), json!(7), json!(7.5), json!(null)] {
            let request = json!({"jsonrpc": "2.0", "method": "hub/status", "id": id}).to_string();
            let read = one(request.as_bytes(), ParamsSource::Headers);
            assert_eq!(json!(read.id.unwrap()), id);
        }
        let notification =
            one(br#"{"jsonrpc":"2.0","method":"hub/status"}"#, ParamsSource::Headers);
        assert_eq!((notification.id, notification.params), (None, Ok(Map::new())));
    }

    #[test]
    fn invalid_request_still_gets_response() {
        let told = |request: Value| {
            let read = one(request.to_string().as_bytes(), ParamsSource::Metadata);
            let why = read.params.unwrap_err();
            format!("{} {:?} {:?}: {why}", json!(read.id), read.method, why.kind)
        };
        let deep = (0..64).fold(Value::Null, |inner, _| json!([inner]));
        let cases = [
            told(json!([])),
            told(json!(vec![1; 101])),
            told(json!(7)),
            told(json!({"jsonrpc": "2.0", "id": "x".repeat(129), "method": "m"})),
            told(json!({"jsonrpc": "2.0", "id": [], "method": "m"})),
            told(json!({"id": 1, "method": "m"})),
            told(json!({"jsonrpc": "1.0", "method": "m"})),
            told(json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": deep}})),
            told(json!({"jsonrpc": "2.0", "id": 1})),
            told(json!({"jsonrpc": "2.0", "id": 1, "method": 1})),
            told(json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": ["t"]})),
            told(json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": "t"})),
            told(
                json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"metadata": {MEMBER: 1}}}),
            ),
        ];
        insta::assert_snapshot!(cases.join("\n"), @r#"
        null None InvalidRequest: a batch holds at least one request
        null None InvalidRequest: the batch holds 101 requests; at most 100 are read
        null None InvalidRequest: a request is a JSON object, or an array of them
        null Some("m") InvalidRequest: `id` is at most 128 bytes long
        null Some("m") InvalidRequest: `id` is a string or a number
        1 Some("m") InvalidRequest: `jsonrpc` must be "2.0"
        null Some("m") InvalidRequest: `jsonrpc` must be "2.0"
        1 Some("m") InvalidRequest: the request is nested deeper than 64 levels
        1 None InvalidRequest: `method` is missing, or is not a string
        1 None InvalidRequest: `method` is missing, or is not a string
        1 Some("m") InvalidParams: `params`: must be an object: parameters are given by name
        1 Some("m") InvalidRequest: `params` must be an object
        1 Some("m") InvalidParams: `metadata.a2a-service-parameters`: must be an object
        "#);
    }

    #[test]
    fn batch_requests_are_read_independently() {
        let text = br#"[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"}, 7]"#;
        let Frame::Batch(batch) = read(text, ParamsSource::Headers) else { panic!("not a batch") };
        let ids: Vec<_> = batch.iter().map(|request| request.id.clone()).collect();
        assert_eq!(ids, [Some(RequestId::Number(1.into())), None, Some(RequestId::Null)]);
        let readable: Vec<_> = batch.iter().map(|request| request.params.is_ok()).collect();
        assert_eq!(readable, [true, true, false]);
    }

    #[test]
    fn response_wraps_result_or_error() {
        let text = |line: Vec<u8>| String::from_utf8(line).unwrap();
        let service_params = activated(&["urn:x".to_owned()]);
        let envelope = Envelope { id: RequestId::Text("a\n".to_owned()), service_params };
        let plain = Envelope { id: RequestId::Number(7.into()), service_params: None };
        let told = [
            text(envelope.result(&json!({"b": "line\nbreak", "a": 1}))),
            text(plain.result(&Value::Null)),
            text(Envelope::of_no_request().error(&json!({"code": -32700, "message": "no"}))),
            text(write_request(1, "tasks/get", &json!({"id": "t"}))),
        ];
        for envelope in [envelope, plain, Envelope::of_no_request()] {
            let result = json!({"b": "line\nbreak", "a": [1]});
            let spliced = envelope.result_text(result.to_string().as_bytes());
            assert_eq!(text(spliced), text(envelope.result(&result)));
        }
        insta::assert_snapshot!(told.join("\n"), @r#"
        {"a2a-service-parameters":{"A2A-Extensions":"urn:x"},"id":"a\n","jsonrpc":"2.0","result":{"a":1,"b":"line\nbreak"}}
        {"id":7,"jsonrpc":"2.0","result":null}
        {"error":{"code":-32700,"message":"no"},"id":null,"jsonrpc":"2.0"}
        {"id":1,"jsonrpc":"2.0","method":"tasks/get","params":{"id":"t"}}
        "#);
    }

    proptest! {
        #[test]
        fn written_request_reads_back_unchanged(id: u64, method in ".{0,20}", said in ".{0,20}") {
            let line = write_request(id, &method, &json!({ "said": said }));
            prop_assert!(!line.contains(&b'\n'));
            let params = Ok(Map::from_iter([("said".to_owned(), json!(said))]));
            let id = Some(RequestId::Number(id.into()));
            let method = Some(method);
            prop_assert_eq!(one(&line, ParamsSource::Headers), Request { id, method, service_params: None, params });
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, params in r#"[{}\[\]":,a-z0-9 ]{0,40}"#) {
            let almost = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
            for text in [&bytes, almost.as_bytes()] {
                read(text, ParamsSource::Metadata);
            }
        }
    }
}
