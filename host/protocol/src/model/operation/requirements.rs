//! Requirements on the agent of a message: a skill or a version.

use crate::model::{error::A2aError, hub_metadata::TARGET_SKILL, message::Metadata};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Requirements from `targetSkill`, `targetVersion` and `allowOlder` in the metadata of a message
/// or of its request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentRequirements {
    /// Exact id of a skill.
    pub skill: Option<String>,
    /// Version requirement in the syntax of Semantic Versioning, such as `^2.1`.
    pub version: Option<String>,
    /// True to accept an older version if no other exists.
    pub allow_older: bool,
}

/// Maximum length of a skill's id and of a version requirement in bytes; both are stored in the
/// task's metadata.
const MAX_BYTES: usize = 256;

impl AgentRequirements {
    /// Reads the requirements; the message takes precedence over the request.
    pub fn from_metadata(
        message: Option<&Metadata>,
        request: Option<&Metadata>,
    ) -> Result<Self, A2aError> {
        let member = |name: &'static str| {
            let at = [("message.metadata", message), ("metadata", request)].into_iter();
            let mut at = at.filter_map(|(at, facts)| Some(((at, name), facts?.get(name)?)));
            at.find(|(_, value)| !value.is_null())
        };
        let refused =
            |(at, name): (&str, &str), why: String| A2aError::invalid(&format!("{at}.{name}"), why);
        let text = |name: &'static str| match member(name) {
            None => Ok(None),
            Some((_, Value::String(text))) if (1..=MAX_BYTES).contains(&text.len()) => {
                Ok(Some(text.clone()))
            }
            Some((at, _)) => {
                Err(refused(at, format!("must be a string of 1 to {MAX_BYTES} bytes")))
            }
        };
        let allow_older = match member("allowOlder") {
            None => false,
            Some((_, Value::Bool(allow))) => *allow,
            Some((at, _)) => return Err(refused(at, "must be true or false".to_owned())),
        };
        Ok(Self { skill: text(TARGET_SKILL)?, version: text("targetVersion")?, allow_older })
    }

    /// Writes the requirements into the metadata of a message.
    pub fn write_to(self, facts: &mut Metadata) {
        let Self { skill, version, allow_older } = self;
        facts.extend(skill.map(|skill| (TARGET_SKILL.to_owned(), skill.into())));
        facts.extend(version.map(|version| ("targetVersion".to_owned(), version.into())));
        facts.insert("allowOlder".to_owned(), allow_older.into());
    }

    /// True if neither skill nor version is required.
    pub fn is_empty(&self) -> bool {
        self.skill.is_none() && self.version.is_none()
    }
}

/// Group of agents that do the same work; a message to the group's name goes to one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentGroup {
    /// Name of the group.
    pub name: crate::model::id::AgentId,
    /// Load balancing strategy: `round-robin`, `least-loaded`, `latency` or `affinity`.
    pub balance: String,
    /// Members that are on this hub.
    pub agents: Vec<crate::model::id::AgentId>,
    /// Configured members that are not on this hub.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<crate::model::id::AgentId>,
}
