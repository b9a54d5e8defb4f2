//! What the agent must have that a message is for, where its client names a skill or a version.

use crate::model::{error::A2aError, message::Metadata};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What the agent must have: `targetSkill`, `targetVersion` and `allowOlder` of the metadata of a message, or of its request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentRequirements {
    /// The exact id of a skill.
    pub skill: Option<String>,
    /// The versions that will do, in the words of Semantic Versioning, such as `^2.1`.
    pub version: Option<String>,
    /// Whether an older version will do where there is no other.
    pub allow_older: bool,
}

/// The longest id of a skill, and the longest requirement, in bytes: they stand in the facts of a task.
const MOST: usize = 256;

impl AgentRequirements {
    /// What a message and its request say; the message counts more.
    pub fn of(message: Option<&Metadata>, request: Option<&Metadata>) -> Result<Self, A2aError> {
        let said = |name: &'static str| {
            let at = [("message.metadata", message), ("metadata", request)].into_iter();
            let mut at = at.filter_map(|(at, facts)| Some(((at, name), facts?.get(name)?)));
            at.find(|(_, said)| !said.is_null())
        };
        let refused =
            |(at, name): (&str, &str), why: String| A2aError::invalid(&format!("{at}.{name}"), why);
        let text = |name: &'static str| match said(name) {
            None => Ok(None),
            Some((_, Value::String(text))) if (1..=MOST).contains(&text.len()) => {
                Ok(Some(text.clone()))
            }
            Some((at, _)) => Err(refused(at, format!("must be a string of 1 to {MOST} bytes"))),
        };
        let allow_older = match said("allowOlder") {
            None => false,
            Some((_, Value::Bool(allow))) => *allow,
            Some((at, _)) => return Err(refused(at, "must be true or false".to_owned())),
        };
        Ok(Self { skill: text("targetSkill")?, version: text("targetVersion")?, allow_older })
    }

    /// Says it in the metadata of a message.
    pub fn say(self, facts: &mut Metadata) {
        let Self { skill, version, allow_older } = self;
        facts.extend(skill.map(|skill| ("targetSkill".to_owned(), skill.into())));
        facts.extend(version.map(|version| ("targetVersion".to_owned(), version.into())));
        facts.insert("allowOlder".to_owned(), allow_older.into());
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.skill.is_none() && self.version.is_none()
    }
}

/// A group of agents that do the same work: a message to its name is given to one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentGroup {
    /// The group's name.
    pub name: crate::model::id::AgentId,
    /// How messages are shared out among its agents: `round-robin`, `least-loaded`, `latency` or `affinity`.
    pub balance: String,
    /// Its agents that are there.
    pub agents: Vec<crate::model::id::AgentId>,
    /// Its agents that are not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<crate::model::id::AgentId>,
}
