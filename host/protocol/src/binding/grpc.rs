//! A2A over gRPC, from both ends: which method is meant by the name of one, and what its messages say. They are read and
//! written by way of ProtoJSON, so that what holds on REST holds here: 0.3 on gRPC and on REST are one package.

use crate::{
    codec::limits,
    dialect::Version,
    model::{
        error::{self, A2aError, ErrorKind},
        message::{self, is_shallow},
        operation::Operation,
    },
    v1::{self, Method},
    v03::proto,
};
use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor,
    prost::Message as _,
};
use serde_json::{Map, Number, Value, json};
use std::sync::LazyLock;

/// What is in `proto/`. Nothing of it, if that were broken: then no call is found, and the tests say so.
static KNOWN: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let compiled = include_bytes!("../../proto/a2a.descriptors");
    DescriptorPool::decode(compiled.as_slice()).unwrap_or_default()
});

/// How a refusal is told.
const STATUS: &str = "google.rpc.Status";

/// A card of 1.0.
const CARD: &str = "lf.a2a.v1.AgentCard";

/// The names of `google.rpc.Code`, each at its number.
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

/// How trailers hold bytes: some servers pad, and gRPC says that they need not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The services, by their full names: that of 1.0 and that of 0.3.
pub const SERVICES: [&str; 2] = ["lf.a2a.v1.A2AService", "a2a.v1.A2AService"];

/// What 0.3 called otherwise.
const OLD_NAMES: [(&str, Method); 3] = [
    ("TaskSubscription", Method::SubscribeToTask),
    ("ListTaskPushNotificationConfig", Method::ListTaskPushNotificationConfigs),
    ("GetAgentCard", Method::GetExtendedAgentCard),
];

/// A method of one of the services.
#[derive(Clone, Debug)]
pub struct Call {
    version: Version,
    method: Method,
    descriptor: MethodDescriptor,
}

/// A request that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The tenant it names. gRPC has no path, so it tells which agent is meant.
    pub tenant: Option<String>,
    /// What it asks for, or why that cannot be told.
    pub operation: Result<Operation, A2aError>,
}

impl Call {
    /// The method called `method` of the service with this full name.
    pub fn named(service: &str, method: &str) -> Result<Self, A2aError> {
        let unknown = |there: &str| {
            let why = format!("gRPC knows no `{service}/{method}` here; {there}");
            A2aError::new(ErrorKind::MethodNotFound, why)
        };
        let found = KNOWN.get_service_by_name(service).filter(|_| SERVICES.contains(&service));
        let found =
            found.ok_or_else(|| unknown(&format!("the services are {}", SERVICES.join(", "))))?;
        let version = if service == SERVICES[0] { Version::V1 } else { Version::V03Rest };
        let descriptor = found.methods().find(|known| known.name() == method);
        let old = OLD_NAMES.iter().find_map(|(name, of)| (*name == method).then_some(*of));
        let method = old.or_else(|| Method::named(method));
        let (Some(descriptor), Some(method)) = (descriptor, method) else {
            let names: Vec<_> = found.methods().map(|known| known.name().to_owned()).collect();
            return Err(unknown(&format!("its methods are {}", names.join(", "))));
        };
        Ok(Self { version, method, descriptor })
    }

    /// The call that asks for this, and what it sends, of the agent that `tenant` names; none if the version has no such
    /// operation.
    pub fn asking(
        version: Version,
        tenant: Option<&str>,
        operation: &Operation,
    ) -> Result<Option<(Self, Vec<u8>)>, A2aError> {
        let is_new = version == Version::V1;
        let written = match version {
            Version::V1 => v1::write_request(operation),
            Version::V03 | Version::V03Rest => proto::write_request(operation),
        };
        let Some((method, mut params)) = written else { return Ok(None) };
        let old = OLD_NAMES.iter().find_map(|(name, of)| (*of == method).then_some(*name));
        let name = old.filter(|_| !is_new).unwrap_or_else(|| method.name());
        let call = Self::named(SERVICES[usize::from(!is_new)], name)?;
        if !is_new {
            write_names(method, &mut params);
        } else if let Some(tenant) = tenant {
            params["tenant"] = json!(tenant);
        }
        let sent = call.write_request(params)?;
        Ok(Some((call, sent)))
    }

    /// Where it is called, below the place of the service.
    pub fn path(&self) -> String {
        format!("/{}/{}", self.descriptor.parent_service().full_name(), self.descriptor.name())
    }

    /// How its answers are spelled.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether it is answered by a stream.
    pub fn streams(&self) -> bool {
        self.descriptor.is_server_streaming()
    }

    /// Reads what a client sent.
    pub fn read(&self, sent: &[u8]) -> Request {
        let mut tenant = None;
        let operation = decode(self.descriptor.input(), sent).and_then(|mut params| {
            let said = params.remove("tenant");
            tenant = said.and_then(|said| said.as_str().map(str::to_owned));
            self.operation(params)
        });
        Request { tenant, operation }
    }

    fn operation(&self, mut params: Map<String, Value>) -> Result<Operation, A2aError> {
        if !params.values().all(is_shallow) {
            let why = format!("the request is nested deeper than {} levels", message::MAX_DEPTH);
            return Err(A2aError::new(ErrorKind::InvalidRequest, why));
        }
        limits::check(&params)?;
        match self.version {
            Version::V1 => self.method.read(Value::Object(params)),
            Version::V03 | Version::V03Rest => {
                name_ids(&mut params)?;
                proto::operation(self.method, Value::Object(params))
            }
        }
    }

    /// Writes an answer, or one of a stream, that is given in ProtoJSON.
    pub fn write(&self, mut answer: Value) -> Result<Vec<u8>, A2aError> {
        if answer.is_null() {
            return Ok(Vec::new());
        }
        // In 0.3's own JSON this is a list of another shape.
        if let (Version::V03Rest, Method::GetExtendedAgentCard) = (self.version, self.method) {
            answer["security"] = answer["securityRequirements"].take();
        }
        encode(self.descriptor.output(), answer)
    }

    /// Writes a request that is given in ProtoJSON: what a client sends.
    pub fn write_request(&self, params: Value) -> Result<Vec<u8>, A2aError> {
        encode(self.descriptor.input(), params)
    }

    /// Reads an answer as ProtoJSON: what a client was sent.
    pub fn read_answer(&self, sent: &[u8]) -> Result<Value, A2aError> {
        decode(self.descriptor.output(), sent).map(Value::Object)
    }
}

/// The number of a refusal in `google.rpc.Code`, and the `google.rpc.Status` that says more of it (A2A 1.0, section 10.6).
pub fn write_status(why: &A2aError) -> (i32, Vec<u8>) {
    let status = why.kind.official().status;
    let code = CODES.iter().zip(0..).find_map(|(name, code)| (*name == status).then_some(code));
    let code = code.unwrap_or(2);
    let told = json!({ "code": code, "message": why.message, "details": why.official_details() });
    let descriptor = KNOWN.get_message_by_name(STATUS);
    // Without it, the code and the message are told all the same.
    let details = descriptor.and_then(|descriptor| encode(descriptor, told).ok());
    (code, details.unwrap_or_default())
}

/// What more was said of a refusal: the `details` of a `google.rpc.Status`, as JSON-RPC has them in its `data`.
pub fn read_details(status: &[u8]) -> Option<Value> {
    decode(KNOWN.get_message_by_name(STATUS)?, status).ok()?.remove("details")
}

/// The refusal that a call ended with, by what its trailers say: the number of a `google.rpc.Code`, a message that is
/// percent-encoded, and the `google.rpc.Status` in base64. `None` if it went well. What does not make sense in them is as
/// good as not said.
pub fn read_refusal(code: &[u8], message: &[u8], details: &[u8]) -> Option<A2aError> {
    let code = std::str::from_utf8(code).ok().and_then(|code| code.parse::<usize>().ok());
    let name = code.and_then(|code| CODES.get(code).copied()).unwrap_or("UNKNOWN");
    if name == CODES[0] {
        return None;
    }
    let message = percent_encoding::percent_decode(message).decode_utf8_lossy().into_owned();
    let details = BASE64.decode(details).ok().and_then(|status| read_details(&status));
    // 0.3 has no details, but its official server says of which class the error is.
    let kind = match details.as_ref().and_then(error::reason) {
        Some(reason) => ErrorKind::from_official(0, Some(reason)),
        None => message.split_once(':').and_then(|(class, _)| ErrorKind::from_class(class)),
    };
    let kind = kind.unwrap_or_else(|| ErrorKind::from_status(name));
    let message = if message.is_empty() { "it does not say why".to_owned() } else { message };
    Some(A2aError { kind, message: format!("{message} ({name})"), details })
}

/// Names what is asked about as 0.3 does: a task or a config by its path, and of both only what has no path of its own.
fn write_names(method: Method, params: &mut Value) {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    let of_task = |task: &str| format!("tasks/{task}");
    let (field, path) = match (method, text("taskId"), text("id")) {
        (Method::GetTask | Method::CancelTask | Method::SubscribeToTask, _, Some(task)) => {
            ("name", of_task(task))
        }
        (Method::ListTaskPushNotificationConfigs, Some(task), _) => ("parent", of_task(task)),
        (_, Some(task), Some(config)) => {
            ("name", format!("tasks/{task}/pushNotificationConfigs/{config}"))
        }
        _ => return,
    };
    params[field] = json!(path);
}

/// 0.3 names a task as `tasks/{id}`, and a config as `tasks/{id}/pushNotificationConfigs/{id}`.
fn name_ids(params: &mut Map<String, Value>) -> Result<(), A2aError> {
    for field in ["name", "parent"] {
        let Some(Value::String(name)) = params.remove(field) else { continue };
        let ids = match name.split('/').collect::<Vec<_>>()[..] {
            ["tasks", task] | ["tasks", task, "pushNotificationConfigs"] => [task, task],
            ["tasks", task, "pushNotificationConfigs", config] => [task, config],
            _ => {
                let why = "must be `tasks/{id}` or `tasks/{id}/pushNotificationConfigs/{id}`";
                return Err(A2aError::invalid(field, why));
            }
        };
        // Where only one of them is asked for, the other is not looked at.
        params.extend(["taskId", "id"].map(str::to_owned).into_iter().zip(ids.map(Value::from)));
    }
    Ok(())
}

/// A card of 1.0 without what its messages do not know, and without what is as good as left out (ProtoJSON); none if it is
/// no such card.
pub(crate) fn normal_card(card: &Value) -> Option<Value> {
    let of = KNOWN.get_message_by_name(CARD)?;
    let lenient = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(of, card, &lenient).ok()?;
    serde_json::to_value(&message).ok()
}

fn decode(of: MessageDescriptor, sent: &[u8]) -> Result<Map<String, Value>, A2aError> {
    let wrong = |why: String| A2aError::new(ErrorKind::Parse, why);
    let name = of.full_name().to_owned();
    let message = DynamicMessage::decode(of, sent);
    let message = message.map_err(|why| wrong(format!("this is no `{name}`: {why}")))?;
    let value = serde_json::to_value(&message);
    let mut value = value.map_err(|why| wrong(format!("`{name}` has no JSON: {why}")))?;
    make_whole(&mut value);
    let Value::Object(members) = value else {
        return Err(wrong(format!("`{name}` is no object but {value}")));
    };
    Ok(members)
}

fn encode(of: MessageDescriptor, value: Value) -> Result<Vec<u8>, A2aError> {
    let name = of.full_name().to_owned();
    let lenient = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(of, value, &lenient);
    let wrong = |why| A2aError::new(ErrorKind::Internal, format!("this is no `{name}`: {why}"));
    Ok(message.map_err(wrong)?.encode_to_vec())
}

/// Open-ended data has no whole numbers on gRPC; those that are whole were meant so.
fn make_whole(value: &mut Value) {
    /// Up to here a float tells one whole number from the next.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() <= EXACT);
            if let (true, Some(whole)) = (number.is_f64(), whole) {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole, and no larger")]
                let whole = whole as i64;
                *number = Number::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(members) => members.values_mut().for_each(make_whole),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{message::base64_bytes, operation::Wait};

    /// A message of each kind, filled by an official SDK: its name, its bytes, and the SDK's own JSON of it.
    const OFFICIAL: &str = include_str!("../../proto/official.jsonl");

    /// They are made once and kept, for the compiler that makes them takes longer to build than this crate.
    #[test]
    fn the_descriptors_are_those_of_the_proto_files() {
        let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
        let mut compiler = protox::Compiler::new([proto]).unwrap();
        compiler.include_imports(true);
        compiler.open_files(["a2a_v1.proto", "a2a_v03.proto", "google_rpc.proto"]).unwrap();
        let made = compiler.encode_file_descriptor_set();
        let kept = format!("{proto}/a2a.descriptors");
        if std::fs::read(&kept).unwrap() != made {
            std::fs::write(&kept, made).unwrap();
            panic!("{kept} was not made from the proto files as they are: it is now, commit it");
        }
    }

    #[test]
    fn messages_are_those_of_the_official_clients() {
        let mut kinds = std::collections::BTreeSet::new();
        for line in OFFICIAL.lines() {
            let (name, bytes, mut json): (String, String, Value) =
                serde_json::from_str(line).unwrap();
            make_whole(&mut json);
            let bytes = base64_bytes::decode(&bytes).unwrap();
            let of = KNOWN.get_message_by_name(&name).unwrap_or_else(|| panic!("no {name}"));
            let read = decode(of.clone(), &bytes).unwrap();
            assert_eq!(Value::Object(read), json, "{name}");
            // In which order a map is written is nobody's business.
            let written = encode(of.clone(), json.clone()).unwrap();
            assert_eq!(written.len(), bytes.len(), "{name}");
            assert_eq!(Value::Object(decode(of, &written).unwrap()), json, "{name}");
            kinds.insert(name);
        }
        let ours = KNOWN.all_messages().filter(|of| of.package_name().contains("a2a"));
        let ours = ours.filter(|of| !of.is_map_entry()).map(|of| of.full_name().to_owned());
        assert_eq!(kinds, ours.collect(), "all that there are");
    }

    #[test]
    fn every_method_is_known_in_both_versions() {
        let calls = |service: &str| {
            let methods = KNOWN.get_service_by_name(service).unwrap();
            let calls = methods.methods().map(|of| Call::named(service, of.name()).unwrap());
            calls.map(|call| call.method).collect::<Vec<_>>()
        };
        assert_eq!(calls(SERVICES[0]).len(), Method::ALL.len());
        assert_eq!(calls(SERVICES[1]).len(), Method::ALL.len() - 1, "0.3 lists no tasks");
        insta::assert_snapshot!(Call::named(SERVICES[1], "ListTasks").unwrap_err(), @"gRPC knows no `a2a.v1.A2AService/ListTasks` here; its methods are SendMessage, SendStreamingMessage, GetTask, CancelTask, TaskSubscription, CreateTaskPushNotificationConfig, GetTaskPushNotificationConfig, ListTaskPushNotificationConfig, GetAgentCard, DeleteTaskPushNotificationConfig");
        assert!(Call::named("google.rpc.Status", "x").is_err());
    }

    fn asks(version: usize, method: &str, params: Value) -> Request {
        let call = Call::named(SERVICES[version], method).unwrap();
        call.read(&call.write_request(params).unwrap())
    }

    #[test]
    fn a_request_of_1_0_names_its_tenant() {
        let Request { tenant, operation } =
            asks(0, "GetTask", json!({"tenant": "echo", "id": "t", "historyLength": 0}));
        assert_eq!(tenant.as_deref(), Some("echo"));
        insta::assert_debug_snapshot!(operation, @r#"
        Ok(
            GetTask {
                id: TaskId(
                    "t",
                ),
                history_length: Some(
                    0,
                ),
            },
        )
        "#);
        let say = |parts: Value| json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts}});
        let said = asks(0, "SendMessage", say(json!([{"data": {"n": 1}}])));
        let Ok(Operation::SendMessage(send)) = said.operation else { panic!("{said:?}") };
        assert_eq!(send.message.parts[0], message::Part::data(json!({"n": 1})), "a whole number");
        let empty = asks(0, "SendMessage", say(json!([]))).operation.unwrap_err();
        assert_eq!(empty.kind, ErrorKind::InvalidParams);
    }

    #[test]
    fn a_request_of_0_3_names_ids_by_a_path() {
        let read = |method, params| match asks(1, method, params).operation {
            Ok(operation) => format!("{operation:?}"),
            Err(why) => why.to_string(),
        };
        let config = "tasks/t/pushNotificationConfigs/c";
        let told = [
            read("GetTask", json!({"name": "tasks/t", "historyLength": 2})),
            read("TaskSubscription", json!({"name": "tasks/t"})),
            read("ListTaskPushNotificationConfig", json!({"parent": "tasks/t"})),
            read("GetTaskPushNotificationConfig", json!({ "name": config })),
            read("DeleteTaskPushNotificationConfig", json!({ "name": config })),
            read("CancelTask", json!({"name": "t"})),
            read("CancelTask", json!({})),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        GetTask { id: TaskId("t"), history_length: Some(2) }
        Resubscribe { id: TaskId("t"), after: None }
        ListPushConfigs { task: TaskId("t") }
        GetPushConfig { task: TaskId("t"), id: Some(PushConfigId("c")) }
        DeletePushConfig { task: TaskId("t"), id: PushConfigId("c") }
        `name`: must be `tasks/{id}` or `tasks/{id}/pushNotificationConfigs/{id}`
        `id`: is missing, or empty
        "#);
        let push = json!({"parent": "tasks/t", "configId": "c", "config": {"name": config,
            "pushNotificationConfig": {"url": "http://x/"}}});
        let set = asks(1, "CreateTaskPushNotificationConfig", push).operation.unwrap();
        let Operation::SetPushConfig { task, push } = set else { panic!("not a config") };
        assert_eq!((task.as_str(), push.id.unwrap().as_str()), ("t", "c"));
        let message = json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]});
        let said = json!({"message": message, "configuration": {"blocking": true}});
        let Ok(Operation::SendMessage(send)) = asks(1, "SendMessage", said).operation else {
            panic!("not a message")
        };
        assert_eq!((send.message.joined_text().as_str(), send.wait), ("hi", Wait::ToTheEnd));
    }

    #[test]
    fn a_refusal_says_all_that_json_rpc_says() {
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
    fn a_refusal_without_details_is_told_by_what_there_is() {
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
    fn what_is_no_message_is_refused() {
        let call = Call::named(SERVICES[0], "SendMessage").unwrap();
        assert_eq!(call.read(&[0xff]).operation.unwrap_err().kind, ErrorKind::Parse);
        assert_eq!(call.write(Value::Null).unwrap(), Vec::<u8>::new());
        assert!(call.write(json!({"task": 1})).is_err());
    }
}
