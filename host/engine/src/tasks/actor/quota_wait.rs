//! Wait of a task for the quota of its agent's account, as its actor sees it.

use super::{SignalPayload, TaskActor, account_quota::CLOCK_CHECK_INTERVAL};
use crate::tasks::{
    account_quotas::{self, account_of, default_account, is_quota_failure, moment},
    command::RunInput,
};
use a2a_hub_clock as clock;
use a2a_hub_core::task::{lifecycle::Signal, metadata, quota};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    message::{Message, Part, Role},
    task::TaskState,
};
use tokio::sync::oneshot;

impl TaskActor {
    /// Chooses the account whose quota counts: that of the login of the task's party.
    pub(super) async fn choose_account(&mut self) {
        if !self.agent.may_have_logins() {
            return;
        }
        let task = self.recorder.task();
        let directory = metadata::working_directory(task);
        match self.recorder.login_user().await {
            Ok(user) => {
                let account = account_of(&self.agent, &task.id, &user, directory.as_deref());
                self.quota.account = account.await;
            }
            Err(why) => {
                tracing::warn!(task = %task.id, %why, "cannot read whose quota the task uses, assuming the operator's");
            }
        }
    }

    /// Closes the account of a recovered task that waits for its quota.
    pub(in crate::tasks) fn with_recovered_wait(mut self) -> Self {
        if let Some(until) = metadata::waiting_until(self.recorder.task()) {
            // A clock that was set must not extend the wait.
            let wait = clock::until(until).min(self.agent.config.quota_wait());
            self.agent.quota_used_up(wait);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let until_ms = clock::now_ms().saturating_add(wait_ms);
            self.quota.quotas.close(&self.quota.account, until_ms);
        }
        self.quota.follow(self.lifecycle.waits_for_quota());
        self
    }

    /// Signal of a run permit: a task whose account is closed is held back.
    pub(super) fn with_account(&mut self, signal: Signal) -> Signal {
        if signal == Signal::Turn && self.lifecycle.needs_quota() {
            return self.quota.begins();
        }
        signal
    }

    /// Signal of a waiting task that looks at the clocks.
    pub(super) fn quota_time(&mut self) -> Signal {
        if self.quota.longest.is_none() {
            // It waited before the operator changed the setting.
            return Signal::QuotaReset;
        }
        let signal = self.quota.begins();
        if signal == Signal::Turn { Signal::QuotaReset } else { signal }
    }

    /// Lets a waiting task try now, as a person asks.
    pub(super) fn retry_now(
        &mut self,
        reply_tx: oneshot::Sender<Result<(), A2aError>>,
    ) -> Option<Signal> {
        let id = &self.recorder.task().id;
        let waits = self.lifecycle.waits_for_quota();
        let refused = || {
            let why = format!(
                "try task `{id}` now: it does not wait for the quota of its agent; `a2a-hub task show {id}` says what it does"
            );
            A2aError::new(ErrorKind::UnsupportedOperation, why)
        };
        // The sender may be gone; then nobody needs the reply.
        let _ = reply_tx.send(if waits { Ok(()) } else { Err(refused()) });
        waits.then(|| {
            self.quota.quotas.try_now(&self.quota.account, &self.quota.task);
            Signal::QuotaReset
        })
    }

    /// Signal of the end of a run with this last status. A used-up quota is a wait, if the operator
    /// wants that and the time is known; otherwise the failure says why the task does not wait.
    pub(super) fn run_ended(
        &mut self,
        state: TaskState,
        event: TaskEvent,
        payload: &mut SignalPayload,
    ) -> Signal {
        let TaskEvent::Status(mut update) = event else {
            self.quota.ended(true);
            payload.events = vec![event];
            return Signal::Ended(state);
        };
        let task = self.recorder.task();
        let facts = update.metadata.as_ref();
        let is_of_quota = is_quota_failure(state, facts);
        // A run that was cut short says nothing about the quota.
        self.quota.ended(!is_of_quota && state != TaskState::Canceled);
        let message = update.status.message.as_ref();
        let used_up = || Message::text(Role::Agent, "The quota is used up.");
        let decision =
            is_of_quota.then(|| account_quotas::decide(&self.agent, task, facts, message));
        let (signal, event) = match decision.flatten() {
            Some(Ok(until_ms)) if let Some(until) = clock::at_ms(until_ms) => {
                self.quota.quotas.close(&self.quota.account, until_ms);
                self.quota.waiting_since = None;
                // Groups pass an agent over for the quota that all tasks of it use.
                if self.quota.account == default_account(&self.agent) {
                    self.agent.quota_used_up(clock::until(&until));
                }
                let message = update.status.message.get_or_insert_with(used_up);
                message.parts.push(Part::text(format!("\nThe task waits until {until}.")));
                tracing::info!(task = %task.id, agent = %self.agent.id, %until, "the agent's quota is used up, the task waits");
                let next_check = moment().steady + CLOCK_CHECK_INTERVAL;
                let wakes = moment().at_wall(until_ms).steady.min(next_check);
                let waits = metadata::waits_for_quota(task, update, &until, clock::now());
                (Signal::QuotaUsedUp(wakes), waits)
            }
            Some(Err(why)) => {
                let message = update.status.message.get_or_insert_with(used_up);
                let why = format!("\nThe task does not wait for its quota: {why}.");
                message.parts.push(Part::text(why));
                (Signal::Ended(state), TaskEvent::Status(update))
            }
            Some(Ok(_)) | None => (Signal::Ended(state), TaskEvent::Status(update)),
        };
        payload.events = vec![event];
        signal
    }

    /// Records the hub's message with which the agent continues, and sets it as the input of the
    /// next run.
    pub(super) fn record_continuation(&mut self) {
        let task = self.recorder.task();
        let is_known =
            self.agent.config.history > 0 || metadata::text(task, "vendorSession").is_some();
        let Some(message) = quota::continue_message(task, is_known) else { return };
        let directory = metadata::working_directory(task);
        let [input, working] = metadata::continues(task, message.clone(), clock::now());
        self.recorder.record(input);
        let (client, at) = (self.quota.client.clone(), 0);
        let start =
            RunInput { message, client, directory, live: true, goes_on: true, at, by: None };
        self.start = Some(self.recorded(Box::new(start)));
        self.recorder.record(working);
    }
}
