//! What an agent says of itself (A2A 1.0, section 4.4): the parts the hub reads, and the rest kept as it came.

pub mod changes;
pub mod official;
pub mod signed;

use crate::{
    codec::members::Members,
    model::{error::A2aError, id::AgentId, message::Metadata},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The version of A2A that published cards speak of.
pub const PROTOCOL_VERSION: &str = "1.0";

/// What a component cannot say of itself, for it is the hub that is reached: where, how, and who may.
const OF_THE_HUB: [&str; 8] = [
    "url",
    "supportedInterfaces",
    "additionalInterfaces",
    "preferredTransport",
    "security",
    "securityRequirements",
    "securitySchemes",
    "signatures",
];

/// An agent's card, as its component gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// A name for people.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// The agent's own version.
    pub version: String,
    /// What it can do.
    #[serde(default)]
    pub skills: Vec<Skill>,
    /// Everything else it says.
    #[serde(flatten)]
    pub other: Metadata,
}

/// One thing an agent can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// Its name, unique within the card.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Everything else that is said of it.
    #[serde(flatten)]
    pub other: Metadata,
}

/// A card that does not say what every card must.
#[derive(Debug, thiserror::Error)]
pub enum InvalidCard {
    /// It is not JSON, or a member is missing or of the wrong type.
    #[error(
        "read the agent's card: {0}; a card is a JSON object with at least `name`, `description` and `version`"
    )]
    Json(#[from] serde_json::Error),
    /// A member is empty that must say something, or is not what A2A has there.
    #[error("read the agent's card: {0}")]
    Member(String),
}

impl AgentCard {
    /// Reads a card from the JSON text that a component's `card` function returns: one of A2A 1.0 or 0.3, or in the style
    /// of the Local Hub. What only the hub can say is left unread.
    pub fn parse(json: &str) -> Result<Self, InvalidCard> {
        let card: Value = serde_json::from_str(json)?;
        check(&card).map_err(|why| InvalidCard::Member(why.to_string()))?;
        Ok(Self::deserialize(card)?)
    }

    /// The card as others may find it, in the shape of the Local Hub specification: completed from what the component
    /// gave, without what only the hub may say. Whoever hands it out adds the `url`. An agent is spoken to by its
    /// `agentId`.
    pub fn published(&self, agent: Option<&AgentId>) -> Value {
        let mut card = json!(self);
        for member in OF_THE_HUB {
            card.as_object_mut().map(|card| card.remove(member));
        }
        card["protocolVersion"] = json!(PROTOCOL_VERSION);
        let streaming = self.other.get("capabilities").and_then(|can| can.get("streaming"));
        card["capabilities"] = json!({
            "streaming": streaming.and_then(Value::as_bool).unwrap_or(true),
            "pushNotifications": false,
            "stateTransitionHistory": true,
        });
        card["provider"] = provider(self.other.get("provider"));
        for modes in ["defaultInputModes", "defaultOutputModes"] {
            if !card[modes].is_array() {
                card[modes] = json!(["text/plain"]);
            }
        }
        if let Some(agent) = agent {
            card["agentId"] = json!(agent);
        }
        card
    }
}

/// Whether each member that is published is what A2A has there. Members of other types are for serde to refuse.
fn check(card: &Value) -> Result<(), A2aError> {
    let text = |of: &mut Members, names: &[&str]| {
        names.iter().try_for_each(|name| match of.text(name)? {
            Some(text) if text.trim().is_empty() => Err(of.refuse(name, "is empty")),
            Some(_) | None => Ok(()),
        })
    };
    let mut of = Members::of(card.clone(), "")?;
    text(&mut of, &["name", "description", "version", "iconUrl", "documentationUrl"])?;
    of.texts("defaultInputModes")?;
    of.texts("defaultOutputModes")?;
    if let Some(mut provider) = of.members("provider")? {
        text(&mut provider, &["name", "organization", "url"])?;
    }
    if let Some(mut can) = of.members("capabilities")? {
        can.flag("streaming")?;
        can.list("extensions", |extension, at| {
            let mut of = Members::of(extension, at)?;
            of.need_text("uri")?;
            of.text("description")?;
            of.flag("required").map(|_| ())
        })?;
    }
    let skills = of.list("skills", |skill, at| {
        let mut of = Members::of(skill, at)?;
        text(&mut of, &["id", "name", "description"])?;
        ["tags", "examples", "inputModes", "outputModes"]
            .iter()
            .try_for_each(|name| of.texts(name).map(|_| ()))
    });
    skills.map(|_| ())
}

/// Who provides an agent. The specification calls it by `name`, A2A by `organization`: both are said.
fn provider(given: Option<&Value>) -> Value {
    let text = |member: &str| given.and_then(|given| given.get(member)).and_then(Value::as_str);
    let name = text("name").or_else(|| text("organization")).unwrap_or("a2a-hub");
    let mut provider = json!({ "name": name, "organization": name });
    if let Some(url) = text("url") {
        provider["url"] = json!(url);
    }
    provider
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_it_does_not_read() {
        let text = r#"{"name":"n","description":"d","version":"1","skills":[],"iconUrl":"x"}"#;
        let card = AgentCard::parse(text).unwrap();
        assert_eq!(card.other["iconUrl"], "x");
        assert_eq!(
            serde_json::to_value(&card).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
    }

    #[test]
    fn a_published_card_has_what_the_specification_wants() {
        let given = r#"{"name":"n","description":"d","version":"1","url":"http://evil.example","iconUrl":"x",
            "skills":[{"id":"s","name":"S","description":"does s"}],
            "provider":{"organization":"Acme"},"capabilities":{"streaming":false,"pushNotifications":true}}"#;
        let card = AgentCard::parse(given).unwrap();
        let published = card.published(Some(&AgentId::parse("n").unwrap()));
        insta::assert_snapshot!(serde_json::to_string_pretty(&published).unwrap(), @r#"
        {
          "agentId": "n",
          "capabilities": {
            "pushNotifications": false,
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
          "protocolVersion": "1.0",
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

    #[test]
    fn says_what_is_missing() {
        let missing = AgentCard::parse(r#"{"name":"n","version":"1"}"#).unwrap_err().to_string();
        assert!(missing.contains("missing field `description`"), "{missing}");
        let wrong = [
            json!({"name": " "}),
            json!({"defaultInputModes": "text/plain"}),
            json!({"capabilities": ["streaming"]}),
            json!({"capabilities": {"extensions": [{"required": true}]}}),
            json!({"skills": [{"id": "s", "name": "S", "description": ""}]}),
            json!({"skills": [{"id": "s", "name": "S", "description": "s", "tags": [1]}]}),
            json!({"provider": "Acme"}),
        ]
        .map(|members| {
            let mut card = json!({"name": "n", "description": "d", "version": "1"});
            card.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            AgentCard::parse(&card.to_string()).unwrap_err().to_string()
        });
        insta::assert_snapshot!(wrong.join("\n"), @"
        read the agent's card: `name`: is empty
        read the agent's card: `defaultInputModes`: must be a list
        read the agent's card: `capabilities`: must be an object
        read the agent's card: `capabilities.extensions[0].uri`: is missing, or empty
        read the agent's card: `skills[0].description`: is empty
        read the agent's card: `skills[0].tags[0]`: must be a string
        read the agent's card: `provider`: must be an object
        ");
    }
}
