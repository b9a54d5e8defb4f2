//! What an agent says of itself (A2A 1.0, section 4.4): the parts the hub reads, and the rest kept as it came.

use crate::message::Metadata;
use serde::{Deserialize, Serialize};

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
    /// A member that must say something is empty.
    #[error("read the agent's card: `{0}` is empty")]
    Empty(&'static str),
}

impl AgentCard {
    /// Reads a card from the JSON text that a component's `card` function returns.
    pub fn parse(json: &str) -> Result<Self, InvalidCard> {
        let card: Self = serde_json::from_str(json)?;
        for (member, text) in
            [("name", &card.name), ("description", &card.description), ("version", &card.version)]
        {
            if text.trim().is_empty() {
                return Err(InvalidCard::Empty(member));
            }
        }
        Ok(card)
    }
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
            serde_json::from_str::<serde_json::Value>(text).unwrap()
        );
    }

    #[test]
    fn says_what_is_missing() {
        let missing = AgentCard::parse(r#"{"name":"n","version":"1"}"#).unwrap_err().to_string();
        assert!(missing.contains("missing field `description`"), "{missing}");
        let empty = AgentCard::parse(r#"{"name":" ","description":"d","version":"1"}"#);
        assert_eq!(empty.unwrap_err().to_string(), "read the agent's card: `name` is empty");
    }
}
