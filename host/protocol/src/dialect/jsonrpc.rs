//! JSON-RPC requests in any dialect, decoded on the server side and encoded on the client side.

use crate::{
    binding::{
        jsonrpc::{self, Frame, ParamsSource, RequestId},
        service_params::ServiceParams,
    },
    dialect::{Dialect, Wire},
    member,
    model::{
        error::A2aError,
        interface::{Binding, Version},
        operation::Operation,
    },
    v1, v03,
};
use serde_json::Value;

/// A decoded request with its id.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Id for the response; `None` for a notification, which gets no response.
    pub id: Option<RequestId>,
    /// Dialect of the request and its response.
    pub dialect: Dialect,
    /// Tenant in a 1.0 request; opaque to the hub if paths select the agent.
    pub tenant: Option<String>,
    /// Service parameters in the metadata, if the transport has no headers.
    pub service_params: Option<ServiceParams>,
    /// The requested operation, or the error to return.
    pub operation: Result<Operation, A2aError>,
}

/// Decodes a request in the dialect `spelled`, unless its method implies another one. Invalid input
/// yields a request with an error.
pub fn read(text: &[u8], spelled: Dialect, source: ParamsSource) -> Frame<Request> {
    jsonrpc::read(text, source).map(|request| understand(request, spelled))
}

fn understand(request: jsonrpc::Request, spelled: Dialect) -> Request {
    let jsonrpc::Request { id, method, service_params, params } = request;
    let names_version = service_params.as_ref().is_some_and(|service| service.version.is_some());
    let official = Wire { version: Version::V1, binding: Binding::JsonRpc };
    let spelled = if names_version { Dialect::Official(official) } else { spelled };
    let method = method.unwrap_or_default();
    let dialect = Dialect::of_method(&method, spelled);
    let (tenant, operation) = dialect.call(&method, params);
    Request { id, dialect, tenant, service_params, operation }
}

/// Method and parameters of an operation, addressed to `tenant`; `None` if the version lacks the
/// operation.
pub fn write(
    version: Version,
    tenant: Option<&str>,
    operation: &Operation,
) -> Option<(&'static str, Value)> {
    let (method, mut params) = match version {
        Version::V1 => v1::write_request(operation).map(|(method, it)| (method.name(), it))?,
        Version::V03 => v03::methods::write_request(operation)?,
    };
    if let (Version::V1, Some(tenant)) = (version, tenant) {
        member::set(&mut params, "tenant", tenant);
    }
    Some((method, params))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hub::methods::METHODS, model::error::ErrorKind};
    use proptest::prelude::*;
    use serde_json::json;

    /// Reads a single request.
    fn read(text: &[u8]) -> Request {
        read_beside(text, ParamsSource::Headers)
    }

    fn read_beside(text: &[u8], beside: ParamsSource) -> Request {
        let read = super::read(text, Dialect::Hub, beside);
        let Frame::One(request) = read else { panic!("a batch") };
        *request
    }

    fn error(request: &Value) -> String {
        let request = read(request.to_string().as_bytes());
        request.operation.unwrap_err().to_string()
    }

    #[test]
    fn invalid_request_error_names_field() {
        let send = |message: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}});
        let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let deep = (0..64).fold(Value::Null, |inner, _| json!([inner]));
        let cases = [
            error(&json!([])),
            error(&json!(vec![1; 101])),
            error(&json!(7)),
            error(&json!({"jsonrpc": "2.0", "id": "x".repeat(129), "method": "hub/status"})),
            error(&json!({"id": 1, "method": "hub/status"})),
            error(&json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": deep}})),
            error(&call("tasks/get", json!(["t"]))),
            error(&call("tasks/get", json!("t"))),
            error(&json!({"jsonrpc": "2.0", "id": 1, "method": "hub/stat"})),
            error(&json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {}})),
            error(
                &json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t", "historyLength": -1}}),
            ),
            error(&call("hub/tasks/list", json!({"limit": 1001}))),
            error(&call("hub/tasks/list", json!({"limit": -1}))),
            error(&call("hub/tasks/list", json!({"state": "done"}))),
            error(&call("hub/tasks/list", json!({"contextId": ""}))),
            error(&call("hub/contexts/list", json!({"limit": 0}))),
            error(&call("hub/contexts/get", json!({}))),
            error(&call("tasks/resubscribe", json!({"id": "t", "lastEventId": "x"}))),
            error(&send(json!({"messageId": "m", "role": "user", "parts": []}))),
            error(&send(
                json!({"messageId": "m", "role": "user", "parts": vec![json!({"kind": "text", "text": "x"}); 257]}),
            )),
            error(&send(
                json!({"messageId": "", "role": "user", "parts": [{"kind": "text", "text": "x"}]}),
            )),
            error(&send(
                json!({"messageId": "m", "role": "robot", "parts": [{"kind": "text", "text": "x"}]}),
            )),
            error(&send(json!({"messageId": "m", "role": "user", "parts": [{"kind": "text"}]}))),
            error(&send(
                json!({"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}], "metadata": {"targetAgent": "../x"}}),
            )),
        ];
        insta::assert_snapshot!(cases.join("\n"), @r#"
        a batch holds at least one request
        the batch holds 101 requests; at most 100 are read
        a request is a JSON object, or an array of them
        `id` is at most 128 bytes long
        `jsonrpc` must be "2.0"
        the request is nested deeper than 64 levels
        `params`: must be an object: parameters are given by name
        `params` must be an object
        no method is called `hub/stat`; `rpc.discover` lists them
        `params`: missing field `id`
        `historyLength`: invalid value: integer `-1`, expected a whole number, 0 or more
        `limit`: must be 1 to 1000
        `limit`: invalid value: integer `-1`, expected a whole number, 0 or more
        `state`: no task is ever `done`; there are submitted, working, input-required, auth-required, completed, failed, canceled, rejected, unknown
        `contextId`: must be 1 to 128 bytes long
        `limit`: must be 1 to 1000
        `params`: missing field `contextId`
        `lastEventId`: must be the id of an event of this task, which is its number
        `message.parts`: must hold at least one part
        `message.parts`: must hold at most 256 parts
        `message.messageId`: must be 1 to 128 bytes long
        `message.role`: unknown variant `robot`, expected `user` or `agent`
        `message.parts[0]`: missing field `text`
        `message.metadata.targetAgent`: `../x` cannot name an agent: use 1 to 63 lower-case letters, digits and hyphens, beginning with a letter
        "#);
    }

    #[test]
    fn version_in_metadata_selects_dialect() {
        let official = |version| Dialect::Official(Wire { version, binding: Binding::JsonRpc });
        let dialect = |method: &str, metadata: Value, beside: ParamsSource| {
            let params = json!({"id": "t", "tenant": "echo", "metadata": metadata});
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let read = read_beside(request.to_string().as_bytes(), beside);
            assert_eq!(read.tenant.as_deref(), Some("echo"));
            (read.dialect, read.service_params.map(|said| said.extensions))
        };
        let old =
            json!({"a2a-service-parameters": {"A2A-Version": "0.3", "A2A-Extensions": "urn:x"}});
        let (new, v03) = (official(Version::V1), official(Version::V03));
        let said = Some(vec!["urn:x".to_owned()]);
        assert_eq!(dialect("tasks/get", old.clone(), ParamsSource::Metadata), (v03, said.clone()));
        assert_eq!(dialect("GetTask", old.clone(), ParamsSource::Metadata), (new, said));
        assert_eq!(dialect("tasks/get", old, ParamsSource::Headers), (Dialect::Hub, None));
        assert_eq!(dialect("tasks/get", json!({}), ParamsSource::Metadata), (Dialect::Hub, None));
        assert_eq!(dialect("GetTask", json!(null), ParamsSource::Metadata), (new, None));
        let wrong = br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t","metadata":{"a2a-service-parameters":1}}}"#;
        let wrong = read_beside(wrong, ParamsSource::Metadata);
        assert_eq!(wrong.operation.unwrap_err().kind, ErrorKind::InvalidParams);
        assert_eq!(wrong.id, Some(RequestId::Number(1.into())));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, method in proptest::sample::select(METHODS.iter().map(|method| method.name).collect::<Vec<_>>()), params in r#"[{}\[\]":,a-z0-9 ]{0,40}"#) {
            let official = Wire { version: Version::V1, binding: Binding::JsonRpc };
            for spelled in [Dialect::Hub, Dialect::Official(official)] {
                super::read(&bytes, spelled, ParamsSource::Metadata);
            }
            let almost = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            super::read(almost.as_bytes(), Dialect::Hub, ParamsSource::Metadata);
        }
    }

    #[test]
    fn specification_example_is_read() {
        let text = br#"{"jsonrpc":"2.0","method":"message/send","params":{"message":{"kind":"message","messageId":"msg-123","role":"user",
            "parts":[{"kind":"text","text":"Write a hello world function in Python"}],"contextId":"optional-context-id",
            "metadata":{"targetAgent":"claude-code"}},"configuration":{"historyLength":10}},"id":"7"}"#;
        let Ok(Operation::SendMessage(send)) = read(text).operation else { panic!("not a send") };
        assert_eq!(send.agent.unwrap().as_str(), "claude-code");
        assert_eq!(send.history_length, Some(10));
        assert_eq!(send.message.joined_text(), "Write a hello world function in Python");
    }
}
