//! Request for any agent of a group or with a skill.

use super::requirement::Requirement;
use a2a_hub_protocol::id::AgentId;
use std::fmt;

/// Request of a message for any agent with these properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Group or agent that the message names.
    pub named: Option<AgentId>,
    /// Exact id of the skill that the agent must have.
    pub skill: Option<String>,
    /// Version requirement.
    pub version: Option<Requirement>,
    /// True if an older version is acceptable when no other is available.
    pub allow_older: bool,
}

impl Wanted {
    /// Name of the round-robin round: equal requests share one round.
    pub fn route(&self) -> String {
        let Self { named, skill, version, .. } = self;
        let [named, version, skill] = [
            named.as_ref().map(AgentId::as_str),
            version.as_ref().map(Requirement::as_str),
            skill.as_deref(),
        ]
        .map(Option::unwrap_or_default);
        // The first two contain no slash, so the name is unambiguous.
        format!("{named}/{version}/{skill}")
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.named, &self.skill) {
            (Some(named), Some(skill)) => {
                write!(f, "an agent of `{named}` with the skill `{skill}`")
            }
            (Some(named), None) => write!(f, "an agent of `{named}`"),
            (None, Some(skill)) => write!(f, "an agent with the skill `{skill}`"),
            (None, None) => f.write_str("an agent"),
        }?;
        match &self.version {
            Some(version) => write!(f, " in version {version}"),
            None => Ok(()),
        }
    }
}
