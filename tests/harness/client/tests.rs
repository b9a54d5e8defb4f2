//! Tests of both transports against a minimal hub.

use super::*;
use axum::{Json, Router, http::StatusCode, routing::post};
use tokio::{
    net::{TcpListener, UnixListener},
    task::JoinSet,
};

const STREAM: &str = ": hello\n\nid: 1\ndata: {\"result\":\ndata: {\"n\":1}}\n\nid: 2\ndata: {\"result\":{\"n\":2}}\n\n";

/// Client of an HTTP server that answers a call with `body`, and a streaming call with two results.
async fn http(owner: &mut JoinSet<io::Result<()>>, status: u16, body: Value) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let status = StatusCode::from_u16(status).unwrap();
    let router = Router::new()
        .route("/", post(async move || (status, Json(body))))
        .route("/stream", post(async || ([("content-type", "text/event-stream")], STREAM)));
    owner.spawn(async move { axum::serve(listener, router).await });
    Client(Wire::Http { client: reqwest::Client::new(), url, headers: HeaderMap::new() })
}

/// Client of a unix socket that answers a request with `lines`.
fn unix(owner: &mut JoinSet<io::Result<()>>, dir: &std::path::Path, lines: &'static str) -> Client {
    let socket = dir.join("hub.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    owner.spawn(async move {
        let (stream, _) = listener.accept().await?;
        let mut stream = BufReader::new(stream);
        stream.read_line(&mut String::new()).await?;
        stream.write_all(lines.as_bytes()).await
    });
    Client(Wire::Unix { socket })
}

#[tokio::test]
async fn call_returns_result_or_refusal() {
    let mut owner = JoinSet::new();
    let client = http(&mut owner, 200, json!({"result": {"id": "t"}})).await;
    assert_eq!(client.call("tasks/get", json!({})).await, Ok(json!({"id": "t"})));

    let error = json!({"error": {"code": -32001, "message": "no such task"}});
    let client = http(&mut owner, 404, error).await;
    let refused = client.call("tasks/get", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32001));
    assert_eq!(refused.to_string(), "the hub refused with -32001: no such task null");

    let dir = tempfile::tempdir().unwrap();
    let client = unix(&mut owner, dir.path(), "{\"result\":[1]}\n");
    assert_eq!(client.call("x", json!({})).await, Ok(json!([1])));
}

#[tokio::test]
async fn http_stream_has_event_ids() {
    let mut owner = JoinSet::new();
    let client = http(&mut owner, 200, Value::Null).await;
    let mut updates = client.stream("message/stream", json!({})).await.unwrap();
    assert_eq!(updates.next().await, Some(Ok(json!({"n": 1}))));
    assert_eq!(updates.last_event_id(), Some("1"));
    assert_eq!(updates.rest().await, Ok(vec![json!({"n": 2})]));
}

#[tokio::test]
async fn socket_stream_needs_end_marker() {
    let mut owner = JoinSet::new();
    let dir = tempfile::tempdir().unwrap();
    let lines = "{\"result\":1}\n{\"result\":{\"kind\":\"stream-end\"}}\n";
    let client = unix(&mut owner, dir.path(), lines);
    let updates = client.stream("message/stream", json!({})).await.unwrap();
    assert_eq!(updates.rest().await, Ok(vec![json!(1)]));

    let dir = tempfile::tempdir().unwrap();
    let client = unix(&mut owner, dir.path(), "{\"result\":1}\n");
    let updates = client.stream("message/stream", json!({})).await.unwrap();
    assert!(matches!(updates.rest().await, Err(RpcError::Lost(_))));
}
