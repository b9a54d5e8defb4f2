//! What is asked for in place of one agent.

use super::requirement::Requirement;
use a2a_hub_protocol::id::AgentId;
use std::fmt;

/// What a message asks for in place of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The group, or the one agent, that the message names.
    pub named: Option<AgentId>,
    /// The exact id of the skill that the agent must have.
    pub skill: Option<String>,
    /// The versions that will do.
    pub version: Option<Requirement>,
    /// Whether an older version will do where there is no other.
    pub allow_older: bool,
}

impl Wanted {
    /// What it is called under which turns are kept: messages that ask for the same share one round.
    pub fn route(&self) -> String {
        let Self { named, skill, version, .. } = self;
        let [named, version, skill] = [
            named.as_ref().map(AgentId::as_str),
            version.as_ref().map(Requirement::as_str),
            skill.as_deref(),
        ]
        .map(Option::unwrap_or_default);
        // Neither of the first two has a slash in it.
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
