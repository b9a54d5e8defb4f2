//! Cards in the form of the Local Hub specification.

use crate::{
    card::v1_and_v03::{OLD_VERSION, provider},
    five_step::ENDPOINTS,
    member,
    model::{card::AgentCard, id::AgentId},
};
use serde_json::{Value, json};

/// Card members that describe the hub's endpoint, so a component cannot set them: URL, interfaces,
/// security and signatures.
pub const OF_THE_HUB: [&str; 9] = [
    "url",
    "supportedInterfaces",
    "additionalInterfaces",
    ENDPOINTS,
    "preferredTransport",
    "security",
    "securityRequirements",
    "securitySchemes",
    "signatures",
];

impl AgentCard {
    /// Adds the members that only the Local Hub specification defines to an A2A card.
    pub fn add_local_hub(&self, card: &mut Value) {
        let name = member::take(&mut provider(self.other.get("provider")), "name");
        for (of, fact, value) in
            [("provider", "name", name), ("capabilities", "stateTransitionHistory", json!(true))]
        {
            if let Some(of) = member::entry(card, of) {
                member::set(of, fact, value);
            }
        }
    }

    /// Public card in the form of the Local Hub specification: the component's card with defaults,
    /// without the hub's members. The caller adds the `url`. Clients address the agent by its
    /// `agentId`.
    pub fn published(&self, agent: Option<&AgentId>) -> Value {
        let mut card = json!(self);
        for member in OF_THE_HUB {
            card.as_object_mut().map(|card| card.remove(member));
        }
        member::set(&mut card, "protocolVersion", OLD_VERSION);
        let streaming = self.other.get("capabilities").and_then(|can| can.get("streaming"));
        let capabilities = json!({
            "streaming": streaming.and_then(Value::as_bool).unwrap_or(true),
            "pushNotifications": true,
            "stateTransitionHistory": true,
        });
        member::set(&mut card, "capabilities", capabilities);
        member::set(&mut card, "provider", provider(self.other.get("provider")));
        for modes in ["defaultInputModes", "defaultOutputModes"] {
            if !card[modes].is_array() {
                member::set(&mut card, modes, json!(["text/plain"]));
            }
        }
        if let Some(agent) = agent {
            member::set(&mut card, "agentId", json!(agent));
        }
        card
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_card_has_required_members() {
        let given = r#"{"name":"n","description":"d","version":"1","url":"http://evil.example","iconUrl":"x",
            "skills":[{"id":"s","name":"S","description":"does s"}],
            "provider":{"organization":"Acme"},"capabilities":{"streaming":false,"pushNotifications":false}}"#;
        let card = AgentCard::parse(given).unwrap();
        let published = card.published(Some(&AgentId::parse("n").unwrap()));
        insta::assert_snapshot!(serde_json::to_string_pretty(&published).unwrap(), @r#"
        {
          "agentId": "n",
          "capabilities": {
            "pushNotifications": true,
            "stateTransitionHistory": true,
            "streaming": false
          },
          "defaultInputModes": [
            "text/plain"
          ],
          "defaultOutputModes": [
            "text/plain"
          ],
          "description": "d",
          "iconUrl": "x",
          "name": "n",
          "protocolVersion": "0.3.0",
          "provider": {
            "name": "Acme",
            "organization": "Acme"
          },
          "skills": [
            {
              "description": "does s",
              "id": "s",
              "name": "S",
              "tags": []
            }
          ],
          "version": "1"
        }
        "#);
    }
}
