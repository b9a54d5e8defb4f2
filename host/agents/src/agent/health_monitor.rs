//! How an agent stands: what it last said of its health, whether tasks reach it, and the telling of both.

use crate::event_sink::EventSink;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    breaker::{Breaker, Outcome, Settings, State},
    reason::FailureReason,
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

/// What is known of one agent's health, and its circuit breaker.
pub(super) struct HealthMonitor {
    agent: AgentId,
    events: Arc<dyn EventSink>,
    judged: Mutex<Judged>,
}

struct Judged {
    health: AgentHealth,
    /// When it was last asked how it is.
    asked: Option<Instant>,
    breaker: Breaker,
    /// What went wrong the last time.
    cause: Option<String>,
}

/// An agent that is not tried, for it failed again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Unavailable {
    /// The agent that is left alone.
    pub agent: AgentId,
    /// Where its breaker stands.
    pub breaker: AgentBreaker,
    /// When it will be tried again.
    pub retry_in: Duration,
    /// The command that mends it, if it knows one.
    pub fix: Option<String>,
}

impl HealthMonitor {
    pub(super) fn new(agent: AgentId, settings: Settings, events: Arc<dyn EventSink>) -> Self {
        let breaker = Breaker::new(settings);
        let judged = Judged { health: AgentHealth::unknown(), asked: None, breaker, cause: None };
        Self { agent, events, judged: Mutex::new(judged) }
    }

    /// What it last said of its health, if it was asked since. That counts as an answer to whoever `wanted` one.
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

    /// Whether no task may go ahead now.
    pub(super) fn is_left_alone(&self) -> bool {
        !self.judged().breaker.would_admit(Instant::now().into_std())
    }

    /// Whether a task may go ahead now.
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

    /// Takes in how a task ended.
    pub(super) fn task_ended(&self, task: &Task) {
        let reason = task.metadata.as_ref().and_then(|facts| facts.get("reason")?.as_str());
        let said = task.status.message.as_ref().map(|message| message.joined_text());
        let reason = reason.and_then(FailureReason::named);
        if let Some(outcome) = Outcome::of_task(task.status.state, reason) {
            self.record(&mut self.judged(), outcome, said);
        }
    }

    /// Takes in what it says of its health, having been `asked` then, by the hub itself or as somebody `wanted`.
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

    fn record(&self, judged: &mut Judged, outcome: Outcome, said: Option<String>) {
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

    /// Tells that the breaker moved, if it did; what it counts meanwhile is its own affair.
    fn tell_breaker(&self, judged: &Judged, before: State, now: Instant) {
        let after = judged.breaker.state();
        if before == after
            || matches!((before, after), (State::Closed { .. }, State::Closed { .. }))
        {
            return;
        }
        let breaker = judged.told(now);
        tracing::info!(agent = %self.agent, breaker = ?breaker.state, why = breaker.cause, "the breaker moved");
        self.events.publish(Happened::AgentBreaker { agent_id: self.agent.clone(), breaker });
    }

    fn judged(&self) -> MutexGuard<'_, Judged> {
        self.judged.lock()
    }
}

impl Judged {
    fn told(&self, now: Instant) -> AgentBreaker {
        let (state, until) = match self.breaker.state() {
            State::Closed { .. } => return AgentBreaker::closed(),
            State::Open { until, .. } => (BreakerState::Open, until),
            State::HalfOpen { until, .. } => (BreakerState::HalfOpen, until),
        };
        let retry_in = until.saturating_duration_since(now.into_std());
        let retry_at = Some(clock::after(retry_in));
        AgentBreaker { state, retry_at, cause: self.cause.clone() }
    }
}
