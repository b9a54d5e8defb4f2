//! Health checks of agents: rate, deadlines and limits.

use super::{
    Agent,
    report::{Late, NotWorking, judge, mark_as_quotation},
};
use a2a_hub_core::health::check_schedule::is_known_not_to_work;
use a2a_hub_protocol::{id::TenantId, operation::AgentHealth};
use a2a_hub_runtime::{Failure, directories::TaskDirectories};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Deadline of a health check. Some CLIs need two seconds to start, and half a minute on a machine
/// that has never read them from its disk.
const HEALTH_DEADLINE: Duration = Duration::from_secs(60);

/// Greatest age of a cached health report that answers a request.
const HEALTH_AGE: Duration = Duration::from_secs(5);

/// Greatest age of a cached report that the agent cannot work: before a message is refused for it,
/// the agent is checked again.
const MENDED: Duration = Duration::from_secs(1);

/// Deadline for an unapproved plug-in, which has no grant and so nothing to wait for.
const STRANGERS_DEADLINE: Duration = Duration::from_secs(1);

/// CPU time for an unapproved plug-in's health check: a hundred times the usual cost.
const STRANGERS_CPU: Duration = Duration::from_millis(100);

impl Agent {
    /// Health of the agent, from the cache if it was checked after `since`. Concurrent callers
    /// share one check. `wanted` marks a check that somebody asked for, as opposed to a periodic
    /// one; its success tells the circuit breaker that the agent may have been mended.
    pub async fn check(&self, since: Instant, wanted: bool) -> AgentHealth {
        self.ask(since, wanted).await.unwrap_or_else(|late| *late.health)
    }

    /// Same as [`Self::check`], with an error if the agent did not answer in time.
    pub async fn ask(&self, since: Instant, wanted: bool) -> Result<AgentHealth, Late> {
        let _checking = self.checking.lock().await;
        if let Some(health) = self.monitor.health_since(since, wanted) {
            return Ok(health);
        }
        let is_stranger = !self.is_vouched_for();
        let turns = if is_stranger { &self.asking.strangers } else { &self.asking.others };
        // The semaphore is never closed.
        let _permit = turns.acquire().await;
        let started = Instant::now();
        let (owner, none) = (format!("{}/health", self.id), TaskDirectories::default());
        let mut call = self.call((&owner, &TenantId::default()), None, None, none);
        let deadline = if is_stranger { STRANGERS_DEADLINE } else { HEALTH_DEADLINE };
        if is_stranger {
            call.limits.cpu = call.limits.cpu.min(STRANGERS_CPU);
        }
        let report = timeout(deadline, self.runtime.health(call)).await;
        let is_late = report.is_err();
        let mut health =
            judge(report.unwrap_or(Err(Failure::Timeout)), started.elapsed(), deadline);
        if is_stranger {
            mark_as_quotation(&mut health);
        }
        self.monitor.checked(health.clone(), started, wanted);
        if is_late {
            let (agent, health) = (self.id.clone(), Box::new(health));
            return Err(Late { agent, within: deadline, health });
        }
        Ok(health)
    }

    /// Refuses a task if the agent reports that it cannot work. A cached report is renewed first,
    /// so that a repair counts at once.
    pub async fn require_working(&self) -> Result<(), NotWorking> {
        if !is_known_not_to_work(&self.health()) {
            return Ok(());
        }
        let health = self.check(ago(MENDED), true).await;
        if !is_known_not_to_work(&health) {
            return Ok(());
        }
        Err(NotWorking { agent: self.id.clone(), health: Box::new(health) })
    }
}

/// Oldest acceptable time of a health check whose report answers a request.
pub fn lately() -> Instant {
    ago(HEALTH_AGE)
}

fn ago(age: Duration) -> Instant {
    let now = Instant::now();
    // Shortly after boot the clock has no such earlier instant.
    now.checked_sub(age).unwrap_or(now)
}
