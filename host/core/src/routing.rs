//! Which agent a message is given to that names none of its own: one of a group, or one that has a skill. Candidates are left out by
//! grant, skill, version and circuit breaker; the others are put in an order by how they are and by the way of balancing, and tried in it
//! until one takes the message.
//!
//! ```text
//! agents ──► granted, skill, fit ──► version ──► breaker ──► order: health, balance, longest without a turn ──► the first that takes it
//!                │                     │            │
//!                └────── left out, each with its reason ───────────────────────────────────────────────────► told as facts of the task
//! ```

mod latency;
mod requirement;
mod told;
mod turns;

pub use latency::Latency;
pub use requirement::{InvalidRequirement, Requirement};
pub use told::{NotChosen, PassedOver, ROUTING, Routing};
pub use turns::Turns;

use a2a_hub_protocol::{
    id::{AgentId, ContextId},
    operation::HealthStatus,
};
use semver::Version;
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, fmt, time::Duration};

/// How messages are shared out among agents that can all take them (load balancing).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// To each in turn: to whichever has been without one for longest.
    #[default]
    RoundRobin,
    /// To the one with the fewest tasks that run or wait for their turn.
    LeastLoaded,
    /// To the one that says its first word soonest: the moving average of that time, times the tasks that it would have.
    Latency,
    /// To the one that has had tasks of the conversation; of a new conversation, by a hash of its id (rendezvous hashing), so that it
    /// stays with one agent also where many come and go. A message without a conversation goes to each in turn.
    Affinity,
}

impl Balance {
    /// As configurations and facts have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::LeastLoaded => "least-loaded",
            Self::Latency => "latency",
            Self::Affinity => "affinity",
        }
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

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
        let version = version.as_ref().map(Requirement::as_str);
        // Debug quotes each, so that none can pass for another.
        format!("{:?}", (named.as_ref().map(AgentId::as_str), skill, version))
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

/// An agent that may be given the message, as far as that matters here.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name on this hub.
    pub agent: AgentId,
    /// Whether whoever asks may have it do anything. One that may not is not even told of.
    pub is_granted: bool,
    /// The ids of its skills.
    pub skills: Vec<String>,
    /// Its version, as its card says.
    pub version: String,
    /// Why it could do nothing with this message, if that is so.
    pub unfit: Option<String>,
    /// How it was when it was asked last.
    pub health: HealthStatus,
    /// Whether its circuit breaker lets no task through now.
    pub is_open: bool,
    /// How many of its tasks run or wait for their turn.
    pub load: usize,
    /// How long its first word took lately; none if it said none yet.
    pub latency: Option<Duration>,
    /// When it had its last turn, as [`Turns`] counts; 0 if it had none.
    pub last_turn: u64,
    /// Whether the latest task of the message's conversation is its.
    pub holds_context: bool,
}

/// The agents that are to be tried, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Whoever is tried first stands first. At least one.
    pub order: Vec<Candidate>,
    /// Whether these are older versions than were asked for.
    pub is_older: bool,
    /// The others, each with the reason why it is not tried.
    pub left_out: Vec<PassedOver>,
    balance: Balance,
}

/// Why nobody can be given the message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoCandidate {
    /// No agent has the skill.
    #[error("no agent has the skill `{skill}`")]
    NoSkill {
        /// The skill that was asked for.
        skill: String,
        /// The skills that agents have which may be asked.
        there: Vec<String>,
    },
    /// The group has no member that is there, and may be asked.
    #[error("none of the agents of `{0}` is there")]
    Nobody(AgentId),
    /// There are older versions only.
    #[error("find {wanted}: there are older versions only: {}; name a version that there is, or say `allowOlder`", listed(.there))]
    OnlyOlder {
        /// What was asked for.
        wanted: String,
        /// The agents, each with its version, the newest first.
        there: Vec<(AgentId, String)>,
    },
    /// Each is left out.
    #[error("find {wanted}: {}", reasons(.left_out))]
    AllLeftOut {
        /// What was asked for.
        wanted: String,
        /// The agents, each with the reason why it is not tried.
        left_out: Vec<PassedOver>,
    },
}

fn listed(there: &[(AgentId, String)]) -> String {
    let each = there.iter().map(|(agent, version)| format!("`{agent}` has {version}"));
    each.collect::<Vec<_>>().join(", ")
}

fn reasons(left_out: &[PassedOver]) -> String {
    let each = left_out.iter().map(|it| format!("`{}`: {}", it.agent, it.why));
    each.collect::<Vec<_>>().join("; ")
}

/// The agents that have the skill, by its exact id; all of them where none is asked for.
pub fn with_skill<'c>(
    candidates: impl IntoIterator<Item = &'c Candidate>,
    skill: Option<&str>,
) -> Vec<&'c Candidate> {
    let has = |it: &&Candidate| skill.is_none_or(|skill| it.skills.iter().any(|its| its == skill));
    candidates.into_iter().filter(|it| it.is_granted).filter(has).collect()
}

/// Chooses among the candidates, in whatever order they come, for a message of this conversation.
pub fn choose(
    candidates: &[Candidate],
    wanted: &Wanted,
    balance: Balance,
    context: Option<&ContextId>,
) -> Result<Choice, NoCandidate> {
    let mut left_out = Vec::new();
    let skilled = with_skill(candidates, wanted.skill.as_deref());
    if let Some(skill) = &wanted.skill {
        if skilled.is_empty() {
            return Err(no_skill(candidates, skill));
        }
        // Of all the agents that there are, those without the skill were never in question.
        let others = candidates.iter().filter(|it| wanted.named.is_some() && it.is_granted);
        let others = others.filter(|it| !skilled.contains(it));
        left_out.extend(others.map(|it| {
            PassedOver::new(&it.agent, NotChosen::Skill, format!("it has no skill `{skill}`"))
        }));
    } else if let (true, Some(named)) = (skilled.is_empty(), &wanted.named) {
        return Err(NoCandidate::Nobody(named.clone()));
    }
    let (fit, unfit): (Vec<_>, Vec<_>) = skilled.into_iter().partition(|it| it.unfit.is_none());
    left_out.extend(
        unfit
            .into_iter()
            .filter_map(|it| Some(PassedOver::new(&it.agent, NotChosen::Unfit, it.unfit.clone()?))),
    );
    let (those, is_older) = by_version(fit, wanted, &mut left_out)?;
    let (open, mut order): (Vec<_>, Vec<_>) = those.into_iter().partition(|it| it.is_open);
    left_out.extend(open.into_iter().map(|it| {
        let why = "it failed repeatedly, and is left alone for a while".to_owned();
        PassedOver::new(&it.agent, NotChosen::Breaker, why)
    }));
    left_out.sort_by(|one, other| one.agent.cmp(&other.agent));
    if order.is_empty() {
        return Err(NoCandidate::AllLeftOut { wanted: wanted.to_string(), left_out });
    }
    order.sort_by_cached_key(|it| {
        let version = is_older.then(|| version_of(it));
        let rank = Rank::of(it, balance, context);
        (Reverse(version), unwell(it.health), rank, it.last_turn, it.agent.clone())
    });
    let order = order.into_iter().cloned().collect();
    Ok(Choice { order, is_older, left_out, balance })
}

fn no_skill(candidates: &[Candidate], skill: &str) -> NoCandidate {
    let granted = candidates.iter().filter(|it| it.is_granted);
    let mut there: Vec<_> = granted.flat_map(|it| it.skills.iter().cloned()).collect();
    there.sort_unstable();
    there.dedup();
    NoCandidate::NoSkill { skill: skill.to_owned(), there }
}

fn version_of(candidate: &Candidate) -> Option<Version> {
    crate::version::parse(&candidate.version)
}

/// Those whose version will do, and whether they are older than was asked for.
fn by_version<'c>(
    those: Vec<&'c Candidate>,
    wanted: &Wanted,
    left_out: &mut Vec<PassedOver>,
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
    left_out.extend(others.iter().map(|it| passed(it)));
    if !met.is_empty() || older.is_empty() {
        left_out.extend(older.iter().map(|it| passed(it)));
        return Ok((met, false));
    }
    if wanted.allow_older {
        return Ok((older, true));
    }
    older.sort_by_key(|it| (Reverse(version_of(it)), it.agent.clone()));
    let there = older.iter().map(|it| (it.agent.clone(), it.version.clone())).collect();
    Err(NoCandidate::OnlyOlder { wanted: wanted.to_string(), there })
}

/// Whoever is well is tried first. One that is unhealthy may have been mended, and is the last resort.
fn unwell(health: HealthStatus) -> u8 {
    match health {
        HealthStatus::Healthy | HealthStatus::Unknown => 0,
        HealthStatus::Degraded => 1,
        HealthStatus::Unhealthy => 2,
    }
}

/// Where a candidate stands by the way of balancing: the least is tried first, and equals have their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(bool, u128);

impl Rank {
    fn of(candidate: &Candidate, balance: Balance, context: Option<&ContextId>) -> Self {
        match (balance, context) {
            (Balance::RoundRobin, _) | (Balance::Affinity, None) => Self(false, 0),
            (Balance::LeastLoaded, _) => Self(false, candidate.load as u128),
            (Balance::Latency, _) => Self(false, cost(candidate)),
            (Balance::Affinity, Some(context)) => {
                let weight = weight(context.as_str(), candidate.agent.as_str());
                Self(!candidate.holds_context, u128::from(u64::MAX - weight))
            }
        }
    }
}

/// What one more task would wait for its first word, in nanoseconds. Nothing is known of one that said none: it is tried, and with
/// more tasks than it has answered it is no longer the first.
fn cost(candidate: &Candidate) -> u128 {
    let tasks = candidate.load as u128 + 1;
    match candidate.latency {
        Some(latency) => latency.as_nanos().max(1) * tasks,
        None if candidate.load == 0 => 0,
        None => Duration::from_secs(1).as_nanos() * tasks,
    }
}

/// The weight of an agent for a conversation (rendezvous hashing, highest random weight): FNV-1a, whose bits are then mixed as the
/// last step of `SplitMix64` does, for short texts that differ at their ends. The same on every machine and in every version.
fn weight(context: &str, agent: &str) -> u64 {
    let bytes = context.bytes().chain([0]).chain(agent.bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests;
