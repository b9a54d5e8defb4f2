//! Parser for the card that a component provides.

use crate::{
    codec::members::Members,
    model::{
        card::{AgentCard, required_scopes},
        error::A2aError,
    },
};
use serde::Deserialize as _;
use serde_json::Value;

/// Error for an invalid card.
#[derive(Debug, thiserror::Error)]
pub enum InvalidCard {
    /// The text is not JSON, or a member is missing or has the wrong type.
    #[error(
        "read the agent's card: {0}; a card is a JSON object with at least `name`, `description` and `version`"
    )]
    Json(#[from] serde_json::Error),
    /// A required text is empty, or a member does not match A2A.
    #[error("read the agent's card: {0}")]
    Member(String),
}

impl AgentCard {
    /// Parses the JSON text of a component's `card` function: A2A 1.0, 0.3 or Local Hub form.
    /// Members that only the hub may set are ignored.
    pub fn parse(json: &str) -> Result<Self, InvalidCard> {
        let card: Value = serde_json::from_str(json)?;
        check(&card).map_err(|why| InvalidCard::Member(why.to_string()))?;
        Ok(Self::deserialize(card)?)
    }
}

/// Checks the published members. serde refuses other members of the wrong type.
fn check(card: &Value) -> Result<(), A2aError> {
    let text = |of: &mut Members, names: &[&str]| {
        names.iter().try_for_each(|name| match of.text(name)? {
            Some(text) if text.trim().is_empty() => Err(of.refuse(name, "is empty")),
            Some(_) | None => Ok(()),
        })
    };
    let mut of = Members::new(card.clone(), "")?;
    text(&mut of, &["name", "description", "version", "iconUrl", "documentationUrl"])?;
    of.texts("defaultInputModes")?;
    of.texts("defaultOutputModes")?;
    if let Some(mut provider) = of.members("provider")? {
        text(&mut provider, &["name", "organization", "url"])?;
    }
    if let Some(mut can) = of.members("capabilities")? {
        can.flag("streaming")?;
        can.list("extensions", |extension, at| {
            let mut of = Members::new(extension, at)?;
            of.need_text("uri")?;
            of.text("description")?;
            of.flag("required").map(|_| ())
        })?;
    }
    let skills = of.list("skills", |skill, at| {
        let mut of = Members::new(skill, at)?;
        text(&mut of, &["id", "name", "description"])?;
        for name in ["securityRequirements", "security"] {
            of.list(name, |requirement, at| {
                let is_readable = required_scopes(&requirement).is_some();
                let members = Members::new(requirement, at)?;
                let why = "must list the names of each scheme's scopes";
                is_readable.then_some(()).ok_or_else(|| members.refuse("schemes", why))
            })?;
        }
        ["tags", "examples", "inputModes", "outputModes"]
            .iter()
            .try_for_each(|name| of.texts(name).map(|_| ()))
    });
    skills.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_card_members_are_kept() {
        let text = r#"{"name":"n","description":"d","version":"1","skills":[],"iconUrl":"x"}"#;
        let card = AgentCard::parse(text).unwrap();
        assert_eq!(card.other["iconUrl"], "x");
        assert_eq!(
            serde_json::to_value(&card).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
    }

    #[test]
    fn invalid_card_error_names_member() {
        let missing = AgentCard::parse(r#"{"name":"n","version":"1"}"#).unwrap_err().to_string();
        assert!(missing.contains("missing field `description`"), "{missing}");
        let wrong = [
            json!({"name": " "}),
            json!({"defaultInputModes": "text/plain"}),
            json!({"capabilities": ["streaming"]}),
            json!({"capabilities": {"extensions": [{"required": true}]}}),
            json!({"skills": [{"id": "s", "name": "S", "description": ""}]}),
            json!({"skills": [{"id": "s", "name": "S", "description": "s", "tags": [1]}]}),
            json!({"skills": [{"id": "s", "name": "S", "description": "s", "securityRequirements": {"oauth": ["x"]}}]}),
            json!({"skills": [{"id": "s", "name": "S", "description": "s", "security": [{"oauth": "x"}]}]}),
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
        read the agent's card: `skills[0].securityRequirements`: must be a list
        read the agent's card: `skills[0].security[0].schemes`: must list the names of each scheme's scopes
        read the agent's card: `provider`: must be an object
        ");
    }
}
