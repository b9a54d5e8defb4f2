//! Methods of A2A 0.3 over JSON-RPC (A2A 0.3, section 7): the reader for servers, and the writer
//! for clients.

use crate::{
    codec::members::{object, some_list},
    model::{
        error::{A2aError, ErrorKind},
        operation::{Operation, SendMessage, Wait},
    },
    v03::{UNSAID_WAIT, json, params, push},
};
use serde_json::{Value, json};

/// Method that returns the card for authenticated callers.
const EXTENDED_CARD: &str = "agent/getAuthenticatedExtendedCard";

/// Reader of a method's parameters.
type ParamsReader = fn(Value) -> Result<Operation, A2aError>;

/// The methods, in the order of the specification.
const METHODS: [(&str, ParamsReader); 10] = [
    ("message/send", read_send),
    ("message/stream", |value| {
        Ok(Operation::StreamMessage(Box::new(params::send_message(value)?)))
    }),
    ("tasks/get", params::get_task),
    ("tasks/cancel", params::cancel_task),
    ("tasks/resubscribe", params::resubscribe),
    ("tasks/pushNotificationConfig/set", params::set_push),
    ("tasks/pushNotificationConfig/get", params::get_push),
    ("tasks/pushNotificationConfig/list", params::list_pushes),
    ("tasks/pushNotificationConfig/delete", params::delete_push),
    (EXTENDED_CARD, |_| Ok(Operation::GetCard { agent: None })),
];

/// Names of the methods, in the order of the specification.
pub fn names() -> [&'static str; 10] {
    METHODS.map(|(name, _)| name)
}

/// Reads the parameters of the method called `name`.
pub fn operation(name: &str, params: Value) -> Result<Operation, A2aError> {
    let known = METHODS.into_iter().find(|(known, _)| *known == name);
    let (_, read) = known.ok_or_else(|| {
        let names = names();
        let why = format!("no method is called `{name}`; there are {}", names.join(", "));
        A2aError::new(ErrorKind::MethodNotFound, why).with(json!({ "methods": names }))
    })?;
    read(params)
}

fn read_send(params: Value) -> Result<Operation, A2aError> {
    let blocking =
        params.get("configuration").and_then(|configuration| configuration.get("blocking"));
    let unsaid = blocking.is_none_or(Value::is_null);
    let mut send = params::send_message(params)?;
    if unsaid {
        send.wait = Wait::AtMost(UNSAID_WAIT);
    }
    Ok(Operation::SendMessage(Box::new(send)))
}

/// Method and parameters of an operation; `None` if A2A 0.3 lacks the operation.
pub fn write_request(operation: &Operation) -> Option<(&'static str, Value)> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are the hub's own")]
    Some(match operation {
        Operation::SendMessage(send) => ("message/send", write_send(send)),
        Operation::StreamMessage(send) => ("message/stream", write_send(send)),
        Operation::GetTask { id, history_length } => {
            let params = object([("id", json!(id)), ("historyLength", json!(history_length))]);
            ("tasks/get", params)
        }
        Operation::CancelTask { id } => ("tasks/cancel", json!({ "id": id })),
        Operation::Resubscribe { id, .. } => ("tasks/resubscribe", json!({ "id": id })),
        Operation::SetPushConfig { task, push } => {
            let config = push::write_offered(push);
            let params = json!({ "taskId": task, "pushNotificationConfig": config });
            ("tasks/pushNotificationConfig/set", params)
        }
        Operation::GetPushConfig { task, id } => {
            let params = object([("id", json!(task)), ("pushNotificationConfigId", json!(id))]);
            ("tasks/pushNotificationConfig/get", params)
        }
        Operation::ListPushConfigs { task } => {
            ("tasks/pushNotificationConfig/list", json!({ "id": task }))
        }
        Operation::DeletePushConfig { task, id } => {
            let params = json!({ "id": task, "pushNotificationConfigId": id });
            ("tasks/pushNotificationConfig/delete", params)
        }
        Operation::GetCard { .. } => (EXTENDED_CARD, Value::Null),
        _ => return None,
    })
}

fn write_send(send: &SendMessage) -> Value {
    let configuration = object([
        ("historyLength", json!(send.history_length)),
        ("blocking", json!(send.wait != Wait::No)),
        ("acceptedOutputModes", some_list(&send.client.output_modes, |media| json!(media))),
        ("pushNotificationConfig", json!(send.push.as_ref().map(push::write_offered))),
    ]);
    json!({ "message": json::write_message(&send.message), "configuration": configuration })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_blocking_waits_for_default_time() {
        let wait = |configuration: Value| {
            let message =
                json!({"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]});
            let params = json!({ "message": message, "configuration": configuration });
            let Ok(Operation::SendMessage(send)) = operation("message/send", params) else {
                panic!("not a message")
            };
            send.wait
        };
        assert_eq!(wait(Value::Null), Wait::AtMost(UNSAID_WAIT));
        assert_eq!(wait(json!({"blocking": null})), Wait::AtMost(UNSAID_WAIT));
        assert_eq!(wait(json!({"blocking": true})), Wait::ToTheEnd);
        assert_eq!(wait(json!({"blocking": false})), Wait::No);
    }

    #[test]
    fn only_official_methods_are_accepted() {
        let unknown = operation("hub/status", json!({})).unwrap_err();
        assert_eq!(unknown.kind, ErrorKind::MethodNotFound);
        for method in names() {
            let known = operation(method, json!([]));
            assert!(known.is_ok() || known.unwrap_err().kind == ErrorKind::InvalidParams);
        }
    }
}
