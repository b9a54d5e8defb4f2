//! The server as a plain client sees it, in all four protocols.

use super::*;
use reqwest::{Client, Response};
use std::time::Duration;

const PATHS: [&str; 4] = [
    "/v1/messages?beta=true",
    "/v1/responses",
    "/v1/chat/completions",
    "/v1beta/models/m:streamGenerateContent?alt=sse",
];

/// The same prompt as a streaming request in each of the protocols.
fn request(path: &str, prompt: &str) -> Value {
    let said = json!([{"role": "user", "content": prompt}]);
    match path {
        "/v1/responses" => json!({"model": "m", "stream": true, "input": said}),
        path if path.starts_with("/v1beta") => {
            json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]})
        }
        _ => json!({"model": "m", "stream": true, "messages": said}),
    }
}

async fn post(server: &ModelServer, path: &str, prompt: &str) -> Response {
    let url = format!("{}{path}", server.url());
    Client::new().post(url).json(&request(path, prompt)).send().await.unwrap()
}

/// The events of a stream, and whether it came to its proper end.
async fn events(mut response: Response) -> (Vec<Value>, bool) {
    let mut text = String::new();
    let whole = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => text.push_str(std::str::from_utf8(&chunk).unwrap()),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    (data.filter_map(|data| serde_json::from_str(data).ok()).collect(), whole)
}

/// What the deltas of any of the protocols spell out.
fn spelled(events: &[Value]) -> String {
    let places =
        ["/delta/text", "/delta", "/choices/0/delta/content", "/candidates/0/content/parts/0/text"];
    let word =
        |event: &Value| places.iter().find_map(|at| event.pointer(at)?.as_str().map(str::to_owned));
    events.iter().filter_map(word).collect()
}

#[tokio::test]
async fn it_echoes_in_every_protocol() {
    let server = ModelServer::start().unwrap();
    for path in PATHS {
        let (events, whole) = events(post(&server, path, "say hi").await).await;
        assert_eq!(spelled(&events), "ECHO: say hi", "{path}");
        assert!(whole, "{path}");
    }
    let seen: Vec<_> = server.requests().into_iter().map(|seen| (seen.method, seen.path)).collect();
    assert_eq!(seen, PATHS.map(|path| ("POST".to_owned(), path.to_owned())));
}

#[tokio::test]
async fn a_request_without_stream_gets_one_document() {
    let server = ModelServer::start().unwrap();
    let url = format!("{}/v1/messages", server.url());
    let mut request = request("/v1/messages", "[[words:2]]");
    request["stream"] = false.into();
    let reply: Value =
        Client::new().post(url).json(&request).send().await.unwrap().json().await.unwrap();
    assert_eq!(reply["content"], json!([{"type": "text", "text": "w1 w2"}]));
    assert_eq!(reply["stop_reason"], "end_turn");
}

#[tokio::test]
async fn a_dropped_connection_breaks_off_after_some_words() {
    let server = ModelServer::start().unwrap();
    for path in PATHS {
        let (events, whole) = events(post(&server, path, "[[words:9]] [[drop]]").await).await;
        assert_eq!(spelled(&events), "w1 w2 w3 ", "{path}");
        assert!(!whole, "{path}");
    }
}

#[tokio::test]
async fn an_error_in_the_stream_is_its_last_event() {
    let server = ModelServer::start().unwrap();
    for path in PATHS {
        let (events, whole) = events(post(&server, path, "[[words:9]] [[errstream]]").await).await;
        assert!(events.last().unwrap().to_string().contains("mock mid-stream error"), "{path}");
        assert!(whole, "{path}");
    }
}

#[tokio::test]
async fn errors_last_as_often_as_asked() {
    let server = ModelServer::start().unwrap();
    for path in PATHS {
        let prompt = format!("[[error:429:1]] {path}");
        let refused = post(&server, path, &prompt).await;
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert_eq!(post(&server, path, &prompt).await.status(), 200);
    }
}

#[tokio::test]
async fn quota_resets_after_its_seconds() {
    let server = ModelServer::start().unwrap();
    for path in PATHS {
        let prompt = format!("[[usedup:1]] {path}");
        assert_eq!(post(&server, path, &prompt).await.status(), 429);
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        assert_eq!(post(&server, path, &prompt).await.status(), 200);
    }
}

#[tokio::test]
async fn it_asks_for_the_key_that_it_was_given() {
    let server = ModelServer::start().unwrap().with_key("sesame");
    for path in PATHS {
        assert_eq!(post(&server, path, "hi").await.status(), 401);
    }
    let url = format!("{}/v1/messages", server.url());
    for (name, value) in [("x-api-key", "sesame"), ("authorization", "Bearer sesame")] {
        let request = Client::new().post(&url).header(name, value);
        let response = request.json(&request_body()).send().await.unwrap();
        assert_eq!(response.status(), 200, "{name}");
    }
}

fn request_body() -> Value {
    request("/v1/messages", "hi")
}

#[tokio::test]
async fn it_asks_for_a_tool_and_tells_what_it_gave() {
    let server = ModelServer::start().unwrap();
    let url = format!("{}/v1/messages", server.url());
    let mut request = json!({
        "tools": [{"name": "Bash", "input_schema": {"properties": {"command": {}}}}],
        "messages": [{"role": "user", "content": "[[tool:shell:ls]]"}],
    });
    let ask = async |request: &Value| -> Value {
        Client::new().post(&url).json(request).send().await.unwrap().json().await.unwrap()
    };
    let call = &ask(&request).await["content"][0];
    assert_eq!((&call["name"], &call["input"]), (&"Bash".into(), &json!({"command": "ls"})));
    let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": "a.txt"});
    let turns = [
        json!({"role": "assistant", "content": [call]}),
        json!({"role": "user", "content": [result]}),
    ];
    request["messages"].as_array_mut().unwrap().extend(turns);
    let text = ask(&request).await["content"][0]["text"].to_string();
    assert!(text.contains("TOOL_RESULTS") && text.contains("a.txt"), "{text}");
}

#[tokio::test]
async fn first_canned_answer_that_fits_is_said() {
    let answer = |path, prompt: &str, answer: &str| CannedAnswer {
        path,
        prompt: prompt.into(),
        answer: answer.into(),
    };
    let answers = [
        answer("/responses", "vote", "no"),
        answer("", "vote", "yes"),
        answer("/messages", "vote", "never said"),
    ];
    let server = ModelServer::start().unwrap().with_answers(answers);
    let said = async |path: &str, prompt: &str, tools: Value| {
        let mut request = request(path, prompt);
        request["tools"] = tools;
        let url = format!("{}{path}", server.url());
        spelled(&events(Client::new().post(&url).json(&request).send().await.unwrap()).await.0)
    };
    let tools = json!([{"name": "read", "input_schema": {}}]);
    assert_eq!(said("/v1/messages", "please vote", tools.clone()).await, "yes");
    assert_eq!(said("/v1/responses", "please vote", tools.clone()).await, "no");
    assert_eq!(said("/v1/messages", "something else", tools).await, "ECHO: something else");
    assert_eq!(said("/v1/messages", "title of: vote", json!([])).await, "ECHO: title of: vote");
}

#[tokio::test]
async fn a_hanging_answer_ends_with_the_server() {
    let server = ModelServer::start().unwrap();
    let waiting = post(&server, PATHS[0], "[[slow:60000]] [[words:2]]").await;
    drop(server);
    let (_, whole) = tokio::time::timeout(Duration::from_secs(5), events(waiting)).await.unwrap();
    assert!(!whole);
}
