//! An agent in question, and where it stands among the others by the way of balancing.

use a2a_hub_protocol::{
    id::{AgentId, ContextId},
    operation::HealthStatus,
};
use semver::Version;
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

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
    /// When it had its last turn, as [`Turns`](super::Turns) counts; 0 if it had none.
    pub last_turn: u64,
    /// Whether the latest task of the message's conversation is its.
    pub holds_context: bool,
}

pub(super) fn version_of(candidate: &Candidate) -> Option<Version> {
    crate::version::parse(&candidate.version)
}

/// Whoever is well is tried first. One that is unhealthy may have been mended, and is the last resort.
pub(super) fn unwell(health: HealthStatus) -> u8 {
    match health {
        HealthStatus::Healthy | HealthStatus::Unknown => 0,
        HealthStatus::Degraded => 1,
        HealthStatus::Unhealthy => 2,
    }
}

/// Where a candidate stands by the way of balancing: the least is tried first, and equals have their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(bool, u128);

impl Rank {
    pub(super) fn of(candidate: &Candidate, balance: Balance, context: Option<&ContextId>) -> Self {
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
pub(super) fn cost(candidate: &Candidate) -> u128 {
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
