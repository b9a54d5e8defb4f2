//! Agent cards of the hub, of groups and of agents.

use crate::Agent;
use a2a_hub_protocol::{
    card::{AgentCard, Skill},
    id::AgentId,
    operation::CardOf,
};
use serde_json::{Map, json};
use std::{collections::BTreeSet, sync::Arc};

/// Card of the hub, with the skills of these agents; `began` is the hub's start time.
pub fn card_of_hub(agents: &[Arc<Agent>], began: &String) -> CardOf {
    let listed = agents.iter().filter(|agent| !agent.is_unlisted());
    let skills = listed.flat_map(|agent| {
        agent.card.skills.iter().map(|skill| Skill {
            id: format!("{}/{}", agent.id, skill.id),
            tags: std::iter::once(agent.id.to_string()).chain(skill.tags.clone()).collect(),
            ..skill.clone()
        })
    });
    let card = AgentCard {
            name: "A2A Local Hub".to_owned(),
            description: "Runs agents on this machine; `metadata.targetAgent` of a message names the one it is for"
                .to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            skills: skills.collect(),
            other: Map::from_iter(
                ["defaultInputModes", "defaultOutputModes"]
                    .map(|member| (member.to_owned(), json!(modes(agents, member)))),
            ),
        };
    let latest = agents.iter().map(|agent| &agent.registered_at).max();
    let since = latest.map_or(began, |joined| joined.max(began)).clone();
    let operated = agents.iter().map(|agent| (agent.id.clone(), agent.operated())).collect();
    CardOf { agent: None, card, since, operated }
}

/// All media types that the agents' cards name in `member`.
fn modes(agents: &[Arc<Agent>], member: &str) -> BTreeSet<String> {
    let named = agents.iter().filter_map(|agent| agent.card.other.get(member)?.as_array());
    named.flatten().filter_map(|mode| mode.as_str().map(str::to_owned)).collect()
}

/// Card of a group, from its present agents; none if no agent is present. It lists only what every
/// agent can do, for any of them may get the message.
pub fn card_of_group(name: &AgentId, there: &[Arc<Agent>]) -> Option<CardOf> {
    let first = there.first()?;
    let all_have =
        |id: &str| there.iter().all(|agent| agent.card.skills.iter().any(|its| its.id == id));
    let all_name = |member: &str| {
        let of = |agent: &Arc<Agent>| modes(std::slice::from_ref(agent), member);
        let each = there.iter().map(of);
        each.reduce(|one, other| &one & &other).unwrap_or_default()
    };
    let others =
        ["defaultInputModes", "defaultOutputModes"].map(|it| (it.to_owned(), json!(all_name(it))));
    let ids: Vec<_> = there.iter().map(|agent| agent.id.as_str()).collect();
    let card = AgentCard {
        name: name.to_string(),
        description: format!("One of these agents does it: {}", ids.join(", ")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        skills: first.card.skills.iter().filter(|skill| all_have(&skill.id)).cloned().collect(),
        other: others.into_iter().filter(|(_, modes)| modes != &json!([])).collect(),
    };
    let since = there.iter().map(|agent| &agent.registered_at).max().cloned()?;
    let operated = there.iter().map(|agent| (agent.id.clone(), agent.operated())).collect();
    Some(CardOf { agent: Some(name.clone()), card, since, operated })
}

/// Card of an agent.
pub fn card_of(agent: &Agent) -> CardOf {
    CardOf {
        agent: Some(agent.id.clone()),
        card: agent.card.clone(),
        since: agent.registered_at.clone(),
        operated: vec![(agent.id.clone(), agent.operated())],
    }
}
