//! HTTP requests: granted ones are sent; others, and excessive ones, are refused with a message.

use crate::stage::Stage;
use a2a_hub_runtime::{Failure, Limits};
use std::time::Duration;
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn http_granted() {
    let stage = Stage::granting();
    assert_eq!(
        stage.said("request DELETE https://web.test/v1/1 x=y").await,
        "denied: send `DELETE https://web.test:443/v1/1`: the agent's own manifest allows there only the methods GET, HEAD, POST"
    );
    assert_eq!(
        stage.said("fetch https://web.test/v1/1").await,
        format!("200: {}", "x".repeat(1024))
    );
    assert_eq!(stage.said("pieces https://web.test/v1/3").await, "200: 3072 bytes");
    let sent = &stage.seen().sent;
    assert_eq!((sent.len(), sent[0].admitted.url.as_str()), (2, "https://web.test/v1/1"));
}

#[tokio::test]
async fn http_denied() {
    let nothing = Stage::default().said("fetch https://web.test/v1").await;
    assert!(nothing.starts_with("denied: send a request to `web.test`: not granted"), "{nothing}");
    assert!(nothing.contains("[agents.test-guest.grant.http.\"web.test\"]"), "{nothing}");
    let stage = Stage::granting();
    for url in [
        "https://other.test/v1",
        "http://web.test/v1",
        "https://web.test:8443/v1",
        "https://web.test/v2",
        "https://web.test/v1/../v2",
        "https://web.test/v1/%2e%2e/v2",
        "https://127.0.0.1/v1",
        "https://2130706433/v1",
        "https://[::1]/v1",
    ] {
        let said = stage.said(&format!("fetch {url}")).await;
        assert!(said.starts_with("denied: "), "{url}: {said}");
        let said = stage.said(&format!("pieces {url}")).await;
        assert!(said.starts_with("denied: "), "{url}: {said}");
    }
    for url in ["https://user@web.test/v1", "https://web.test./v1", "web.test/v1"] {
        let said = stage.said(&format!("fetch {url}")).await;
        assert!(said.starts_with("invalid: "), "{url}: {said}");
    }
    assert!(stage.seen().sent.is_empty());
}

#[tokio::test]
async fn smuggled_requests_are_refused() {
    let stage = Stage::granting();
    assert_eq!(stage.said("smuggle https://web.test/v1").await, "0 of 14 were sent");
    let many = "x=y ".repeat(101);
    let said = stage.said(&format!("request GET https://web.test/v1 {many}")).await;
    assert!(said.starts_with("invalid: send a request with 101 headers"), "{said}");
    assert!(stage.seen().sent.is_empty());
}

/// A language's usual HTTP library uses the same egress.
#[tokio::test]
async fn wasi_http_follows_the_grant() {
    let stage = Stage::granting();
    let said = stage.said("wasi-fetch GET https://web.test/v1/2").await;
    assert_eq!(said, format!("200\nx-test: y\n{}", "x".repeat(2048)));
    assert!(stage.said("wasi-fetch POST https://web.test/v1/1").await.starts_with("200\n"));
    {
        let sent = &stage.seen().sent;
        assert_eq!((sent.len(), sent[1].body.as_slice()), (2, b"hello".as_slice()));
        assert_eq!(sent[0].headers, [("x-own".to_owned(), "1".to_owned())]);
    }
    for (request, word) in [
        ("GET https://other.test/v1", "not granted"),
        ("GET http://web.test/v1", "allows there only `https:`"),
        ("GET https://web.test/v1/../v2", "plain paths"),
        ("DELETE https://web.test/v1", "only the methods"),
        ("GET https://127.0.0.1/v1", "not granted"),
        ("GET https://web.test/v1/endless", "99328 bytes, and"),
    ] {
        let limits = Limits { http_bytes: 100_000, ..Limits::default() };
        let said =
            Stage { limits, ..Stage::granting() }.said(&format!("wasi-fetch {request}")).await;
        assert!(said.starts_with("refused: ") && said.contains(word), "{request}: {said}");
    }
    assert!(stage.said("wasi-fetch GET https://me@web.test/v1").await.starts_with("refused: "));
    assert_eq!(stage.seen().sent.len(), 2);
}

#[tokio::test]
async fn http_traffic_is_limited() {
    let limits = Limits { http_requests: 3, http_bytes: 100_000, ..Limits::default() };
    let stage = Stage { limits, ..Stage::granting() };
    let said = stage.said("requests 9 https://web.test/v1").await;
    assert!(
        said.starts_with("exhausted: send a request") && said.contains("`http_requests`"),
        "{said}"
    );
    assert_eq!(stage.seen().sent.len(), 3);
    for behaviour in ["fetch", "pieces"] {
        let said = stage.said(&format!("{behaviour} https://web.test/v1/endless")).await;
        assert!(said.starts_with("exhausted: ") && said.contains("`http_bytes`"), "{said}");
    }
    let stage = Stage::granting();
    let said = stage.said("fetch https://web.test/v1/endless").await;
    assert!(said.starts_with("exhausted: read an answer whole"), "{said}");
    let said = stage.said("exchanges https://web.test/v1").await;
    assert!(said.starts_with("exhausted: send a request: 16 of this task are under way"), "{said}");
}

#[tokio::test]
async fn response_and_program_are_awaited_together() {
    let stage = Stage::granting();
    // Three pieces and the end, which come before the program's.
    let slow = stage.said("any-of 5000 https://web.test/v1/slow/3").await;
    assert_eq!(slow, "[0, 2] [0, 2] [0, 2] [0, 2]");
    // The timeout expires in between, and nothing is lost.
    let impatient = stage.said("any-of 60 https://web.test/v1/slow/1").await;
    assert_eq!(impatient, "[] [0, 2] [] [0, 2]");
    let program = stage.said("any-of 5000 https://web.test/v1/slow/100").await;
    assert!(program.ends_with("[1]"), "{program}");
    assert_eq!(stage.said("wait").await, "the quick one");
}

#[tokio::test]
async fn cancel_ends_read_at_once() {
    for behaviour in ["pieces", "any-of 60000", "fetch"] {
        let stage = Stage::granting();
        let mut guest = stage.start(&format!("{behaviour} https://web.test/v1/slow/600"));
        while stage.seen().sent.is_empty() {
            tokio::task::yield_now().await;
        }
        sleep(Duration::from_millis(50)).await;
        guest.cancel();
        let ended = timeout(Duration::from_secs(1), guest.ended()).await.expect("it heeds cancel");
        assert_eq!(ended, a2a_hub_runtime::Ended::Failed(Failure::Cancelled), "{behaviour}");
    }
}
