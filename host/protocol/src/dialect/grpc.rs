//! gRPC requests in either version of A2A, decoded on the server side and encoded on the client
//! side.

use crate::{
    binding::grpc::{self, GrpcMethod},
    dialect::Wire,
    member,
    model::{
        error::A2aError,
        interface::{Binding, Version},
        operation::Operation,
    },
    v03,
};
use serde_json::Value;

/// A decoded request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Tenant in the request, which selects the agent.
    pub tenant: Option<String>,
    /// The requested operation, or the error to return.
    pub operation: Result<Operation, A2aError>,
}

/// Wire of a call: the version of its service, over gRPC.
pub fn wire(call: &GrpcMethod) -> Wire {
    Wire { version: call.version(), binding: Binding::Grpc }
}

/// Decodes a client's request.
pub fn read(call: &GrpcMethod, sent: &[u8]) -> Request {
    let grpc::Request { tenant, mut params } = match call.read(sent) {
        Ok(request) => request,
        Err(why) => return Request { tenant: None, operation: Err(why) },
    };
    let named = match call.version() {
        Version::V1 => Ok(()),
        Version::V03 => v03::names::read(&mut params),
    };
    let operation = named.and_then(|()| wire(call).read_call(call.method(), Value::Object(params)));
    Request { tenant, operation }
}

/// Encodes an operation as a call and its request, addressed to `tenant`; `None` if the version
/// lacks the operation.
pub fn write(
    version: Version,
    tenant: Option<&str>,
    operation: &Operation,
) -> Result<Option<(GrpcMethod, Vec<u8>)>, A2aError> {
    let wire = Wire { version, binding: Binding::Grpc };
    let Some((method, mut params)) = wire.write_call(operation) else { return Ok(None) };
    let call = GrpcMethod::new(version, method)?;
    match (version, tenant) {
        (Version::V03, _) => v03::names::write(method, &mut params),
        (Version::V1, Some(tenant)) => member::set(&mut params, "tenant", tenant),
        (Version::V1, None) => {}
    }
    let sent = call.write_request(params)?;
    Ok(Some((call, sent)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        binding::grpc::SERVICES,
        model::{error::ErrorKind, message, operation::Wait},
    };
    use serde_json::json;

    fn asks(version: usize, method: &str, params: Value) -> Request {
        let call = GrpcMethod::named(SERVICES[version], method).unwrap();
        read(&call, &call.write_request(params).unwrap())
    }

    #[test]
    fn grpc_v1_request_carries_tenant() {
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
    fn grpc_v03_request_names_resources_by_path() {
        let told_of = |method, params| match asks(1, method, params).operation {
            Ok(operation) => format!("{operation:?}"),
            Err(why) => why.to_string(),
        };
        let config = "tasks/t/pushNotificationConfigs/c";
        let told = [
            told_of("GetTask", json!({"name": "tasks/t", "historyLength": 2})),
            told_of("TaskSubscription", json!({"name": "tasks/t"})),
            told_of("ListTaskPushNotificationConfig", json!({"parent": "tasks/t"})),
            told_of("GetTaskPushNotificationConfig", json!({ "name": config })),
            told_of("DeleteTaskPushNotificationConfig", json!({ "name": config })),
            told_of("CancelTask", json!({"name": "t"})),
            told_of("CancelTask", json!({})),
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
}
