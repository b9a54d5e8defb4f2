//! Push notifications: configurations and delivery.
//!
//! ```text
//!  events table ──► Tasks::follow ──► DeliveryWorker ──► Receiver ──► Sender ──► the client's URL
//!   (the outbox)                       │   ▲      one at a time     checks every address, signs
//!                                      │   │      where they fail: core::breaker
//!                                      ▼   │ core::delivery: pause, give up
//!                        pushes.sent, attempts, again, dead
//! ```
//!
//! A config is a cursor into its task's log, so no second copy of an event can be lost or diverge:
//! events after the cursor are still to be sent, also after a crash. The cursor advances once the
//! receiver has confirmed the event. So each event arrives at least once and in order, and no
//! receiver waits for another.

mod request;
mod worker;

use crate::tasks::Tasks;
use crate::webhooks::{ReceiverError, Receivers, Sender, origin};
use a2a_hub_clock as clock;
use a2a_hub_core::health::circuit_breaker::BreakerSettings;
use a2a_hub_protocol::{
    id::{PushConfigId, TaskId, TenantId},
    push::{Delivery, DeliveryState, OfferedPush, PushConfig},
};
use a2a_hub_store::{Outbox, Progress, PushFilter, StorageError, StoredPush};
use parking_lot::{Mutex, MutexGuard};
use request::PushPath;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;
use worker::DeliveryWorker;

/// Limit of push configs of one task. Each receives every event, so more would let one task flood
/// the network.
const MAX_CONFIGS: usize = 16;

/// Push notifications of all tasks. Cheap to clone.
#[derive(Clone)]
pub struct Pushes(Arc<Inner>);

struct Inner {
    outgoing: Arc<PushPath>,
    workers: Mutex<HashMap<(TaskId, PushConfigId), CancellationToken>>,
    running: TaskTracker,
    stop: CancellationToken,
}

/// A push config whose receiver has been admitted.
pub struct AdmittedConfig(OfferedPush);

impl AdmittedConfig {
    /// Id of the config; none if it takes the task's id.
    pub fn id(&self) -> Option<PushConfigId> {
        self.0.id.clone()
    }
}

/// Error of a push operation.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The task does not exist.
    #[error("send notifications of task `{0}`: there is none")]
    NoTask(TaskId),
    /// The task has no such config.
    #[error("find the push config `{id}` of task `{task}`: it has none of that name")]
    NoConfig {
        /// The task.
        task: TaskId,
        /// The requested config.
        id: PushConfigId,
    },
    /// The task has reached its limit of configs.
    #[error(
        "send notifications of task `{0}` to one more place: {MAX_CONFIGS} are enough; delete one"
    )]
    ConfigLimit(TaskId),
    /// The receiver is not admitted.
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Pushes {
    /// Creates the push service for the configs in the store. A receiver whose deliveries fail
    /// repeatedly is suspended by `breaker`; one event is retried for at most `retry_timeout`.
    pub fn new(
        storage: Arc<dyn Outbox>,
        tasks: Tasks,
        sender: Arc<Sender>,
        breaker: BreakerSettings,
        retry_timeout: Duration,
    ) -> Self {
        let receivers = Receivers::new(breaker);
        let (running, stop, workers) =
            (TaskTracker::new(), CancellationToken::new(), Mutex::default());
        let outgoing = Arc::new(PushPath { storage, tasks, sender, receivers, retry_timeout });
        let inner = Inner { outgoing, workers, running, stop };
        Self(Arc::new(inner))
    }

    /// Resumes unfinished deliveries of the previous process, and returns the number of their
    /// configs.
    pub async fn resume(&self) -> Result<usize, StorageError> {
        let open = PushFilter { open_only: true, ..PushFilter::default() };
        let open = self.0.outgoing.storage.pushes(open).await?;
        let alive = open.into_iter().filter(|push| !push.progress.is_dead());
        Ok(alive.map(|push| self.start(push)).count())
    }

    /// Stops all deliveries. The next process sends the rest.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.running.close();
        self.0.running.wait().await;
    }

    /// Checks that notifications may be sent to a receiver.
    pub async fn admit(&self, offered: OfferedPush) -> Result<AdmittedConfig, ReceiverError> {
        self.0.outgoing.sender.check(&offered.url).await?;
        Ok(AdmittedConfig(offered))
    }

    /// Adds a push config to a task; the receiver gets all events after event `sent`.
    pub async fn set(
        &self,
        task: TaskId,
        AdmittedConfig(offered): AdmittedConfig,
        sent: u64,
    ) -> Result<PushConfig, PushError> {
        let config = offered.for_task(task.clone());
        self.require_capacity(&task, Some(&config.id)).await?;
        if !self.0.outgoing.storage.set_push(config.clone(), sent).await? {
            return Err(PushError::NoTask(task));
        }
        for push in self.stored(&task).await?.into_iter().filter(|push| push.config.id == config.id)
        {
            self.start(push);
        }
        Ok(config)
    }

    /// Refuses a config beyond the task's limit; `id` is the config's id, or none if it takes the
    /// task's.
    pub async fn require_capacity(
        &self,
        task: &TaskId,
        id: Option<&PushConfigId>,
    ) -> Result<(), PushError> {
        let known = self.of_task(task).await?;
        let is_there = |known: &PushConfig| {
            known.id.as_str() == id.map_or(task.as_str(), PushConfigId::as_str)
        };
        // Two concurrent calls may both pass: the existence of a limit matters, not its exact
        // value.
        if known.len() >= MAX_CONFIGS && !known.iter().any(is_there) {
            return Err(PushError::ConfigLimit(task.clone()));
        }
        Ok(())
    }

    /// Config of a task; without `id`, the task's first.
    pub async fn get(
        &self,
        task: &TaskId,
        id: Option<&PushConfigId>,
    ) -> Result<PushConfig, PushError> {
        let wanted = |config: &PushConfig| id.is_none_or(|id| config.id == *id);
        let found = self.of_task(task).await?.into_iter().find(wanted);
        found.ok_or_else(|| {
            let id = id.cloned().unwrap_or_else(|| PushConfigId::new(task.as_str()));
            PushError::NoConfig { task: task.clone(), id }
        })
    }

    /// Configs of a task, in the order in which they were first set.
    pub async fn of_task(&self, task: &TaskId) -> Result<Vec<PushConfig>, StorageError> {
        Ok(self.stored(task).await?.into_iter().map(|push| push.config).collect())
    }

    /// Deletes a config and stops its deliveries. A config that does not exist counts as deleted.
    pub async fn delete(&self, task: &TaskId, id: &PushConfigId) -> Result<(), StorageError> {
        self.0.outgoing.storage.delete_push(task, id).await?;
        if let Some(worker) = self.workers().remove(&(task.clone(), id.clone())) {
            worker.cancel();
        }
        Ok(())
    }

    /// Unfinished deliveries of a tenant's tasks, by task, oldest first.
    pub async fn deliveries(
        &self,
        tenant: &TenantId,
        dead_only: bool,
        limit: usize,
    ) -> Result<Vec<Delivery>, StorageError> {
        let tenant = Some(tenant.clone());
        let open =
            PushFilter { tenant, open_only: true, dead_only, limit, ..PushFilter::default() };
        let found = self.0.outgoing.storage.pushes(open).await?;
        Ok(found.into_iter().map(|push| self.delivery(push)).collect())
    }

    /// Retries at once the failing and abandoned deliveries of a task, and returns them.
    pub async fn retry(&self, task: &TaskId) -> Result<Vec<Delivery>, StorageError> {
        let mut retried = Vec::new();
        let stored = self.stored(task).await?;
        for mut push in stored.into_iter().filter(|push| push.progress.failure.is_some()) {
            push.progress = Progress { failure: None, ..push.progress };
            self.0.outgoing.storage.push_went(task, &push.config.id, push.progress.clone()).await?;
            retried.push(self.delivery(push.clone()));
            self.start(push);
        }
        Ok(retried)
    }

    async fn stored(&self, task: &TaskId) -> Result<Vec<StoredPush>, StorageError> {
        let its = PushFilter { task: Some(task.clone()), ..PushFilter::default() };
        self.0.outgoing.storage.pushes(its).await
    }

    /// Starts a worker for a config, and stops the previous one.
    fn start(&self, push: StoredPush) {
        let key = (push.config.task.clone(), push.config.id.clone());
        let stop = self.0.stop.child_token();
        {
            let mut workers = self.workers();
            if let Some(before) = workers.insert(key.clone(), stop.clone()) {
                before.cancel();
            }
        }
        let worker = DeliveryWorker::new(Arc::clone(&self.0.outgoing), push);
        let pushes = self.clone();
        self.0.running.spawn(async move {
            let span = pushes.0.outgoing.tasks.log_span(&key.0).await;
            stop.run_until_cancelled(worker.run()).instrument(span).await;
            let mut workers = pushes.workers();
            // A worker that was replaced leaves the entry to its successor.
            if !stop.is_cancelled() {
                workers.remove(&key);
            }
        });
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<(TaskId, PushConfigId), CancellationToken>> {
        self.0.workers.lock()
    }

    fn delivery(&self, push: StoredPush) -> Delivery {
        let StoredPush { config, progress: Progress { sent, failure }, last } = push;
        let (receiver, waiting) = (origin(&config.url), last.saturating_sub(sent));
        let is_dead = failure.as_ref().is_some_and(|failure| failure.dead);
        let suspension = self.0.outgoing.receivers.suspension(&receiver);
        let suspension = suspension.filter(|_| waiting > 0 && !is_dead);
        let state = match &failure {
            Some(failure) if failure.dead => DeliveryState::Dead,
            Some(_) => DeliveryState::Failing,
            None if suspension.is_some() => DeliveryState::Held,
            None => DeliveryState::Fine,
        };
        let suspended_until =
            suspension.as_ref().map(|suspension| clock::after(suspension.for_now));
        Delivery {
            task_id: config.task,
            config_id: config.id,
            receiver,
            version: config.form,
            state,
            waiting,
            attempts: failure.as_ref().map_or(0, |failure| failure.attempts),
            failing_since: failure.as_ref().map(|failure| failure.since.clone()),
            // The later of the two: these texts sort by time.
            retry_at: suspended_until
                .max(failure.as_ref().and_then(|failure| failure.again.clone())),
            error: failure
                .map(|failure| failure.error)
                .or(suspension.map(|suspension| suspension.cause)),
        }
    }
}
