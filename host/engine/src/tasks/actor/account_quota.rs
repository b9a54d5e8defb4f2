//! Quota of the account of a task's agent.

use crate::tasks::account_quotas::{AccountQuotas, default_account, moment};
use a2a_hub_agents::Agent;
use a2a_hub_core::task::{
    lifecycle::Signal,
    quota::{Moment, QuotaAdmission, QuotaReaction},
};
use a2a_hub_protocol::{
    client::ClientCapabilities,
    id::{AgentId, TaskId},
};
use std::{future::pending, time::Duration};
use tokio::sync::watch;

/// Longest time between two looks at the wall clock: the steady clock stops while the machine
/// sleeps.
pub(in crate::tasks) const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Access of a task to the quota of its agent's account.
pub(in crate::tasks) struct AccountQuota {
    pub(in crate::tasks) quotas: AccountQuotas,
    openings: watch::Receiver<()>,
    pub(in crate::tasks) account: String,
    pub(in crate::tasks) task: TaskId,
    agent: AgentId,
    /// Longest time that the task is held back before its first run; none if it never is.
    pub(in crate::tasks) longest: Option<Duration>,
    pub(in crate::tasks) waiting_since: Option<Moment>,
    is_waiting: bool,
    /// Capabilities of the client, for the run that continues.
    pub(in crate::tasks) client: ClientCapabilities,
}

impl AccountQuota {
    pub(in crate::tasks) fn new(quotas: AccountQuotas, agent: &Agent, task: &TaskId) -> Self {
        let waits = agent.config.on_quota == Some(QuotaReaction::Wait);
        Self {
            openings: quotas.openings(),
            quotas,
            account: default_account(agent).to_owned(),
            task: task.clone(),
            agent: agent.id.clone(),
            longest: waits.then(|| agent.config.quota_wait()),
            waiting_since: None,
            is_waiting: false,
            client: ClientCapabilities::default(),
        }
    }

    /// Waits until the account may have opened.
    pub(in crate::tasks) async fn opened(&mut self) {
        if self.openings.changed().await.is_err() {
            pending::<()>().await;
        }
    }

    /// Signal of a task that has reached its time, or gets its run permit as `signal`.
    fn admitted(&mut self, signal: Signal) -> Signal {
        match self.quotas.admit(&self.account, &self.task) {
            QuotaAdmission::Starts => {
                self.waiting_since = None;
                signal
            }
            QuotaAdmission::Waits(until) => {
                Signal::AccountClosed(until.steady.min(moment().steady + CLOCK_CHECK_INTERVAL))
            }
        }
    }

    /// Signal for the first permit of a task: its agent starts, or is held back, but no longer than
    /// the operator lets tasks wait.
    pub(in crate::tasks) fn begins(&mut self) -> Signal {
        let Some(longest) = self.longest else { return Signal::Turn };
        let now = moment();
        let since = *self.waiting_since.get_or_insert(now);
        let limit = Moment { steady: since.steady + longest, ..now };
        if limit.steady <= now.steady { Signal::Turn } else { self.admitted(Signal::Turn) }
    }

    /// Counts the task among those that wait, or not.
    pub(in crate::tasks) fn follow(&mut self, waits: bool) {
        if self.is_waiting != waits {
            self.is_waiting = waits;
            self.quotas.set_waiting(&self.task, &self.agent, waits);
        }
    }

    /// Reports the end of a run: with `has_run`, its quota was not used up.
    pub(in crate::tasks) fn ended(&self, has_run: bool) {
        self.quotas.ended(&self.account, &self.task, has_run);
    }
}

impl Drop for AccountQuota {
    fn drop(&mut self) {
        self.follow(false);
    }
}
