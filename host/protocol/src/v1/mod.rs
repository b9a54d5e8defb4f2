//! A2A 1.0 in ProtoJSON, for servers and clients: requests and answers of its methods (A2A 1.0,
//! section 3.1).

use crate::{
    codec::{
        limits,
        members::{Members, object, only_true, some_list},
        protojson::Proto,
        spelled::Form,
    },
    model::{
        error::{A2aError, ErrorKind},
        event::{SequencedEvent, StreamResponse},
        id::{ContextId, MAX_ID, PushConfigId, TaskId},
        message::Message,
        method::Method,
        operation::{ListedTask, Operation, SendMessage, TaskCursor, TaskPageQuery, Wait},
        push::{OfferedPush, PushAuthentication, PushConfig, PushForm, Secret},
        task::Task,
    },
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// Default number of tasks on a page.
const PAGE: usize = 50;

/// Maximum number of tasks on a page.
const MAX_PAGE: usize = 100;

/// Error message for a page token that the hub did not create.
const UNKNOWN_TOKEN: &str = "must be the `nextPageToken` of an earlier answer";

/// Reads the parameters of a method.
pub fn read(method: Method, params: Value) -> Result<Operation, A2aError> {
    let mut of = Members::new(params, "")?;
    Ok(match method {
        Method::SendMessage => Operation::SendMessage(Box::new(read_send(of)?)),
        Method::SendStreamingMessage => Operation::StreamMessage(Box::new(read_send(of)?)),
        Method::GetTask => Operation::GetTask {
            id: TaskId::new(of.need_text("id")?),
            history_length: of.count("historyLength")?,
        },
        Method::ListTasks => Operation::PageTasks(read_page(of)?),
        Method::CancelTask => Operation::CancelTask { id: TaskId::new(of.need_text("id")?) },
        Method::SubscribeToTask => {
            Operation::Resubscribe { id: TaskId::new(of.need_text("id")?), after: None }
        }
        Method::CreateTaskPushNotificationConfig => {
            let task = TaskId::new(of.need_text("taskId")?);
            Operation::SetPushConfig { task, push: read_push(of)? }
        }
        Method::GetTaskPushNotificationConfig => Operation::GetPushConfig {
            task: TaskId::new(of.need_text("taskId")?),
            id: Some(PushConfigId::new(of.need_text("id")?)),
        },
        Method::ListTaskPushNotificationConfigs => {
            // All configurations fit on one page, so the hub never issues a token.
            of.count("pageSize")?;
            if of.some_text("pageToken")?.is_some() {
                return Err(of.refuse("pageToken", UNKNOWN_TOKEN));
            }
            Operation::ListPushConfigs { task: TaskId::new(of.need_text("taskId")?) }
        }
        Method::DeleteTaskPushNotificationConfig => Operation::DeletePushConfig {
            task: TaskId::new(of.need_text("taskId")?),
            id: PushConfigId::new(of.need_text("id")?),
        },
        Method::GetExtendedAgentCard => Operation::GetCard { agent: None },
    })
}

/// Reads the parameters of the method called `name`.
pub fn operation(name: &str, params: Value) -> Result<Operation, A2aError> {
    let method = Method::named(name).ok_or_else(|| {
        let names = Method::ALL.map(Method::name);
        let why = format!("no method is called `{name}`; there are {}", names.join(", "));
        A2aError::new(ErrorKind::MethodNotFound, why).with(json!({ "methods": names }))
    })?;
    read(method, params)
}

/// Method and parameters of an operation; `None` if A2A 1.0 lacks the operation.
pub fn write_request(operation: &Operation) -> Option<(Method, Value)> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are the hub's own")]
    Some(match operation {
        Operation::SendMessage(send) => (Method::SendMessage, write_send(send)),
        Operation::StreamMessage(send) => (Method::SendStreamingMessage, write_send(send)),
        Operation::GetTask { id, history_length } => {
            let params = object([("id", json!(id)), ("historyLength", json!(history_length))]);
            (Method::GetTask, params)
        }
        Operation::PageTasks(query) => (Method::ListTasks, write_page(query)),
        Operation::CancelTask { id } => (Method::CancelTask, json!({ "id": id })),
        Operation::Resubscribe { id, .. } => (Method::SubscribeToTask, json!({ "id": id })),
        Operation::SetPushConfig { task, push } => {
            let config = write_push(&push.clone().for_task(task.clone()), push.id.as_ref());
            (Method::CreateTaskPushNotificationConfig, config)
        }
        Operation::GetPushConfig { task, id } => {
            (Method::GetTaskPushNotificationConfig, json!({ "taskId": task, "id": id }))
        }
        Operation::ListPushConfigs { task } => {
            (Method::ListTaskPushNotificationConfigs, json!({ "taskId": task }))
        }
        Operation::DeletePushConfig { task, id } => {
            (Method::DeleteTaskPushNotificationConfig, json!({ "taskId": task, "id": id }))
        }
        Operation::GetCard { .. } => (Method::GetExtendedAgentCard, json!({})),
        _ => return None,
    })
}

fn read_send(mut of: Members) -> Result<SendMessage, A2aError> {
    let message = of.need("message")?;
    let message = read_message(message)?;
    limits::check_message(&message, "message")?;
    let mut send = SendMessage::new(message, of.metadata("metadata")?.as_ref())?;
    if let Some(mut configuration) = of.members("configuration")? {
        send.history_length = configuration.count("historyLength")?;
        if configuration.flag("returnImmediately")? {
            send.wait = Wait::No;
        }
        send.push =
            configuration.members("taskPushNotificationConfig")?.map(read_push).transpose()?;
        send.client.output_modes = configuration.texts("acceptedOutputModes")?;
    }
    Ok(send)
}

fn write_send(send: &SendMessage) -> Value {
    let configuration = object([
        ("historyLength", json!(send.history_length)),
        ("returnImmediately", only_true(send.wait == Wait::No)),
        ("acceptedOutputModes", some_list(&send.client.output_modes, |media| json!(media))),
        (
            "taskPushNotificationConfig",
            json!(send.push.as_ref().map(|push| {
                let mut config =
                    write_push(&push.clone().for_task(TaskId::new("")), push.id.as_ref());
                // The task has no id yet.
                config.as_object_mut().map(|config| config.remove("taskId"));
                config
            })),
        ),
    ]);
    json!({ "message": write_message(&send.message), "configuration": configuration })
}

/// Reads a `TaskPushNotificationConfig`.
fn read_push(mut of: Members) -> Result<OfferedPush, A2aError> {
    let authentication = of.members("authentication")?.map(|mut members| {
        let scheme = members.need_text("scheme")?;
        let credentials = members.some_text("credentials")?.map(Secret::new);
        Ok::<_, A2aError>(PushAuthentication { scheme, credentials })
    });
    let push = OfferedPush {
        id: of.some_text("id")?.map(PushConfigId::new),
        url: of.need_text("url")?,
        token: of.some_text("token")?.map(Secret::new),
        authentication: authentication.transpose()?,
        form: PushForm::V1,
    };
    push.check(of.path())?;
    Ok(push)
}

fn write_push(config: &PushConfig, id: Option<&PushConfigId>) -> Value {
    let PushConfig { id: _, task, url, token, authentication, form: _ } = config;
    let secret = |secret: &Option<Secret>| json!(secret.as_ref().map(Secret::expose));
    let authentication =
        authentication.as_ref().map(|PushAuthentication { scheme, credentials }| {
            object([("scheme", json!(scheme)), ("credentials", secret(credentials))])
        });
    object([
        ("id", json!(id)),
        ("taskId", json!(task)),
        ("url", json!(url)),
        ("token", secret(token)),
        ("authentication", json!(authentication)),
    ])
}

/// Writes a `TaskPushNotificationConfig` including its secrets. Only callers that may see the task
/// receive it, and they supplied the secrets.
pub fn write_push_config(config: &PushConfig) -> Value {
    write_push(config, Some(&config.id))
}

fn read_page(mut of: Members) -> Result<TaskPageQuery, A2aError> {
    let size = of.count("pageSize")?.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&size) {
        return Err(of.refuse("pageSize", format!("must be 1 to {MAX_PAGE}")));
    }
    let state = of.take("status").filter(|state| *state != 0 && *state != "TASK_STATE_UNSPECIFIED");
    let context = of.some_text("contextId")?;
    if context.as_ref().is_some_and(|id| id.len() > MAX_ID) {
        return Err(of.refuse("contextId", format!("must be 1 to {MAX_ID} bytes long")));
    }
    let after = of
        .some_text("pageToken")?
        .map(|token| read_token(&token).ok_or_else(|| of.refuse("pageToken", UNKNOWN_TOKEN)));
    let after = after.transpose()?;
    Ok(TaskPageQuery {
        agent: None,
        context: context.map(ContextId::new),
        tenant: None,
        state: state
            .map(|state| {
                Proto::read_state(&state).ok_or_else(|| of.refuse("status", Proto::V1.states()))
            })
            .transpose()?,
        since: of.some_text("statusTimestampAfter")?,
        after,
        size,
        history_length: of.count("historyLength")?,
        include_artifacts: of.flag("includeArtifacts")?,
    })
}

fn write_page(query: &TaskPageQuery) -> Value {
    object([
        ("contextId", json!(query.context)),
        ("status", json!(query.state.map(|state| Proto::V1.state_name(state)))),
        ("pageSize", json!(query.size)),
        ("pageToken", json!(query.after.as_ref().map(write_token))),
        ("historyLength", json!(query.history_length)),
        ("statusTimestampAfter", json!(query.since)),
        ("includeArtifacts", only_true(query.include_artifacts)),
    ])
}

/// Encodes a cursor as a page token, which is opaque to clients.
pub fn write_token(cursor: &TaskCursor) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {}", cursor.updated, cursor.id))
}

/// Reads a page token.
pub fn read_token(token: &str) -> Option<TaskCursor> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (updated, id) = text.split_once(' ')?;
    Some(TaskCursor { updated: updated.to_owned(), id: TaskId::new(id) })
}

/// Writes a page of tasks, a `ListTasksResponse`.
pub fn write_tasks(
    tasks: &[ListedTask],
    artifacts: bool,
    size: usize,
    total: u64,
    next: Option<&TaskCursor>,
) -> Value {
    let listed = |listed: &ListedTask| {
        let mut task = write_task(&listed.task);
        if let (Value::Object(task), false) = (&mut task, artifacts) {
            task.remove("artifacts");
        }
        task
    };
    json!({
        "tasks": tasks.iter().map(listed).collect::<Value>(),
        "pageSize": size,
        "totalSize": total,
        "nextPageToken": next.map(write_token).unwrap_or_default(),
    })
}

/// Writes a message in the form of A2A 1.0.
pub fn write_message(message: &Message) -> Value {
    Form::V1.value(message)
}

/// Writes a message as text; equal texts mean equal messages.
pub fn message_text(message: &Message) -> String {
    String::from_utf8(Form::V1.text(message)).unwrap_or_default()
}

/// Writes a task in the form of A2A 1.0.
pub fn write_task(task: &Task) -> Value {
    Form::V1.value(task)
}

/// Writes an event as a `StreamResponse`; `None` for a client's own message.
pub fn write_event(sequenced: &SequencedEvent) -> Option<Value> {
    Form::tells(&sequenced.event).then(|| Form::V1.value(sequenced))
}

/// Reads a message without checking that a client may send it.
pub fn read_message(value: Value) -> Result<Message, A2aError> {
    Proto::V1.read_message(value, "message".to_owned())
}

/// Reads a task in the form of A2A 1.0; an error names the invalid member.
pub fn read_task(value: Value) -> Result<Task, A2aError> {
    Proto::V1.read_task(value, "task".to_owned())
}

/// Reads a `StreamResponse` or a `SendMessageResponse`.
pub fn read_stream_response(value: Value) -> Result<StreamResponse, A2aError> {
    Proto::V1.read_stream_response(value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn snake_case_request_equals_camel_case() {
        let read = |params| read(Method::SendMessage, params).unwrap();
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
        let full = json!({"message": message, "tenant": "x",
            "configuration": {"historyLength": 2, "returnImmediately": true, "acceptedOutputModes": ["text/plain"]},
            "metadata": {"targetAgent": "echo"}});
        let snake = json!({"message": {"message_id": "m", "role": 1, "parts": [{"text": "hi"}], "task_id": ""},
            "configuration": {"history_length": 2, "return_immediately": true, "accepted_output_modes": ["text/plain"]},
            "metadata": {"targetAgent": "echo"}, "unknown": 1});
        assert_eq!(read(full), read(snake));
        let Operation::SendMessage(plain) =
            read(json!({ "message": message, "configuration": {} }))
        else {
            panic!("not a message")
        };
        assert_eq!((plain.wait, plain.history_length), (Wait::ToTheEnd, None));
    }

    #[test]
    fn invalid_parameter_error_names_field() {
        let read = |method: Method, params: Value| match read(method, params) {
            Ok(read) => panic!("{read:?}"),
            Err(why) => {
                assert_eq!(why.kind, ErrorKind::InvalidParams);
                why.to_string()
            }
        };
        let send = |message: Value| read(Method::SendMessage, json!({ "message": message }));
        let list = |params: Value| read(Method::ListTasks, params);
        let refused = [
            read(Method::SendMessage, json!([])),
            read(Method::SendMessage, json!({})),
            send(json!({"role": 1, "parts": [{"text": "x"}]})),
            send(json!({"messageId": "m", "role": 0, "parts": [{"text": "x"}]})),
            send(json!({"messageId": "m", "role": 1})),
            send(json!({"messageId": "m", "role": 1, "parts": [{"text": "x"}, {}]})),
            send(
                json!({"messageId": "m", "role": 1, "parts": [{"text": "x"}], "contextId": "c".repeat(129)}),
            ),
            send(
                json!({"messageId": "m", "role": 1, "parts": [{"text": "x"}], "metadata": {"targetAgent": 1}}),
            ),
            read(Method::GetTask, json!({})),
            read(Method::GetTask, json!({"id": "t", "historyLength": -1})),
            list(json!({"pageSize": 0})),
            list(json!({"pageSize": 101})),
            list(json!({"pageToken": "?"})),
            list(json!({"status": "done"})),
            read(Method::ListTaskPushNotificationConfigs, json!({"taskId": "t", "pageSize": -1})),
            read(Method::ListTaskPushNotificationConfigs, json!({"taskId": "t", "pageToken": "x"})),
        ];
        insta::assert_snapshot!(refused.join("\n"), @"
        `params`: must be an object
        `message`: is missing
        `message.messageId`: is missing, or empty
        `message.role`: must be ROLE_USER or ROLE_AGENT, or its number
        `message.parts`: must hold at least one part
        `message.parts[1]`: must have exactly one of `text`, `raw`, `url` and `data`
        `message.contextId`: must be 1 to 128 bytes long
        `message.metadata.targetAgent`: must be a string
        `id`: is missing, or empty
        `historyLength`: must not be negative
        `pageSize`: must be 1 to 100
        `pageSize`: must be 1 to 100
        `pageToken`: must be the `nextPageToken` of an earlier answer
        `status`: must be the name or number of a state: TASK_STATE_SUBMITTED, TASK_STATE_WORKING, TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_REJECTED, TASK_STATE_AUTH_REQUIRED
        `pageSize`: must not be negative
        `pageToken`: must be the `nextPageToken` of an earlier answer
        ");
        let unknown = operation("message/send", json!({})).unwrap_err();
        assert_eq!(unknown.kind, ErrorKind::MethodNotFound);
    }

    proptest! {
        #[test]
        fn page_token_round_trips(updated in "[0-9TZ:.-]{0,30}", id in ".{0,40}") {
            let place = TaskCursor { updated, id: TaskId::new(id) };
            prop_assert_eq!(read_token(&write_token(&place)), Some(place));
        }
    }
}
