//! Headers of every request: the client's name, its token, and the trace of the message or of the
//! caller.

use a2a_hub_core::task::trace_context;
use a2a_hub_protocol::{operation::Operation, push::Secret, trace::TraceContext};
use http::{
    HeaderValue,
    header::{AUTHORIZATION, USER_AGENT},
    request::Builder,
};

/// Adds the name of this client, and `token` as a bearer token (RFC 6750), which is marked as
/// sensitive for logs.
pub(crate) fn signed(request: Builder, token: Option<&Secret>) -> Result<Builder, http::Error> {
    let request = request.header(USER_AGENT, concat!("a2a-hub/", env!("CARGO_PKG_VERSION")));
    let Some(token) = token else { return Ok(request) };
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))?;
    value.set_sensitive(true);
    Ok(request.header(AUTHORIZATION, value))
}

tokio::task_local! {
    static TRACE: TraceContext;
}

/// Runs `work` with a trace for its requests, including those without a message.
pub async fn with_trace<T>(trace: TraceContext, work: impl Future<Output = T>) -> T {
    TRACE.scope(trace, work).await
}

/// Adds the headers of the message's trace, or of the caller's trace if the request has no message.
pub(crate) fn traced(request: Builder, operation: &Operation) -> Builder {
    if let Operation::SendMessage(send) | Operation::StreamMessage(send) = operation {
        return in_trace(request, &trace_context::message_context(send.message.metadata.as_ref()));
    }
    let trace = TRACE.try_with(TraceContext::clone).unwrap_or_default();
    in_trace(request, &trace)
}

/// Adds the headers by which tracing systems recognize the trace. A value that does not fit into a
/// header, as the name of a workflow may not, is left out.
pub fn in_trace(mut request: Builder, trace: &TraceContext) -> Builder {
    for (name, value) in trace.entries() {
        if let Ok(value) = HeaderValue::from_str(value) {
            request = request.header(name, value);
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::TaskId,
        message::{Message, Role},
        operation::SendMessage,
    };
    use http::{HeaderMap, Request};
    use serde_json::{Value, json};

    fn headers(operation: &Operation) -> HeaderMap {
        traced(Request::builder(), operation).body(()).unwrap().headers().clone()
    }

    fn message(facts: &Value) -> Operation {
        let message =
            Message { metadata: facts.as_object().cloned(), ..Message::text(Role::User, "hi") };
        Operation::SendMessage(Box::new(SendMessage::new(message, None).unwrap()))
    }

    #[test]
    fn message_trace_is_sent_as_headers() {
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let said = headers(&message(&json!({
            "traceparent": traceparent, "tracestate": "a=1", "x-workflow-id": "release",
            "x-span-id": "b7ad6b7169203331", "x-parent-span-id": "none", "model": "m",
        })));
        let told: Vec<_> = said
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        insta::assert_snapshot!(told.join("\n"), @"
        traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
        tracestate: a=1
        x-workflow-id: release
        x-span-id: b7ad6b7169203331
        ");
        for facts in [
            json!({}),
            json!({ "traceparent": "x", "tracestate": "a=1" }),
            json!({ "x-workflow-id": "a\nb: c" }),
        ] {
            assert!(headers(&message(&facts)).is_empty(), "{facts}");
        }
        assert!(headers(&Operation::CancelTask { id: TaskId::new("t") }).is_empty());
    }

    #[tokio::test]
    async fn request_without_message_uses_callers_trace() {
        let trace = TraceContext { workflow: Some("release".to_owned()), ..Default::default() };
        let cancel = Operation::CancelTask { id: TaskId::new("t") };
        let said = with_trace(trace.clone(), async { headers(&cancel) }).await;
        assert_eq!(said["x-workflow-id"], "release");
        let own = json!({ "x-workflow-id": "own" });
        let said = with_trace(trace, async { headers(&message(&own)) }).await;
        assert_eq!(said["x-workflow-id"], "own", "a message's counts more");
    }
}
