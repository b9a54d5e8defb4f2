//! Tests of the client with servers that answer oddly: what can be read reaches the caller, and the
//! rest is a clear error.

use crate::{A2aClient, Outbound, RemoteTaskStream, card};
use a2a_hub_protocol::{
    event::StreamResponse,
    id::TaskId,
    message::{Message, Role, joined_text},
    operation::SendMessage,
};
use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
    task::JoinSet,
    time::timeout,
};

/// Time for one case, which includes at most two pauses of a second.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Response to one request, byte by byte.
type Raw = Vec<u8>;

/// Serves each connection's only request with the next response; the last one repeats.
async fn serve(responses: Vec<Raw>) -> (String, JoinSet<()>) {
    let (url, serving, _) = serve_and_record(responses).await;
    (url, serving)
}

/// Bodies of the requests to a server, in order.
type RecordedRequests = Arc<Mutex<Vec<Value>>>;

/// As [`serve`], with the requests.
async fn serve_and_record(responses: Vec<Raw>) -> (String, JoinSet<()>, RecordedRequests) {
    let requests = RecordedRequests::default();
    let recorded = Arc::clone(&requests);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut next = 0;
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while stream.read_line(&mut line).await.unwrap() > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.unwrap();
            recorded.lock().push(serde_json::from_slice(&body).unwrap_or_default());
            let response = &responses[next.min(responses.len() - 1)];
            next += 1;
            stream.write_all(response).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    (url, serving, requests)
}

/// Client of the agent at this URL, whose card declares streaming.
fn client(url: &str) -> A2aClient {
    let card = json!({
        "name": "odd", "capabilities": { "streaming": true },
        "supportedInterfaces": [{ "url": url, "protocolBinding": "JSONRPC" }],
    });
    let base = card::base(url).unwrap();
    A2aClient::of_card(Outbound::unguarded(), &base, None, &[], &card).unwrap()
}

/// Events that the caller of a stream gets, separated by dots.
async fn collect_events(responses: Vec<Raw>) -> String {
    let (url, _serving) = serve(responses).await;
    let agent = client(&url);
    let send = SendMessage::new(Message::text(Role::User, "hi"), None).unwrap();
    let mut lines = Vec::new();
    let events = async {
        let mut stream = agent.stream(send).await?;
        while let Some(event) = stream.next().await {
            lines.push(line(event?));
        }
        Ok::<_, crate::ClientError>(())
    };
    if let Err(why) = timeout(TIMEOUT, events).await.expect("it hangs") {
        lines.push(format!("error: {}", why.to_string().replace(&url, "THERE")));
    }
    lines.join(" · ")
}

fn line(response: StreamResponse) -> String {
    match response {
        StreamResponse::Task(task) => {
            let texts = task.artifacts.iter().map(|artifact| joined_text(&artifact.parts));
            format!("{} {} {}", task.id, task.status.state.name(), texts.collect::<String>())
        }
        StreamResponse::Message(message) => format!("message {}", message.joined_text()),
        StreamResponse::Status { task, update, .. } => {
            let text =
                update.status.message.map(|message| message.joined_text()).unwrap_or_default();
            format!("{task} {} {text}", update.status.state.name())
        }
        StreamResponse::Artifact { task, update, .. } => {
            let operator = if update.append { "+=" } else { "=" };
            format!("{task} {operator} {}", joined_text(&update.artifact.parts))
        }
    }
    .trim_end()
    .to_owned()
}

fn response(status: &str, headers: &[&str], body: &[u8]) -> Raw {
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
    [head.as_bytes(), b"\r\n", body].concat()
}

/// Stream of these bytes, whose end is the end of the connection.
fn stream(body: &[&str]) -> Vec<Raw> {
    vec![response("200 OK", &["Content-Type: text/event-stream"], body.concat().as_bytes())]
}

fn json(body: &Value) -> Raw {
    response("200 OK", &["Content-Type: application/json"], body.to_string().as_bytes())
}

fn result(result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": result })
}

/// Event with a result, and this line ending.
fn event_by(end: &str, value: &Value) -> String {
    format!("data: {}{end}{end}", result(value))
}

fn event(value: &Value) -> String {
    event_by("\n", value)
}

fn task(state: &str) -> Value {
    json!({ "task": { "id": "t", "contextId": "c", "status": { "state": state } } })
}

fn status(state: &str) -> Value {
    json!({ "statusUpdate": { "taskId": "t", "contextId": "c", "status": { "state": state } } })
}

fn artifact(text: &str, append: bool) -> Value {
    json!({ "artifactUpdate": { "taskId": "t", "contextId": "c", "append": append,
        "artifact": { "artifactId": "a", "parts": [{ "text": text }] } } })
}

fn working() -> String {
    event(&task("TASK_STATE_WORKING"))
}

fn done() -> String {
    event(&status("TASK_STATE_COMPLETED"))
}

/// Runs all cases at once, and returns one line for each.
async fn table(cases: Vec<(&str, Vec<Raw>)>) -> String {
    let lines = cases
        .into_iter()
        .map(async |(name, responses)| format!("{name}: {}", collect_events(responses).await));
    join_all(lines).await.join("\n")
}

#[tokio::test]
async fn odd_stream_items_lose_no_readable_event() {
    let (working, done, x) = (&*working(), &*done(), &*event(&artifact("x", false)));
    let lone =
        ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"].map(|state| event_by("\r", &status(state)));
    let state = event(
        &json!({ "statusUpdate": { "taskId": "t", "status": { "state": "TASK_STATE_PONDERING",
        "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "hm" }] } } } }),
    );
    let parts = event(&json!({ "artifactUpdate": { "taskId": "t", "artifact":
        { "artifactId": "a", "parts": [{ "hologram": {} }, { "text": "x" }] } } }));
    let only = event(
        &json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "only" }] } }),
    );
    let numbers = event(&json!({ "statusUpdate": { "taskId": 7, "contextId": 8,
        "status": { "state": 3, "timestamp": 1_700_000_000 } } }));
    let bare = format!("data: {}\n\n", artifact("bare", false));
    let nameless =
        event(&json!({ "artifactUpdate": { "artifact": { "parts": [{ "text": "x" }] } } }));
    let told = table(vec![
        ("lone CR", stream(&[&lone[0], &lone[1]])),
        ("CRLF", stream(&[&working.replace('\n', "\r\n"), &done.replace('\n', "\r\n")])),
        ("BOM", stream(&["\u{feff}", &only])),
        ("empty data", stream(&[working, "id: 5\ndata: \n\n", "data\n\n", x, done])),
        (
            "ping and comment",
            stream(&[": hi\n\n", working, "event: ping\ndata: {}\n\n", ": on\n\n", x, done]),
        ),
        (
            "event of unknown kind",
            stream(&[working, &event(&json!({ "brandNew": { "a": 1 } })), x, done]),
        ),
        (
            "event that is no JSON",
            stream(&[working, "data: [DONE]\n\n", "data: {\"cut\":\n\n", x, done]),
        ),
        ("event without envelope", stream(&[working, &bare, done])),
        ("unknown state", stream(&[working, &state, x, done])),
        ("unknown part", stream(&[working, &parts, done])),
        ("numbers as ids", stream(&[&numbers])),
        ("no ids", stream(&[working, &nameless, done])),
        ("append to nothing", stream(&[working, &event(&artifact("x", true)), done])),
        ("final event twice", stream(&[working, done, done, x])),
        (
            "state that goes back",
            stream(&[working, &event(&task("TASK_STATE_SUBMITTED")), done, working]),
        ),
    ])
    .await;
    insta::assert_snapshot!(told, @"
    lone CR: t working · t completed
    CRLF: t working · t completed
    BOM: message only
    empty data: t working · t = x · t completed
    ping and comment: t working · t = x · t completed
    event of unknown kind: t working · t = x · t completed
    event that is no JSON: t working · t = x · t completed
    event without envelope: t working · t = bare · t completed
    unknown state: t working · t unknown hm · t = x · t completed
    unknown part: t working · t = x · t completed
    numbers as ids: 7 completed
    no ids: t working · t = x · t completed
    append to nothing: t working · t += x · t completed
    final event twice: t working · t completed
    state that goes back: t working · t submitted · t completed
    ");
}

#[tokio::test]
async fn odd_http_responses_are_read_or_explained() {
    let (working, done) = (&*working(), &*done());
    let whole =
        |headers: &[&str]| vec![response("200 OK", headers, [working, done].concat().as_bytes())];
    let busy = |status: &str, after: &str| {
        response(status, &["Content-Type: text/plain", &format!("Retry-After: {after}")], b"busy")
    };
    let chunked = |body: &str, end: &str| {
        let body = format!("{:x}\r\n{body}\r\n{end}", body.len());
        response(
            "200 OK",
            &["Content-Type: text/event-stream", "Transfer-Encoding: chunked"],
            body.as_bytes(),
        )
    };
    let over = json(&result(&task("TASK_STATE_COMPLETED")));
    let gone = json(
        &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32001, "message": "no such task" } }),
    );
    let error = |error: Value| json(&json!({ "jsonrpc": "2.0", "id": null, "error": error }));
    let told = table(vec![
        ("media type in capitals", whole(&["Content-Type: Text/Event-Stream; Charset=UTF-8"])),
        (
            "one 503",
            [
                vec![busy("503 Service Unavailable", "0")],
                whole(&["Content-Type: text/event-stream"]),
            ]
            .concat(),
        ),
        (
            "one 429",
            [
                vec![busy("429 Too Many Requests", "Sun, 06 Nov 1994 08:49:37 GMT")],
                vec![over.clone()],
            ]
            .concat(),
        ),
        ("503 again and again", vec![busy("503 Service Unavailable", "0")]),
        (
            "503 without a time",
            vec![response("503 Service Unavailable", &[], b"busy"), over.clone()],
        ),
        ("error as text", vec![error(json!("no such agent"))]),
        ("error without code", vec![error(json!({ "message": "not today" }))]),
        ("code as text", vec![error(json!({ "code": "-32001", "message": "gone" }))]),
        ("web page", vec![response("200 OK", &["Content-Type: text/html"], b"<html>hi</html>")]),
        ("text", vec![response("200 OK", &["Content-Type: text/plain"], b"hello\x1b[2J")]),
        ("nothing", vec![response("204 No Content", &[], b"")]),
        ("empty", vec![response("200 OK", &["Content-Type: application/json"], b"")]),
        ("redirect", vec![response("307 Temporary Redirect", &["Location: http://x/"], b"")]),
        (
            "gzip",
            vec![response(
                "200 OK",
                &["Content-Type: application/json", "Content-Encoding: gzip"],
                b"\x1f\x8b\x08",
            )],
        ),
        (
            "half JSON",
            vec![response("200 OK", &["Content-Type: application/json"], b"{\"result\": {\"ta")],
        ),
        ("null result", vec![json(&result(&Value::Null))]),
        ("cut stream, task over", vec![chunked(working, "fffff\r\ndata: {"), over.clone()]),
        ("cut stream, task gone", vec![chunked(working, "fffff\r\ndata: {"), gone.clone()]),
        ("stream without an event", stream(&[": hi\n\n"])),
        ("stream of unknown events", stream(&["data: [DONE]\n\n"])),
        ("error in stream", stream(&[working, "event: error\ndata: out of tokens\n\n", done])),
        (
            "refusal in stream",
            stream(&[
                working,
                "data: {\"error\": {\"code\": -32603, \"message\": \"broke\"}}\n\n",
                done,
            ]),
        ),
        ("one response in place of a stream", vec![over]),
        (
            "batch in place of a response",
            vec![json(&json!([result(&task("TASK_STATE_COMPLETED"))]))],
        ),
    ])
    .await;
    insta::assert_snapshot!(told, @r#"
    media type in capitals: t working · t completed
    one 503: t working · t completed
    one 429: t completed
    503 again and again: error: read the answer, which came with HTTP status 503 Service Unavailable: it is no JSON (expected value at line 1 column 1): "busy"
    503 without a time: error: read the answer, which came with HTTP status 503 Service Unavailable: it is no JSON (expected value at line 1 column 1): "busy"
    error as text: error: the agent refused: no such agent
    error without code: error: the agent refused: not today
    code as text: error: the agent refused: gone ("-32001")
    web page: error: read the answer, which came with HTTP status 200 OK: it is a web page, and no JSON; look whether the URL is that of the agent
    text: error: read the answer, which came with HTTP status 200 OK: it is no JSON (expected value at line 1 column 1): "hello[2J"
    nothing: error: read the answer, which came with HTTP status 204 No Content: it is empty
    empty: error: read the answer, which came with HTTP status 200 OK: it is empty
    redirect: error: read the answer, which came with HTTP status 307 Temporary Redirect: it points elsewhere to "http://x/", and nobody is followed unseen; give that URL if it is the right one
    gzip: error: read the answer, which came with HTTP status 200 OK: it is compressed with "gzip", which the request did not allow
    half JSON: error: read the answer, which came with HTTP status 200 OK: it broke off: EOF while parsing a string at line 1 column 15
    null result: error: read the answer, which came with HTTP status 200 OK: `result`: must be an object
    cut stream, task over: t working · t completed
    cut stream, task gone: t working · error: the agent refused: no such task (-32001)
    stream without an event: error: read the answer: it ended before the task did
    stream of unknown events: error: read the answer: it ended before the task did; an event of it was skipped: it is no JSON (expected value at line 1 column 2): "[DONE]"
    error in stream: t working · error: the agent refused: out of tokens
    refusal in stream: t working · error: the agent refused: broke (-32603)
    one response in place of a stream: t completed
    batch in place of a response: t completed
    "#);
}

/// Error of JSON-RPC.
fn refusal(code: i32, why: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": why } })
}

/// Sends the answer to a question of task `t`, and returns the events and the methods requested.
async fn answer_question(agent: &A2aClient, requests: &RecordedRequests) -> String {
    let mut message = Message::text(Role::User, "blue");
    message.task_id = Some(TaskId::new("t"));
    let send = SendMessage::new(message, None).unwrap();
    let stream = timeout(TIMEOUT, agent.stream(send)).await.expect("it hangs");
    events_and_methods(stream, requests).await
}

async fn events_and_methods(
    stream: Result<RemoteTaskStream, crate::ClientError>,
    requests: &RecordedRequests,
) -> String {
    let mut lines = Vec::new();
    let events = async {
        let mut stream = stream?;
        while let Some(event) = stream.next().await {
            lines.push(line(event?));
        }
        Ok::<_, crate::ClientError>(())
    };
    if let Err(why) = timeout(TIMEOUT, events).await.expect("it hangs") {
        lines.push(format!("error: {why}"));
    }
    let requests = std::mem::take(&mut *requests.lock());
    let methods = requests.iter().map(|body| body["method"].as_str().unwrap_or("-").to_owned());
    let methods = methods.collect::<Vec<_>>().join(" ");
    format!("{} [{methods}]", lines.join(" · "))
}

/// The official JavaScript SDK 1.3.0 refuses to stream the answer to a question if the agent's
/// first event is no whole task. Others know no streaming method, or have no route for it.
#[tokio::test]
async fn refused_follow_up_stream_is_polled() {
    let no_task_first =
        refusal(-32004, "Received statusUpdate before initial 'Message'/'Task' event.");
    let event_stream = ["Content-Type: text/event-stream"];
    let refusals = vec![
        ("unsupported operation", json(&no_task_first)),
        ("unknown method", json(&refusal(-32601, "no such method"))),
        (
            "refusal in stream",
            response(
                "200 OK",
                &event_stream,
                format!("event: error\ndata: {no_task_first}\n\n").as_bytes(),
            ),
        ),
        ("no route", response("404 Not Found", &["Content-Type: text/html"], b"Cannot POST /")),
        ("405", response("405 Method Not Allowed", &[], b"")),
        ("501", response("501 Not Implemented", &[], b"")),
    ];
    let lines = refusals.into_iter().map(async |(name, refused)| {
        let asking = json(&result(&task("TASK_STATE_INPUT_REQUIRED")));
        let working = json(&result(&task("TASK_STATE_WORKING")));
        let task_in = |state: &str| json(&result(&task(state)["task"]));
        let completed = || task_in("TASK_STATE_COMPLETED");
        let responses =
            vec![refused, asking, task_in("TASK_STATE_WORKING"), completed(), working, completed()];
        let (url, _serving, requests) = serve_and_record(responses).await;
        let agent = client(&url);
        let first = answer_question(&agent, &requests).await;
        // The refusal is remembered.
        let second = answer_question(&agent, &requests).await;
        format!("{name}: {first}; {second}")
    });
    let lines = join_all(lines).await.join("\n");
    insta::assert_snapshot!(lines, @"
    unsupported operation: t working · t completed [SendStreamingMessage SendMessage GetTask GetTask]; t working · t completed [SendMessage GetTask]
    unknown method: t working · t completed [SendStreamingMessage SendMessage GetTask GetTask]; t working · t completed [SendMessage GetTask]
    refusal in stream: t working · t completed [SendStreamingMessage SendMessage GetTask GetTask]; t working · t completed [SendMessage GetTask]
    no route: t working · t completed [SendStreamingMessage SendMessage GetTask GetTask]; t working · t completed [SendMessage GetTask]
    405: t working · t completed [SendStreamingMessage SendMessage GetTask GetTask]; t working · t completed [SendMessage GetTask]
    501: t working · t completed [SendStreamingMessage SendMessage GetTask GetTask]; t working · t completed [SendMessage GetTask]
    ");
}

#[tokio::test]
async fn refused_subscription_is_polled() {
    let task_in = |state: &str| json(&result(&task(state)["task"]));
    let refused = || json(&refusal(-32004, "Streaming is not supported"));
    let (working, completed) =
        (|| task_in("TASK_STATE_WORKING"), || task_in("TASK_STATE_COMPLETED"));
    let responses = vec![refused(), working(), working(), completed(), completed(), refused()];
    let (url, _serving, requests) = serve_and_record(responses).await;
    let agent = client(&url);
    let mut lines = Vec::new();
    for _ in 0..2 {
        let stream = agent.subscribe(TaskId::new("t"));
        lines.push(events_and_methods(Ok(stream), &requests).await);
    }
    insta::assert_snapshot!(lines.join("\n"), @"
    t working · t completed [SubscribeToTask GetTask GetTask GetTask]
    t completed [GetTask]
    ");
}

/// A refusal of the message itself is no refusal to stream.
#[tokio::test]
async fn twice_refused_message_is_an_error() {
    let refused = || json(&refusal(-32004, "task t is in a terminal state"));
    let streamed = stream(&[&done()]).remove(0);
    let (url, _serving, requests) = serve_and_record(vec![refused(), refused(), streamed]).await;
    let agent = client(&url);
    let lines =
        [answer_question(&agent, &requests).await, answer_question(&agent, &requests).await];
    insta::assert_snapshot!(lines.join("\n"), @"
    error: the agent refused: task t is in a terminal state (-32004) [SendStreamingMessage SendMessage]
    t completed [SendStreamingMessage]
    ");
}
