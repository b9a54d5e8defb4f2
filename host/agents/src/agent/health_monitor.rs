//! Health and circuit breaker of one agent, and the events about both.

use crate::event_sink::EventSink;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    failure_reason::FailureReason,
    health::circuit_breaker::{BreakerSettings, Circuit, CircuitBreaker, Outcome},
};
use a2a_hub_protocol::{
    hub::event::Happened,
    id::AgentId,
    operation::{AgentBreaker, AgentHealth, BreakerState, HealthStatus},
    task::Task,
};
use parking_lot::{Mutex, MutexGuard};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Last reported health of one agent, and its circuit breaker.
pub(super) struct HealthMonitor {
    agent: AgentId,
    events: Arc<dyn EventSink>,
    judged: Mutex<MonitorState>,
}

struct MonitorState {
    health: AgentHealth,
    /// Time of the last health check.
    asked: Option<Instant>,
    breaker: CircuitBreaker,
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
        let breaker = CircuitBreaker::new(settings);
        let judged =
            MonitorState { health: AgentHealth::unknown(), asked: None, breaker, cause: None };
        Self { agent, events, judged: Mutex::new(judged) }
    }

    /// Last reported health, if it is not older than `since`. With `wanted`, a healthy report
    /// counts as mended for the breaker.
    pub(super) fn health_since(&self, since: Instant, wanted: bool) -> Option<AgentHealth> {
        let mut judged = self.judged();
        if judged.asked.is_none_or(|asked| asked < since) {
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
        self.judged().told(Instant::now())
    }

    /// True if the circuit breaker admits no task now.
    pub(super) fn is_left_alone(&self) -> bool {
        !self.judged().breaker.would_admit(Instant::now().into_std())
    }

    /// Admits a task, or returns the breaker's refusal.
    pub(super) fn admit(&self) -> Result<(), Unavailable> {
        let (mut judged, now) = (self.judged(), Instant::now());
        let before = judged.breaker.state();
        let admitted = judged.breaker.admit(now.into_std());
        self.tell_breaker(&judged, before, now);
        admitted.map_err(|until| Unavailable {
            agent: self.agent.clone(),
            breaker: judged.told(now),
            retry_in: until.saturating_duration_since(now.into_std()),
            fix: judged.health.fix.clone(),
        })
    }

    /// Records the result of a task.
    pub(super) fn task_ended(&self, task: &Task) {
        let reason = task.metadata.as_ref().and_then(|facts| facts.get("reason")?.as_str());
        let said = task.status.message.as_ref().map(|message| message.joined_text());
        let reason = reason.and_then(FailureReason::named);
        if let Some(outcome) = Outcome::of_task(task.status.state, reason) {
            self.record(&mut self.judged(), outcome, said);
        }
    }

    /// Records a health report of a check that began at `asked`; `wanted` marks a check that
    /// somebody asked for.
    pub(super) fn checked(&self, health: AgentHealth, asked: Instant, wanted: bool) {
        let mut judged = self.judged();
        let before = judged.health.status;
        (judged.health, judged.asked) = (health.clone(), Some(asked));
        if health.status != before {
            self.tell_health(health.clone());
        }
        if let Some(outcome) = Outcome::of_check(before, health.status, wanted) {
            self.record(&mut judged, outcome, health.error_message);
        }
    }

    fn record(&self, judged: &mut MonitorState, outcome: Outcome, said: Option<String>) {
        let (before, now) = (judged.breaker.state(), Instant::now());
        if matches!(outcome, Outcome::Failure(_)) {
            judged.cause = said;
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
                tracing::info!(%agent, why, "agent could not be asked how it is");
            }
        }
        self.events.publish(Happened::AgentHealth { agent_id: self.agent.clone(), health });
    }

    /// Publishes a transition of the breaker; a change of its failure count alone is not published.
    fn tell_breaker(&self, judged: &MonitorState, before: Circuit, now: Instant) {
        let after = judged.breaker.state();
        if before == after
            || matches!((before, after), (Circuit::Closed { .. }, Circuit::Closed { .. }))
        {
            return;
        }
        let breaker = judged.told(now);
        tracing::info!(agent = %self.agent, breaker = ?breaker.state, why = breaker.cause, "the breaker moved");
        self.events.publish(Happened::AgentBreaker { agent_id: self.agent.clone(), breaker });
    }

    fn judged(&self) -> MutexGuard<'_, MonitorState> {
        self.judged.lock()
    }
}

impl MonitorState {
    fn told(&self, now: Instant) -> AgentBreaker {
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
