//! Handoff within a group: if its agent has no quota or login left, another member goes on.
//!
//! ```text
//!  agent fails: rate_limited, not_logged_in ─► a member that was not tried yet ─► new task
//!                                               └► none takes it: the failure stands, with reasons
//! ```
//!
//! The new task's `routing` lists the agents that had the task before it, so that each member of
//! the group is tried once, over any number of restarts.

use super::{MAX_HANDOFFS, fact_of_new, reason};
use a2a_hub_core::{
    failure_reason::FailureReason,
    routing::{NotChosen, PassedOver, ROUTING, Requirement, Routing, Wanted},
    task::metadata::REASON,
};
use a2a_hub_protocol::{
    budget::Budget,
    id::{AgentId, TaskId},
    message::{Message, Metadata, Part, Role},
    scheduled::AutomatedRun,
    task::{Task, TaskState},
};
use serde::Deserialize as _;

/// Word for an agent that rejects a task which the hub handed over to it.
const REJECTED: &str = "rejected";

/// Most characters of a failure in the explanation of a later task.
const MAX_WHY: usize = 200;

/// Search for the member of a group that goes on with a task.
#[derive(Clone, Debug)]
pub struct Failover {
    old: TaskId,
    agent: AgentId,
    /// Reason of the failure.
    reason: String,
    wanted: Wanted,
    /// Members that had the task, or rejected it.
    tried: Vec<PassedOver>,
    run: Option<AutomatedRun>,
}

/// Group that chose the agent of a task; none if the client named the agent.
pub fn group_of(task: &Task) -> Option<AgentId> {
    routing_of(task)?.named
}

fn routing_of(task: &Task) -> Option<Routing> {
    Routing::deserialize(task.metadata.as_ref()?.get(ROUTING)?).ok()
}

impl Failover {
    /// Search that follows the end of `task` in `state`; none if that end is no reason for one.
    pub fn for_task(
        task: &Task,
        state: TaskState,
        facts: Option<&Metadata>,
        message: Option<&Message>,
    ) -> Option<Self> {
        let metadata_reason = facts.and_then(|facts| facts.get(REASON)?.as_str());
        let (passed, reason) = match state {
            TaskState::Failed => (
                NotChosen::HandedOver,
                metadata_reason.filter(|it| FailureReason::is_of_account(it))?,
            ),
            // The client did not choose this agent, and another one may take the task.
            TaskState::Rejected if reason(task).is_some() => (NotChosen::Rejected, REJECTED),
            TaskState::Rejected
            | TaskState::Submitted
            | TaskState::Working
            | TaskState::InputRequired
            | TaskState::AuthRequired
            | TaskState::Completed
            | TaskState::Canceled
            | TaskState::Unknown => return None,
        };
        let Routing { named, skill, version, agent, older, passed_over, .. } = routing_of(task)?;
        let why = message.map(Message::joined_text).unwrap_or_default();
        let why: String = why.lines().next().unwrap_or_default().chars().take(MAX_WHY).collect();
        let why = if why.is_empty() { reason.to_owned() } else { format!("{reason}: {why}") };
        let now =
            PassedOver { task: Some(task.id.clone()), ..PassedOver::new(&agent, passed, why) };
        let had_it = |it: &PassedOver| {
            matches!(it.reason, NotChosen::HandedOver | NotChosen::Rejected) && it.task.is_some()
        };
        let tried: Vec<_> = passed_over.into_iter().filter(had_it).chain([now]).collect();
        let version = version.and_then(|version| Requirement::parse(&version).ok());
        Some(Self {
            old: task.id.clone(),
            agent,
            reason: reason.to_owned(),
            wanted: Wanted { named: Some(named?), skill, version, allow_older: older },
            tried,
            run: AutomatedRun::from_metadata(task.metadata.as_ref()),
        })
        .filter(|it| it.tried.len() < MAX_HANDOFFS)
    }

    /// Requirements on the agent that goes on.
    pub fn wanted(&self) -> Wanted {
        self.wanted.clone()
    }

    /// Reason of the failure.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// True if the agent had no try yet.
    pub fn may_take(&self, agent: &AgentId) -> bool {
        self.tried.iter().all(|it| it.agent != *agent)
    }

    /// Explanation for the new task, with the agents that had it before.
    #[must_use]
    pub fn explained(&self, mut routing: Routing) -> Routing {
        routing.passed_over.splice(0..0, self.tried.iter().cloned());
        routing
    }

    /// Metadata of the new task: who began it, and the schedule or trigger that did.
    pub fn facts(&self) -> Metadata {
        let mut facts = fact_of_new(&self.agent, &self.old, Some(&self.reason));
        facts.extend(self.run.iter().flat_map(AutomatedRun::facts));
        facts
    }

    /// Last message of the task if no agent goes on: the agent's words, and the reasons.
    pub fn failed(&self, message: Option<Message>, why: &str) -> Message {
        let group = self.wanted.named.as_ref().map_or("", AgentId::as_str);
        let before = self.tried.split_last().map(|(_, before)| before).unwrap_or_default();
        let before = before.iter().map(|it| match &it.task {
            Some(task) => format!("`{}` had it as task `{task}` ({})", it.agent, it.why),
            None => format!("`{}` ({})", it.agent, it.why),
        });
        let reasons: Vec<_> = before.chain([why.to_owned()]).collect();
        let text = format!("\n\nNo other agent of `{group}` goes on: {}.", reasons.join("; "));
        let mut message = message.unwrap_or_else(|| Message::new(Role::Agent, Vec::new()));
        message.parts.push(Part::text(text));
        message
    }
}

/// Budget that is left of `budget` after descendants of this number and usage.
#[must_use]
pub fn remaining_budget(budget: Budget, tasks: u32, tokens: u64, cost_usd: f64) -> Budget {
    Budget {
        depth: budget.depth,
        tasks: budget.tasks.map(|limit| limit.saturating_sub(tasks)),
        tokens: budget.tokens.map(|limit| limit.saturating_sub(tokens)),
        cost_usd: budget.cost_usd.map(|limit| (limit - cost_usd).max(0.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::task, *};
    use a2a_hub_core::routing::Balance;
    use serde_json::json;

    fn agent(name: &str) -> AgentId {
        AgentId::parse(name).unwrap()
    }

    fn routing(chosen: &str, passed_over: Vec<PassedOver>) -> Routing {
        Routing {
            named: Some(agent("coders")),
            skill: None,
            version: Some("^1".to_owned()),
            agent: agent(chosen),
            agent_version: "1".to_owned(),
            older: false,
            balance: Balance::RoundRobin,
            passed_over,
        }
    }

    /// Task of a group whose agent `a` was chosen.
    fn of_group(passed_over: Vec<PassedOver>) -> Task {
        let mut task = task(TaskState::Working, "");
        let fact = (ROUTING.to_owned(), json!(routing("a", passed_over)));
        task.metadata = Some(Metadata::from_iter([fact]));
        task
    }

    fn after(task: &Task, state: TaskState, reason: &str) -> Option<Failover> {
        let facts = Metadata::from_iter([(REASON.to_owned(), reason.into())]);
        let said = Message::text(Role::Agent, "Come back at 3 pm.\nOr pay.");
        Failover::for_task(task, state, Some(&facts), Some(&said))
    }

    #[test]
    fn only_failures_of_account_are_followed() {
        let (group, failed) = (of_group(Vec::new()), TaskState::Failed);
        for reason in ["rate_limited", "not_logged_in"] {
            assert_eq!(after(&group, failed, reason).unwrap().reason(), reason);
        }
        for reason in ["overloaded", "max_budget", "agent_error", "timeout", "hub_stopped", ""] {
            assert!(after(&group, failed, reason).is_none(), "{reason}");
        }
        for state in [TaskState::Completed, TaskState::Canceled, TaskState::Rejected] {
            assert!(after(&group, state, "rate_limited").is_none(), "{state:?}");
        }
        assert!(Failover::for_task(&group, failed, None, None).is_none());
        let named = task(TaskState::Working, "");
        assert!(after(&named, failed, "rate_limited").is_none(), "the client named the agent");
        let mut odd = named.clone();
        odd.metadata = Some(Metadata::from_iter([(ROUTING.to_owned(), json!(["a"]))]));
        assert!(after(&odd, failed, "rate_limited").is_none());
    }

    #[test]
    fn each_member_is_tried_once() {
        let first = after(&of_group(Vec::new()), TaskState::Failed, "rate_limited").unwrap();
        assert!(!first.may_take(&agent("a")) && first.may_take(&agent("b")));
        let behind = PassedOver::new(&agent("c"), NotChosen::Busy, "busy".to_owned());
        let told = first.explained(routing("b", vec![behind]));
        insta::assert_snapshot!(json!(told.passed_over), @r#"[{"agent":"a","reason":"handed-over","task":"old","why":"rate_limited: Come back at 3 pm."},{"agent":"c","reason":"busy","why":"busy"}]"#);

        // The second agent rejects it: the client did not choose that one.
        let mut second = of_group(Vec::new());
        let facts = second.metadata.get_or_insert_default();
        facts.insert(ROUTING.to_owned(), json!(told));
        assert!(after(&second, TaskState::Rejected, "").is_none(), "no handoff of the hub");
        facts_of(&mut second, first.facts());
        let next = after(&second, TaskState::Rejected, "").unwrap();
        assert_eq!(next.reason(), "rejected");
        let open = ["a", "b", "c"].map(|name| next.may_take(&agent(name)));
        assert_eq!(open, [false, false, true], "a busy one may take it now");
        let text = next.failed(None, "`c`: it is busy").joined_text();
        insta::assert_snapshot!(text.trim(), @"No other agent of `coders` goes on: `a` had it as task `old` (rate_limited: Come back at 3 pm.); `c`: it is busy.");
    }

    fn facts_of(task: &mut Task, more: Metadata) {
        task.metadata.get_or_insert_default().extend(more);
    }

    #[test]
    fn new_task_belongs_to_same_schedule() {
        let mut group = of_group(Vec::new());
        let run =
            json!({ "name": "nightly", "planned": "2026-01-01T00:00:00.000Z", "answers": "deny" });
        facts_of(&mut group, Metadata::from_iter([("schedule".to_owned(), run.clone())]));
        let facts = after(&group, TaskState::Failed, "not_logged_in").unwrap().facts();
        assert_eq!(facts["schedule"], run);
        let from = json!({ "agent": "a", "task": "old", "reason": "not_logged_in" });
        assert_eq!(facts["handoffFrom"], from);
    }

    #[test]
    fn budget_shrinks_by_what_was_used() {
        let all = Budget { depth: Some(2), tasks: Some(5), tokens: Some(10), cost_usd: Some(1.0) };
        let left = remaining_budget(all, 3, 12, 0.25);
        let expected =
            Budget { depth: Some(2), tasks: Some(2), tokens: Some(0), cost_usd: Some(0.75) };
        assert_eq!(left, expected);
        assert!(remaining_budget(Budget::default(), 3, 12, 0.25).is_empty());
    }
}
