//! Selection of an agent by a skill alone: the agent whose card has it.

use a2a_hub_protocol::{card::AgentCard, id::AgentId};

/// Maximum number of names in a message.
const MAX_NAMED: usize = 20;

/// Possible agent, with its card.
pub(crate) type SkillCandidate<'a> = (&'a AgentId, &'a AgentCard);

/// Reason why no agent is selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoHolder {
    /// No agent has such a skill.
    #[error("no agent here has the skill `{skill}`; there are {}", listed(.there))]
    Nobody {
        /// Requested skill.
        skill: String,
        /// All available skills, as `agent/skill`.
        there: Vec<String>,
    },
    /// The named agent does not have the skill.
    #[error("agent `{agent}` has no skill `{skill}`; it has {}", listed(.there))]
    NotThis {
        /// Named agent.
        agent: AgentId,
        /// Requested skill.
        skill: String,
        /// Ids of the agent's skills.
        there: Vec<String>,
    },
    /// Several agents have the skill, and none of them is the default.
    #[error(
        "{} have the skill `{skill}`; submit the task to one of them, at `/agents/<id>/`, or name the skill `<agent>/{skill}`",
        listed(&.agents.iter().map(AgentId::to_string).collect::<Vec<_>>())
    )]
    Several {
        /// Requested skill.
        skill: String,
        /// Agents that have it.
        agents: Vec<AgentId>,
    },
}

/// Selects the agent for `skill`: the only agent with a skill of exactly this id; among several,
/// the default agent; otherwise the agent named before a slash, as in the skills of the hub's own
/// card. Returns the agent, and the agent's own id of the skill.
pub(crate) fn holder(
    skill: &str,
    agents: &[SkillCandidate<'_>],
    default: Option<&AgentId>,
) -> Result<(AgentId, String), NoHolder> {
    let has = |card: &AgentCard| card.skill_ids().contains(&skill);
    let having: Vec<_> = agents.iter().filter(|(_, card)| has(card)).map(|(id, _)| *id).collect();
    match having.as_slice() {
        [only] => return Ok(((*only).clone(), skill.to_owned())),
        [] => {}
        several => {
            let is_default = |id: &&&AgentId| default == Some(**id);
            return match several.iter().find(is_default) {
                Some(id) => Ok(((*id).clone(), skill.to_owned())),
                None => {
                    let agents = several.iter().map(|id| (*id).clone()).collect();
                    Err(NoHolder::Several { skill: skill.to_owned(), agents })
                }
            };
        }
    }
    let within = skill.split_once('/').and_then(|(agent, skill_id)| {
        let candidate = agents.iter().find(|(id, _)| id.as_str() == agent)?;
        Some((candidate, skill_id))
    });
    if let Some(((agent, card), skill_id)) = within {
        return find_skill(agent, card, skill_id).map(|skill_id| ((*agent).clone(), skill_id));
    }
    let of = |(agent, card): &SkillCandidate<'_>| {
        card.skill_ids().iter().map(|skill| format!("{agent}/{skill}")).collect::<Vec<_>>()
    };
    Err(NoHolder::Nobody { skill: skill.to_owned(), there: agents.iter().flat_map(of).collect() })
}

/// Returns the agent's own id of a skill, if it has the skill.
pub(crate) fn find_skill(
    agent: &AgentId,
    card: &AgentCard,
    skill: &str,
) -> Result<String, NoHolder> {
    let there = card.skill_ids();
    if there.contains(&skill) {
        return Ok(skill.to_owned());
    }
    let there = there.into_iter().map(str::to_owned).collect();
    Err(NoHolder::NotThis { agent: agent.clone(), skill: skill.to_owned(), there })
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let mut quoted: Vec<_> = names.iter().take(MAX_NAMED).map(|name| format!("`{name}`")).collect();
    if names.len() > MAX_NAMED {
        quoted.push(format!("{} more", names.len() - MAX_NAMED));
    }
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn card(skills: &[&str]) -> AgentCard {
        let skill = |id: &&str| json!({"id": id, "name": id, "description": "d"});
        let skills: Vec<_> = skills.iter().map(skill).collect();
        let card = json!({"name": "n", "description": "d", "version": "1", "skills": skills});
        AgentCard::parse(&card.to_string()).unwrap()
    }

    #[test]
    fn skill_selects_agent_that_has_it() {
        let id = |id: &str| AgentId::parse(id).unwrap();
        let (chat, browse, other, silent) = (id("chat"), id("browse"), id("other"), id("silent"));
        let cards =
            [card(&["chat", "sum"]), card(&["browse_extract", "sum"]), card(&["a/b"]), card(&[])];
        let agents: Vec<SkillCandidate<'_>> =
            [&chat, &browse, &other, &silent].into_iter().zip(&cards).collect();
        let meant = |skill: &str, default: Option<&AgentId>| match holder(skill, &agents, default) {
            Ok((agent, skill)) => format!("{agent} {skill}"),
            Err(why) => why.to_string(),
        };
        let told = [
            meant("browse_extract", None),
            meant("browse_extract", Some(&chat)),
            meant("sum", Some(&browse)),
            meant("sum", None),
            meant("sum", Some(&other)),
            meant("browse/sum", None),
            meant("browse/none", None),
            meant("a/b", None),
            meant("default", None),
            meant("Browse_extract", Some(&browse)),
            meant("", None),
            meant("nobody/sum", None),
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
        browse browse_extract
        browse browse_extract
        browse sum
        `chat`, `browse` have the skill `sum`; submit the task to one of them, at `/agents/<id>/`, or name the skill `<agent>/sum`
        `chat`, `browse` have the skill `sum`; submit the task to one of them, at `/agents/<id>/`, or name the skill `<agent>/sum`
        browse sum
        agent `browse` has no skill `none`; it has `browse_extract`, `sum`
        other a/b
        silent default
        no agent here has the skill `Browse_extract`; there are `chat/chat`, `chat/sum`, `browse/browse_extract`, `browse/sum`, `other/a/b`, `silent/default`
        no agent here has the skill ``; there are `chat/chat`, `chat/sum`, `browse/browse_extract`, `browse/sum`, `other/a/b`, `silent/default`
        no agent here has the skill `nobody/sum`; there are `chat/chat`, `chat/sum`, `browse/browse_extract`, `browse/sum`, `other/a/b`, `silent/default`
        ");
        let none = holder("x", &[], None).unwrap_err().to_string();
        assert_eq!(none, "no agent here has the skill `x`; there are none");
        assert_eq!(find_skill(&chat, &cards[0], "sum").unwrap(), "sum");
        assert!(find_skill(&chat, &cards[0], "browse_extract").is_err());
    }
}
