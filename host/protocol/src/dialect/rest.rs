//! REST requests in either version of A2A, decoded on the server side and encoded on the client
//! side; and those for the methods of the hub, decoded.

use crate::{
    binding::rest::{self, Verb, WrittenRequest},
    dialect::{Dialect, Wire},
    model::{
        error::A2aError,
        interface::{Binding, Version},
        operation::Operation,
    },
};
use serde_json::Value;

/// A decoded request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Wire of the answer.
    pub wire: Wire,
    /// Tenant in the request; opaque to the hub.
    pub tenant: Option<String>,
    /// The requested operation, or the error to return.
    pub operation: Result<Operation, A2aError>,
}

/// Decodes a request for `path`, the still escaped path after the interface's URL and a slash.
pub fn read(verb: Verb, path: &str, query: Option<&str>, body: &[u8]) -> Request {
    let rest::Request { version, tenant, call } = rest::read(verb, path, query, body);
    let wire = Wire { version, binding: Binding::Rest };
    let operation = call.and_then(|(method, params)| wire.read_call(method, Value::Object(params)));
    let tenant = tenant.filter(|_| operation.is_ok());
    Request { wire, tenant, operation }
}

/// A decoded request for a method of the hub.
#[derive(Clone, Debug, PartialEq)]
pub struct HubMethodCall {
    /// Tenant that the parameters name.
    pub tenant: Option<String>,
    /// The requested operation, or the error to return.
    pub operation: Result<Operation, A2aError>,
}

/// Decodes a request for the method of the hub that is called `method`. The body is a JSON object
/// with its parameters; an empty body has none.
pub fn read_hub(method: &str, body: &[u8]) -> HubMethodCall {
    let (tenant, operation) = Dialect::Hub.call(method, rest::params(None, body));
    HubMethodCall { tenant, operation }
}

/// Encodes an operation as a request, addressed to `tenant`; `None` if the version lacks the
/// operation.
pub fn write(
    version: Version,
    tenant: Option<&str>,
    operation: &Operation,
) -> Option<WrittenRequest> {
    let wire = Wire { version, binding: Binding::Rest };
    match wire.write_call(operation)? {
        (method, Value::Object(params)) => rest::write(version, tenant, method, params),
        (
            _,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asks(verb: Verb, target: &str, body: &str) -> String {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let Request { wire, tenant, operation } = read(verb, path, query, body.as_bytes());
        let version = wire.version;
        let tenant = tenant.map(|tenant| format!(" for {tenant}")).unwrap_or_default();
        match operation {
            Ok(operation) => format!("{version:?}{tenant} {operation:?}"),
            Err(why) => format!("{version:?}{tenant} {:?}: {why}", why.kind),
        }
    }

    #[test]
    fn path_selects_method_version_and_tenant() {
        let push = r#"{"url": "http://x/", "taskId": "other", "task_id": "another"}"#;
        let told = [
            asks(Verb::Get, "tasks/t?historyLength=2", ""),
            asks(Verb::Get, "acme/tasks/t", ""),
            asks(Verb::Get, "v1/tasks/t", ""),
            asks(Verb::Get, "tasks/a%2Fb%3Ac", ""),
            asks(
                Verb::Get,
                "tasks?status=TASK_STATE_WORKING&pageSize=3&includeArtifacts=true&A2A-Version=1.0",
                "",
            ),
            asks(Verb::Post, "tasks/t:cancel", "{}"),
            asks(Verb::Get, "tasks/t:subscribe", ""),
            asks(Verb::Post, "tasks/t:subscribe", ""),
            asks(Verb::Post, "tasks/t/pushNotificationConfigs", push),
            asks(Verb::Get, "tasks/t/pushNotificationConfigs", ""),
            asks(Verb::Get, "tasks/t/pushNotificationConfigs/c", ""),
            asks(Verb::Delete, "acme/tasks/t/pushNotificationConfigs/c", ""),
            asks(Verb::Get, "extendedAgentCard", ""),
            asks(Verb::Get, "v1/card", ""),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        V1 GetTask { id: TaskId("t"), history_length: Some(2) }
        V1 for acme GetTask { id: TaskId("t"), history_length: None }
        V03 GetTask { id: TaskId("t"), history_length: None }
        V1 GetTask { id: TaskId("a/b:c"), history_length: None }
        V1 PageTasks(TaskPageQuery { agent: None, context: None, tenant: None, state: Some(Working), since: None, after: None, size: 3, history_length: None, include_artifacts: true })
        V1 CancelTask { id: TaskId("t") }
        V1 Resubscribe { id: TaskId("t"), after: None }
        V1 Resubscribe { id: TaskId("t"), after: None }
        V1 SetPushConfig { task: TaskId("t"), push: OfferedPush { id: None, url: "http://x/", token: None, authentication: None, form: V1 } }
        V1 ListPushConfigs { task: TaskId("t") }
        V1 GetPushConfig { task: TaskId("t"), id: Some(PushConfigId("c")) }
        V1 for acme DeletePushConfig { task: TaskId("t"), id: PushConfigId("c") }
        V1 GetCard { agent: None }
        V03 GetCard { agent: None }
        "#);
    }

    #[test]
    fn invalid_rest_request_names_problem() {
        let told = [
            asks(Verb::Get, "", ""),
            asks(Verb::Get, "message:send", ""),
            asks(Verb::Post, "tasks/t", "{}"),
            asks(Verb::Get, "v1/acme/tasks/t", ""),
            asks(Verb::Post, "message:send", "hi"),
            asks(Verb::Post, "message:send", "[]"),
            asks(Verb::Post, "message:send", "{}"),
            asks(Verb::Post, "v1/message:send", "{}"),
            asks(Verb::Get, "tasks?pageSize=many", ""),
            asks(Verb::Get, "tasks/t?historyLength=-1", ""),
        ];
        insta::assert_snapshot!(told.join("\n"), @"
        V1 MethodNotFound: there is nothing to GET at `/`
        V1 MethodNotFound: there is nothing to GET at `/message:send`
        V1 MethodNotFound: there is nothing to POST at `/tasks/t`
        V03 MethodNotFound: there is nothing to GET at `/acme/tasks/t`
        V1 Parse: the request is not JSON: expected value at line 1 column 1
        V1 InvalidRequest: the body must be a JSON object
        V1 InvalidParams: `message`: is missing
        V03 InvalidParams: `message`: is missing
        V1 InvalidParams: `pageSize`: must be a whole number
        V1 InvalidParams: `historyLength`: must not be negative
        ");
    }

    #[test]
    fn hub_method_takes_parameters_from_body() {
        let asks = |name: &str, body: &str| {
            let HubMethodCall { tenant, operation } =
                read_hub(&format!("hub/{name}"), body.as_bytes());
            let tenant = tenant.map(|tenant| format!("for {tenant} ")).unwrap_or_default();
            match operation {
                Ok(operation) => format!("{tenant}{operation:?}"),
                Err(why) => format!("{tenant}{:?}: {why}", why.kind),
            }
        };
        let told = [
            asks("ping", ""),
            asks("ping", " \n"),
            asks("events", "{}"),
            asks("agents/get", r#"{"agentId": "echo", "tenant": "acme"}"#),
            asks("agents/get", ""),
            asks("agents/get", "[]"),
            asks("agents/get", "null"),
            asks("agents/get", "agentId=echo"),
            asks("agents/get", r#"{"agentId": "echo", "agentId": "codex"}"#),
            asks("", "{}"),
            asks("no/such", "{}"),
            asks("ping/", "{}"),
            asks("questions%2Flist", "{}"),
            asks("../message/send", "{}"),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        Ping
        Ping
        WatchHub(Resumable { after: None })
        for acme GetAgent { id: AgentId("echo") }
        InvalidParams: `params`: missing field `agentId`
        InvalidRequest: the body must be a JSON object
        InvalidRequest: the body must be a JSON object
        Parse: the request is not JSON: expected value at line 1 column 1
        InvalidRequest: an object of the request has two members called `agentId` at line 1 column 29
        MethodNotFound: no method is called `hub/`; `rpc.discover` lists them
        MethodNotFound: no method is called `hub/no/such`; `rpc.discover` lists them
        MethodNotFound: no method is called `hub/ping/`; `rpc.discover` lists them
        MethodNotFound: no method is called `hub/questions%2Flist`; `rpc.discover` lists them
        MethodNotFound: no method is called `hub/../message/send`; `rpc.discover` lists them
        "#);
    }

    #[test]
    fn stream_request_is_read_in_both_versions() {
        let one =
            r#"{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}"#;
        let old =
            r#"{"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}}"#;
        for (path, body) in
            [("message:stream", one), ("x/message:stream", one), ("v1/message:stream", old)]
        {
            let Ok(Operation::StreamMessage(send)) =
                read(Verb::Post, path, None, body.as_bytes()).operation
            else {
                panic!("{path} is no stream")
            };
            assert_eq!(send.message.joined_text(), "hi");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_request_never_panics(path in ".{0,40}", query in ".{0,40}", body: Vec<u8>) {
            for verb in [Verb::Get, Verb::Post, Verb::Delete] {
                read(verb, &path, Some(&query), &body);
                read(verb, &format!("tasks/{path}"), Some(&query), b"{}");
            }
            read_hub(&path, &body);
            read_hub("hub/questions/answer", &body);
        }
    }
}
