//! Requests on the unix socket that a starting hub answers: `hub/ping` and `hub/status`.

use crate::starting::{StartReaction, refusal};
use a2a_hub_protocol::operation::{HubStart, HubStatus, Pong};
use serde::Deserialize;
use serde_json::{Value, json};

/// Version of the hub.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Request, as far as a starting hub reads it.
#[derive(Deserialize)]
struct EarlyRequest {
    id: Value,
    method: String,
}

/// Reaction to the first line of a connection.
pub(super) fn react(bytes: &[u8], start: &HubStart) -> StartReaction {
    let line = bytes.iter().position(|byte| *byte == b'\n');
    let later = || {
        let mut refusal = refusal(start);
        refusal.push(b'\n');
        StartReaction::Later(refusal)
    };
    let Some(end) = line else {
        return if bytes.is_empty() { StartReaction::Incomplete } else { later() };
    };
    let Ok(EarlyRequest { id, method }) = serde_json::from_slice(&bytes[..end]) else {
        return later();
    };
    let result = match method.as_str() {
        "hub/ping" => json!(Pong { version: VERSION.to_owned(), starting: Some(start.clone()) }),
        "hub/status" => json!(HubStatus::starting(VERSION, start.clone())),
        _ => return later(),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    StartReaction::Now(end + 1, format!("{answer}\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_hub_answers_ping_and_status_only() {
        let start = HubStart { agents: 6, ready: 3, ..HubStart::default() };
        let line =
            |method: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"{method}\"}}\n");
        for method in ["hub/ping", "hub/status"] {
            let (line, rest) = (line(method), line("message/send"));
            let both = format!("{line}{rest}");
            let StartReaction::Now(length, answer) = react(both.as_bytes(), &start) else {
                panic!("{method} has to wait")
            };
            assert_eq!(length, line.len());
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!(answer["id"], 7);
            assert_eq!(answer["result"]["starting"]["ready"], 3);
            assert_eq!(answer["result"]["version"], VERSION);
        }
        let send = line("message/send");
        for (bytes, is_later) in
            [("", false), (&*send, true), ("{\"id\":", true), ("no JSON\n", true)]
        {
            let later = match react(bytes.as_bytes(), &start) {
                StartReaction::Later(refusal) => String::from_utf8(refusal).unwrap(),
                StartReaction::Incomplete => String::new(),
                StartReaction::Now(..) => panic!("{bytes}"),
            };
            let says = "the hub is starting: 3 of 6 agents compiled; try again in";
            assert_eq!(later.contains(says), is_later, "{bytes}: {later}");
        }
    }
}
