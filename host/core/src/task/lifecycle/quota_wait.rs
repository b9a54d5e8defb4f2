//! Wait for the reset of a used-up quota, which is no part of the task's time limit.

use super::{AgentEntry, Effect, Lifecycle, Phase, Record, TaskTimeouts};
use a2a_hub_protocol::task::TaskState;
use std::time::Instant;

impl Lifecycle {
    /// Creates a task in `state` that waits for its quota until that instant, and then continues.
    pub fn waiting(state: TaskState, timeouts: TaskTimeouts, until: Instant) -> Self {
        let (entry, remaining) = (AgentEntry::Continue, timeouts.task);
        Self::new(Phase::Waiting { entry, until, remaining }, state, timeouts)
    }

    /// True if the task waits for its quota.
    pub fn waits_for_quota(&self) -> bool {
        matches!(self.phase, Phase::Waiting { .. })
    }

    /// True if the task needs the quota of its account for its next step: with its run permit it
    /// starts its agent for the first time, or after a wait for the quota.
    pub fn needs_quota(&self) -> bool {
        let Phase::Queued { entry, .. } = self.phase else { return false };
        matches!(entry, AgentEntry::Queued | AgentEntry::Continue)
    }

    /// Ends the agent's run: the agent continues in another one, after the reset.
    pub(super) fn quota_used_up(&mut self, now: Instant, until: Instant) -> Vec<Effect> {
        let Some(deadline) = self.deadline_at(now) else { return Vec::new() };
        let remaining = deadline.saturating_duration_since(now);
        self.phase = Phase::Waiting { entry: AgentEntry::Continue, until, remaining };
        vec![Effect::Record(Record::Waits), Effect::Pause, Effect::GiveTurnBack]
    }

    /// Holds back a task that has not begun or was to continue; a waiting task waits on.
    pub(super) fn account_closed(&mut self, now: Instant, until: Instant) -> Vec<Effect> {
        if let Phase::Queued { entry, deadline } = self.phase {
            let remaining = deadline.saturating_duration_since(now);
            self.phase = Phase::Waiting { entry, until, remaining };
            return vec![Effect::GiveTurnBack];
        }
        if let Phase::Waiting { until: next, .. } = &mut self.phase {
            *next = until;
        }
        Vec::new()
    }

    /// Queues a waiting task for its run permit.
    pub(super) fn quota_reset(&mut self, now: Instant) -> Vec<Effect> {
        let Phase::Waiting { entry, remaining, .. } = self.phase else { return Vec::new() };
        self.phase = Phase::Queued { entry, deadline: now + remaining };
        vec![Effect::ComeBack]
    }
}
