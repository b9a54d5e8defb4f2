//! Routing of messages that name a group or a skill: collects facts about the agents, lets
//! `core::routing` choose, and keeps the round-robin state.

use crate::error::HubError;
use crate::observability::{hub_events::Events, metrics::Metrics};
use a2a_hub_agents::{Agent, Agents};
use a2a_hub_core::{
    discovery::did_you_mean,
    routing::{
        self, Balance, Candidate, Choice, NoCandidate, NotChosen, PassedOver, Requirement, Routing,
        Turns, Wanted,
    },
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::{AgentId, ContextId},
    message::Message,
    operation::{AgentGroup, AgentRequirements},
};
use parking_lot::Mutex;
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc};

/// Router over the agents. Cheap to clone.
#[derive(Clone)]
pub struct Routes {
    agents: Agents,
    metrics: Metrics,
    turns: Arc<Mutex<Turns>>,
}

/// Input of a routing decision.
pub struct RoutingInput<'a> {
    /// The message.
    pub message: &'a Message,
    /// Agent of the latest task in the message's conversation.
    pub holder: Option<&'a AgentId>,
    /// Number of an agent's tasks that run or wait for a run permit.
    pub load: &'a (dyn Fn(&AgentId) -> usize + Sync),
    /// True if the caller may use that agent.
    pub may_call: &'a (dyn Fn(&AgentId) -> bool + Sync),
}

/// Agents to try one after the other, until one takes the message.
pub struct AgentRoute {
    routes: Routes,
    wanted: Wanted,
    choice: Choice,
    /// Agents in the order of the choice.
    agents: Vec<Arc<Agent>>,
    refused: Vec<(PassedOver, A2aError)>,
}

impl Routes {
    /// Creates a router over these agents; their latency is measured in the metrics of `events`.
    pub fn new(agents: Agents, events: &Events) -> Self {
        Self { agents, metrics: events.metrics().clone(), turns: Arc::default() }
    }

    /// The agents.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// Members of a group. A group takes precedence over an agent of the same name: the operator
    /// defines groups, and anyone may have put a file into the plugins folder.
    pub fn group(&self, name: &AgentId) -> Option<Vec<AgentId>> {
        self.agents.group(name)
    }

    /// Routing request, if more is required than one agent by its id.
    pub fn wanted(
        &self,
        named: Option<&AgentId>,
        requirements: &AgentRequirements,
    ) -> Result<Option<Wanted>, A2aError> {
        let is_group = named.is_some_and(|named| self.group(named).is_some());
        // A version alone is a version of the named or of the default agent.
        if !is_group
            && (requirements.is_empty() || (named.is_none() && requirements.skill.is_none()))
        {
            return Ok(None);
        }
        let AgentRequirements { skill, version, allow_older } = requirements.clone();
        let version = version.map(|text| Requirement::parse(&text)).transpose();
        let version =
            version.map_err(|why| A2aError::invalid("message.metadata.targetVersion", why))?;
        Ok(Some(Wanted { named: named.cloned(), skill, version, allow_older }))
    }

    /// Load balancing strategy for this request.
    pub fn balance(&self, wanted: &Wanted) -> Balance {
        self.agents.balance(wanted.skill.as_deref(), wanted.named.as_ref())
    }

    /// Agents with a skill, by its exact id. Plug-ins without a grant are included only if no other
    /// agent has the skill: otherwise a plug-in could attract all messages by a word on its card.
    pub fn with_skill(&self, skill: &str) -> Vec<Arc<Agent>> {
        let has = |agent: &Arc<Agent>| agent.card.skills.iter().any(|its| its.id == skill);
        let all = self.agents.all().into_iter().filter(has);
        let (known, strangers): (Vec<_>, Vec<_>) = all.partition(|agent| agent.is_vouched_for());
        if known.is_empty() { strangers } else { known }
    }

    /// Ids of all skills.
    pub fn skills(&self) -> BTreeSet<String> {
        let listed = self.agents.listed();
        listed
            .iter()
            .flat_map(|agent| agent.card.skills.iter().map(|skill| skill.id.clone()))
            .collect()
    }

    /// Candidates: the members of the group, the named agent, or all.
    fn in_question(&self, wanted: &Wanted) -> Vec<Arc<Agent>> {
        match (&wanted.named, &wanted.skill) {
            (None, Some(skill)) => match self.with_skill(skill) {
                // All agents, for the list of skills in the refusal.
                nobody if nobody.is_empty() => self.agents.all(),
                those => those,
            },
            (None, None) => self.agents.all(),
            (Some(named), _) => {
                let members = self.group(named).unwrap_or_else(|| vec![named.clone()]);
                members.iter().filter_map(|id| self.agents.find(id)).collect()
            }
        }
    }

    /// Chooses the order of agents, and counts the first as used in the round robin.
    pub fn choose(&self, wanted: Wanted, input: &RoutingInput<'_>) -> Result<AgentRoute, HubError> {
        let (there, balance, round) =
            (self.in_question(&wanted), self.balance(&wanted), wanted.route());
        let mut turns = self.turns.lock();
        let candidates: Vec<_> = there
            .iter()
            .map(|agent| self.candidate(agent, turns.last(&round, &agent.id), input))
            .collect();
        let context = input.message.context_id.as_ref();
        let choice = routing::choose(&candidates, &wanted, balance, context)
            .map_err(|why| no_candidate(&why))?;
        if let Some(first) = choice.order.first() {
            turns.takes(&round, &first.agent);
        }
        drop(turns);
        let find = |it: &Candidate| there.iter().find(|agent| agent.id == it.agent).cloned();
        let agents = choice.order.iter().filter_map(find).collect();
        Ok(AgentRoute { routes: self.clone(), wanted, choice, agents, refused: Vec::new() })
    }

    fn candidate(&self, agent: &Agent, last_turn: u64, input: &RoutingInput<'_>) -> Candidate {
        let not_taken = agent.card.part_not_taken(input.message);
        let unfit = not_taken.map(|(_, media)| format!("it takes nothing of type {media}"));
        // Only a client that knows which agent it addresses can declare an extension.
        let needs = agent.card.missing_extension(&[]);
        let unfit = unfit.or_else(|| needs.map(|uri| format!("it needs the extension {uri}")));
        Candidate {
            agent: agent.id.clone(),
            is_granted: (input.may_call)(&agent.id),
            skills: agent.card.skills.iter().map(|skill| skill.id.clone()).collect(),
            version: agent.card.version.clone(),
            unfit,
            health: agent.health().status,
            is_open: agent.is_breaker_open(),
            is_over_quota: agent.is_over_quota(),
            load: (input.load)(&agent.id),
            latency: self.metrics.latency(&agent.id),
            last_turn,
            holds_context: input.holder == Some(&agent.id),
        }
    }

    /// All groups.
    pub fn groups(&self) -> Vec<AgentGroup> {
        let groups = self.agents.groups().into_iter().map(|(name, agents)| {
            let balance = self.agents.balance(None, Some(&name)).word().to_owned();
            let (agents, missing) =
                agents.into_iter().partition(|id| self.agents.find(id).is_some());
            AgentGroup { name, balance, agents, missing }
        });
        groups.collect()
    }

    /// Recent time to an agent's first output, in milliseconds.
    pub fn latency_ms(&self, agent: &AgentId) -> Option<u64> {
        let latency = self.metrics.latency(agent)?;
        Some(u64::try_from(latency.as_millis()).unwrap_or(u64::MAX))
    }
}

impl AgentRoute {
    /// Agent to try now; none if all have refused.
    pub fn agent(&self) -> Option<Arc<Agent>> {
        self.agents.get(self.refused.len()).cloned()
    }

    /// True if another agent is left should this one refuse.
    pub fn has_another(&self) -> bool {
        self.refused.len() + 1 < self.agents.len()
    }

    /// Routing facts for the task that this agent takes.
    pub fn routing_facts(&self) -> Option<Box<Routing>> {
        let refused: Vec<_> = self.refused.iter().map(|(passed, _)| passed.clone()).collect();
        self.choice.explain(self.refused.len(), &self.wanted, &refused).map(Box::new)
    }

    /// Skips the current agent, which refused before a task began; the next one is tried.
    pub fn pass(&mut self, reason: NotChosen, why: A2aError) {
        self.pass_with(reason, why, None);
    }

    /// Skips the current agent, which rejected its task at once.
    pub fn pass_rejected(&mut self, task: a2a_hub_protocol::id::TaskId, text: &str) {
        let text = if text.is_empty() { "it did not say why" } else { text };
        let why =
            A2aError::new(ErrorKind::AgentUnavailable, format!("it rejected the task: {text}"));
        self.pass_with(NotChosen::Rejected, why, Some(task));
    }

    fn pass_with(
        &mut self,
        reason: NotChosen,
        why: A2aError,
        task: Option<a2a_hub_protocol::id::TaskId>,
    ) {
        let Some(agent) = self.agent() else { return };
        let passed = PassedOver { task, ..PassedOver::new(&agent.id, reason, why.message.clone()) };
        tracing::info!(agent = %agent.id, why = %why.message, "agent passed over, trying the next one");
        self.refused.push((passed, why));
        if let Some(next) = self.agent() {
            self.routes.turns.lock().takes(&self.wanted.route(), &next.id);
        }
    }

    /// Error if no agent takes the message.
    pub fn refusal(mut self) -> HubError {
        // Another try helps no caller that lacks scopes.
        let is_final = |(passed, _): &(PassedOver, A2aError)| passed.reason == NotChosen::Scopes;
        if self.choice.excluded.is_empty()
            && let Some((_, first)) = self.refused.first()
            && (self.refused.len() == 1 || self.refused.iter().all(is_final))
        {
            return HubError::from(first.clone());
        }
        let is_busy = self.refused.iter().any(|(passed, _)| passed.reason == NotChosen::Busy);
        let passed = self.refused.drain(..).map(|(passed, _)| passed);
        let passed: Vec<_> = passed.chain(self.choice.excluded).collect();
        let each: Vec<_> = passed.iter().map(|it| format!("`{}`: {}", it.agent, it.why)).collect();
        let text = format!(
            "{} is asked for, and none takes the message: {}",
            self.wanted,
            each.join("; ")
        );
        let reason = if is_busy { "busy" } else { "refused" };
        let refusal = A2aError::new(ErrorKind::AgentUnavailable, text);
        HubError::from(refusal.with(json!({ "reason": reason, "passedOver": passed })))
    }
}

/// Context of a message, if the strategy prefers the agent of the latest task there.
pub fn looks_for_holder(balance: Balance, message: &Message) -> Option<&ContextId> {
    message.context_id.as_ref().filter(|_| balance == Balance::Affinity)
}

fn no_candidate(why: &NoCandidate) -> HubError {
    let refused =
        |kind, text: String, details| HubError::from(A2aError::new(kind, text).with(details));
    match why {
        NoCandidate::NoSkill { skill, there, .. } => {
            let hint = did_you_mean::hint(skill, there.iter().map(String::as_str));
            let hint = hint.map(|hint| format!("{hint} ")).unwrap_or_default();
            let text = match there.as_slice() {
                [] => why.to_string(),
                some => format!("{why}; {hint}the skills are {}", some.join(", ")),
            };
            refused(ErrorKind::AgentNotFound, text, json!({ "skills": there }))
        }
        NoCandidate::Nobody(group) => {
            refused(ErrorKind::AgentNotFound, why.to_string(), json!({ "group": group }))
        }
        NoCandidate::OnlyOlder { there, .. } => {
            let there: Vec<_> = there
                .iter()
                .map(|(agent, version)| json!({ "agent": agent, "version": version }))
                .collect();
            refused(ErrorKind::AgentNotFound, why.to_string(), json!({ "older": there }))
        }
        NoCandidate::AllExcluded { excluded: passed_over, .. } => {
            let details = json!({ "reason": "refused", "passedOver": passed_over });
            refused(ErrorKind::AgentUnavailable, why.to_string(), details)
        }
    }
}
