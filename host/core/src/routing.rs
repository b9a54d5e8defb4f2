//! Selection of an agent for a message that names a group or a skill instead of one agent. Grant,
//! skill, version and circuit breaker filter the candidates. The rest is ordered by health and
//! load-balancing strategy, and tried in this order until one accepts the message.
//!
//! ```text
//! agents ─► granted? skill? fit? ─► version? ─► breaker? ─► order: health, balance, turn ─► try
//!               │                      │           │                                         │
//!               └──────────────────────┴───────────┴─► left out, with reasons       first that
//!                                                      (in task metadata)           accepts it
//! ```

mod candidate;
mod explanation;
mod latency;
mod request;
mod requirement;
mod round_robin;

pub use candidate::{Balance, Candidate};
pub use explanation::{Choice, NotChosen, PassedOver, ROUTING, Routing};
pub use latency::Latency;
pub use request::Wanted;
pub use requirement::{InvalidRequirement, Requirement};
pub use round_robin::Turns;

use candidate::{Rank, unwell, version_of};

use a2a_hub_protocol::id::{AgentId, ContextId};
use std::cmp::Reverse;

/// Reason why no agent can be selected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoCandidate {
    /// No agent has the skill.
    #[error("find {wanted}: there is none")]
    NoSkill {
        /// Description of the request.
        wanted: String,
        /// Requested skill.
        skill: String,
        /// Skills of the agents that the caller may use.
        there: Vec<String>,
    },
    /// The group has no available member that the caller may use.
    #[error("no agent of `{0}` is available")]
    Nobody(AgentId),
    /// Only older versions are available.
    #[error("find {wanted}: there are older versions only: {}; name a version that there is, or say `allowOlder`", listed(.there))]
    OnlyOlder {
        /// Description of the request.
        wanted: String,
        /// Agents with their versions, newest first.
        there: Vec<(AgentId, String)>,
    },
    /// All agents are filtered out.
    #[error("find {wanted}: {}", reasons(.excluded))]
    AllExcluded {
        /// Description of the request.
        wanted: String,
        /// Agents, each with the reason why it is left out.
        excluded: Vec<PassedOver>,
    },
}

fn listed(there: &[(AgentId, String)]) -> String {
    let each = there.iter().map(|(agent, version)| format!("`{agent}` has {version}"));
    each.collect::<Vec<_>>().join(", ")
}

fn reasons(excluded: &[PassedOver]) -> String {
    let each = excluded.iter().map(|it| format!("`{}`: {}", it.agent, it.why));
    each.collect::<Vec<_>>().join("; ")
}

/// Granted agents that have the skill, by its exact id; all of them if no skill is requested.
pub fn with_skill<'c>(
    candidates: impl IntoIterator<Item = &'c Candidate>,
    skill: Option<&str>,
) -> Vec<&'c Candidate> {
    let has = |it: &&Candidate| skill.is_none_or(|skill| it.skills.iter().any(|its| its == skill));
    candidates.into_iter().filter(|it| it.is_granted).filter(has).collect()
}

/// Selects and orders the candidates for a message of this context. The order of `candidates` does
/// not matter.
pub fn choose(
    candidates: &[Candidate],
    wanted: &Wanted,
    balance: Balance,
    context: Option<&ContextId>,
) -> Result<Choice, NoCandidate> {
    let mut excluded = Vec::new();
    let skilled = with_skill(candidates, wanted.skill.as_deref());
    if let Some(skill) = &wanted.skill {
        if skilled.is_empty() {
            return Err(no_skill(candidates, wanted, skill));
        }
        // If the client names no group, agents without the skill were never candidates.
        let others = candidates.iter().filter(|it| wanted.named.is_some() && it.is_granted);
        let others = others.filter(|it| !skilled.contains(it));
        excluded.extend(others.map(|it| {
            PassedOver::new(&it.agent, NotChosen::Skill, format!("it has no skill `{skill}`"))
        }));
    } else if let (true, Some(named)) = (skilled.is_empty(), &wanted.named) {
        return Err(NoCandidate::Nobody(named.clone()));
    }
    let (fit, unfit): (Vec<_>, Vec<_>) = skilled.into_iter().partition(|it| it.unfit.is_none());
    excluded.extend(
        unfit
            .into_iter()
            .filter_map(|it| Some(PassedOver::new(&it.agent, NotChosen::Unfit, it.unfit.clone()?))),
    );
    let (those, is_older) = by_version(fit, wanted, &mut excluded)?;
    let (open, mut order): (Vec<_>, Vec<_>) = those.into_iter().partition(|it| it.is_open);
    excluded.extend(open.into_iter().map(|it| {
        let why = "it failed repeatedly, and is left alone for a while".to_owned();
        PassedOver::new(&it.agent, NotChosen::Breaker, why)
    }));
    excluded.sort_by(|one, other| one.agent.cmp(&other.agent));
    if order.is_empty() {
        return Err(NoCandidate::AllExcluded { wanted: wanted.to_string(), excluded });
    }
    order.sort_by_cached_key(|it| {
        let version = is_older.then(|| version_of(it));
        let rank = Rank::new(it, balance, context);
        (Reverse(version), unwell(it), rank, it.last_turn, it.agent.clone())
    });
    let order = order.into_iter().cloned().collect();
    Ok(Choice { order, is_older, excluded, balance })
}

fn no_skill(candidates: &[Candidate], wanted: &Wanted, skill: &str) -> NoCandidate {
    let granted = candidates.iter().filter(|it| it.is_granted);
    let mut there: Vec<_> = granted.flat_map(|it| it.skills.iter().cloned()).collect();
    there.sort_unstable();
    there.dedup();
    NoCandidate::NoSkill { wanted: wanted.to_string(), skill: skill.to_owned(), there }
}

/// Filters by version. Returns the matching agents, and true if they are older than requested.
fn by_version<'c>(
    those: Vec<&'c Candidate>,
    wanted: &Wanted,
    excluded: &mut Vec<PassedOver>,
) -> Result<(Vec<&'c Candidate>, bool), NoCandidate> {
    let Some(required) = &wanted.version else { return Ok((those, false)) };
    let is_met = |it: &&Candidate| version_of(it).is_some_and(|its| required.is_met_by(&its));
    let (met, others): (Vec<_>, Vec<_>) = those.into_iter().partition(is_met);
    let is_older = |it: &&Candidate| version_of(it).is_some_and(|its| required.is_after(&its));
    let (mut older, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_older);
    let passed = |it: &Candidate| {
        let why = format!("its version is `{}`, and {required} is asked for", it.version);
        PassedOver::new(&it.agent, NotChosen::Version, why)
    };
    excluded.extend(others.iter().map(|it| passed(it)));
    if !met.is_empty() || older.is_empty() {
        excluded.extend(older.iter().map(|it| passed(it)));
        return Ok((met, false));
    }
    if wanted.allow_older {
        return Ok((older, true));
    }
    older.sort_by_key(|it| (Reverse(version_of(it)), it.agent.clone()));
    let there = older.iter().map(|it| (it.agent.clone(), it.version.clone())).collect();
    Err(NoCandidate::OnlyOlder { wanted: wanted.to_string(), there })
}

#[cfg(test)]
mod tests;
