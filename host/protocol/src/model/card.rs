//! Agent Cards (A2A 1.0, section 4.4): typed access to the members that the hub reads; all others
//! are preserved unchanged.

use crate::model::message::{Message, Metadata};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// An Agent Card as a component provides it (A2A 1.0, section 4.4.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// Name of the agent, for people.
    pub name: String,
    /// Description of the agent.
    pub description: String,
    /// Version of the agent.
    pub version: String,
    /// Skills of the agent.
    #[serde(default)]
    pub skills: Vec<Skill>,
    /// All other members of the card.
    #[serde(flatten)]
    pub other: Metadata,
}

/// A skill of an agent (A2A 1.0, section 4.4.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// Id of the skill, unique within the card.
    pub id: String,
    /// Name of the skill, for people.
    pub name: String,
    /// Description of the skill.
    pub description: String,
    /// Search tags of the skill.
    #[serde(default)]
    pub tags: Vec<String>,
    /// All other members of the skill.
    #[serde(flatten)]
    pub other: Metadata,
}

impl Skill {
    /// Scopes that the skill requires of its callers, as alternatives of which one must be met
    /// (`securityRequirements` of A2A 1.0, section 4.5.2; `security` of 0.3); `None` if it requires
    /// none. A requirement of another shape is no alternative, so that nobody meets it.
    pub fn required_scopes(&self) -> Option<Vec<BTreeSet<String>>> {
        let named = |name: &str| self.other.get(name).filter(|value| !value.is_null());
        let required = named("securityRequirements").or_else(|| named("security"))?;
        let Value::Array(alternatives) = required else { return Some(Vec::new()) };
        let is_empty = alternatives.is_empty();
        (!is_empty).then(|| alternatives.iter().filter_map(required_scopes).collect())
    }
}

/// Scopes of all schemes of one requirement; none if it has another shape. A scheme's scopes are a
/// list in 0.3, and an object with the member `list` in 1.0.
pub(crate) fn required_scopes(requirement: &Value) -> Option<BTreeSet<String>> {
    let members = requirement.as_object()?;
    let schemes = match members.get("schemes") {
        Some(Value::Object(schemes)) if members.len() == 1 => schemes,
        Some(_) | None => members,
    };
    let mut scopes = BTreeSet::new();
    for listed in schemes.values() {
        let listed = match listed.as_object().map(|of_v1| of_v1.get("list")) {
            Some(None | Some(Value::Null)) => continue,
            Some(Some(list)) => list,
            None => listed,
        };
        for scope in listed.as_array()? {
            scopes.insert(scope.as_str()?.to_owned());
        }
    }
    Some(scopes)
}

impl AgentCard {
    /// Yields the URI of each extension of the agent, and true if the agent requires the extension.
    pub fn extensions(&self) -> impl Iterator<Item = (&str, bool)> {
        let all = self.other.get("capabilities").and_then(|can| can.get("extensions"));
        all.and_then(Value::as_array).into_iter().flatten().filter_map(|extension| {
            let required = extension.get("required").and_then(Value::as_bool).unwrap_or(false);
            Some((extension.get("uri")?.as_str()?, required))
        })
    }

    /// Returns the first extension that the agent requires and the client did not activate.
    pub fn missing_extension(&self, named: &[String]) -> Option<&str> {
        let mut extensions = self.extensions();
        let missing =
            extensions.find(|(uri, required)| *required && !named.iter().any(|it| it == uri));
        missing.map(|(uri, _)| uri)
    }

    /// Returns the index and media type of the first part that the agent does not accept.
    ///
    /// An agent accepts the media types of its card and of its skills. An agent that lists none
    /// accepts every type. A part without a media type is always accepted.
    pub fn part_not_taken<'a>(&self, message: &'a Message) -> Option<(usize, &'a str)> {
        let says_nothing = self.input_modes().is_empty();
        let taken = |media: &str| says_nothing || self.takes(media);
        let typed = message.parts.iter().enumerate();
        let mut typed = typed.filter_map(|(n, part)| Some((n, part.media_type.as_deref()?)));
        typed.find(|(_, media)| !taken(media))
    }

    /// True if the card or a skill lists this media type as input.
    pub fn takes(&self, media: &str) -> bool {
        self.input_modes().iter().any(|mode| is_in_range(media, mode))
    }

    /// All input media types of the card and its skills.
    pub fn input_modes(&self) -> Vec<&str> {
        self.named_modes("defaultInputModes", "inputModes")
    }

    /// All output media types of the card and its skills.
    pub fn output_modes(&self) -> Vec<&str> {
        self.named_modes("defaultOutputModes", "outputModes")
    }

    fn named_modes(&self, of_all: &str, of_one: &str) -> Vec<&str> {
        let skills = self.skills.iter().map(|skill| skill.other.get(of_one));
        let all = std::iter::once(self.other.get(of_all)).chain(skills);
        all.flatten().filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect()
    }

    /// True unless the card denies the capability `streaming`.
    pub fn streams(&self) -> bool {
        let streaming = self.other.get("capabilities").and_then(|can| can.get("streaming"));
        streaming.and_then(Value::as_bool).unwrap_or(true)
    }
}

/// True if a media type matches a range such as `image/*`. Case and parameters are ignored (RFC
/// 9110, section 8.3.1).
pub fn is_in_range(media: &str, range: &str) -> bool {
    let essence = |text: &str| {
        let essence = text.split(';').next().unwrap_or_default();
        essence.trim().to_ascii_lowercase()
    };
    let (media, range) = (essence(media), essence(range));
    match range.strip_suffix('*') {
        Some("" | "*/") => true,
        Some(kind) if kind.ends_with('/') => media.starts_with(kind),
        Some(_) | None => media == range,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::{Part, Role};
    use serde_json::json;

    #[test]
    fn media_range_matches_type_and_wildcard() {
        for (media, range) in [
            ("text/plain", "text/plain"),
            ("Text/Plain; charset=utf-8", "text/plain"),
            ("text/plain", "TEXT/PLAIN;q=0.5"),
            ("image/png", "image/*"),
            ("image/png", "*/*"),
            ("image/png", "*"),
        ] {
            assert!(is_in_range(media, range), "{media} in {range}");
        }
        for (media, range) in [
            ("text/markdown", "text/plain"),
            ("imagery/png", "image/*"),
            ("image/png", "image/p*"),
            ("", "text/plain"),
        ] {
            assert!(!is_in_range(media, range), "{media} in {range}");
        }
    }

    #[test]
    fn part_outside_input_modes_is_found() {
        let card = |modes: Value| {
            let skill = json!({"id": "s", "name": "S", "description": "does s", "inputModes": ["text/csv"]});
            let given = json!({"name": "n", "description": "d", "version": "1",
                "defaultInputModes": modes, "skills": [skill]});
            serde_json::from_value::<AgentCard>(given).unwrap()
        };
        let message = |types: &[Option<&str>]| {
            let parts = types
                .iter()
                .map(|media| Part { media_type: media.map(str::to_owned), ..Part::text("x") });
            Message::new(Role::User, parts.collect())
        };
        let picky = card(json!(["text/plain", "image/*"]));
        assert_eq!(picky.input_modes(), ["text/plain", "image/*", "text/csv"]);
        let taken = message(&[
            None,
            Some("text/plain; charset=utf-8"),
            Some("image/png"),
            Some("text/csv"),
        ]);
        assert_eq!(picky.part_not_taken(&taken), None);
        let not_taken = message(&[None, Some("video/mp4")]);
        assert_eq!(picky.part_not_taken(&not_taken), Some((1, "video/mp4")));
        assert_eq!(card(json!(["*/*"])).part_not_taken(&not_taken), None);
        let silent = r#"{"name":"n","description":"d","version":"1"}"#;
        let silent: AgentCard = serde_json::from_str(silent).unwrap();
        assert_eq!(silent.part_not_taken(&not_taken), None);
    }
}
