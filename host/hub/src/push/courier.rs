//! One config's courier: takes the events of its task one after the other to where they are wanted, and tries again.

use super::{
    Inner,
    payload::{self, Payload},
    sender::{SendError, origin},
};
use crate::{
    storage::{Progress, StorageError, StoredPush, Trouble},
    tasks::Subscription,
    telemetry,
};
use a2a_hub_core::delivery::{self, Next};
use a2a_hub_protocol::push::{PushConfig, PushForm};
use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};
use tokio::time::sleep;

pub(super) struct Courier {
    inner: Arc<Inner>,
    config: PushConfig,
    progress: Progress,
}

/// There is nothing more for it to do.
enum Done {
    /// The task is over and all was sent, or the hub stops.
    Sent,
    /// It was given up.
    Dead,
    /// The store failed.
    Storage(StorageError),
}

impl From<StorageError> for Done {
    fn from(why: StorageError) -> Self {
        Self::Storage(why)
    }
}

impl Courier {
    pub(super) fn new(inner: Arc<Inner>, push: StoredPush) -> Self {
        Self { inner, config: push.config, progress: push.progress }
    }

    /// Delivers what there is and what will be, until the task is over.
    pub(super) async fn run(mut self) {
        let (task, receiver) = (self.config.task.clone(), origin(&self.config.url));
        match self.deliver().await {
            Done::Sent => {}
            Done::Dead => {
                tracing::warn!(%task, receiver, "gave up sending news; see `a2a-hub deliveries`");
            }
            Done::Storage(why) => {
                tracing::error!(%task, receiver, %why, "stopped sending news until the hub starts again");
            }
        }
    }

    async fn deliver(&mut self) -> Done {
        // A task that was forgotten has no news.
        let Ok(mut heard) = self.inner.tasks.follow(&self.config.task, self.progress.sent).await
        else {
            return Done::Sent;
        };
        loop {
            let payload = match self.next(&mut heard).await {
                Ok(Some(payload)) => payload,
                Ok(None) => return Done::Sent,
                Err(why) => return why.into(),
            };
            if let Err(done) = self.take(&payload).await {
                return done;
            }
        }
    }

    /// What is to be sent next; nothing if there will be nothing more.
    async fn next(&self, heard: &mut Subscription) -> Result<Option<Payload>, StorageError> {
        while let Some(event) = heard.next().await {
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
                    let stored = self.inner.storage.task(&self.config.task).await?;
                    let Some(stored) = stored else { return Ok(None) };
                    // It tells of all that happened so far.
                    heard.resume(stored.seq);
                    return Ok(Some(payload::of_task(&stored.task, stored.seq)));
                }
            }
        }
        Ok(None)
    }

    /// Takes a payload there, however often it needs.
    async fn take(&mut self, payload: &Payload) -> Result<(), Done> {
        loop {
            let Err(why) = self.inner.sender.send(&self.config, payload).await else {
                self.progress = Progress { sent: payload.seq, trouble: None };
                return Ok(self.keep().await?);
            };
            let next = self.failed(&why);
            tracing::debug!(task = %self.config.task, receiver = origin(&self.config.url), %why, ?next, "a delivery failed");
            self.keep().await?;
            match next {
                Next::Retry(pause) => sleep(pause).await,
                Next::GiveUp => return Err(Done::Dead),
            }
        }
    }

    /// Takes a failure down, and decides what to do about it.
    fn failed(&mut self, why: &SendError) -> Next {
        let known = self.progress.trouble.take();
        let attempts = known.as_ref().map_or(0, |trouble| trouble.attempts) + 1;
        let since = known.map_or_else(telemetry::timestamp, |trouble| trouble.since);
        let chance = RandomState::new().hash_one(attempts);
        let failing = telemetry::age(&since);
        let next = if why.is_final() {
            Next::GiveUp
        } else {
            delivery::next(attempts, failing, self.inner.patience, chance)
        };
        let dead = next == Next::GiveUp;
        self.progress.trouble = Some(Trouble { attempts, since, error: why.to_string(), dead });
        next
    }

    async fn keep(&self) -> Result<(), StorageError> {
        let PushConfig { task, id, .. } = &self.config;
        self.inner.storage.push_went(task, id, self.progress.clone()).await
    }
}
