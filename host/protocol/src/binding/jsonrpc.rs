//! Operations as JSON-RPC 2.0 (jsonrpc.org/specification), in any dialect.

use crate::{
    binding::service_params::Service,
    codec::limits::{self, MAX_BATCH},
    dialect::{Dialect, Version},
    model::{
        error::{A2aError, ErrorKind},
        id::MAX_ID,
        message,
        operation::Operation,
    },
};
use serde_json::Value;

/// A request's name, echoed in its answer with the type it came with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// A string.
    Text(String),
    /// A number, as it was written.
    Number(serde_json::Number),
    /// `null`: allowed, discouraged, and what an unreadable request is answered under.
    Null,
}

impl RequestId {
    /// The id as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Null => Value::Null,
        }
    }
}

/// A request that was read, and what to answer it under.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What to answer under; a request without is a notification and gets no answer.
    pub id: Option<RequestId>,
    /// How it is spelled, and its answer is to be.
    pub dialect: Dialect,
    /// The tenant that it names, as 1.0 lets it: opaque to the hub where there are paths.
    pub tenant: Option<String>,
    /// The service parameters in its metadata, where they are read from there.
    pub service: Option<Service>,
    /// What it asks for, or why that cannot be told.
    pub operation: Result<Operation, A2aError>,
}

/// What a client sends at once.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// One request.
    One(Box<Request>),
    /// Several, whose answers go back together; at least one.
    Batch(Vec<Request>),
}

/// Where a client says what goes with its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// In headers.
    Headers,
    /// In each request's metadata, for there are no headers. Who names a version there is spoken to as official A2A has it.
    Metadata,
}

/// Reads what a client sent, spelled as `spelled` unless its method says otherwise. Whatever is wrong with it, there is an
/// answer.
pub fn read(text: &[u8], spelled: Dialect, beside: Beside) -> Frame {
    let one = |request| Frame::One(Box::new(request));
    let refused = |why| one(refused(None, spelled, why));
    let invalid = |why| refused(A2aError::new(ErrorKind::InvalidRequest, why));
    match limits::read(text) {
        Ok(Value::Array(batch)) if batch.is_empty() => {
            invalid("a batch holds at least one request".to_owned())
        }
        Ok(Value::Array(batch)) if batch.len() > MAX_BATCH => invalid(format!(
            "the batch holds {} requests; at most {MAX_BATCH} are read",
            batch.len()
        )),
        Ok(Value::Array(batch)) => {
            Frame::Batch(batch.into_iter().map(|one| read_value(one, spelled, beside)).collect())
        }
        Ok(value) => one(read_value(value, spelled, beside)),
        Err(why) => refused(why),
    }
}

fn read_value(request: Value, spelled: Dialect, beside: Beside) -> Request {
    let service = match (beside, request.get("params")) {
        (Beside::Metadata, Some(params)) => Service::of_metadata(params),
        (Beside::Metadata, None) | (Beside::Headers, _) => Ok(None),
    };
    let names_version = matches!(&service, Ok(Some(Service { version: Some(_), .. })));
    let spelled = if names_version { Dialect::Official(Version::V1) } else { spelled };
    let method = request.get("method").and_then(Value::as_str);
    let dialect = method.map_or(spelled, |name| Dialect::of_method(name, spelled));
    let refused = |id, why| refused(id, dialect, why);
    let invalid = |id, why: &str| refused(id, A2aError::new(ErrorKind::InvalidRequest, why));
    let Value::Object(mut request) = request else {
        return invalid(None, "a request is a JSON object, or an array of them");
    };
    let id = match request.remove("id") {
        None => None,
        Some(Value::Null) => Some(RequestId::Null),
        Some(Value::String(text)) if text.len() > MAX_ID => {
            return invalid(None, &format!("`id` is at most {MAX_ID} bytes long"));
        }
        Some(Value::String(text)) => Some(RequestId::Text(text)),
        Some(Value::Number(number)) => Some(RequestId::Number(number)),
        Some(_) => return invalid(None, "`id` is a string or a number"),
    };
    if request.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id, "`jsonrpc` must be \"2.0\"");
    }
    if !request.values().all(message::is_shallow) {
        let why = format!("the request is nested deeper than {} levels", message::MAX_DEPTH);
        return invalid(id, &why);
    }
    if let Err(why) = limits::check(&request) {
        return refused(id, why);
    }
    let Some(Value::String(method)) = request.remove("method") else {
        return invalid(id, "`method` is missing, or is not a string");
    };
    let params = match request.remove("params") {
        None | Some(Value::Null) => Value::Object(serde_json::Map::new()),
        Some(params @ Value::Object(_)) => params,
        // As good a request as any to JSON-RPC, but no method here counts its parameters.
        Some(Value::Array(_)) => {
            let why = "must be an object: parameters are given by name";
            return refused(id, A2aError::invalid("params", why));
        }
        Some(_) => return invalid(id, "`params` must be an object"),
    };
    let service = match service {
        Ok(service) => service,
        Err(why) => return refused(id, why),
    };
    let tenant = params.get("tenant").and_then(Value::as_str).map(str::to_owned);
    Request { id, dialect, tenant, service, operation: dialect.operation(&method, params) }
}

/// What is no request is answered all the same, under no name.
fn refused(id: Option<RequestId>, dialect: Dialect, error: A2aError) -> Request {
    let id = id.or(Some(RequestId::Null));
    Request { id, dialect, tenant: None, service: None, operation: Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hub::methods::{METHODS, operation},
        model::{
            id::{AgentId, TaskId},
            operation::{ContextQuery, Page},
            task::TaskState,
        },
    };
    use proptest::prelude::*;
    use serde_json::json;

    /// Reads one request.
    fn read(text: &[u8]) -> Request {
        read_beside(text, Beside::Headers)
    }

    fn read_beside(text: &[u8], beside: Beside) -> Request {
        let read = super::read(text, Dialect::Hub, beside);
        let Frame::One(request) = read else { panic!("a batch") };
        *request
    }

    fn error(request: &Value) -> String {
        let request = read(request.to_string().as_bytes());
        request.operation.unwrap_err().to_string()
    }

    #[test]
    fn ids_keep_their_type() {
        for id in [json!("7"), json!(7), json!(7.5), json!(null)] {
            let request = json!({"jsonrpc": "2.0", "method": "hub/status", "id": id});
            assert_eq!(read(request.to_string().as_bytes()).id.unwrap().to_json(), id);
        }
        let notification = read(br#"{"jsonrpc":"2.0","method":"hub/status"}"#);
        assert_eq!(notification.id, None);
    }

    #[test]
    fn errors_name_the_field() {
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
    fn lists_have_a_page() {
        let text = br#"{"jsonrpc":"2.0","method":"hub/tasks/list","params":{"contextId":"optional-context-id","state":"completed","limit":20,"offset":0},"id":"5"}"#;
        let Ok(Operation::ListTasks(query)) = read(text).operation else { panic!("not a list") };
        assert_eq!(query.context.unwrap().as_str(), "optional-context-id");
        assert_eq!(query.state, Some(TaskState::Completed));
        assert_eq!(query.page, Page { limit: 20, offset: 0 });
        let unsaid = operation("hub/contexts/list", json!({})).unwrap();
        let page = Page { limit: 20, offset: 0 };
        assert_eq!(unsaid, Operation::ListContexts(ContextQuery { id_prefix: None, page }));
        let params =
            json!({ "idPrefix": "01a1", "agentId": "echo", "since": "2026-01-31T12:00:00.000Z" });
        let Ok(Operation::ListTasks(query)) = operation("hub/tasks/list", params) else {
            panic!("not a list")
        };
        assert_eq!(
            (query.id_prefix.as_deref(), query.agent),
            (Some("01a1"), AgentId::parse("echo").ok())
        );
        assert_eq!(query.since.as_deref(), Some("2026-01-31T12:00:00.000Z"));
        let heard = operation("tasks/resubscribe", json!({"id": "t", "lastEventId": "7"})).unwrap();
        assert_eq!(heard, Operation::Resubscribe { id: TaskId::new("t"), after: Some(7) });
    }

    #[test]
    fn each_request_of_a_batch_is_read_by_itself() {
        let text = br#"[{"jsonrpc":"2.0","id":1,"method":"hub/status"}, {"jsonrpc":"2.0","method":"hub/status"}, 7]"#;
        let batch = super::read(text, Dialect::Hub, Beside::Headers);
        let Frame::Batch(batch) = batch else { panic!("not a batch") };
        let ids: Vec<_> = batch.iter().map(|request| request.id.clone()).collect();
        assert_eq!(ids, [Some(RequestId::Number(1.into())), None, Some(RequestId::Null)]);
        let readable: Vec<_> = batch.iter().map(|request| request.operation.is_ok()).collect();
        assert_eq!(readable, [true, true, false]);
    }

    #[test]
    fn who_names_a_version_beside_is_answered_in_it() {
        let dialect = |method: &str, metadata: Value, beside: Beside| {
            let params = json!({"id": "t", "tenant": "echo", "metadata": metadata});
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let read = read_beside(request.to_string().as_bytes(), beside);
            assert_eq!(read.tenant.as_deref(), Some("echo"));
            (read.dialect, read.service.map(|service| service.extensions))
        };
        let old =
            json!({"a2a-service-parameters": {"A2A-Version": "0.3", "A2A-Extensions": "urn:x"}});
        let (new, v03) = (Dialect::Official(Version::V1), Dialect::Official(Version::V03));
        let said = Some(vec!["urn:x".to_owned()]);
        assert_eq!(dialect("tasks/get", old.clone(), Beside::Metadata), (v03, said.clone()));
        assert_eq!(dialect("GetTask", old.clone(), Beside::Metadata), (new, said));
        assert_eq!(dialect("tasks/get", old, Beside::Headers), (Dialect::Hub, None));
        assert_eq!(dialect("tasks/get", json!({}), Beside::Metadata), (Dialect::Hub, None));
        assert_eq!(dialect("GetTask", json!(null), Beside::Metadata), (new, None));
        let wrong = br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t","metadata":{"a2a-service-parameters":1}}}"#;
        let wrong = read_beside(wrong, Beside::Metadata);
        assert_eq!(wrong.operation.unwrap_err().kind, ErrorKind::InvalidParams);
        assert_eq!(wrong.id, Some(RequestId::Number(1.into())));
    }

    proptest! {
        #[test]
        fn whatever_comes_has_an_answer(bytes: Vec<u8>, method in proptest::sample::select(METHODS.iter().map(|method| method.name).collect::<Vec<_>>()), params in r#"[{}\[\]":,a-z0-9 ]{0,40}"#) {
            for spelled in [Dialect::Hub, Dialect::Official(Version::V1)] {
                super::read(&bytes, spelled, Beside::Metadata);
            }
            let almost = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            super::read(almost.as_bytes(), Dialect::Hub, Beside::Metadata);
        }
    }

    #[test]
    fn reads_the_specification_example() {
        let text = br#"{"jsonrpc":"2.0","method":"message/send","params":{"message":{"kind":"message","messageId":"msg-123","role":"user",
            "parts":[{"kind":"text","text":"Write a hello world function in Python"}],"contextId":"optional-context-id",
            "metadata":{"targetAgent":"claude-code"}},"configuration":{"historyLength":10}},"id":"7"}"#;
        let Ok(Operation::SendMessage(send)) = read(text).operation else { panic!("not a send") };
        assert_eq!(send.agent.unwrap().as_str(), "claude-code");
        assert_eq!(send.history_length, Some(10));
        assert_eq!(send.message.joined_text(), "Write a hello world function in Python");
    }
}
