//! Narrowings of scopes: the agents, skills and tasks that a scope of a key is for.

use a2a_hub_protocol::id::AgentId;
use std::fmt;

/// Longest id of a skill in a scope, in bytes.
const MAX_SKILL: usize = 100;

/// Suffix of a scope `send:AGENT` whose tasks reach only agents that the key names.
const ALONE: &str = ":alone";

/// Narrowing for the person's own tasks.
const INITIATED: &str = "own";

/// One narrowing of a scope: the text behind the colon of `read:own` or `send:echo/summarise`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeTarget {
    /// The person's own tasks.
    Initiated,
    /// One agent, or one skill of it.
    Agent {
        /// The agent.
        agent: AgentId,
        /// Id of the skill that the first message of a task names; `None` for all.
        skill: Option<String>,
        /// True if the tasks reach only agents that the key names.
        alone: bool,
    },
}

impl ScopeTarget {
    /// Parses a narrowing; `None` for a text of another form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == INITIATED {
            return Some(Self::Initiated);
        }
        let (text, alone) = match text.strip_suffix(ALONE) {
            Some(agent) => (agent, true),
            None => (text, false),
        };
        let (agent, skill) = match text.split_once('/') {
            Some((agent, skill)) => (agent, Some(skill)),
            None => (text, None),
        };
        if skill.is_some_and(|skill| !is_skill(skill)) || agent == INITIATED {
            return None;
        }
        let agent = AgentId::parse(agent).ok()?;
        Some(Self::Agent { agent, skill: skill.map(str::to_owned), alone })
    }

    /// True if this narrowing covers all that `other` covers, for the same person if `other` is of
    /// that person's tasks.
    pub(super) fn covers(&self, other: &Self, is_same_person: bool) -> bool {
        match (self, other) {
            (Self::Initiated, Self::Initiated) => is_same_person,
            (
                Self::Agent { agent, skill, alone },
                Self::Agent { agent: other, skill: of_other, alone: other_alone },
            ) => {
                let has_skill = skill.is_none() || skill == of_other;
                agent == other && has_skill && (!alone || *other_alone)
            }
            (Self::Initiated, Self::Agent { .. }) | (Self::Agent { .. }, Self::Initiated) => false,
        }
    }

    /// True if messages to this agent, for this skill, are covered.
    pub(super) fn covers_message(&self, agent: &AgentId, skill: Option<&str>) -> bool {
        match self {
            Self::Initiated => false,
            Self::Agent { agent: named, skill: wanted, .. } => {
                named == agent && wanted.as_deref().is_none_or(|wanted| skill == Some(wanted))
            }
        }
    }
}

/// True if a scope can name a skill of this id.
fn is_skill(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b':' | b'`');
    !id.is_empty() && id.len() <= MAX_SKILL && id.bytes().all(is_plain)
}

impl fmt::Display for ScopeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initiated => f.write_str(INITIATED),
            Self::Agent { agent, skill, alone } => {
                write!(f, "{agent}")?;
                if let Some(skill) = skill {
                    write!(f, "/{skill}")?;
                }
                if *alone { f.write_str(ALONE) } else { Ok(()) }
            }
        }
    }
}

/// Agent of a task, with the skill that its first message names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskAgent {
    /// The agent.
    pub agent: AgentId,
    /// Id of the skill; `None` if the message names none.
    pub skill: Option<String>,
}

/// Facts about a task by which a key's scopes cover it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFacts {
    /// True if the person's message began the tree of the task.
    pub is_initiator: bool,
    /// Agents of the task and of the tasks above it, the task's first.
    pub agents: Vec<TaskAgent>,
}

impl TaskFacts {
    /// True if a narrowing covers the task: with its agent, or with one of a task above it.
    pub(super) fn is_covered_by(&self, target: &ScopeTarget) -> bool {
        self.is_covered(target, self.agents.len())
    }

    /// True if a narrowing covers the task itself, whatever is above it.
    pub(super) fn is_itself_covered_by(&self, target: &ScopeTarget) -> bool {
        self.is_covered(target, 1)
    }

    fn is_covered(&self, target: &ScopeTarget, levels: usize) -> bool {
        match target {
            ScopeTarget::Initiated => self.is_initiator,
            ScopeTarget::Agent { .. } => {
                let mut agents = self.agents.iter().take(levels);
                agents.any(|at| target.covers_message(&at.agent, at.skill.as_deref()))
            }
        }
    }
}
