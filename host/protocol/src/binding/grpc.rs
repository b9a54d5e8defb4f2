//! gRPC binding of A2A (A2A 1.0, section 10), for servers and clients: method lookup by name, and
//! messages converted through ProtoJSON.

use crate::{
    codec::{
        limits,
        protobuf::{self, Rpc},
    },
    model::{
        error::{self, A2aError, ErrorKind},
        interface::Version,
        method::Method,
    },
};
use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Names of `google.rpc.Code`, indexed by number.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Decoder for binary trailers; gRPC allows both padded and unpadded base64.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Header with the client's timeout (gRPC over HTTP/2, `Timeout`). [`read_timeout`] parses it.
pub const TIMEOUT: &str = "grpc-timeout";

/// Full names of the services: that of 1.0 and that of 0.3.
pub const SERVICES: [&str; 2] = ["lf.a2a.v1.A2AService", "a2a.v1.A2AService"];

/// Methods with a different name in 0.3.
const OLD_NAMES: [(&str, Method); 3] = [
    ("TaskSubscription", Method::SubscribeToTask),
    ("ListTaskPushNotificationConfig", Method::ListTaskPushNotificationConfigs),
    ("GetAgentCard", Method::GetExtendedAgentCard),
];

/// A method of one of the services.
#[derive(Clone, Debug)]
pub struct GrpcMethod {
    version: Version,
    method: Method,
    rpc: Rpc,
}

/// A client's request as ProtoJSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Tenant in the request. gRPC has no path, so the tenant selects the agent.
    pub tenant: Option<String>,
    /// All parameters except the tenant.
    pub params: Map<String, Value>,
}

impl GrpcMethod {
    /// Finds a method by the full name of its service and its own name.
    pub fn named(service: &str, method: &str) -> Result<Self, A2aError> {
        let unknown = |there: &str| {
            let why = format!("gRPC knows no `{service}/{method}` here; {there}");
            A2aError::new(ErrorKind::MethodNotFound, why)
        };
        let Some(n) = SERVICES.iter().position(|known| *known == service) else {
            return Err(unknown(&format!("the services are {}", SERVICES.join(", "))));
        };
        let old = OLD_NAMES.iter().find_map(|(name, of)| (*name == method).then_some(*of));
        let known = old.or_else(|| Method::named(method));
        match (Rpc::named(service, method), known) {
            (Some(rpc), Some(method)) => Ok(Self { version: Version::ALL[n], method, rpc }),
            (Some(_) | None, _) => {
                Err(unknown(&format!("its methods are {}", Rpc::names(service).join(", "))))
            }
        }
    }

    /// Call of a method in a version; 0.3 has no list of tasks.
    pub fn new(version: Version, method: Method) -> Result<Self, A2aError> {
        let old = OLD_NAMES.iter().find_map(|(name, of)| (*of == method).then_some(*name));
        let (service, name) = match version {
            Version::V1 => (SERVICES[0], method.name()),
            Version::V03 => (SERVICES[1], old.unwrap_or_else(|| method.name())),
        };
        Self::named(service, name)
    }

    /// Path of the method, relative to the URL of the service.
    pub fn path(&self) -> String {
        self.rpc.path()
    }

    /// Version of the service.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Called method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// True if the response is a stream.
    pub fn streams(&self) -> bool {
        self.rpc.streams()
    }

    /// Decodes a client's request.
    pub fn read(&self, sent: &[u8]) -> Result<Request, A2aError> {
        let mut params = self.rpc.read_request(sent)?;
        let tenant = params.remove("tenant").and_then(|value| value.as_str().map(str::to_owned));
        limits::check(&params)?;
        Ok(Request { tenant, params })
    }

    /// Encodes an answer or a stream item from ProtoJSON.
    pub fn write(&self, answer: Value) -> Result<Vec<u8>, A2aError> {
        if answer.is_null() { Ok(Vec::new()) } else { self.rpc.write_answer(answer) }
    }

    /// Encodes a client's request from ProtoJSON.
    pub fn write_request(&self, params: Value) -> Result<Vec<u8>, A2aError> {
        self.rpc.write_request(params)
    }

    /// Decodes a server's answer to ProtoJSON.
    pub fn read_answer(&self, sent: &[u8]) -> Result<Value, A2aError> {
        self.rpc.read_answer(sent).map(Value::Object)
    }
}

/// Parses the value of [`TIMEOUT`]: up to eight digits and the letter of a unit.
pub fn read_timeout(value: &str) -> Result<Duration, A2aError> {
    let malformed = || {
        let why =
            "must be up to 8 digits and a unit of `H`, `M`, `S`, `m`, `u`, `n`, such as `1500m`";
        A2aError::invalid(TIMEOUT, why)
    };
    let unit = value.chars().next_back().ok_or_else(malformed)?;
    let digits = &value[..value.len() - unit.len_utf8()];
    if digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(malformed());
    }
    let count: u64 = digits.parse().map_err(|_| malformed())?;
    match unit {
        'H' => Ok(Duration::from_secs(count * 3600)),
        'M' => Ok(Duration::from_secs(count * 60)),
        'S' => Ok(Duration::from_secs(count)),
        'm' => Ok(Duration::from_millis(count)),
        'u' => Ok(Duration::from_micros(count)),
        'n' => Ok(Duration::from_nanos(count)),
        _ => Err(malformed()),
    }
}

/// Converts a refusal to its `google.rpc.Code` and an encoded `google.rpc.Status` with details (A2A
/// 1.0, section 10.6).
pub fn write_status(why: &A2aError) -> (i32, Vec<u8>) {
    let status = why.kind.official().status;
    let code = CODES.iter().zip(0..).find_map(|(name, code)| (*name == status).then_some(code));
    let code = code.unwrap_or(2);
    let body = json!({ "code": code, "message": why.message, "details": why.official_details() });
    // Without details, code and message still reach the client.
    (code, protobuf::write_status(body).unwrap_or_default())
}

/// Details of an encoded `google.rpc.Status`, in the format of JSON-RPC's `data`.
pub fn read_details(status: &[u8]) -> Option<Value> {
    protobuf::read_status(status)?.remove("details")
}

/// Reads the error from a call's trailers: the number of a `google.rpc.Code`, a percent-encoded
/// message, and a `google.rpc.Status` in base64. Returns `None` for success. Invalid values count
/// as absent.
pub fn read_refusal(code: &[u8], message: &[u8], details: &[u8]) -> Option<A2aError> {
    let code = std::str::from_utf8(code).ok().and_then(|code| code.parse::<usize>().ok());
    let name = code.and_then(|code| CODES.get(code).copied()).unwrap_or("UNKNOWN");
    if name == CODES[0] {
        return None;
    }
    let message = percent_encoding::percent_decode(message).decode_utf8_lossy().into_owned();
    let details = BASE64.decode(details).ok().and_then(|status| read_details(&status));
    // 0.3 has no details, but its official server begins the message with the error's class.
    let kind = match details.as_ref().and_then(error::reason) {
        Some(reason) => ErrorKind::from_official(0, Some(reason)),
        None => message.split_once(':').and_then(|(class, _)| ErrorKind::from_class(class)),
    };
    let kind = kind.unwrap_or_else(|| ErrorKind::from_status(name));
    let message = if message.is_empty() { "it does not say why".to_owned() } else { message };
    Some(A2aError { kind, message: format!("{message} ({name})"), details })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::base64_bytes;

    #[test]
    fn grpc_timeout_is_parsed_or_refused() {
        for (said, ms) in [("1500m", 1_500), ("2S", 2_000), ("1H", 3_600_000), ("5M", 300_000)] {
            assert_eq!(read_timeout(said).unwrap(), Duration::from_millis(ms), "{said}");
        }
        assert_eq!(read_timeout("99999999u").unwrap(), Duration::from_micros(99_999_999));
        assert_eq!(read_timeout("7n").unwrap(), Duration::from_nanos(7));
        for bad in ["", "S", "5", "5s", "-5S", "+5S", "5 S", "123456789S", "5\u{b5}", "1.5S"] {
            let why = read_timeout(bad).unwrap_err();
            assert!(why.message.contains("grpc-timeout"), "{bad}: {}", why.message);
        }
    }

    #[test]
    fn grpc_methods_resolve_in_both_versions() {
        let calls = |service: &str| {
            let names = Rpc::names(service);
            let calls = names.iter().map(|name| GrpcMethod::named(service, name).unwrap());
            calls.map(|call| call.method).collect::<Vec<_>>()
        };
        assert_eq!(calls(SERVICES[0]).len(), Method::ALL.len());
        assert_eq!(calls(SERVICES[1]).len(), Method::ALL.len() - 1, "0.3 lists no tasks");
        insta::assert_snapshot!(GrpcMethod::named(SERVICES[1], "ListTasks").unwrap_err(), @"gRPC knows no `a2a.v1.A2AService/ListTasks` here; its methods are SendMessage, SendStreamingMessage, GetTask, CancelTask, TaskSubscription, CreateTaskPushNotificationConfig, GetTaskPushNotificationConfig, ListTaskPushNotificationConfig, GetAgentCard, DeleteTaskPushNotificationConfig");
        assert!(GrpcMethod::named("google.rpc.Status", "x").is_err());
    }

    #[test]
    fn grpc_status_carries_code_and_details() {
        let why = A2aError::invalid("message.parts", "must not be empty");
        let (code, status) = write_status(&why);
        assert_eq!(code, 3);
        assert_eq!(read_details(&status), Some(why.official_details()));
        for kind in ErrorKind::ALL {
            let (code, status) = write_status(&A2aError::new(kind, "no: it is"));
            assert_eq!(CODES[usize::try_from(code).unwrap()], kind.official().status);
            let code = code.to_string();
            for details in [BASE64.encode(&status), base64_bytes::encode(&status)] {
                let read = read_refusal(code.as_bytes(), b"no%3A it is", details.as_bytes());
                assert_eq!(read.unwrap().kind, kind);
            }
        }
    }

    #[test]
    fn grpc_error_without_details_is_classified() {
        let read = |code: &str, message: &str, details: &[u8]| {
            let why = read_refusal(code.as_bytes(), message.as_bytes(), details);
            why.map_or("none".to_owned(), |why| format!("{:?}: {why}", why.kind))
        };
        let told = [
            read("0", "", b""),
            read("12", "TaskNotCancelableError: it is over", b""),
            read("5", "nothing%20here", b"not base64!"),
            read("14", "", &[0xff]),
            read("99", "%ff", b"AAAA"),
            read("x", "", b""),
        ];
        insta::assert_snapshot!(told.join("\n"), @"
        none
        TaskNotCancelable: TaskNotCancelableError: it is over (UNIMPLEMENTED)
        TaskNotFound: nothing here (NOT_FOUND)
        AgentUnavailable: it does not say why (UNAVAILABLE)
        Internal: � (UNKNOWN)
        Internal: it does not say why (UNKNOWN)
        ");
    }

    #[test]
    fn invalid_protobuf_message_is_refused() {
        let call = GrpcMethod::named(SERVICES[0], "SendMessage").unwrap();
        assert_eq!(call.read(&[0xff]).unwrap_err().kind, ErrorKind::Parse);
        assert_eq!(call.write(Value::Null).unwrap(), Vec::<u8>::new());
        assert!(call.write(json!({"task": 1})).is_err());
    }
}
