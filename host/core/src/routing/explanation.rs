//! Explanation of a routing decision in the task's metadata: the selected agent, and the reasons
//! against the others.

use super::{
    candidate::{Balance, Candidate, cost, unwell, version_of},
    request::Wanted,
};
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    operation::HealthStatus,
};
use serde::{Deserialize, Serialize};

/// Metadata member that explains the routing of a task whose client named no agent: a [`Routing`].
pub const ROUTING: &str = "routing";

/// Agents to try, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Candidates, first to try first. At least one.
    pub order: Vec<Candidate>,
    /// True if these are older versions than requested.
    pub is_older: bool,
    /// Other agents, each with the reason why it is not tried.
    pub excluded: Vec<PassedOver>,
    pub(super) balance: Balance,
}

/// Explanation of a task's routing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// Group or agent that the client named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named: Option<AgentId>,
    /// Skill that the client requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Versions that the client requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Agent that has the task.
    pub agent: AgentId,
    /// Version of that agent, from its card.
    pub agent_version: String,
    /// True if that version is older than requested, which the client allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub older: bool,
    /// Load-balancing strategy that ordered the agents.
    pub balance: Balance,
    /// Other agents, each with the reason why it did not get the task.
    pub passed_over: Vec<PassedOver>,
}

/// Agent that did not get the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassedOver {
    /// Agent id.
    pub agent: AgentId,
    /// Reason for machines.
    pub reason: NotChosen,
    /// Reason for people.
    pub why: String,
    /// Task that the agent rejected as its first event, or that was handed over from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

/// Reason why an agent did not get the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotChosen {
    /// It does not have the skill.
    Skill,
    /// Its version does not satisfy the requirement.
    Version,
    /// It cannot handle the message.
    Unfit,
    /// The caller lacks scopes that it requires.
    Scopes,
    /// Its circuit breaker is open.
    Breaker,
    /// It is not healthy.
    Health,
    /// It is overloaded.
    Busy,
    /// It rejected the task before it began.
    Rejected,
    /// It had the task, which the hub handed over because of its failure.
    HandedOver,
    /// The load balancing ranked another agent first.
    Balance,
}

impl PassedOver {
    /// Creates an entry for an agent with this reason.
    pub fn new(agent: &AgentId, reason: NotChosen, why: String) -> Self {
        Self { agent: agent.clone(), reason, why, task: None }
    }
}

impl Choice {
    /// Explanation for a task of the agent at index `at` of the order; `refused` lists the agents
    /// that were tried before it.
    pub fn explain(&self, at: usize, wanted: &Wanted, refused: &[PassedOver]) -> Option<Routing> {
        let chosen = self.order.get(at)?;
        let mut passed_over = refused.to_vec();
        let lower_ranked = self.order.iter().skip(at + 1);
        passed_over.extend(lower_ranked.map(|it| self.lower_rank_reason(chosen, it)));
        passed_over.extend(self.excluded.iter().cloned());
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

    /// Reason why an agent ranks behind the selected one.
    fn lower_rank_reason(&self, chosen: &Candidate, it: &Candidate) -> PassedOver {
        if self.is_older && version_of(it) < version_of(chosen) {
            let why = format!("its version, `{}`, is older still", it.version);
            return PassedOver::new(&it.agent, NotChosen::Version, why);
        }
        if unwell(it) > unwell(chosen) {
            let why = match it.health {
                HealthStatus::Unhealthy => "it is unhealthy",
                HealthStatus::Degraded if !it.is_over_quota => "it is degraded",
                HealthStatus::Healthy | HealthStatus::Degraded | HealthStatus::Unknown => {
                    "its quota was used up a short time ago, or nobody was logged in"
                }
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
