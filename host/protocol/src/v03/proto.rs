//! A2A 0.3 over REST and gRPC: ProtoJSON of the package `a2a.v1`, which differs from the JSON of
//! 0.3.

use crate::{
    codec::{
        limits,
        members::{Members, object, some_list},
        protojson::Proto,
        spelled::Form,
    },
    member,
    model::{
        error::A2aError,
        event::{SequencedEvent, StreamResponse},
        id::{PushConfigId, TaskId},
        message::Message,
        method::Method,
        operation::{Operation, SendMessage, Wait},
        push::{OfferedPush, PushAuthentication, PushConfig, PushForm, Secret},
        task::Task,
    },
    v1,
    v03::{UNSAID_WAIT, push},
};
use serde_json::{Value, json};

/// Reads the parameters of a method. Those without a message or configuration are the same as in
/// 1.0.
pub fn operation(method: Method, params: Value) -> Result<Operation, A2aError> {
    match method {
        Method::SendMessage => Ok(Operation::SendMessage(Box::new(read_send(params)?))),
        Method::SendStreamingMessage => Ok(Operation::StreamMessage(Box::new(read_send(params)?))),
        Method::CreateTaskPushNotificationConfig => read_push_request(params),
        Method::GetTask
        | Method::ListTasks
        | Method::CancelTask
        | Method::SubscribeToTask
        | Method::GetTaskPushNotificationConfig
        | Method::ListTaskPushNotificationConfigs
        | Method::DeleteTaskPushNotificationConfig
        | Method::GetExtendedAgentCard => v1::read(method, params),
    }
}

/// Method and parameters of an operation; `None` if A2A 0.3 lacks the operation. The parameters
/// hold ids as in 1.0; REST moves them into the path, gRPC into a resource name.
pub fn write_request(operation: &Operation) -> Option<(Method, Value)> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all others hold no noun, or are the hub's own"
    )]
    match operation {
        Operation::SendMessage(send) => Some((Method::SendMessage, write_send(send))),
        Operation::StreamMessage(send) => Some((Method::SendStreamingMessage, write_send(send))),
        Operation::SetPushConfig { task, push } => {
            let params = write_push_request(task, push);
            Some((Method::CreateTaskPushNotificationConfig, params))
        }
        // 0.3 has no list of tasks.
        Operation::PageTasks(_) => None,
        other => v1::write_request(other),
    }
}

fn write_send(send: &SendMessage) -> Value {
    let configuration = object([
        ("historyLength", json!(send.history_length)),
        ("blocking", json!(send.wait != Wait::No)),
        ("acceptedOutputModes", some_list(&send.client.output_modes, |media| json!(media))),
        ("pushNotification", json!(send.push.as_ref().map(push::write_offered))),
    ]);
    json!({ "message": write_message(&send.message), "configuration": configuration })
}

fn write_push_request(task: &TaskId, push: &OfferedPush) -> Value {
    let name = push.id.as_ref().map(|id| config_name(task, id));
    let config =
        object([("name", json!(name)), ("pushNotificationConfig", push::write_offered(push))]);
    object([
        ("taskId", json!(task)),
        ("parent", json!(format!("tasks/{task}"))),
        ("configId", json!(push.id)),
        ("config", config),
    ])
}

fn config_name(task: &TaskId, id: &PushConfigId) -> String {
    format!("tasks/{task}/pushNotificationConfigs/{id}")
}

fn read_send(params: Value) -> Result<SendMessage, A2aError> {
    let mut of = Members::new(params, "")?;
    // The package calls it `request`, its JSON `message`.
    let message = of.take("request").map_or_else(|| of.need("message"), Ok)?;
    let message = Proto::V03.read_message(message, "message".to_owned())?;
    limits::check_message(&message, "message")?;
    let mut send = SendMessage::new(message, of.metadata("metadata")?.as_ref())?;
    send.wait = Wait::AtMost(UNSAID_WAIT);
    if let Some(mut configuration) = of.members("configuration")? {
        send.history_length = configuration.count("historyLength")?.filter(|length| *length > 0);
        match configuration.some_flag("blocking")? {
            Some(true) => send.wait = Wait::ToTheEnd,
            Some(false) => send.wait = Wait::No,
            None => {}
        }
        send.client.output_modes = configuration.texts("acceptedOutputModes")?;
        let push = match configuration.members("pushNotification")? {
            Some(push) => Some(push),
            None => configuration.members("pushNotificationConfig")?,
        };
        send.push = push.map(read_push).transpose()?;
    }
    Ok(send)
}

/// Accepts both forms of the official clients: the configuration itself, or the request `{parent,
/// configId, config}`.
fn read_push_request(params: Value) -> Result<Operation, A2aError> {
    let mut of = Members::new(params, "")?;
    let task = TaskId::new(of.need_text("taskId")?);
    let chosen = of.some_text("configId")?.map(PushConfigId::new);
    let mut config = of.members("config")?.unwrap_or(of);
    let named = config.some_text("name")?;
    let named = named.and_then(|name| name.rsplit_once('/').map(|(_, id)| PushConfigId::new(id)));
    let push = config.members("pushNotificationConfig")?;
    let push = push.ok_or_else(|| config.refuse("pushNotificationConfig", "is missing"))?;
    let mut push = read_push(push)?;
    push.id = push.id.or(chosen).or(named);
    push.check("pushNotificationConfig")?;
    Ok(Operation::SetPushConfig { task, push })
}

fn read_push(mut of: Members) -> Result<OfferedPush, A2aError> {
    let authentication = match of.members("authentication")? {
        None => None,
        Some(mut members) => {
            let credentials = members.some_text("credentials")?.map(Secret::new);
            let scheme = members.texts("schemes")?.into_iter().next();
            let scheme = scheme.or_else(|| credentials.is_some().then(|| "Bearer".to_owned()));
            scheme.map(|scheme| PushAuthentication { scheme, credentials })
        }
    };
    let push = OfferedPush {
        id: of.some_text("id")?.map(PushConfigId::new),
        url: of.need_text("url")?,
        token: of.some_text("token")?.map(Secret::new),
        authentication,
        form: PushForm::V03,
    };
    push.check(of.path())?;
    Ok(push)
}

/// Writes a push configuration as a `TaskPushNotificationConfig` of 0.3.
pub fn write_push_config(config: &PushConfig) -> Value {
    let mut written = push::write(config);
    object([
        ("name", json!(config_name(&config.task, &config.id))),
        ("pushNotificationConfig", member::take(&mut written, "pushNotificationConfig")),
    ])
}

/// Writes a task in the ProtoJSON of 0.3 over REST and gRPC.
pub fn write_task(task: &Task) -> Value {
    Form::V03Proto.value(task)
}

/// Writes a message in the ProtoJSON of 0.3 over REST and gRPC.
pub fn write_message(message: &Message) -> Value {
    Form::V03Proto.value(message)
}

/// Writes an event as a `StreamResponse`; `None` for a client's own message.
pub fn write_event(sequenced: &SequencedEvent) -> Option<Value> {
    Form::tells(&sequenced.event).then(|| Form::V03Proto.value(sequenced))
}

/// Reads a task in the ProtoJSON of 0.3 over REST and gRPC; an error names the invalid member.
pub fn read_task(value: Value) -> Result<Task, A2aError> {
    Proto::V03.read_task(value, "task".to_owned())
}

/// Reads a `StreamResponse` or a `SendMessageResponse`.
pub fn read_stream_response(value: Value) -> Result<StreamResponse, A2aError> {
    Proto::V03.read_stream_response(value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_request_of_v03_package_is_read() {
        let params = json!({
            "request": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]},
            "configuration": {"blocking": true, "acceptedOutputModes": ["text/plain"],
                "pushNotification": {"url": "http://x/", "authentication": {"schemes": ["Basic"], "credentials": "c"}}},
            "metadata": {"targetAgent": "echo"},
        });
        let Ok(Operation::SendMessage(send)) = operation(Method::SendMessage, params) else {
            panic!("not a message")
        };
        assert_eq!((send.message.joined_text().as_str(), send.wait), ("hi", Wait::ToTheEnd));
        assert_eq!(send.agent.unwrap().as_str(), "echo");
        assert_eq!(send.push.unwrap().authentication.unwrap().scheme, "Basic");
        let unsaid = json!({"message": {"messageId": "m", "role": 1, "content": [{"text": "hi"}]}});
        let Ok(Operation::StreamMessage(send)) = operation(Method::SendStreamingMessage, unsaid)
        else {
            panic!("not a message")
        };
        assert_eq!(send.wait, Wait::AtMost(UNSAID_WAIT));
    }

    #[test]
    fn push_config_of_either_client_is_read() {
        let method = Method::CreateTaskPushNotificationConfig;
        let python = json!({"taskId": "t", "parent": "tasks/t", "configId": "c",
            "config": {"name": "tasks/t/pushNotificationConfigs/c", "pushNotificationConfig": {"url": "http://x/"}}});
        let javascript = json!({"taskId": "t", "name": "tasks/t/pushNotificationConfigs/c",
            "pushNotificationConfig": {"url": "http://x/"}});
        let read = operation(method, python).unwrap();
        assert_eq!(read, operation(method, javascript).unwrap());
        let Operation::SetPushConfig { task, push } = read else { panic!("not a config") };
        insta::assert_snapshot!(write_push_config(&push.for_task(task)), @r#"{"name":"tasks/t/pushNotificationConfigs/c","pushNotificationConfig":{"id":"c","url":"http://x/"}}"#);
    }
}
