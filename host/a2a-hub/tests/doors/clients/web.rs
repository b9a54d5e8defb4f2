//! Tests that a web page in the user's browser cannot reach the hub.

use crate::hub::InProcessHub;
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn web_page_cannot_reach_hub() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let client = reqwest::Client::new();
    let url = |path: &str| format!("http://{}{path}", hub.http());
    assert_eq!(client.get(url("/health")).send().await?.status(), 200);
    for path in ["/health", "/", "/stream", "/no-such-path"] {
        let rebound = client.get(url(path)).header("Host", "evil.example").send().await?;
        assert_eq!(rebound.status(), 403, "{path}");
    }
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "hub/status"}).to_string();
    let post = |media: &'static str| {
        client.post(url("/")).header("Content-Type", media).body(request.clone())
    };
    assert_eq!(post("application/json").send().await?.status(), 200);
    assert_eq!(post("text/plain").send().await?.status(), 415);
    let foreign = post("application/json").header("Origin", "http://evil.example").send().await?;
    assert_eq!(foreign.status(), 403);
    let page = client.get(url("/")).send().await?;
    assert_eq!(
        (page.status().as_u16(), &page.headers()["x-content-type-options"]),
        (200, &"nosniff".parse()?)
    );
    assert!(page.text().await?.contains("a2a-hub man"));
    assert_eq!(client.put(url("/")).send().await?.status(), 405);
    Ok(())
}

#[tokio::test]
async fn oversized_http_body_is_refused() -> Result<()> {
    let hub = InProcessHub::start().await?;
    let body = format!("\"{}\"", "x".repeat(9 << 20));
    let client = reqwest::Client::new();
    let post = client.post(format!("http://{}/", hub.http()));
    let refused = post.header("Content-Type", "application/json").body(body).send().await?;
    assert_eq!(refused.status(), 413);
    assert!(refused.text().await?.contains("larger than"));
    Ok(())
}
