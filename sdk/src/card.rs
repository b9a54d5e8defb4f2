//! The agent card: who an agent is and what it can do.

use serde::Serialize;

use crate::context::json;

/// An A2A 1.0 agent card. The hub adds where and how the agent is reached.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    name: String,
    description: String,
    version: String,
    capabilities: Capabilities,
    default_input_modes: Vec<String>,
    default_output_modes: Vec<String>,
    skills: Vec<Skill>,
}

#[derive(Debug, Clone, Serialize)]
struct Capabilities {
    streaming: bool,
}

#[derive(Debug, Clone, Serialize)]
struct Skill {
    id: String,
    name: String,
    description: String,
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    examples: Vec<String>,
}

impl Card {
    /// A card of an agent that takes and gives plain text.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        version: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            version: version.into(),
            capabilities: Capabilities { streaming: true },
            default_input_modes: vec!["text/plain".into()],
            default_output_modes: vec!["text/plain".into()],
            skills: Vec::new(),
        }
    }

    /// Adds a skill.
    #[must_use]
    pub fn skill(mut self, id: &str, name: &str, description: &str, tags: &[&str]) -> Self {
        self.skills.push(Skill {
            id: id.into(),
            name: name.into(),
            description: description.into(),
            tags: tags.iter().map(|&tag| tag.into()).collect(),
            examples: Vec::new(),
        });
        self
    }

    /// Adds an example prompt to the skill before it.
    #[must_use]
    pub fn example(mut self, prompt: impl Into<String>) -> Self {
        if let Some(skill) = self.skills.last_mut() {
            skill.examples.push(prompt.into());
        }
        self
    }

    /// Adds a media type the agent takes.
    #[must_use]
    pub fn input(mut self, media_type: impl Into<String>) -> Self {
        self.default_input_modes.push(media_type.into());
        self
    }

    /// Adds a media type the agent gives.
    #[must_use]
    pub fn output(mut self, media_type: impl Into<String>) -> Self {
        self.default_output_modes.push(media_type.into());
        self
    }

    /// The card as JSON.
    pub fn to_json(&self) -> String {
        json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_a2a_json() {
        let card = Card::new("echo", "Says it back", "0.1.0")
            .output("image/png")
            .skill("echo", "Echo", "Says it back", &["test"])
            .example("hello");
        let json: serde_json::Value = serde_json::from_str(&card.to_json()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "name": "echo",
                "description": "Says it back",
                "version": "0.1.0",
                "capabilities": { "streaming": true },
                "defaultInputModes": ["text/plain"],
                "defaultOutputModes": ["text/plain", "image/png"],
                "skills": [{
                    "id": "echo",
                    "name": "Echo",
                    "description": "Says it back",
                    "tags": ["test"],
                    "examples": ["hello"],
                }],
            })
        );
    }
}
