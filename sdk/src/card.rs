//! Agent card: the agent's identity and skills.

use serde::Serialize;
use serde_json::Value;

use crate::json::json;

/// A2A 1.0 agent card. The hub adds the interfaces through which clients reach the agent.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    name: String,
    description: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<Provider>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icon_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation_url: Option<String>,
    capabilities: Capabilities,
    default_input_modes: Vec<String>,
    default_output_modes: Vec<String>,
    skills: Vec<Skill>,
}

#[derive(Debug, Clone, Serialize)]
struct Capabilities {
    streaming: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Extension>,
}

#[derive(Debug, Clone, Serialize)]
struct Extension {
    uri: String,
    description: String,
    required: bool,
    #[serde(skip_serializing_if = "Value::is_null")]
    params: Value,
}

#[derive(Debug, Clone, Serialize)]
struct Provider {
    organization: String,
    url: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Skill {
    id: String,
    name: String,
    description: String,
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    examples: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    input_modes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    output_modes: Vec<String>,
    #[serde(skip_serializing_if = "Value::is_null")]
    input_schema: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<Value>,
}

impl Card {
    /// Creates a card of an agent that takes and returns plain text.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        version: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            version: version.into(),
            provider: None,
            icon_url: None,
            documentation_url: None,
            capabilities: Capabilities { streaming: true, extensions: Vec::new() },
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
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            input_schema: Value::Null,
            prompts: Vec::new(),
        });
        self
    }

    /// Adds an example prompt to the last added skill.
    #[must_use]
    pub fn example(mut self, prompt: impl Into<String>) -> Self {
        if let Some(skill) = self.skills.last_mut() {
            skill.examples.push(prompt.into());
        }
        self
    }

    /// Sets the media types that the last added skill takes and returns, in place of the agent's.
    #[must_use]
    pub fn modes(mut self, input: &[&str], output: &[&str]) -> Self {
        if let Some(skill) = self.skills.last_mut() {
            skill.input_modes = input.iter().map(|&mode| mode.into()).collect();
            skill.output_modes = output.iter().map(|&mode| mode.into()).collect();
        }
        self
    }

    /// Sets the JSON Schema (2020-12 or draft 7) of the data that the last added skill takes: an
    /// object of at most 16 KiB, without external or recursive references. The hub validates
    /// five-step submissions and calls of the skill's MCP tool against it, and reports each member
    /// that does not fit. A schema that is not an object is left out.
    #[must_use]
    pub fn input_schema(mut self, schema: &impl Serialize) -> Self {
        if let Some(skill) = self.skills.last_mut() {
            let schema = serde_json::to_value(schema).unwrap_or_default();
            skill.input_schema = if schema.is_object() { schema } else { Value::Null };
        }
        self
    }

    /// Adds a prompt to the last added skill, which clients of MCP show in their menus: an object
    /// with `name`, `title`, `description`, `arguments` (`name`, `description`, `required`,
    /// `values`) and `parts` (`text` with `{{argument}}`, or `raw` with `mediaType`). A prompt that
    /// is not an object is left out.
    #[must_use]
    pub fn prompt(mut self, prompt: &impl Serialize) -> Self {
        let prompt = serde_json::to_value(prompt).unwrap_or_default();
        if let Some(skill) = self.skills.last_mut().filter(|_| prompt.is_object()) {
            skill.prompts.push(prompt);
        }
        self
    }

    /// Sets the provider of the agent.
    #[must_use]
    pub fn provider(mut self, organization: impl Into<String>, url: impl Into<String>) -> Self {
        self.provider = Some(Provider { organization: organization.into(), url: url.into() });
        self
    }

    /// Sets the URL of the icon.
    #[must_use]
    pub fn icon(mut self, url: impl Into<String>) -> Self {
        self.icon_url = Some(url.into());
        self
    }

    /// Sets the URL of the documentation.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation_url = Some(url.into());
        self
    }

    /// Adds an A2A extension that the agent supports. If it is required, the hub refuses clients
    /// that do not name it.
    #[must_use]
    pub fn extension(
        mut self,
        uri: impl Into<String>,
        description: impl Into<String>,
        required: bool,
    ) -> Self {
        let (uri, description) = (uri.into(), description.into());
        let params = Value::Null;
        self.capabilities.extensions.push(Extension { uri, description, required, params });
        self
    }

    /// Sets the parameters of the last added extension: an object that the extension defines.
    /// Parameters that are not an object are left out.
    #[must_use]
    pub fn params(mut self, params: &impl Serialize) -> Self {
        if let Some(extension) = self.capabilities.extensions.last_mut() {
            let params = serde_json::to_value(params).unwrap_or_default();
            extension.params = if params.is_object() { params } else { Value::Null };
        }
        self
    }

    /// Declares that clients cannot subscribe to running tasks.
    #[must_use]
    pub fn without_streaming(mut self) -> Self {
        self.capabilities.streaming = false;
        self
    }

    /// Sets the media types that the agent takes, in place of plain text:
    /// `Card::inputs(&["application/json"])` takes no text.
    #[must_use]
    pub fn inputs(mut self, media_types: &[&str]) -> Self {
        self.default_input_modes = media_types.iter().map(|&mode| mode.into()).collect();
        self
    }

    /// Sets the media types that the agent returns, in place of plain text.
    #[must_use]
    pub fn outputs(mut self, media_types: &[&str]) -> Self {
        self.default_output_modes = media_types.iter().map(|&mode| mode.into()).collect();
        self
    }

    /// Adds a media type that the agent takes.
    #[must_use]
    pub fn input(mut self, media_type: impl Into<String>) -> Self {
        self.default_input_modes.push(media_type.into());
        self
    }

    /// Adds a media type that the agent returns.
    #[must_use]
    pub fn output(mut self, media_type: impl Into<String>) -> Self {
        self.default_output_modes.push(media_type.into());
        self
    }

    /// Serializes the card as JSON.
    pub fn to_json(&self) -> String {
        json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_card_members_are_serialized() {
        let card = Card::new("echo", "Says it back", "0.1.0")
            .provider("Acme", "https://acme.example")
            .icon("https://acme.example/i.png")
            .documentation("https://acme.example/docs")
            .extension("urn:x", "does x", true)
            .params(&serde_json::json!({ "level": 3 }))
            .extension("urn:y", "does y", false)
            .skill("echo", "Echo", "Says it back", &["test"])
            .modes(&["text/plain"], &["image/png"])
            .input_schema(&serde_json::json!({ "type": "object" }))
            .skill("other", "Other", "Takes anything", &[])
            .input_schema(&"no object");
        let json: Value = serde_json::from_str(&card.to_json()).unwrap();
        assert_eq!(json["provider"]["organization"], "Acme");
        let extensions = &json["capabilities"]["extensions"];
        assert_eq!(extensions[0]["required"], true);
        assert_eq!(extensions[0]["params"]["level"], 3);
        assert_eq!(extensions[1].get("params"), None);
        assert_eq!(json["skills"][0]["outputModes"], serde_json::json!(["image/png"]));
        assert_eq!(json["skills"][0]["inputSchema"], serde_json::json!({ "type": "object" }));
        assert_eq!(json["skills"][1].get("inputSchema"), None);
        assert_eq!(json["iconUrl"], "https://acme.example/i.png");
    }

    #[test]
    fn media_types_replace_plain_text() {
        let card = Card::new("charts", "Draws charts", "0.1.0")
            .inputs(&["application/json"])
            .input("text/csv")
            .outputs(&["image/svg+xml"]);
        let json: Value = serde_json::from_str(&card.to_json()).unwrap();
        let modes = [&json["defaultInputModes"], &json["defaultOutputModes"]];
        assert_eq!(modes[0], &serde_json::json!(["application/json", "text/csv"]));
        assert_eq!(modes[1], &serde_json::json!(["image/svg+xml"]));
    }

    #[test]
    fn card_serializes_as_a2a_json() {
        let card = Card::new("echo", "Says it back", "0.1.0")
            .output("image/png")
            .skill("echo", "Echo", "Says it back", &["test"])
            .example("hello");
        let json: Value = serde_json::from_str(&card.to_json()).unwrap();
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
