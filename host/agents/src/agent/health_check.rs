//! Asking an agent how it is: how often, and for how long.

use super::{
    Agent,
    report::{Late, NotWorking, as_its_own_words, judge},
};
use a2a_hub_core::health::is_known_not_to_work;
use a2a_hub_protocol::{id::TenantId, operation::AgentHealth};
use a2a_hub_runtime::Failure;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long an agent may take to say how it is: some CLIs need two seconds to start, and half a minute on a machine that has
/// never read them from its disk.
const HEALTH_DEADLINE: Duration = Duration::from_secs(60);

/// How old an agent's last word on its health may be when somebody asks for it.
const HEALTH_AGE: Duration = Duration::from_secs(5);

/// How old an agent's word that it cannot work may be before it is asked again for a message, which would be refused.
const MENDED: Duration = Duration::from_secs(1);

/// How long a stranger may take to say how it is, which has nothing to wait for: it was granted nothing.
const STRANGERS_DEADLINE: Duration = Duration::from_secs(1);

/// How much time on the processor that may cost: a hundred times of what it takes.
const STRANGERS_CPU: Duration = Duration::from_millis(100);

impl Agent {
    /// How it is; it is asked unless it was since then. Those who ask at once share the answer. What somebody `wanted` to know,
    /// rather than the hub as it does all the time, tells that the agent may have been mended.
    pub async fn check(&self, since: Instant, wanted: bool) -> AgentHealth {
        self.ask(since, wanted).await.unwrap_or_else(|late| *late.health)
    }

    /// The same for somebody who wants its own word, and is told if that did not come in time.
    pub async fn ask(&self, since: Instant, wanted: bool) -> Result<AgentHealth, Late> {
        let _checking = self.checking.lock().await;
        if let Some(health) = self.monitor.health_since(since, wanted) {
            return Ok(health);
        }
        let is_stranger = !self.is_vouched_for();
        let turns = if is_stranger { &self.asking.strangers } else { &self.asking.others };
        // The semaphore is never closed.
        let _permit = turns.acquire().await;
        let asked = Instant::now();
        let mut call =
            self.call((&format!("{}/health", self.id), &TenantId::default()), None, None, None);
        let deadline = if is_stranger { STRANGERS_DEADLINE } else { HEALTH_DEADLINE };
        if is_stranger {
            call.limits.cpu = call.limits.cpu.min(STRANGERS_CPU);
        }
        let report = timeout(deadline, self.runtime.health(call)).await;
        let is_late = report.is_err();
        let mut health = judge(report.unwrap_or(Err(Failure::Timeout)), asked.elapsed(), deadline);
        if is_stranger {
            as_its_own_words(&mut health);
        }
        self.monitor.checked(health.clone(), asked, wanted);
        if is_late {
            let (agent, health) = (self.id.clone(), Box::new(health));
            return Err(Late { agent, within: deadline, health });
        }
        Ok(health)
    }

    /// Refuses where a task would only fail, for it says itself that it cannot work. It is asked again before, so that what is
    /// mended counts at once.
    pub async fn must_work(&self) -> Result<(), NotWorking> {
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

/// Since when an agent's last word on its health is new enough for whoever asks for it.
pub fn lately() -> Instant {
    ago(HEALTH_AGE)
}

fn ago(age: Duration) -> Instant {
    let now = Instant::now();
    // A machine that has just started has no time before.
    now.checked_sub(age).unwrap_or(now)
}
