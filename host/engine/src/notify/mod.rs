//! Notifiers of the configuration: each watches the operator's open questions and unread notices,
//! and sends a message when one needs a person.
//!
//! ```text
//!  open questions, unread notices ──► core::notify::plan ──► state stored ──► program or server
//!            ▲                                                                     │
//!            └── hub events, time ◄───────────── delivered, or tried again ◄───────┘
//! ```
//!
//! Each notifier has its own loop and at most one delivery at a time, so a slow one delays no other
//! and needs no queue: what happens meanwhile is in its next message. A program is started at most
//! once for a message. A server gets a message at least once, under the same id, unless everything
//! in it was answered or read before it could be delivered.

mod delivery;
mod items;
mod slot;

pub use delivery::NotifyChannels;

use crate::{error::HubError, observability::hub_events::Events, tasks::Tasks};
use a2a_hub_automation::WallClock;
use a2a_hub_config::{Notifier, NotifierPlan};
use a2a_hub_core::{
    discovery::did_you_mean::hint,
    notify::{
        message::NotifyMessage,
        plan::{AttentionItem, DueItem, NotifierState, NotifyStep},
    },
    push::delivery::{self as retries, RetryDecision},
};
use a2a_hub_protocol::{
    error::A2aError,
    hub::event::{HubEventKind, StreamEnd},
    id::TenantId,
    operation::{NotifierAnswer, NotifierFault, NotifierInfo, NotifierRequest, NotifierTest},
};
use a2a_hub_store::{NotifierStates, StorageError};
use delivery::{DeliveryError, target_text};
use futures::{StreamExt as _, stream::FuturesUnordered};
use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
use slot::NotifierSlot;
use std::{collections::BTreeMap, future::pending, sync::Arc, time::Duration};
use tokio::{
    select,
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Longest pause between two looks: timers neither follow a clock that is set, nor count the time
/// that a machine sleeps.
const MAX_PAUSE: Duration = Duration::from_secs(20);

/// Pause after an event, so that many within a moment cost one look.
const EVENT_PAUSE: Duration = Duration::from_millis(500);

/// Pause after a failure of the store.
const STORE_PAUSE: Duration = Duration::from_secs(5);

/// Time for which a test message waits for a delivery in progress.
const TEST_WAIT: Duration = Duration::from_secs(45);

/// A notifier of the configuration, with its state.
struct ConfiguredNotifier {
    name: String,
    plan: NotifierPlan,
    slot: Arc<NotifierSlot>,
    /// Obstacle that is known without an attempt, as of the latest look.
    obstacle: Mutex<Option<String>>,
    /// Cancelled once the configuration has another notifier of this name, or none.
    replaced: CancellationToken,
}

/// Notifiers by name.
type ByName = BTreeMap<String, Arc<ConfiguredNotifier>>;

/// All notifiers of the configuration.
pub struct Notifiers {
    store: Arc<dyn NotifierStates>,
    tasks: Tasks,
    channels: NotifyChannels,
    retry_timeout: Duration,
    clock: WallClock,
    configured: watch::Sender<ByName>,
}

impl Notifiers {
    /// Creates the notifiers of a configuration. A message to a server is tried for at most
    /// `retry_timeout`.
    pub fn new(
        store: Arc<dyn NotifierStates>,
        tasks: Tasks,
        channels: NotifyChannels,
        retry_timeout: Duration,
        clock: WallClock,
        config: &BTreeMap<String, Notifier>,
    ) -> Self {
        let configured = watch::Sender::default();
        let notifiers = Self { store, tasks, channels, retry_timeout, clock, configured };
        notifiers.follow(config);
        notifiers
    }

    /// Replaces the notifiers by those of a reloaded configuration. One that is unchanged goes on,
    /// and a delivery in progress is completed.
    pub fn follow(&self, config: &BTreeMap<String, Notifier>) {
        self.configured.send_modify(|configured| {
            let mut before = std::mem::take(configured);
            for (name, settings) in config {
                let plan = match settings.plan(name) {
                    Ok(plan) => plan,
                    Err(why) => {
                        tracing::warn!(notifier = name, %why, "invalid notifier ignored");
                        continue;
                    }
                };
                let known = before.remove(name);
                let notifier = match known {
                    Some(known) if known.plan == plan => known,
                    known => {
                        let slot = known.as_ref().map(|known| Arc::clone(&known.slot));
                        if let Some(known) = known {
                            known.replaced.cancel();
                        }
                        let (slot, name) = (slot.unwrap_or_default(), name.clone());
                        let obstacle = Mutex::new(self.channels.obstacle(&plan));
                        let replaced = CancellationToken::new();
                        Arc::new(ConfiguredNotifier { name, plan, slot, obstacle, replaced })
                    }
                };
                configured.insert(name.clone(), notifier);
            }
            for removed in before.into_values() {
                removed.replaced.cancel();
            }
        });
    }

    /// Runs all notifiers, for as long as the hub runs.
    pub async fn run(&self, events: &Events) {
        let mut configured = self.configured.subscribe();
        let changes = watch::Sender::new(());
        let mut running = FuturesUnordered::new();
        let mut started = ByName::new();
        loop {
            let all = configured.borrow_and_update().clone();
            self.forget_removed(&all).await;
            for (name, notifier) in &all {
                let is_running =
                    started.get(name).is_some_and(|running| Arc::ptr_eq(running, notifier));
                if !is_running {
                    running.push(self.run_one(Arc::clone(notifier), changes.subscribe()));
                }
            }
            started = all;
            let ended = async {
                while running.next().await.is_some() {}
                pending::<()>().await;
            };
            let watched = async {
                match started.is_empty() {
                    true => pending().await,
                    false => watch_events(events, &changes).await,
                }
            };
            select! {
                // The sender is a field of this value.
                _ = configured.changed() => {}
                () = ended => {}
                () = watched => {}
            }
        }
    }

    /// Deletes the states of notifiers that the configuration no longer has.
    async fn forget_removed(&self, all: &ByName) {
        let forgotten = async {
            for (name, _) in self.store.notifiers().await? {
                if !all.contains_key(&name) {
                    self.store.forget_notifier(&name).await?;
                }
            }
            Ok::<_, StorageError>(())
        };
        if let Err(why) = forgotten.await {
            tracing::warn!(%why, "cannot delete the states of removed notifiers");
        }
    }

    async fn run_one(&self, notifier: Arc<ConfiguredNotifier>, mut changes: watch::Receiver<()>) {
        while !notifier.replaced.is_cancelled() {
            changes.mark_unchanged();
            let pause = match Box::pin(self.advance(&notifier)).await {
                Ok(pause) => pause.min(MAX_PAUSE),
                Err(why) => {
                    let (name, why) = (&notifier.name, A2aError::from(why));
                    tracing::warn!(notifier = name, %why, "cannot find what to report, trying again");
                    STORE_PAUSE
                }
            };
            select! {
                () = sleep(pause) => {}
                () = notifier.replaced.cancelled() => {}
                Ok(()) = changes.changed() => sleep(EVENT_PAUSE).await,
            }
        }
    }

    /// Takes the next step of a notifier, and returns the pause before the one after it.
    async fn advance(&self, notifier: &ConfiguredNotifier) -> Result<Duration, HubError> {
        let ConfiguredNotifier { name, plan, slot, .. } = notifier;
        let _delivering = slot.work.lock().await;
        let obstacle = self.channels.obstacle(plan);
        *notifier.obstacle.lock() = obstacle;
        let items = items::open_items(&self.tasks, &TenantId::default()).await?;
        let now = (self.clock)();
        let now_ms = now.as_millisecond();
        let mut state = match slot.state() {
            Some(state) => state,
            None => self.first_state(name, &items).await?,
        };
        if state.reconcile(&items) {
            self.store(notifier, &state).await?;
        }
        slot.set(state.clone());
        let quiet_until = quiet_until(plan, now).map(Timestamp::as_millisecond);
        match state.step(&plan.rules, &items, now_ms, quiet_until) {
            NotifyStep::Wait(None) => return Ok(MAX_PAUSE),
            NotifyStep::Wait(Some(until_ms)) => {
                let pause = u64::try_from(until_ms.saturating_sub(now_ms)).unwrap_or_default();
                return Ok(Duration::from_millis(pause));
            }
            NotifyStep::Drop => {
                state.pending = None;
                self.store(notifier, &state).await?;
            }
            NotifyStep::Compose(due) => self.compose(notifier, state, &due, now).await?,
            NotifyStep::Deliver => self.deliver_pending(notifier, state).await,
        }
        Ok(Duration::ZERO)
    }

    /// State of a notifier that this process has not run yet.
    async fn first_state(
        &self,
        name: &str,
        items: &[AttentionItem],
    ) -> Result<NotifierState, HubError> {
        let stored = self.store.notifiers().await?;
        if let Some((_, state)) = stored.into_iter().find(|(known, _)| known == name) {
            return Ok(state);
        }
        let state = NotifierState::new(items);
        self.store.set_notifier(name, &state).await?;
        Ok(state)
    }

    /// Writes the message that is due, and stores that it is about to be delivered. A program is
    /// started after that, and never for the same message again.
    async fn compose(
        &self,
        notifier: &ConfiguredNotifier,
        mut state: NotifierState,
        due: &[DueItem<'_>],
        now: Timestamp,
    ) -> Result<(), HubError> {
        let ConfiguredNotifier { name, plan, .. } = notifier;
        let secrets = self.channels.secrets().await;
        let head = (uuid::Uuid::now_v7().to_string(), name.as_str(), format!("{now:.3}"));
        let message = NotifyMessage::about(head, due, plan.content, &secrets);
        let is_repeatable = plan.target.is_repeatable();
        state.begin_delivery(message.clone(), due, is_repeatable, now.as_millisecond());
        self.store(notifier, &state).await?;
        if !is_repeatable {
            let result = self.channels.deliver(plan, &message).await;
            self.record(notifier, state, result).await;
        }
        Ok(())
    }

    async fn deliver_pending(&self, notifier: &ConfiguredNotifier, mut state: NotifierState) {
        let Some(pending) = &state.pending else { return };
        // The settings may have changed from a server to a program since it was written.
        let message = pending.message.clone();
        if !notifier.plan.target.is_repeatable() {
            state.pending = None;
            if let Err(why) = self.store(notifier, &state).await {
                let why = A2aError::from(why);
                tracing::warn!(notifier = notifier.name, %why, "cannot store the state of a notifier");
                return;
            }
        }
        let result = self.channels.deliver(&notifier.plan, &message).await;
        self.record(notifier, state, result).await;
    }

    /// Records the result of a delivery. The state is stored as far as the store works: otherwise
    /// the next process delivers a repeatable message again.
    async fn record(
        &self,
        notifier: &ConfiguredNotifier,
        mut state: NotifierState,
        result: Result<(), DeliveryError>,
    ) {
        let (name, now) = (&notifier.name, (self.clock)());
        match result {
            Ok(()) => {
                tracing::info!(notifier = name, "a notifier sent a message");
                state.delivered(format!("{now:.3}"));
            }
            Err(DeliveryError { why, retry_after, is_final }) => {
                let again = state.pending.as_ref().filter(|_| !is_final).and_then(|pending| {
                    let failing = now.as_millisecond().saturating_sub(pending.since_ms);
                    let failing = Duration::from_millis(u64::try_from(failing).unwrap_or_default());
                    let attempts = pending.attempts.saturating_add(1);
                    let chance = getrandom::u64().unwrap_or_default();
                    let retry_timeout = self.retry_timeout;
                    match retries::next(attempts, failing, retry_timeout, retry_after, chance) {
                        RetryDecision::Retry(pause) => Some(pause),
                        RetryDecision::GiveUp => None,
                    }
                });
                let is_retried = again.is_some();
                tracing::warn!(
                    notifier = name,
                    why,
                    is_retried,
                    "a notifier cannot send a message"
                );
                let again_ms = again.map(|pause| {
                    let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
                    now.as_millisecond().saturating_add(pause)
                });
                state.failed(why, format!("{now:.3}"), again_ms);
            }
        }
        if !self.has_slot(notifier) {
            // Stored now, the state would be that of a later notifier of the same name.
            return;
        }
        notifier.slot.set(state.clone());
        if let Err(why) = self.store.set_notifier(name, &state).await {
            tracing::warn!(notifier = name, %why, "cannot store the state of a notifier");
        }
    }

    /// True unless the configuration has removed a notifier. One with other settings has the slot
    /// of the one before it.
    fn has_slot(&self, notifier: &ConfiguredNotifier) -> bool {
        let configured = self.configured.borrow();
        let current = configured.get(&notifier.name);
        current.is_some_and(|current| Arc::ptr_eq(&current.slot, &notifier.slot))
    }

    /// Stores a state, and remembers it once it is durable.
    async fn store(
        &self,
        notifier: &ConfiguredNotifier,
        state: &NotifierState,
    ) -> Result<(), HubError> {
        self.store.set_notifier(&notifier.name, state).await?;
        notifier.slot.set(state.clone());
        Ok(())
    }

    /// Carries out a request for the notifiers.
    pub(crate) async fn perform(
        &self,
        request: NotifierRequest,
    ) -> Result<NotifierAnswer, HubError> {
        match request {
            NotifierRequest::List => {
                let all = self.configured.borrow().clone();
                let infos = all.values().map(|notifier| self.info(notifier));
                Ok(NotifierAnswer::List(infos.collect()))
            }
            NotifierRequest::Test(name) => Ok(NotifierAnswer::Tested(self.test(&name).await?)),
        }
    }

    fn info(&self, notifier: &ConfiguredNotifier) -> NotifierInfo {
        let ConfiguredNotifier { name, plan, slot, .. } = notifier;
        let state = slot.state().unwrap_or_default();
        let time = |ms| Timestamp::from_millisecond(ms).ok().map(|time| format!("{time:.3}"));
        let pending = state.pending.as_ref().filter(|pending| pending.attempts > 0);
        NotifierInfo {
            name: name.clone(),
            by: plan.target.word().to_owned(),
            target: target_text(&plan.target),
            on: plan.rules.kinds.iter().map(|kind| kind.word().to_owned()).collect(),
            agents: plan.rules.agents.iter().map(ToString::to_string).collect(),
            after_ms: u64::try_from(plan.rules.after_ms).unwrap_or_default(),
            quiet_until: quiet_until(plan, (self.clock)()).map(|end| format!("{end:.3}")),
            sent: state.sent,
            last_sent_at: state.last_sent_at,
            retry_at: pending.and_then(|pending| time(pending.again_ms)),
            failure: state.failure.map(|failure| NotifierFault {
                since: failure.since,
                error: failure.error,
                lost: failure.lost,
            }),
        }
    }

    /// Sends a test message now, whatever the hour. A success ends a failure.
    async fn test(&self, name: &str) -> Result<NotifierTest, HubError> {
        let all = self.configured.borrow().clone();
        let Some(notifier) = all.get(name) else {
            let hint = hint(name, all.keys().map(String::as_str)).unwrap_or_else(|| {
                "`a2a-hub notify list` lists them; `[notify.<id>]` in the configuration makes one"
                    .to_owned()
            });
            let why = format!("no notifier is called `{name}`; {hint}");
            return Err(A2aError::invalid("name", why).into());
        };
        let (plan, begun) = (&notifier.plan, Instant::now());
        let Ok(_delivering) = timeout(TEST_WAIT, notifier.slot.work.lock()).await else {
            let why = format!("`{name}` still delivers another message; try again later");
            return Err(A2aError::invalid("name", why).into());
        };
        let id = uuid::Uuid::now_v7().to_string();
        let message = NotifyMessage::test(id, name, format!("{:.3}", (self.clock)()));
        let result = self.channels.deliver(plan, &message).await;
        if let (Ok(()), Some(mut state)) = (&result, notifier.slot.state())
            && state.failure.take().is_some()
        {
            self.store(notifier, &state).await?;
        }
        let error = result.err().map(|failed| failed.why);
        Ok(NotifierTest {
            name: name.to_owned(),
            by: plan.target.word().to_owned(),
            target: target_text(&plan.target),
            delivered: error.is_none(),
            error,
            took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Sentence that tells how many notifiers cannot send. It has neither their names nor the
    /// reasons, which are words of programs: everybody who reaches the hub may read it.
    pub(crate) fn failure_count(&self) -> Option<String> {
        match self.failures().len() {
            0 => None,
            count => Some(format!(
                "notifiers that cannot send: {count}; `a2a-hub status` says which and why"
            )),
        }
    }

    /// Failures of notifiers that last, one sentence each, for the operator. Answers at once.
    pub(crate) fn failures(&self) -> Vec<String> {
        let all = self.configured.borrow().clone();
        let failure = |notifier: &Arc<ConfiguredNotifier>| {
            let ConfiguredNotifier { name, slot, obstacle, .. } = &**notifier;
            let failure = slot.state().and_then(|state| state.failure);
            let (since, why, lost) = match failure {
                Some(failure) => (format!(" since {}", failure.since), failure.error, failure.lost),
                None => (String::new(), obstacle.lock().clone()?, 0),
            };
            let lost = match lost {
                0 => String::new(),
                1 => "; one message was given up".to_owned(),
                lost => format!("; {lost} messages were given up"),
            };
            Some(format!(
                "the notifier `{name}` cannot send{since}: {why}{lost}; `a2a-hub notify test {name}` tries it"
            ))
        };
        all.values().filter_map(failure).collect()
    }
}

/// End of the quiet hours of a notifier, if they last at `now`.
fn quiet_until(plan: &NotifierPlan, now: Timestamp) -> Option<Timestamp> {
    plan.quiet.and_then(|quiet| quiet.until(now, &TimeZone::system()))
}

/// Reports changes of questions and notices of the operator's tasks, until the hub stops.
async fn watch_events(events: &Events, changes: &watch::Sender<()>) {
    loop {
        let mut listener = events.subscribe(&TenantId::default());
        let end = loop {
            match listener.next().await {
                Ok(event) if concerns_notifiers(&event.what) => changes.send_modify(|()| {}),
                Ok(_) => {}
                Err(end) => break end,
            }
        };
        match end {
            // The events that were missed may have been of questions.
            StreamEnd::TooSlow => changes.send_modify(|()| {}),
            StreamEnd::HubStopped => return pending().await,
        }
    }
}

fn concerns_notifiers(event: &HubEventKind) -> bool {
    if let HubEventKind::TaskState { state, .. } = event {
        return state.is_interrupted();
    }
    matches!(
        event,
        HubEventKind::QuestionsChanged { .. }
            | HubEventKind::QuestionExpiring { .. }
            | HubEventKind::NoticesChanged { .. }
    )
}

#[cfg(test)]
mod tests;
