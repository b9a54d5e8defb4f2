//! What is told of a choice: which agent it fell on, and what it was chosen over. It stands among the facts of the task.

use super::{
    candidate::{Balance, Candidate, cost, unwell, version_of},
    wanted::Wanted,
};
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    operation::HealthStatus,
};
use serde::{Deserialize, Serialize};

/// The fact that tells how the task came to its agent, where its client named none: a [`Routing`].
pub const ROUTING: &str = "routing";

/// The agents that are to be tried, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Whoever is tried first stands first. At least one.
    pub order: Vec<Candidate>,
    /// Whether these are older versions than were asked for.
    pub is_older: bool,
    /// The others, each with the reason why it is not tried.
    pub left_out: Vec<PassedOver>,
    pub(super) balance: Balance,
}

/// How a task came to its agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// The group, or the agent, that the client named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named: Option<AgentId>,
    /// The skill that the client asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The versions that the client asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The agent that has the task.
    pub agent: AgentId,
    /// The version of that agent, as its card says.
    pub agent_version: String,
    /// Whether that is an older version than was asked for, which the client allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub older: bool,
    /// How the agents were put in order.
    pub balance: Balance,
    /// The others, each with the reason why it has not the task.
    pub passed_over: Vec<PassedOver>,
}

/// An agent that was not given the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassedOver {
    /// The agent.
    pub agent: AgentId,
    /// Why, for machines.
    pub reason: NotChosen,
    /// Why, for people.
    pub why: String,
    /// The task that the agent rejected before it said anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

/// Why an agent was not given the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotChosen {
    /// It has not the skill.
    Skill,
    /// Its version will not do.
    Version,
    /// It could do nothing with the message.
    Unfit,
    /// Its circuit breaker is open.
    Breaker,
    /// It is not well.
    Health,
    /// It has too much to do.
    Busy,
    /// It rejected the task before it began.
    Rejected,
    /// The balancing put another one first.
    Balance,
}

impl PassedOver {
    /// An agent that was not given the task for this reason.
    pub fn new(agent: &AgentId, reason: NotChosen, why: String) -> Self {
        Self { agent: agent.clone(), reason, why, task: None }
    }
}

impl Choice {
    /// What is told of the task that the agent at this place of the order takes, of which `refused` were tried before.
    pub fn told(&self, at: usize, wanted: &Wanted, refused: &[PassedOver]) -> Option<Routing> {
        let chosen = self.order.get(at)?;
        let mut passed_over = refused.to_vec();
        let behind = self.order.iter().skip(at + 1);
        passed_over.extend(behind.map(|it| self.behind(chosen, it)));
        passed_over.extend(self.left_out.iter().cloned());
        Some(Routing {
            named: wanted.named.clone(),
            skill: wanted.skill.clone(),
            version: wanted.version.as_ref().map(|version| version.as_str().to_owned()),
            agent: chosen.agent.clone(),
            agent_version: chosen.version.clone(),
            older: self.is_older,
            balance: self.balance,
            passed_over,
        })
    }

    /// Why that one stands behind the one that was chosen.
    fn behind(&self, chosen: &Candidate, it: &Candidate) -> PassedOver {
        if self.is_older && version_of(it) < version_of(chosen) {
            let why = format!("its version, `{}`, is older still", it.version);
            return PassedOver::new(&it.agent, NotChosen::Version, why);
        }
        if unwell(it.health) > unwell(chosen.health) {
            let why = match it.health {
                HealthStatus::Degraded => "it is degraded",
                HealthStatus::Unhealthy => "it is unhealthy",
                HealthStatus::Healthy | HealthStatus::Unknown => "another one is known to be well",
            };
            return PassedOver::new(&it.agent, NotChosen::Health, why.to_owned());
        }
        let later = || "its turn comes later".to_owned();
        let why = match self.balance {
            Balance::LeastLoaded if it.load > chosen.load => {
                format!("{} of its tasks run or wait, against {}", it.load, chosen.load)
            }
            Balance::Latency if cost(it) > cost(chosen) => match it.latency {
                Some(latency) => format!(
                    "its first word takes about {} ms, and it has {} tasks",
                    latency.as_millis(),
                    it.load
                ),
                None => format!("it has {} tasks and said nothing yet", it.load),
            },
            Balance::Affinity if chosen.holds_context => {
                "the conversation is with the other".to_owned()
            }
            Balance::RoundRobin | Balance::LeastLoaded | Balance::Latency | Balance::Affinity => {
                later()
            }
        };
        PassedOver::new(&it.agent, NotChosen::Balance, why)
    }
}
