//! A2A over REST, from both ends: which method is meant by a verb and a path (A2A 1.0, section 11.3), and what it asks for.
//! 0.3 has the same paths, below `v1/`, for nouns of another spelling.

use crate::{
    codec::limits,
    dialect::Version,
    model::{
        error::{A2aError, ErrorKind},
        message::{self, is_shallow},
        operation::Operation,
    },
    v1::{self, Method},
    v03::proto,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

/// What is done to what is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `DELETE`
    Delete,
}

impl Verb {
    /// The method of HTTP.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// A request that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// How its answer is spelled.
    pub version: Version,
    /// The tenant it names: opaque to the hub.
    pub tenant: Option<String>,
    /// What it asks for, or why that cannot be told.
    pub operation: Result<Operation, A2aError>,
}

/// Reads a request for `path`, which is what follows the interface's URL and a slash, still escaped.
pub fn read(verb: Verb, path: &str, query: Option<&str>, body: &[u8]) -> Request {
    let path = path.trim_matches('/');
    let (version, path) = match path.strip_prefix("v1/") {
        Some(path) => (Version::V03Rest, path),
        None => (Version::V1, path),
    };
    let segments: Vec<_> = path.split('/').map(unescaped).collect();
    let segments: Vec<_> = segments.iter().map(String::as_str).collect();
    let (mut tenant, found) = match (route(verb, &segments), &segments[..]) {
        (None, [tenant, rest @ ..]) if version == Version::V1 => {
            (Some((*tenant).to_owned()), route(verb, rest))
        }
        (found, _) => (None, found),
    };
    let operation = found.ok_or_else(|| {
        let why = format!("there is nothing to {} at `/{path}`", verb.name());
        A2aError::new(ErrorKind::MethodNotFound, why)
    });
    let operation = operation.and_then(|Route { method, names }| {
        let mut params = params(query, body)?;
        if let (None, Some(said)) = (&tenant, params.get("tenant").and_then(Value::as_str)) {
            tenant = Some(said.to_owned());
        }
        // What the path says, nothing else may say otherwise.
        for (name, value) in names {
            params.remove(name.replace("Id", "_id").as_str());
            params.insert(name.to_owned(), json!(value));
        }
        match version {
            Version::V1 => method.read(Value::Object(params)),
            Version::V03 | Version::V03Rest => proto::operation(method, Value::Object(params)),
        }
    });
    let tenant = tenant.filter(|_| operation.is_ok());
    Request { version, tenant, operation }
}

/// Which method is meant by a verb and a path, in whose segments a name in braces stands for itself. A client of 1.0 takes
/// the first of a method, and one of 0.3 the last.
const ROUTES: [(Method, Verb, &str); 13] = [
    (Method::SendMessage, Verb::Post, "message:send"),
    (Method::SendStreamingMessage, Verb::Post, "message:stream"),
    (Method::ListTasks, Verb::Get, "tasks"),
    (Method::CancelTask, Verb::Post, "tasks/{id}:cancel"),
    (Method::SubscribeToTask, Verb::Post, "tasks/{id}:subscribe"),
    (Method::SubscribeToTask, Verb::Get, "tasks/{id}:subscribe"),
    // After what is got of a task otherwise.
    (Method::GetTask, Verb::Get, "tasks/{id}"),
    (
        Method::CreateTaskPushNotificationConfig,
        Verb::Post,
        "tasks/{taskId}/pushNotificationConfigs",
    ),
    (Method::ListTaskPushNotificationConfigs, Verb::Get, "tasks/{taskId}/pushNotificationConfigs"),
    (
        Method::GetTaskPushNotificationConfig,
        Verb::Get,
        "tasks/{taskId}/pushNotificationConfigs/{id}",
    ),
    (
        Method::DeleteTaskPushNotificationConfig,
        Verb::Delete,
        "tasks/{taskId}/pushNotificationConfigs/{id}",
    ),
    (Method::GetExtendedAgentCard, Verb::Get, "extendedAgentCard"),
    (Method::GetExtendedAgentCard, Verb::Get, "card"),
];

/// The parameter that a segment of a route stands for, and what follows it there.
fn blank(segment: &'static str) -> Option<(&'static str, &'static str)> {
    segment.strip_prefix('{')?.split_once('}')
}

/// A method, and what its path names.
struct Route<'a> {
    method: Method,
    names: Vec<(&'static str, &'a str)>,
}

fn route<'a>(verb: Verb, path: &[&'a str]) -> Option<Route<'a>> {
    let fits = |route: &'static str| {
        let mut names = Vec::new();
        let mut said = path.iter();
        for segment in route.split('/') {
            let said = *said.next()?;
            match blank(segment) {
                Some((name, rest)) => names.push((name, said.strip_suffix(rest)?)),
                None if segment == said => {}
                None => return None,
            }
        }
        said.next().is_none().then_some(names)
    };
    let mut routes = ROUTES.iter().filter(|(_, of, _)| *of == verb);
    routes.find_map(|(method, _, route)| Some(Route { method: *method, names: fits(route)? }))
}

/// A request as a client sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// What is done.
    pub verb: Verb,
    /// What follows the interface's URL and a slash: a path and a query, escaped.
    pub target: String,
    /// What is sent, if anything is.
    pub body: Option<Value>,
}

/// Writes what asks for this, of the agent that `tenant` names; none if the version has no such operation.
pub fn write(version: Version, tenant: Option<&str>, operation: &Operation) -> Option<Written> {
    let (method, params) = match version {
        Version::V1 => v1::write_request(operation)?,
        Version::V03 | Version::V03Rest => proto::write_request(operation)?,
    };
    let Value::Object(mut params) = params else { return None };
    let mut routes = ROUTES.iter().filter(|(of, ..)| *of == method);
    let (_, verb, route) = match version {
        Version::V1 => routes.next(),
        Version::V03 | Version::V03Rest => routes.next_back(),
    }?;
    let mut target = match (version, tenant) {
        (Version::V1, None) => String::new(),
        (Version::V1, Some(tenant)) => format!("{}/", escaped(tenant)),
        (Version::V03 | Version::V03Rest, _) => "v1/".to_owned(),
    };
    for (n, segment) in route.split('/').enumerate() {
        if n > 0 {
            target.push('/');
        }
        match blank(segment) {
            None => target.push_str(segment),
            Some((name, rest)) => {
                target.push_str(&escaped(params.remove(name)?.as_str()?));
                target.push_str(rest);
            }
        }
    }
    if *verb == Verb::Post {
        return Some(Written { verb: *verb, target, body: Some(Value::Object(params)) });
    }
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(params.into_iter().map(|(name, value)| (name, text(value))));
    let query = query.finish();
    if !query.is_empty() {
        target = format!("{target}?{query}");
    }
    Some(Written { verb: *verb, target, body: None })
}

/// What body and query say; where both do, the body counts.
fn params(query: Option<&str>, body: &[u8]) -> Result<Map<String, Value>, A2aError> {
    let query = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut params: Map<_, _> =
        query.map(|(name, value)| (name.into_owned(), json!(value.into_owned()))).collect();
    if !body.trim_ascii().is_empty() {
        let Value::Object(said) = limits::read(body)? else {
            return Err(A2aError::new(ErrorKind::InvalidRequest, "the body must be a JSON object"));
        };
        params.extend(said);
    }
    if !params.values().all(is_shallow) {
        let why = format!("the request is nested deeper than {} levels", message::MAX_DEPTH);
        return Err(A2aError::new(ErrorKind::InvalidRequest, why));
    }
    limits::check(&params)?;
    Ok(params)
}

/// What means itself in a path (RFC 3986, section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn escaped(segment: &str) -> String {
    utf8_percent_encode(segment, UNRESERVED).to_string()
}

fn unescaped(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asks(verb: Verb, target: &str, body: &str) -> String {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let Request { version, tenant, operation } = read(verb, path, query, body.as_bytes());
        let tenant = tenant.map(|tenant| format!(" for {tenant}")).unwrap_or_default();
        match operation {
            Ok(operation) => format!("{version:?}{tenant} {operation:?}"),
            Err(why) => format!("{version:?}{tenant} {:?}: {why}", why.kind),
        }
    }

    #[test]
    fn every_path_has_its_method() {
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
        V03Rest GetTask { id: TaskId("t"), history_length: None }
        V1 GetTask { id: TaskId("a/b:c"), history_length: None }
        V1 PageTasks(TaskPageQuery { agent: None, context: None, state: Some(Working), since: None, after: None, size: 3, history_length: None, include_artifacts: true })
        V1 CancelTask { id: TaskId("t") }
        V1 Resubscribe { id: TaskId("t"), after: None }
        V1 Resubscribe { id: TaskId("t"), after: None }
        V1 SetPushConfig { task: TaskId("t"), push: OfferedPush { id: None, url: "http://x/", token: None, authentication: None, form: V1 } }
        V1 ListPushConfigs { task: TaskId("t") }
        V1 GetPushConfig { task: TaskId("t"), id: Some(PushConfigId("c")) }
        V1 for acme DeletePushConfig { task: TaskId("t"), id: PushConfigId("c") }
        V1 GetCard { agent: None }
        V03Rest GetCard { agent: None }
        "#);
    }

    #[test]
    fn what_is_wrong_is_said() {
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
        V03Rest MethodNotFound: there is nothing to GET at `/acme/tasks/t`
        V1 Parse: the request is not JSON: expected value at line 1 column 1
        V1 InvalidRequest: the body must be a JSON object
        V1 InvalidParams: `message`: is missing
        V03Rest InvalidParams: `message`: is missing
        V1 InvalidParams: `pageSize`: must be a whole number
        V1 InvalidParams: `historyLength`: must not be negative
        ");
    }

    #[test]
    fn both_versions_send() {
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
        fn whatever_comes_has_an_answer(path in ".{0,40}", query in ".{0,40}", body: Vec<u8>) {
            for verb in [Verb::Get, Verb::Post, Verb::Delete] {
                read(verb, &path, Some(&query), &body);
                read(verb, &format!("tasks/{path}"), Some(&query), b"{}");
            }
        }
    }
}
