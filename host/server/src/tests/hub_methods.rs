//! Tests of the hub's methods over REST: the same results and refusals as over JSON-RPC.

use super::TestDispatcher;
use crate::hub_methods;
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    error::ErrorKind,
    hub::methods::METHODS,
    id::{AgentId, TaskId, TenantId},
};
use a2a_hub_rpc::{dispatcher::RequestContext, jsonrpc::EncodedRefusal};
use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::header,
    response::Response,
};
use futures::StreamExt as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// URL of the hub for its clients.
const URL: &str = "http://127.0.0.1:8080/";

/// Response to a request that the guard has admitted.
async fn posted(stand: &TestDispatcher, caller: &Principal, path: &str, body: &str) -> Response {
    let request = Request::post(path).header(header::HOST, "127.0.0.1:8080");
    let mut request = request.body(Body::from(body.to_owned())).unwrap();
    request.extensions_mut().insert(caller.clone());
    hub_methods::call(State(stand.dispatcher.clone()), request).await
}

/// Status and body.
async fn rest(stand: &TestDispatcher, caller: &Principal, path: &str, body: &str) -> (u16, Value) {
    let response = posted(stand, caller, path, body).await;
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

/// Response over JSON-RPC.
async fn rpc(stand: &TestDispatcher, caller: &Principal, method: &str, params: &Value) -> Value {
    let of = RequestContext::of_hub(caller.clone(), URL, None);
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let text = match stand.dispatcher.respond(request.to_string(), &of).await {
        Ok(Some(Reply::One(text))) | Err(EncodedRefusal { text, .. }) => text,
        Ok(Some(Reply::Stream(_)) | None) => panic!("{method} has no single response"),
    };
    serde_json::from_slice(&text).unwrap()
}

fn reason(error: &Value) -> &str {
    error["error"]["details"][0]["reason"].as_str().unwrap_or_default()
}

/// Each method has the same outcome for each caller: its result, or its refusal with the status of
/// the REST binding.
#[tokio::test(start_paused = true)]
async fn rest_outcome_equals_json_rpc() {
    // Results with times, and one that changes with each call.
    const CHANGING: [&str; 9] = [
        "hub/ping",
        "hub/status",
        "hub/agents/list",
        "hub/agents/get",
        "hub/agents/health",
        "hub/plugins/refresh",
        "hub/people/add",
        "hub/people/role",
        "hub/people/remove",
    ];
    let stand = TestDispatcher::new().await;
    let program = Principal::AgentTask {
        agent: AgentId::parse("claude-code").unwrap(),
        task: TaskId::new("t"),
    };
    let callers =
        [Principal::Operator, Principal::Client("ci".to_owned()), program, Principal::Anonymous];
    let mut compared = 0;
    for method in METHODS.iter().filter(|it| it.name.starts_with("hub/") && !it.streams) {
        let params: Value = serde_json::from_str(method.example).unwrap();
        for caller in &callers {
            let expected = rpc(&stand, caller, method.name, &params).await;
            // The second way finds what the first one found.
            let undo = match method.name {
                "hub/people/add" => Some(("hub/people/remove", json!({ "name": "ada" }))),
                "hub/people/remove" => {
                    Some(("hub/people/add", json!({ "name": "ada", "role": "member" })))
                }
                _ => None,
            };
            if let Some((undo, params)) = undo.filter(|_| expected["result"].is_object()) {
                rpc(&stand, caller, undo, &params).await;
            }
            let path = format!("/{}", method.name);
            let (status, told) = rest(&stand, caller, &path, method.example).await;
            let case = format!("{} {caller}: {told}", method.name);
            if let Some(refused) = expected["error"]["data"]["reason"].as_str() {
                let kind = ErrorKind::ALL.into_iter().find(|kind| kind.reason() == refused);
                // A reason of one method alone comes with a status of its kind.
                let status_of_kind = kind.map_or(status, |kind| kind.official().http);
                assert!(status == status_of_kind && status >= 400, "{case}");
                if kind.is_some() {
                    assert_eq!(reason(&told), refused, "{case}");
                }
                assert_eq!(told["error"]["message"], expected["error"]["message"], "{case}");
            } else {
                assert_eq!(status, 200, "{case}");
                if !CHANGING.contains(&method.name) {
                    assert_eq!(told, expected["result"], "{case}");
                }
            }
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

#[tokio::test(start_paused = true)]
async fn unreadable_rest_requests_are_explained() {
    let stand = TestDispatcher::new().await;
    let deep = "[".repeat(200);
    for (path, body, status, why) in [
        ("/hub/agents/list", "", 200, ""),
        ("/hub/agents/list", "{}", 200, ""),
        ("/hub/", "{}", 404, "`rpc.discover` lists them"),
        ("/hub/no/such", "{}", 404, "`rpc.discover` lists them"),
        ("/hub/message/send", "{}", 404, "no method is called `hub/message/send`"),
        ("/hub/agents/list/", "{}", 404, "`rpc.discover`"),
        ("/hub/agents/list", "x", 400, "the request is not JSON"),
        ("/hub/agents/list", "[]", 400, "must be a JSON object"),
        ("/hub/agents/list", &deep, 400, "not JSON"),
        ("/hub/agents/get", "{}", 400, "missing field `agentId`"),
        ("/hub/agents/get", r#"{"agentId": 5}"#, 400, "agentId"),
        ("/hub/questions/answer", r#"{"ids": [], "answer": "allow"}"#, 400, "`ids`"),
        ("/hub/questions/list", r#"{"tenant": "../x"}"#, 400, "`tenant`"),
    ] {
        let (got, told) = rest(&stand, &Principal::Operator, path, body).await;
        assert_eq!(got, status, "{path} {body}: {told}");
        if status != 200 {
            assert_eq!(told["error"]["code"], status, "{told}");
            let message = told["error"]["message"].as_str().unwrap();
            assert!(message.contains(why), "{path} {body}: {message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rest_tenant_is_that_of_caller() {
    let tenants: BTreeSet<_> =
        ["acme", "other"].into_iter().map(|name| TenantId::parse(name).unwrap()).collect();
    let stand = TestDispatcher::of_tenants(8, tenants).await;
    let acme = Principal::Client("acme".to_owned());
    for (caller, tenant, is_allowed) in [
        (&acme, "acme", true),
        (&acme, "", true),
        (&acme, "other", false),
        (&acme, "nobody", false),
        (&Principal::Operator, "other", true),
        (&Principal::Operator, "nobody", false),
    ] {
        let params = json!({ "tenant": tenant });
        let path = "/hub/questions/list";
        let (status, told) = rest(&stand, caller, path, &params.to_string()).await;
        let expected = rpc(&stand, caller, "hub/questions/list", &params).await;
        assert_eq!(status == 200, is_allowed, "{caller} {tenant}: {told}");
        assert_eq!(expected["error"].is_null(), is_allowed, "{caller} {tenant}: {expected}");
        assert_eq!(told["error"]["message"], expected["error"]["message"], "{caller} {tenant}");
    }
}

#[tokio::test(start_paused = true)]
async fn streaming_method_sends_events() {
    let wide = TestDispatcher::new().await;
    let (status, told) = rest(&wide, &Principal::Anonymous, "/hub/events", "").await;
    assert_eq!((status, reason(&told)), (401, "AUTHENTICATION_ERROR"));
    let stand = TestDispatcher::with_streams(1).await;
    let response = posted(&stand, &Principal::Operator, "/hub/events", "").await;
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    let mut events = response.into_body().into_data_stream();
    let busy = posted(&stand, &Principal::Operator, "/hub/events", "").await;
    assert_eq!(
        (busy.status().as_u16(), &busy.headers()[header::RETRY_AFTER]),
        (503, &"1".parse().unwrap())
    );
    let send = json!({ "message": { "messageId": "m", "role": "user",
        "parts": [{ "kind": "text", "text": "hi" }], "metadata": { "targetAgent": "claude-code" } } });
    let sent = rpc(&stand, &Principal::Operator, "message/send", &send).await;
    assert!(sent["result"].is_object(), "{sent}");
    let mut text = String::new();
    while !text.contains("data: {") {
        let chunk: Bytes = events.next().await.unwrap().unwrap();
        text += std::str::from_utf8(&chunk).unwrap();
    }
    assert!(text.starts_with("retry: 1000\n"), "{text}");
    let event = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    assert!(event.get("jsonrpc").is_none(), "without an envelope: {event}");
}
