//! Health and circuit breaker of one agent, and the events about both.

use crate::event_sink::EventSink;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    failure_reason::FailureReason,
    health::circuit_breaker::{BreakerSettings, Circuit, CircuitBreaker, Evidence, Outcome},
    task::metadata::{HANDOFF, REASON},
};
use a2a_hub_protocol::{
    hub::event::HubEventKind,
    id::AgentId,
    operation::{AgentBreaker, AgentHealth, BreakerState, HealthStatus},
    task::Task,
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Last reported health of one agent, and its circuit breaker.
pub(super) struct HealthMonitor {
    agent: AgentId,
    events: Arc<dyn EventSink>,
    /// Time for which routing prefers other agents after a failure of the agent's account.
    quota_pause: Duration,
    judged: Mutex<MonitorState>,
}

struct MonitorState {
    health: AgentHealth,
    /// Time of the last health check.
    checked_at: Option<Instant>,
    breaker: CircuitBreaker,
    /// End of the pause after a failure of the agent's account: no quota, or no login.
    quota_back: Option<Instant>,
    /// Cause of the last failure.
    cause: Option<String>,
}

/// An agent whose circuit breaker is open after repeated failures.
#[derive(Clone, Debug, PartialEq)]
pub struct Unavailable {
    /// Agent whose circuit breaker is open.
    pub agent: AgentId,
    /// State of the circuit breaker.
    pub breaker: AgentBreaker,
    /// Time until the next attempt.
    pub retry_in: Duration,
    /// Command that mends the agent, if it reported one.
    pub fix: Option<String>,
}

impl HealthMonitor {
    pub(super) fn new(
        agent: AgentId,
        settings: BreakerSettings,
        events: Arc<dyn EventSink>,
    ) -> Self {
        let judged = MonitorState {
            health: AgentHealth::unknown(),
            checked_at: None,
            breaker: CircuitBreaker::new(settings),
            quota_back: None,
            cause: None,
        };
        Self { agent, events, quota_pause: settings.max_pause, judged: Mutex::new(judged) }
    }

    /// Last reported health, if it is not older than `since`. With `wanted`, a healthy report
    /// counts as mended for the breaker.
    pub(super) fn health_since(&self, since: Instant, wanted: bool) -> Option<AgentHealth> {
        let mut judged = self.judged();
        if judged.checked_at.is_none_or(|checked_at| checked_at < since) {
            return None;
        }
        let health = judged.health.clone();
        if health.status == HealthStatus::Healthy && wanted {
            self.record(&mut judged, Outcome::Mended, None);
        }
        Some(health)
    }

    pub(super) fn health(&self) -> AgentHealth {
        self.judged().health.clone()
    }

    pub(super) fn breaker(&self) -> AgentBreaker {
        self.judged().to_info(Instant::now())
    }

    /// True if the circuit breaker admits no task now.
    pub(super) fn is_breaker_open(&self) -> bool {
        !self.judged().breaker.would_admit(Instant::now().into_std())
    }

    /// True if the agent's account took no tasks a short time ago.
    pub(super) fn is_over_quota(&self) -> bool {
        self.judged().quota_back.is_some_and(|back| Instant::now() < back)
    }

    /// Admits a task, or returns the breaker's refusal.
    pub(super) fn admit(&self) -> Result<(), Unavailable> {
        let (mut judged, now) = (self.judged(), Instant::now());
        let before = judged.breaker.state();
        let admitted = judged.breaker.admit(now.into_std());
        self.tell_breaker(&judged, before, now);
        admitted.map_err(|until| Unavailable {
            agent: self.agent.clone(),
            breaker: judged.to_info(now),
            retry_in: until.saturating_duration_since(now.into_std()),
            fix: judged.health.fix.clone(),
        })
    }

    /// Records the result of a task.
    pub(super) fn task_ended(&self, task: &Task) {
        let facts = task.metadata.as_ref();
        // A task that its group handed over tells there why.
        let fact = facts.and_then(|it| it.get(REASON).or_else(|| it.get(HANDOFF)?.get(REASON)));
        let reason = fact.and_then(Value::as_str);
        let cause = task.status.message.as_ref().map(|message| message.joined_text());
        let mut judged = self.judged();
        if reason.is_some_and(FailureReason::is_of_account) {
            judged.quota_back = Some(Instant::now() + self.quota_pause);
        }
        let reason = reason.and_then(FailureReason::named);
        if let Some(outcome) = Outcome::of_task(task.status.state, reason) {
            self.record(&mut judged, outcome, cause);
        }
    }

    /// Lets groups prefer other agents until the reset of the quota, which is after `wait`.
    pub(super) fn quota_used_up(&self, wait: Duration) {
        self.judged().quota_back = Some(Instant::now() + wait);
    }

    /// Records a health report of a check that began at `started`; `wanted` marks a check that
    /// somebody asked for.
    pub(super) fn checked(&self, health: AgentHealth, started: Instant, wanted: bool) {
        let mut judged = self.judged();
        let before = judged.health.status;
        (judged.health, judged.checked_at) = (health.clone(), Some(started));
        if health.status != before {
            self.tell_health(health.clone());
        }
        if let Some(outcome) = Outcome::of_check(before, health.status, wanted) {
            self.record(&mut judged, outcome, health.error_message);
        }
    }

    fn record(&self, judged: &mut MonitorState, outcome: Outcome, cause: Option<String>) {
        let (before, now) = (judged.breaker.state(), Instant::now());
        match outcome {
            Outcome::Failure(_) => judged.cause = cause,
            Outcome::Success(Evidence::Task) | Outcome::Mended => judged.quota_back = None,
            Outcome::Success(Evidence::Check) => {}
        }
        judged.breaker.record(outcome, now.into_std());
        self.tell_breaker(judged, before, now);
    }

    fn tell_health(&self, health: AgentHealth) {
        let (agent, why) = (&self.agent, health.error_message.as_deref());
        match health.status {
            HealthStatus::Unhealthy => tracing::warn!(%agent, why, "agent is unhealthy"),
            HealthStatus::Degraded => tracing::info!(%agent, why, "agent is degraded"),
            HealthStatus::Healthy => tracing::info!(%agent, "agent is healthy"),
            HealthStatus::Unknown => {
                tracing::info!(%agent, why, "agent health is unknown");
            }
        }
        self.events.publish(HubEventKind::AgentHealth { agent_id: self.agent.clone(), health });
    }

    /// Publishes a transition of the breaker; a change of its failure count alone is not published.
    fn tell_breaker(&self, judged: &MonitorState, before: Circuit, now: Instant) {
        let after = judged.breaker.state();
        if before == after
            || matches!((before, after), (Circuit::Closed { .. }, Circuit::Closed { .. }))
        {
            return;
        }
        let breaker = judged.to_info(now);
        tracing::info!(agent = %self.agent, breaker = ?breaker.state, why = breaker.cause, "circuit breaker changed state");
        self.events.publish(HubEventKind::AgentBreaker { agent_id: self.agent.clone(), breaker });
    }

    fn judged(&self) -> MutexGuard<'_, MonitorState> {
        self.judged.lock()
    }
}

impl MonitorState {
    fn to_info(&self, now: Instant) -> AgentBreaker {
        let (state, until) = match self.breaker.state() {
            Circuit::Closed { .. } => return AgentBreaker::closed(),
            Circuit::Open { until, .. } => (BreakerState::Open, until),
            Circuit::HalfOpen { until, .. } => (BreakerState::HalfOpen, until),
        };
        let retry_in = until.saturating_duration_since(now.into_std());
        let retry_at = Some(clock::after(retry_in));
        AgentBreaker { state, retry_at, cause: self.cause.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        task::{TaskState, TaskStatus},
    };
    use serde_json::json;

    struct Nobody;

    impl EventSink for Nobody {
        fn publish(&self, _what: HubEventKind) {}
    }

    fn ended(state: TaskState, facts: &Value) -> Task {
        Task {
            id: TaskId::fresh(),
            context_id: ContextId::fresh(),
            status: TaskStatus { state, message: None, timestamp: String::new() },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: facts.as_object().cloned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn account_is_avoided_until_pause_or_success() {
        let settings = BreakerSettings {
            failures: 5,
            pause: Duration::from_secs(30),
            max_pause: Duration::from_secs(300),
        };
        let monitor = HealthMonitor::new(AgentId::parse("a").unwrap(), settings, Arc::new(Nobody));
        let handed = json!({ "handoff": { "to": "b", "reason": "not_logged_in" } });
        let by_account = [
            ended(TaskState::Failed, &json!({ "reason": "rate_limited" })),
            ended(TaskState::Canceled, &handed),
        ];
        for task in &by_account {
            monitor.task_ended(task);
            assert!(monitor.is_over_quota());
            tokio::time::advance(Duration::from_secs(301)).await;
            assert!(!monitor.is_over_quota());
            monitor.task_ended(task);
            monitor.task_ended(&ended(TaskState::Completed, &json!({})));
            assert!(!monitor.is_over_quota());
        }
        monitor.task_ended(&by_account[0]);
        let check = |wanted| {
            let healthy = AgentHealth { status: HealthStatus::Healthy, ..AgentHealth::unknown() };
            monitor.checked(healthy, Instant::now(), wanted);
        };
        check(false);
        check(false);
        assert!(monitor.is_over_quota(), "an agent can be healthy without a quota");
        check(true);
        assert!(!monitor.is_over_quota(), "somebody who mended it asked for the check");
        for other in ["max_budget", "agent_error"] {
            monitor.task_ended(&ended(TaskState::Failed, &json!({ "reason": other })));
            assert!(!monitor.is_over_quota(), "{other}");
        }
    }
}
