//! REST: one URL per resource, and an HTTP status with each response.

use crate::{answer, error::ClientError, interface::SelectedInterface};
use a2a_hub_protocol::{
    binding::rest::WrittenRequest, dialect::rest, error::A2aError, interface::Version,
    operation::Operation,
};
use bytes::Bytes;
use http::{
    Request, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
    request::Builder,
};
use serde_json::Value;

/// Writes the request for an operation; `None` if the version has no such operation.
pub(crate) fn write(
    interface: &SelectedInterface,
    operation: &Operation,
) -> Option<(Builder, Bytes)> {
    let WrittenRequest { verb, target, body } =
        rest::write(interface.wire.version, interface.tenant.as_deref(), operation)?;
    let media = match interface.wire.version {
        Version::V1 => "application/a2a+json",
        Version::V03 => "application/json",
    };
    let url = format!("{}/{target}", interface.url.as_str().trim_end_matches('/'));
    let accept = if operation.streams() { "text/event-stream" } else { media };
    let mut request = Request::builder().method(verb.name()).uri(url).header(ACCEPT, accept);
    if body.is_some() {
        request = request.header(CONTENT_TYPE, media);
    }
    let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    Some((request, body))
}

/// Reads a response, or an event of a stream.
pub(crate) fn read(status: StatusCode, text: &[u8]) -> Result<Value, ClientError> {
    let body = answer::json(status, text)?;
    match A2aError::read_rest(status.as_u16(), &body) {
        Some(why) if status.is_success() => Err(ClientError::Refused(why)),
        Some(mut why) => {
            why.message = format!("{} (HTTP {})", why.message, status.as_u16());
            Err(ClientError::Refused(why))
        }
        None if status.is_success() => Ok(body),
        None => Err(ClientError::senseless(status, "it does not say why")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::reshaped;
    use a2a_hub_protocol::{dialect::Wire, error::ErrorKind, id::TaskId, interface::Binding};
    use serde_json::json;
    use url::Url;

    #[test]
    fn request_url_is_below_interface() {
        let asked = |version, tenant: Option<&str>, operation: &Operation| {
            let url = Url::parse("http://x/agent/rest/").unwrap();
            let tenant = tenant.map(str::to_owned);
            let wire = Wire { version, binding: Binding::Rest };
            let interface = SelectedInterface { url, wire, tenant };
            let (request, body) = write(&interface, operation).unwrap();
            let request = request.body(()).unwrap();
            let header = |name| request.headers().get(name).map(|it| it.to_str().unwrap());
            let media = (header(CONTENT_TYPE), header(ACCEPT));
            format!("{} {} {} {media:?}", request.method(), request.uri(), body.escape_ascii())
        };
        let id = || TaskId::new("t");
        let get = Operation::GetTask { id: id(), history_length: Some(1) };
        let told = [
            asked(Version::V1, Some("me"), &get),
            asked(Version::V03, None, &get),
            asked(Version::V1, None, &Operation::CancelTask { id: id() }),
            asked(Version::V03, None, &Operation::Resubscribe { id: id(), after: None }),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        GET http://x/agent/rest/me/tasks/t?historyLength=1  (None, Some("application/a2a+json"))
        GET http://x/agent/rest/v1/tasks/t?historyLength=1  (None, Some("application/json"))
        POST http://x/agent/rest/tasks/t:cancel {} (Some("application/a2a+json"), Some("application/a2a+json"))
        GET http://x/agent/rest/v1/tasks/t:subscribe  (None, Some("text/event-stream"))
        "#);
    }

    #[test]
    fn responses_of_unexpected_shapes_never_panic() {
        let gone = A2aError::new(ErrorKind::TaskNotFound, "gone");
        for answer in
            [json!({ "task": { "id": "t" } }), gone.to_rest_json(), gone.to_v03_rest_json()]
        {
            for other in reshaped(&answer) {
                for status in [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::BAD_GATEWAY] {
                    let _ = read(status, other.to_string().as_bytes());
                }
            }
        }
    }

    #[test]
    fn bare_http_status_is_an_error() {
        let told = |status: StatusCode, said: Value| match read(status, said.to_string().as_bytes())
        {
            Ok(said) => said.to_string(),
            Err(why) => format!("{why}, passing: {}", why.is_passing()),
        };
        let gone = A2aError::new(ErrorKind::TaskNotFound, "gone");
        let told = [
            told(StatusCode::OK, json!({"task": {}})),
            told(StatusCode::OK, gone.to_rest_json()),
            told(StatusCode::NOT_FOUND, gone.to_v03_rest_json()),
            told(StatusCode::CONFLICT, json!({"message": "over"})),
            told(StatusCode::NOT_FOUND, json!({"detail": "Not Found"})),
            told(StatusCode::BAD_GATEWAY, json!({"message": "no upstream"})),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        {"task":{}}
        the agent refused: gone, passing: false
        the agent refused: gone (HTTP 404), passing: false
        the agent refused: over (HTTP 409), passing: false
        read the answer, which came with HTTP status 404 Not Found: it does not say why, passing: false
        read the answer, which came with HTTP status 502 Bad Gateway: it does not say why, passing: true
        "#);
    }
}
