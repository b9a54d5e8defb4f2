//! Candidate for a message, and its rank by the load-balancing strategy.

use a2a_hub_protocol::{
    id::{AgentId, ContextId},
    operation::HealthStatus,
};
use semver::Version;
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// Load-balancing strategy among agents that can all take a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// Selects the agent whose last turn is the longest ago.
    #[default]
    RoundRobin,
    /// Selects the agent with the fewest running and queued tasks.
    LeastLoaded,
    /// Selects the agent with the shortest expected time to its first event: the moving average of
    /// that time, multiplied by the number of tasks that it would have.
    Latency,
    /// Selects the agent of the context's earlier tasks; for a new context, an agent by a hash of
    /// the context's id (rendezvous hashing), so that the context stays with one agent even if many
    /// agents join and leave. A message without a context uses round robin.
    Affinity,
}

impl Balance {
    /// Name in configurations and in metadata.
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

/// Agent that may receive the message, with the facts that decide it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Id on this hub.
    pub agent: AgentId,
    /// True if the caller may use the agent. Other agents are not even mentioned to the caller.
    pub is_granted: bool,
    /// Ids of its skills.
    pub skills: Vec<String>,
    /// Version from its card.
    pub version: String,
    /// Reason why it cannot handle this message, if it cannot.
    pub unfit: Option<String>,
    /// Result of its last health check.
    pub health: HealthStatus,
    /// True if its circuit breaker admits no task now.
    pub is_open: bool,
    /// True if its account took no tasks a short time ago: no quota, or no login.
    pub is_over_quota: bool,
    /// Number of its running and queued tasks.
    pub load: usize,
    /// Recent time to its first event; `None` if it has sent none yet.
    pub latency: Option<Duration>,
    /// Number of its last turn, as counted by [`Turns`](super::Turns); 0 if it had none.
    pub last_turn: u64,
    /// True if it has the latest task of the message's context.
    pub holds_context: bool,
}

pub(super) fn version_of(candidate: &Candidate) -> Option<Version> {
    crate::plugin::version::parse(&candidate.version)
}

/// Rank by health; healthy agents come first. An agent without quota may have some again, and an
/// unhealthy one may have recovered: they are the last resorts.
pub(super) fn unwell(it: &Candidate) -> u8 {
    match it.health {
        HealthStatus::Unhealthy => 3,
        HealthStatus::Degraded => 1 + u8::from(it.is_over_quota),
        HealthStatus::Healthy | HealthStatus::Unknown => 2 * u8::from(it.is_over_quota),
    }
}

/// Rank by load-balancing strategy: the smallest is tried first, and the last turn decides between
/// equal ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(bool, u128);

impl Rank {
    pub(super) fn new(
        candidate: &Candidate,
        balance: Balance,
        context: Option<&ContextId>,
    ) -> Self {
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

/// Expected time to the first event of one more task, in nanoseconds. An idle agent without any
/// measurement is tried first; with tasks that sent nothing yet it no longer is.
pub(super) fn cost(candidate: &Candidate) -> u128 {
    let tasks = candidate.load as u128 + 1;
    match candidate.latency {
        Some(latency) => latency.as_nanos().max(1) * tasks,
        None if candidate.load == 0 => 0,
        None => Duration::from_secs(1).as_nanos() * tasks,
    }
}

/// Weight of an agent for a context (rendezvous hashing, highest random weight): FNV-1a, followed
/// by the final mix of `SplitMix64` for short texts that differ only at their ends. The same on
/// every machine and in every version.
fn weight(context: &str, agent: &str) -> u64 {
    let bytes = context.bytes().chain([0]).chain(agent.bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
