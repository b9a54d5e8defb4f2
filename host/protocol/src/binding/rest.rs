//! REST binding of A2A (A2A 1.0, section 11): conversion between methods and paths. 0.3 has the
//! same paths below `v1/`.

use crate::{
    codec::limits,
    model::{
        error::{A2aError, ErrorKind},
        interface::Version,
        method::Method,
    },
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

/// HTTP method that A2A uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `GET`, to read a resource.
    Get,
    /// `POST`, to execute an operation.
    Post,
    /// `DELETE`, to delete a resource.
    Delete,
}

impl Verb {
    /// Name of the HTTP method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// A decoded request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Version of the path.
    pub version: Version,
    /// Tenant in the path or the parameters of a 1.0 request.
    pub tenant: Option<String>,
    /// The called method with its parameters, or the error to return.
    pub call: Result<(Method, Map<String, Value>), A2aError>,
}

/// Decodes a request for `path`, the still escaped path after the interface's URL and a slash.
pub fn read(verb: Verb, path: &str, query: Option<&str>, body: &[u8]) -> Request {
    let path = path.trim_matches('/');
    let (version, path) = match path.strip_prefix("v1/") {
        Some(path) => (Version::V03, path),
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
    let found = found.ok_or_else(|| {
        let why = format!("there is nothing to {} at `/{path}`", verb.name());
        A2aError::new(ErrorKind::MethodNotFound, why)
    });
    let call = found.and_then(|Route { method, names }| {
        let mut params = params(query, body)?;
        if let (None, Some(tenant_name)) = (&tenant, params.get("tenant").and_then(Value::as_str)) {
            tenant = Some(tenant_name.to_owned());
        }
        // The path takes precedence over query and body.
        for (name, value) in names {
            params.remove(name.replace("Id", "_id").as_str());
            params.insert(name.to_owned(), json!(value));
        }
        Ok((method, params))
    });
    let tenant = tenant.filter(|_| call.is_ok());
    Request { version, tenant, call }
}

/// HTTP method and path of each A2A method; a segment in braces is a parameter. Clients of 1.0 use
/// a method's first route, clients of 0.3 its last.
const ROUTES: [(Method, Verb, &str); 13] = [
    (Method::SendMessage, Verb::Post, "message:send"),
    (Method::SendStreamingMessage, Verb::Post, "message:stream"),
    (Method::ListTasks, Verb::Get, "tasks"),
    (Method::CancelTask, Verb::Post, "tasks/{id}:cancel"),
    (Method::SubscribeToTask, Verb::Post, "tasks/{id}:subscribe"),
    (Method::SubscribeToTask, Verb::Get, "tasks/{id}:subscribe"),
    // Must follow the other routes of a task, because the parameter would match `{id}:subscribe` as
    // well.
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

/// Splits a parameter segment into the parameter's name and a suffix.
fn blank(segment: &'static str) -> Option<(&'static str, &'static str)> {
    segment.strip_prefix('{')?.split_once('}')
}

/// A matched method with the parameters of its path.
struct Route<'a> {
    method: Method,
    names: Vec<(&'static str, &'a str)>,
}

fn route<'a>(verb: Verb, path: &[&'a str]) -> Option<Route<'a>> {
    let fits = |route: &'static str| {
        let mut names = Vec::new();
        let mut parts = path.iter();
        for segment in route.split('/') {
            let part = *parts.next()?;
            match blank(segment) {
                Some((name, rest)) => names.push((name, part.strip_suffix(rest)?)),
                None if segment == part => {}
                None => return None,
            }
        }
        parts.next().is_none().then_some(names)
    };
    let mut routes = ROUTES.iter().filter(|(_, of, _)| *of == verb);
    routes.find_map(|(method, _, route)| Some(Route { method: *method, names: fits(route)? }))
}

/// A client's request.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenRequest {
    /// HTTP method.
    pub verb: Verb,
    /// Escaped path and query, which follow the interface's URL and a slash.
    pub target: String,
    /// JSON body, for `POST`.
    pub body: Option<Value>,
}

/// Writes the call of a method, addressed to `tenant`; `None` if the method has no route, or a
/// parameter of its path is missing.
pub fn write(
    version: Version,
    tenant: Option<&str>,
    method: Method,
    mut params: Map<String, Value>,
) -> Option<WrittenRequest> {
    let mut routes = ROUTES.iter().filter(|(of, ..)| *of == method);
    let (_, verb, route) = match version {
        Version::V1 => routes.next(),
        Version::V03 => routes.next_back(),
    }?;
    let mut target = match (version, tenant) {
        (Version::V1, None) => String::new(),
        (Version::V1, Some(tenant)) => format!("{}/", escaped(tenant)),
        (Version::V03, _) => "v1/".to_owned(),
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
        return Some(WrittenRequest { verb: *verb, target, body: Some(Value::Object(params)) });
    }
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(params.into_iter().map(|(name, value)| (name, text(value))));
    let query = query.finish();
    if !query.is_empty() {
        target = format!("{target}?{query}");
    }
    Some(WrittenRequest { verb: *verb, target, body: None })
}

/// Merges the parameters of body and query; the body takes precedence.
pub(crate) fn params(query: Option<&str>, body: &[u8]) -> Result<Map<String, Value>, A2aError> {
    let query = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut params: Map<_, _> =
        query.map(|(name, value)| (name.into_owned(), json!(value.into_owned()))).collect();
    if !body.trim_ascii().is_empty() {
        let Value::Object(members) = limits::read(body)? else {
            return Err(A2aError::new(ErrorKind::InvalidRequest, "the body must be a JSON object"));
        };
        params.extend(members);
    }
    limits::check(&params)?;
    Ok(params)
}

/// Unreserved characters of a path (RFC 3986, section 2.3).
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

    /// Describes the call that a request decodes to.
    fn called(verb: Verb, target: &str, body: &str) -> String {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let Request { version, tenant, call } = read(verb, path, query, body.as_bytes());
        let tenant = tenant.map(|tenant| format!(" for {tenant}")).unwrap_or_default();
        match call {
            Ok((method, params)) => {
                format!("{version:?}{tenant} {} {}", method.name(), Value::Object(params))
            }
            Err(why) => format!("{version:?}{tenant} {:?}: {why}", why.kind),
        }
    }

    #[test]
    fn path_selects_method_version_and_tenant() {
        let push = r#"{"url": "http://x/", "taskId": "other", "task_id": "another"}"#;
        let told = [
            called(Verb::Post, "message:send", "{}"),
            called(Verb::Post, "acme/message:stream", "{}"),
            called(Verb::Get, "tasks/t?historyLength=2", ""),
            called(Verb::Get, "acme/tasks/t", ""),
            called(Verb::Get, "v1/tasks/t", ""),
            called(Verb::Get, "tasks/a%2Fb%3Ac", ""),
            called(Verb::Get, "tasks?pageSize=3&includeArtifacts=true&tenant=acme", ""),
            called(Verb::Post, "tasks/t:cancel", "{}"),
            called(Verb::Get, "tasks/t:subscribe", ""),
            called(Verb::Post, "tasks/t:subscribe", ""),
            called(Verb::Post, "tasks/t/pushNotificationConfigs", push),
            called(Verb::Get, "tasks/t/pushNotificationConfigs", ""),
            called(Verb::Get, "tasks/t/pushNotificationConfigs/c", ""),
            called(Verb::Delete, "acme/tasks/t/pushNotificationConfigs/c", ""),
            called(Verb::Get, "extendedAgentCard", ""),
            called(Verb::Get, "v1/card", ""),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        V1 SendMessage {}
        V1 for acme SendStreamingMessage {}
        V1 GetTask {"historyLength":"2","id":"t"}
        V1 for acme GetTask {"id":"t"}
        V03 GetTask {"id":"t"}
        V1 GetTask {"id":"a/b:c"}
        V1 for acme ListTasks {"includeArtifacts":"true","pageSize":"3","tenant":"acme"}
        V1 CancelTask {"id":"t"}
        V1 SubscribeToTask {"id":"t"}
        V1 SubscribeToTask {"id":"t"}
        V1 CreateTaskPushNotificationConfig {"taskId":"t","url":"http://x/"}
        V1 ListTaskPushNotificationConfigs {"taskId":"t"}
        V1 GetTaskPushNotificationConfig {"id":"c","taskId":"t"}
        V1 for acme DeleteTaskPushNotificationConfig {"id":"c","taskId":"t"}
        V1 GetExtendedAgentCard {}
        V03 GetExtendedAgentCard {}
        "#);
    }

    #[test]
    fn request_without_route_is_refused() {
        let told = [
            called(Verb::Get, "", ""),
            called(Verb::Get, "message:send", ""),
            called(Verb::Post, "tasks/t", "{}"),
            called(Verb::Get, "v1/acme/tasks/t", ""),
            called(Verb::Post, "message:send", "hi"),
            called(Verb::Post, "message:send", "[]"),
        ];
        insta::assert_snapshot!(told.join("\n"), @"
        V1 MethodNotFound: there is nothing to GET at `/`
        V1 MethodNotFound: there is nothing to GET at `/message:send`
        V1 MethodNotFound: there is nothing to POST at `/tasks/t`
        V03 MethodNotFound: there is nothing to GET at `/acme/tasks/t`
        V1 Parse: the request is not JSON: expected value at line 1 column 1
        V1 InvalidRequest: the body must be a JSON object
        ");
    }

    proptest! {
        /// A server decodes the request of a client in either version: path, query and body
        /// together restore the parameters.
        #[test]
        fn written_request_reads_back_unchanged(
            n in 0..Method::ALL.len(),
            old: bool,
            tenant in proptest::option::of("[a-z/]{1,8}"),
            ids in [".{1,20}", ".{1,20}"],
            said in "[a-z ]{0,20}",
        ) {
            let (version, method) =
                (if old { Version::V03 } else { Version::V1 }, Method::ALL[n]);
            let tenant = tenant.filter(|_| !old);
            let Value::Object(params) = json!({"id": ids[0], "taskId": ids[1], "said": said}) else {
                unreachable!()
            };
            let written = write(version, tenant.as_deref(), method, params.clone()).unwrap();
            let (path, query) = written.target.split_once('?').unwrap_or((&written.target, ""));
            let body = written.body.map(|body| body.to_string()).unwrap_or_default();
            let read = read(written.verb, path, Some(query), body.as_bytes());
            prop_assert_eq!(read, Request { version, tenant, call: Ok((method, params)) });
        }
    }
}
