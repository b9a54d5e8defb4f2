//! HTTP requests that a starting hub answers: `GET /health` and `GET /ready`.

use super::hub_names::HubNames;
use crate::starting::{StartReaction, refusal};
use a2a_hub_protocol::operation::HubStart;
use a2a_hub_rpc::retry_after::RETRY_AFTER_SECONDS;
use serde_json::json;

/// End of a request's head.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Reaction to the bytes of a connection. Of the guard's checks, those of the host and of the
/// origin apply; the caller is not identified, and learns the numbers of agents only.
pub(super) fn react(bytes: &[u8], names: &HubNames, start: &HubStart) -> StartReaction {
    if bytes.is_empty() {
        return StartReaction::Incomplete;
    }
    let later = || StartReaction::Later(response("503 Service Unavailable", &refusal(start)));
    let end = bytes.windows(HEAD_END.len()).position(|part| part == HEAD_END);
    let Some((end, head)) = end.and_then(|end| Some((end, str::from_utf8(&bytes[..end]).ok()?)))
    else {
        return later();
    };
    let mut lines = head.split("\r\n");
    let status = match lines.next() {
        Some("GET /health HTTP/1.1" | "GET /health HTTP/1.0") => "200 OK",
        Some("GET /ready HTTP/1.1" | "GET /ready HTTP/1.0") => "503 Service Unavailable",
        Some(_) | None => return later(),
    };
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
    let all = |wanted: &'static str| {
        let named = headers.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
        named.map(|(_, value)| value.trim())
    };
    let is_from_a_page = all("origin").chain(all("sec-fetch-site")).next().is_some();
    let has_body = all("content-length").chain(all("transfer-encoding")).next().is_some();
    let is_named = all("host").count() == 1 && all("host").all(|host| names.has_host(host));
    if is_from_a_page || has_body || !is_named {
        return later();
    }
    let body = json!({ "status": "starting", "version": env!("CARGO_PKG_VERSION"), "reason": "starting",
        "starting": { "agents": start.agents, "ready": start.ready } });
    StartReaction::Now(end + HEAD_END.len(), response(status, body.to_string().as_bytes()))
}

fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nretry-after: {RETRY_AFTER_SECONDS}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_hub_answers_probes_of_programs_only() {
        let names = HubNames::new("127.0.0.1:8080".parse().unwrap(), &[], None);
        let start = HubStart { agents: 6, ready: 3, ..HubStart::default() };
        let told = |request: &str| match react(request.as_bytes(), &names, &start) {
            StartReaction::Incomplete => "incomplete".to_owned(),
            StartReaction::Now(length, answer) => {
                assert_eq!(length, request.len());
                format!("now: {}", String::from_utf8(answer).unwrap())
            }
            StartReaction::Later(answer) => {
                format!("later: {}", String::from_utf8(answer).unwrap())
            }
        };
        let health = told("GET /health HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
        assert!(health.starts_with("now: HTTP/1.1 200 OK\r\n"), "{health}");
        assert!(health.contains(r#""starting":{"agents":6,"ready":3}"#), "{health}");
        let ready = told("GET /ready HTTP/1.1\r\nhost: 127.0.0.1:8080\r\n\r\n");
        assert!(
            ready.starts_with("now: HTTP/1.1 503 ") && ready.contains("retry-after"),
            "{ready}"
        );
        for later in [
            "GET /health HTTP/1.1\r\nHost: evil.example:8080\r\n\r\n",
            "GET /health HTTP/1.1\r\nHost: localhost:8080\r\nOrigin: http://evil.example\r\n\r\n",
            "GET /health HTTP/1.1\r\n\r\n",
            "GET /health HTTP/1.1\r\nHost: localhost:8080\r\nHost: localhost:8080\r\n\r\n",
            "GET /metrics HTTP/1.1\r\nHost: localhost:8080\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: localhost:8080\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            let told = told(later);
            assert!(told.starts_with("later: HTTP/1.1 503 "), "{told}");
            assert!(told.contains("AGENT_UNAVAILABLE") || told.contains("starting"), "{told}");
        }
        assert_eq!(told(""), "incomplete");
    }
}
