//! Extended card for authenticated callers (A2A 1.0, section 3.1.11): the public card plus
//! operating data of its agent. The data is in a data-only extension (section 4.6).

use crate::{member, model::operation::CardOf};
use serde_json::{Value, json};

/// URI of the extension, whose parameters hold the operating data of each agent by its id.
/// `docs/reference/http.md` documents it; an incompatible change needs a new URI.
pub const OPERATED: &str = "urn:a2a-hub:operated:v1";

/// Adds the operating data to a card of either version.
pub fn extend(card: &mut Value, of: &CardOf) {
    let agents: serde_json::Map<String, Value> =
        of.operated.iter().map(|(id, operated)| (id.to_string(), json!(operated))).collect();
    let operated = json!({
        "uri": OPERATED,
        "description": "How the operator runs each agent: its health, its limits",
        "params": { "agents": agents },
    });
    let capabilities = member::entry(card, "capabilities");
    match capabilities.and_then(|all| member::entry(all, "extensions")) {
        Some(Value::Array(extensions)) => extensions.push(operated),
        Some(other) => *other = json!([operated]),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        card::{AgentCard, Endpoints},
        model::{
            id::AgentId,
            operation::{HealthStatus, Operated},
        },
    };

    fn shown(given: &str) -> [Value; 2] {
        let (id, status) = (AgentId::parse("n").unwrap(), HealthStatus::Healthy);
        let operated = Operated { status, task_timeout_ms: 60_000, max_running: 8, max_queued: 64 };
        let card = AgentCard::parse(given).unwrap();
        let of = CardOf {
            agent: Some(id.clone()),
            card,
            since: String::new(),
            operated: vec![(id, operated)],
        };
        let endpoints = Endpoints {
            base: "http://hub/agents/n".to_owned(),
            root: "http://hub".to_owned(),
            grpc: None,
            socket: None,
            tenant: None,
            needs_token: true,
        };
        [of.card.v1(&endpoints), of.card.hybrid(&endpoints)].map(|public| {
            let mut extended = public.clone();
            extend(&mut extended, &of);
            assert_ne!(extended, public, "it tells more");
            extended["capabilities"].take()
        })
    }

    #[test]
    fn extended_card_adds_operating_data() {
        let [v1, hybrid] = shown(r#"{"name":"n","description":"d","version":"1"}"#);
        assert_eq!(v1, hybrid);
        insta::assert_snapshot!(v1, @r#"{"extendedAgentCard":true,"extensions":[{"description":"Tasks may be submitted by the five-step protocol as well","params":{"submit_task":"http://hub/submit_task","task_updates":"http://hub/task_updates/{task_id}"},"uri":"urn:a2a-hub:five-step:v1"},{"description":"How the operator runs each agent: its health, its limits","params":{"agents":{"n":{"maxQueued":64,"maxRunning":8,"status":"healthy","taskTimeoutMs":60000}}},"uri":"urn:a2a-hub:operated:v1"}],"pushNotifications":true,"streaming":true}"#);
        let own = r#"{"name":"n","description":"d","version":"1","capabilities":{"extensions":[{"uri":"urn:x"}]}}"#;
        let [v1, _] = shown(own);
        assert_eq!(v1["extensions"][0]["uri"], "urn:x", "the agent's own stay");
        assert_eq!(v1["extensions"].as_array().map(Vec::len), Some(3));
    }
}
