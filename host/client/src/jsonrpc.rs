//! JSON-RPC: one URL for all requests, and an object with a result or an error as each response.

use crate::{answer, error::ClientError, interface::SelectedInterface};
use a2a_hub_protocol::{
    binding::jsonrpc::write_request, dialect, error::A2aError, operation::Operation,
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
    let tenant = interface.tenant.as_deref();
    let (method, params) = dialect::jsonrpc::write(interface.wire.version, tenant, operation)?;
    let accept = if operation.streams() { "text/event-stream" } else { "application/json" };
    let request = Request::post(interface.url.as_str())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, accept);
    Some((request, Bytes::from(write_request(1, method, &params))))
}

/// Reads the result of a response.
pub(crate) fn read(status: StatusCode, text: &[u8]) -> Result<Value, ClientError> {
    let mut answer = answer::json(status, text)?;
    // Some servers answer each request as a batch.
    if let Some([one]) = answer.as_array_mut().map(Vec::as_mut_slice) {
        answer = one.take();
    }
    let error = answer.get("error").filter(|error| !error.is_null());
    match (
        error.map(|error| (A2aError::read_foreign(error), error.get("code"))),
        answer.get("result"),
    ) {
        (Some((Some(mut why), code)), _) => {
            match code.filter(|code| !code.is_null()) {
                Some(code) => why.message = format!("{} ({code})", why.message),
                // A gateway's error has no code either, and the agent itself decided nothing.
                None if status.is_server_error() => {
                    return Err(ClientError::senseless(status, &why.message));
                }
                None => {}
            }
            return Err(ClientError::Refused(why));
        }
        (Some((None, _)), None | Some(Value::Null)) => {
            return Err(ClientError::senseless(status, "its error does not say why"));
        }
        // Some servers write an empty error beside each result.
        (Some((None, _)), Some(_)) | (None, _) => {}
    }
    let result = answer.get_mut("result").map(Value::take);
    result.ok_or_else(|| ClientError::senseless(status, "it has neither a result nor an error"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::{reshaped, shapes};
    use a2a_hub_protocol::error::ErrorKind;
    use serde_json::json;

    #[test]
    fn response_of_unexpected_shape_is_refused() {
        for shape in shapes() {
            let why = read(StatusCode::OK, shape.to_string().as_bytes()).unwrap_err();
            assert!(matches!(why, ClientError::Senseless { .. }), "{shape}: {why}");
        }
        let data = json!([{ "reason": "TASK_NOT_FOUND", "@type": "x", "metadata": { "a": "b" } }]);
        let error = json!({ "code": -32001, "message": "no", "data": data });
        for answer in [json!({ "id": 1, "result": { "a": 1 } }), json!({ "id": 1, "error": error })]
        {
            for other in reshaped(&answer) {
                let _ = read(StatusCode::OK, other.to_string().as_bytes());
            }
        }
    }

    #[test]
    fn faulty_response_loses_only_the_fault() {
        for (text, result) in [
            (
                &br#"{"id":1,"result":{"text":"half \ud83d"}}"#[..],
                json!({ "text": "half \u{fffd}" }),
            ),
            (b"\xef\xbb\xbf{\"result\":[\"caf\xe9\", NaN]}", json!(["caf\u{fffd}", null])),
        ] {
            assert_eq!(read(StatusCode::OK, text).unwrap(), result);
        }
    }

    #[test]
    fn errors_of_odd_form_are_read() {
        let told = [
            json!("no such agent"),
            json!({ "message": "no" }),
            json!({ "code": "-32001", "message": "gone" }),
            json!({ "code": -32001.0, "message": ["gone"] }),
            json!({ "code": 1e300 }),
            json!({ "code": null, "message": "no" }),
            json!({}),
            json!(true),
        ]
        .map(|error| {
            let text = json!({ "id": "odd", "error": error }).to_string();
            read(StatusCode::OK, text.as_bytes()).unwrap_err().to_string()
        });
        insta::assert_snapshot!(told.join("\n"), @r#"
        the agent refused: no such agent
        the agent refused: no
        the agent refused: gone ("-32001")
        the agent refused: ["gone"] (-32001.0)
        read the answer, which came with HTTP status 200 OK: its error does not say why
        the agent refused: no
        read the answer, which came with HTTP status 200 OK: its error does not say why
        read the answer, which came with HTTP status 200 OK: its error does not say why
        "#);
        let beside = json!({ "id": 1, "result": { "a": 1 }, "error": {} }).to_string();
        assert_eq!(read(StatusCode::OK, beside.as_bytes()).unwrap(), json!({ "a": 1 }));
        let batch = json!([{ "id": 1, "result": { "a": 1 } }]).to_string();
        assert_eq!(read(StatusCode::OK, batch.as_bytes()).unwrap(), json!({ "a": 1 }));
    }

    #[test]
    fn errors_of_both_versions_are_read() {
        let error =
            |data: Value| json!({ "code": -32001, "message": "Task not found", "data": data });
        for data in [Value::Null, json!([{ "reason": "TASK_NOT_FOUND" }]), json!({ "x": 1 })] {
            let text = json!({ "jsonrpc": "2.0", "id": 1, "error": error(data) }).to_string();
            let Err(ClientError::Refused(why)) = read(StatusCode::OK, text.as_bytes()) else {
                panic!("it was refused")
            };
            assert_eq!(
                (why.kind, why.message.as_str()),
                (ErrorKind::TaskNotFound, "Task not found (-32001)")
            );
        }
        for text in ["", "<html>", "{}", r#"{"error": "no"}"#] {
            let why = read(StatusCode::BAD_GATEWAY, text.as_bytes()).unwrap_err();
            assert!(why.is_passing(), "{text}");
        }
    }
}
