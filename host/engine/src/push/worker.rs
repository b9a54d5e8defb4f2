//! Delivery worker of one push config: delivers the events of its task in order, and retries.

use super::request::PushPath;
use crate::tasks::Subscription;
use crate::webhooks::{
    Receiver, SendError, origin,
    payload::{self, Payload},
};
use a2a_hub_clock as clock;
use a2a_hub_core::{
    health::circuit_breaker::{Evidence, Outcome},
    push::delivery::{self, RetryDecision},
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    push::{PushConfig, PushForm},
    trace::TraceContext,
};
use a2a_hub_store::{DeliveryFailure, Progress, PushFilter, StorageError, StoredPush};
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// Outcome of a confirmed delivery.
const TAKEN: Outcome = Outcome::Success(Evidence::Task);

/// Pause after a store error, if the store is not known to fail.
const PAUSE: Duration = Duration::from_secs(5);

pub(super) struct DeliveryWorker {
    outgoing: Arc<PushPath>,
    config: PushConfig,
    progress: Progress,
    receiver: Arc<Receiver>,
    /// Trace context of the task.
    trace: TraceContext,
}

/// Reason why a worker stops.
enum Done {
    /// The task is over and everything was sent, the config or task is gone, or the hub stops.
    Sent,
    /// The worker gave up.
    Dead,
    /// The store failed, and the progress is not stored.
    Storage(StorageError),
}

impl From<StorageError> for Done {
    fn from(why: StorageError) -> Self {
        Self::Storage(why)
    }
}

impl DeliveryWorker {
    pub(super) fn new(outgoing: Arc<PushPath>, push: StoredPush) -> Self {
        let receiver = outgoing.receivers.at(origin(&push.config.url));
        let trace = TraceContext::default();
        Self { outgoing, config: push.config, progress: push.progress, receiver, trace }
    }

    /// Delivers events until the task is over. Sends nothing while the store fails, since it could
    /// not store its progress.
    pub(super) async fn run(mut self) {
        let (task, receiver) = (self.config.task.clone(), origin(&self.config.url));
        let mut done = self.deliver().await;
        while let Done::Storage(StorageError::Unavailable(why)) = done {
            tracing::error!(%task, receiver, why, "push paused: the store failed");
            self.outgoing.tasks.until_usable(PAUSE).await;
            done = match self.store_progress().await {
                Ok(()) => self.deliver().await,
                Err(why) => why.into(),
            };
        }
        match done {
            Done::Sent => {}
            Done::Dead => {
                tracing::warn!(%task, receiver, "push stopped: delivery failed too often; see `a2a-hub deliveries`");
            }
            Done::Storage(why) => {
                tracing::error!(%task, receiver, %why, "push stopped: the store refused or cannot be read");
            }
        }
    }

    async fn deliver(&mut self) -> Done {
        let mut subscription =
            match self.outgoing.tasks.follow(&self.config.task, self.progress.sent).await {
                Ok(subscription) => subscription,
                // Deleted tasks have no feed.
                Err(why) => {
                    let why = A2aError::from(why);
                    if why.kind == ErrorKind::TaskNotFound {
                        return Done::Sent;
                    }
                    return StorageError::Unavailable(why.to_string()).into();
                }
            };
        match self.outgoing.tasks.trace(&self.config.task).await {
            Ok(trace) => self.trace = trace.map(|trace| trace.context()).unwrap_or_default(),
            Err(why) => return why.into(),
        }
        // Retry time that the previous process stored.
        let again = self.progress.failure.as_ref().and_then(|failure| failure.again.as_ref());
        let pause = again.map(|again| clock::until(again)).unwrap_or_default();
        sleep(delivery::rest_of(pause)).await;
        loop {
            let payload = match self.next(&mut subscription).await {
                Ok(Some(payload)) => payload,
                Ok(None) => return Done::Sent,
                Err(why) => return why.into(),
            };
            if let Err(done) = self.deliver_with_retries(&payload).await {
                return done;
            }
        }
    }

    /// Next notification; none if no more will follow.
    async fn next(&self, subscription: &mut Subscription) -> Result<Option<Payload>, StorageError> {
        while let Some(event) = subscription.next().await {
            let event = event?;
            match self.config.form {
                PushForm::V1 => {
                    if let Some(payload) = payload::of_event(&event) {
                        return Ok(Some(payload));
                    }
                }
                PushForm::V03 => {
                    if !payload::moves(&event.event) {
                        continue;
                    }
                    let stored = self.outgoing.tasks.stored(&self.config.task).await?;
                    let Some(stored) = stored else { return Ok(None) };
                    // The task contains everything up to here.
                    subscription.resume(stored.seq);
                    return Ok(Some(payload::of_task(&stored.task, stored.seq)));
                }
            }
        }
        Ok(None)
    }

    /// Delivers a notification, with retries.
    async fn deliver_with_retries(&mut self, payload: &Payload) -> Result<(), Done> {
        loop {
            let began = clock::now();
            let Err(why) = self.try_once(payload).await? else {
                self.progress = Progress { sent: payload.seq, failure: None };
                return Ok(self.store_progress().await?);
            };
            let next = self.failed(&why, began);
            tracing::debug!(task = %self.config.task, receiver = origin(&self.config.url), %why, ?next, "a delivery failed");
            self.store_progress().await?;
            match next {
                RetryDecision::Retry(pause) => sleep(pause).await,
                RetryDecision::GiveUp => return Err(Done::Dead),
            }
        }
    }

    /// Delivers a notification once its receiver has a slot.
    async fn try_once(&self, payload: &Payload) -> Result<Result<(), SendError>, Done> {
        let Self { outgoing, config, receiver, trace, .. } = self;
        let wait = delivery::wait(self.failing(), outgoing.retry_timeout);
        let turn = timeout(wait, receiver.turn()).await;
        // The task and its data may have been deleted in the meantime.
        if !self.is_wanted().await? {
            return Err(Done::Sent);
        }
        let Ok(Ok(_turn)) = turn else { return Ok(Err(SendError::NoTurn(receiver.wait_reason()))) };
        let went = outgoing.sender.send(config, payload, trace).await;
        let breaker_outcome =
            went.as_ref().map_or_else(SendError::breaker_outcome, |()| Some(TAKEN));
        if let Some(outcome) = breaker_outcome {
            receiver.went(outcome, went.as_ref().err().map(ToString::to_string));
        }
        Ok(went)
    }

    /// True if the config still exists; it is deleted with its task.
    async fn is_wanted(&self) -> Result<bool, StorageError> {
        let its = PushFilter { task: Some(self.config.task.clone()), ..PushFilter::default() };
        let known = self.outgoing.storage.pushes(its).await?;
        Ok(known.iter().any(|known| known.config.id == self.config.id))
    }

    /// Time since the first failure of the next event.
    fn failing(&self) -> Duration {
        let failure = self.progress.failure.as_ref();
        failure.map(|failure| clock::age(&failure.since)).unwrap_or_default()
    }

    /// Records a failed try that began then, and decides about a retry.
    fn failed(&mut self, why: &SendError, began: String) -> RetryDecision {
        let known = self.progress.failure.take();
        let attempts = known.as_ref().map_or(0, |failure| failure.attempts);
        let attempts = attempts + u32::from(why.was_tried());
        let since = known.map_or(began, |failure| failure.since);
        let chance = getrandom::u64().unwrap_or_default();
        let next = if why.is_final() {
            RetryDecision::GiveUp
        } else {
            let failing = clock::age(&since);
            delivery::next(
                attempts,
                failing,
                self.outgoing.retry_timeout,
                why.retry_after(),
                chance,
            )
        };
        let (again, dead) = match next {
            RetryDecision::Retry(pause) => (Some(clock::after(pause)), false),
            RetryDecision::GiveUp => (None, true),
        };
        self.progress.failure =
            Some(DeliveryFailure { attempts, since, error: why.to_string(), again, dead });
        next
    }

    async fn store_progress(&self) -> Result<(), StorageError> {
        let PushConfig { task, id, .. } = &self.config;
        self.outgoing.storage.push_went(task, id, self.progress.clone()).await
    }
}
