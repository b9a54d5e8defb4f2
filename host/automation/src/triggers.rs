//! Triggers of the configuration: their rules, and their states in the store.

use crate::{
    known_trigger::KnownTrigger,
    poll::SourcePoll,
    schedules::{StatesGuard, WallClock},
    topics::Topics,
};
use a2a_hub_config::{Config, ConfigError, SecretStore, Trigger, TriggerSource};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::id::{TaskId, TenantId};
use a2a_hub_protocol::topics::{MAX_BODY, TopicMessage};
use a2a_hub_store::{StorageError, TopicQuery, TriggerStates};
use a2a_hub_triggers::{
    files::WatchedFiles,
    plan::{DeliveryNews, MAX_DELIVERIES, TriggerState},
    trigger_event::{Happenings, TriggerEvent},
    webhook::{WebhookError, WebhookRequest},
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::Instant,
};
use tokio_util::task::TaskTracker;

/// Maximum number of ended tasks that wait for a poll; later ones are dropped with a warning.
const MAX_ENDED: usize = 1_000;

/// Shortest pause between two polls of one source.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Pause after a poll as a multiple of its duration.
const BACKOFF_FACTOR: u32 = 20;

/// Longest pause after a poll, such as one whose file system did not answer for hours.
const MAX_PAUSE: Duration = Duration::from_mins(5);

/// Number of messages of other topics after which a cursor is stored: fewer cost no write.
const FAR: u64 = 1_000;

/// Triggers and their states.
pub struct Triggers {
    store: Arc<dyn TriggerStates>,
    clock: WallClock,
    topics: Arc<Topics>,
    secrets: SecretStore,
    known: Mutex<BTreeMap<String, Arc<KnownTrigger>>>,
    states: AsyncMutex<Option<TriggerMemories>>,
    /// Reasons why an event would start no run, by the triggers' names.
    problems: Mutex<BTreeMap<String, String>>,
    /// Ended tasks, by the triggers that they may concern.
    ended: Mutex<BTreeMap<String, BTreeSet<TaskId>>>,
    /// Locked during a poll of a source and its consequences, so that polls have an order.
    pub looks: AsyncMutex<()>,
    /// Webhooks that are being stored. No shutdown waits for them: the sender hears of none.
    taking: TaskTracker,
    /// Notified when something may be due earlier than known.
    pub changed: Notify,
}

/// Cached states, by the names of the triggers.
type TriggerMemories = BTreeMap<String, TriggerMemory>;

/// State of a trigger in this process.
#[derive(Default)]
pub struct TriggerMemory {
    /// Durable state.
    pub state: TriggerState,
    /// Files of the latest poll; none before the first one.
    pub files: Option<WatchedFiles>,
    /// Poll whose source does not answer.
    pub poll: Option<SourcePoll>,
    /// Time of the next poll.
    pub next_poll: Option<Instant>,
    /// True if the latest run is known to be over.
    pub is_over: bool,
    /// Number of failed attempts to start the run that is due.
    pub attempts: u32,
}

impl TriggerMemory {
    /// Sets the time of the next poll after one that began at this time: polls take a twentieth of
    /// a thread at most.
    pub fn rest_after(&mut self, began: Instant) {
        let rest = (began.elapsed() * BACKOFF_FACTOR).clamp(POLL_INTERVAL, MAX_PAUSE);
        self.next_poll = Some(Instant::now() + rest);
    }
}

/// Result of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookResult {
    /// The event is stored, and waits for a run.
    Taken,
    /// The trigger took the same request before.
    Repeated,
    /// The event starts no run, for this reason.
    Ignored(String),
}

/// Reason why a webhook was refused.
#[derive(Debug, thiserror::Error)]
pub enum WebhookRefusal {
    /// No trigger of that name is on webhooks.
    #[error("no trigger of this name is on webhooks")]
    Unknown,
    /// The request is not valid.
    #[error(transparent)]
    Invalid(#[from] WebhookError),
    /// Too many webhooks came within the last minutes.
    #[error("the trigger takes {MAX_DELIVERIES} webhooks in ten minutes; send it again later")]
    RateLimited,
    /// The hub cannot read the secret; its warnings name the reason.
    #[error(
        "the hub cannot read the secret of this trigger; its operator finds the reason in `a2a-hub status`"
    )]
    Secret,
    /// The hub stops, or failed.
    #[error("the hub is stopping or failed; send it again later")]
    Interrupted,
    /// The event cannot be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Triggers {
    /// Creates the triggers of a configuration, which has been checked.
    ///
    /// # Errors
    ///
    /// The configuration names no data directory.
    pub fn new(
        store: Arc<dyn TriggerStates>,
        topics: Arc<Topics>,
        config: &Config,
        clock: WallClock,
    ) -> Result<Self, ConfigError> {
        let secrets = SecretStore::new(config.data_dir()?);
        Ok(Self {
            store,
            clock,
            topics,
            known: Mutex::new(rules(&config.trigger, &secrets)),
            secrets,
            states: AsyncMutex::default(),
            problems: Mutex::default(),
            ended: Mutex::default(),
            looks: AsyncMutex::default(),
            taking: TaskTracker::new(),
            changed: Notify::new(),
        })
    }

    /// Replaces the triggers by those of a reloaded configuration.
    pub fn follow(&self, config: &BTreeMap<String, Trigger>) {
        *self.known.lock() = rules(config, &self.secrets);
        self.problems.lock().clear();
        self.changed.notify_one();
    }

    /// Topics that some of them listen to.
    pub fn topics(&self) -> Arc<Topics> {
        Arc::clone(&self.topics)
    }

    /// Current time in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        (self.clock)().as_millisecond()
    }

    /// All triggers, by name.
    pub fn all(&self) -> BTreeMap<String, Arc<KnownTrigger>> {
        self.known.lock().clone()
    }

    /// Records why an event would start no run, or that one would; logs a new reason.
    pub fn set_problem(&self, name: &str, why: Option<String>) {
        let mut problems = self.problems.lock();
        match why {
            Some(why) if problems.get(name) == Some(&why) => {}
            Some(why) => {
                tracing::warn!(trigger = name, why, "trigger cannot start runs");
                problems.insert(name.to_owned(), why);
            }
            None => drop(problems.remove(name)),
        }
    }

    /// Reason why an event would start no run.
    pub fn problem(&self, name: &str) -> Option<String> {
        self.problems.lock().get(name).cloned()
    }

    /// Keeps an ended task for the next poll of a trigger.
    pub fn task_ended(&self, name: &str, task: TaskId) {
        let mut ended = self.ended.lock();
        let of_trigger = ended.entry(name.to_owned()).or_default();
        if of_trigger.len() < MAX_ENDED {
            of_trigger.insert(task);
        } else {
            tracing::warn!(trigger = name, %task, "ended task dropped: too many tasks ended at once");
        }
    }

    /// Takes the ended tasks of a trigger.
    pub fn take_ended(&self, name: &str) -> BTreeSet<TaskId> {
        self.ended.lock().remove(name).unwrap_or_default()
    }

    /// Messages of the tenant's topics since the last poll, without those that the trigger itself
    /// led to. Moves the cursor in `state`, which the caller stores together with the events.
    /// Messages that a run has no room for stay in their topics.
    pub async fn see_topics(
        &self,
        name: &str,
        known: &KnownTrigger,
        tenant: &TenantId,
        state: &mut TriggerState,
    ) -> Result<Vec<TriggerEvent>, StorageError> {
        let TriggerSource::Topics(pattern) = &known.rules.source else { return Ok(Vec::new()) };
        let Some(after) = state.topics_after else {
            state.topics_after = Some(self.topics.position(tenant).await?);
            return Ok(Vec::new());
        };
        let none = Happenings::default();
        let waiting = state.pending.as_ref().map_or(&none, |pending| &pending.happenings);
        let (limit, max_bytes) = waiting.remaining_capacity();
        if limit == 0 || max_bytes < MAX_BODY {
            return Ok(Vec::new());
        }
        let query = TopicQuery { pattern: pattern.clone(), after, limit, max_bytes };
        let page = self.topics.page(tenant, query).await?;
        if page.is_empty() && page.next.abs_diff(after) < FAR {
            return Ok(Vec::new());
        }
        state.topics_after = Some(page.next);
        if !page.gaps.is_empty() {
            let why = "messages were dropped before the trigger had read them; `[topics]` in the configuration sets how many are kept";
            tracing::warn!(trigger = name, "{why}");
            state.note = Some(why.to_owned());
        }
        let is_self_triggered =
            |message: &TopicMessage| message.source.triggers.iter().any(|it| it == name);
        let (self_triggered, others): (Vec<_>, Vec<_>) =
            page.messages.into_iter().partition(is_self_triggered);
        if !self_triggered.is_empty() {
            tracing::info!(
                trigger = name,
                messages = self_triggered.len(),
                "ignored messages that the trigger caused itself"
            );
            let count = self_triggered.len();
            state.note =
                Some(format!("messages that the trigger led to itself started no run: {count}"));
        }
        Ok(others.into_iter().map(|message| TriggerEvent::Topic(Box::new(message))).collect())
    }

    /// Verifies a webhook, and stores its event before it returns. `is_suspended` ignores it: the
    /// trigger has an owner who starts no runs now.
    ///
    /// # Errors
    ///
    /// See [`WebhookRefusal`]; the event is not stored then.
    pub async fn take_webhook(
        self: Arc<Self>,
        name: String,
        is_suspended: bool,
        request: WebhookRequest,
    ) -> Result<WebhookResult, WebhookRefusal> {
        // A sender that hangs up must not interrupt it between the store and the cached state.
        let this = Arc::clone(&self);
        let taken =
            self.taking.spawn(async move { this.accept(&name, is_suspended, request).await });
        taken.await.map_err(|_| WebhookRefusal::Interrupted)?
    }

    async fn accept(
        &self,
        name: &str,
        is_suspended: bool,
        request: WebhookRequest,
    ) -> Result<WebhookResult, WebhookRefusal> {
        let known = self.all().remove(name).ok_or(WebhookRefusal::Unknown)?;
        let now_ms = self.now_ms();
        let verify = {
            let known = Arc::clone(&known);
            move || {
                let TriggerSource::Webhooks(source) = &known.rules.source else {
                    return Err(WebhookRefusal::Unknown);
                };
                let secret = known.secret(source).map_err(|_| WebhookRefusal::Secret)?;
                let verified = source.scheme.verify(&secret, &request, now_ms)?;
                Ok((source.counts(&verified.event), verified))
            }
        };
        let (counts, verified) =
            run_blocking(verify).await.map_err(|_| WebhookRefusal::Interrupted)??;
        let ignored = |why: &str| Ok(WebhookResult::Ignored(why.to_owned()));
        if !counts {
            return ignored("the trigger's `events` do not name this type");
        }
        let mut states = self.states().await?;
        let memory = states.get_mut(name).ok_or(WebhookRefusal::Unknown)?;
        if is_suspended || !memory.state.is_active() {
            return ignored("the trigger is paused or stopped");
        }
        let mut state = memory.state.clone();
        match state.take_delivery(&verified.key, now_ms) {
            DeliveryNews::New => {}
            DeliveryNews::Repeated => return Ok(WebhookResult::Repeated),
            DeliveryNews::RateLimited => return Err(WebhookRefusal::RateLimited),
        }
        // The latest run is held until a poll after its end, also over a restart.
        let is_running = state.held;
        let event = TriggerEvent::Webhook(verified.event);
        let waits = state.observe(&known.rules.plan, vec![event], is_running, now_ms);
        if !waits {
            // Sent again after the run, it counts.
            state.deliveries.pop();
        }
        self.store(name, &state).await?;
        memory.state = state;
        drop(states);
        self.changed.notify_one();
        if waits {
            Ok(WebhookResult::Taken)
        } else {
            ignored("the latest run is at work, and `overlap` is \"skip\"")
        }
    }

    /// Locks the states, with one for each of these triggers and for no other.
    pub async fn states(&self) -> Result<StatesGuard<'_, TriggerMemory>, StorageError> {
        let mut guard = self.states.lock().await;
        let mut states = match guard.take() {
            Some(states) => states,
            None => {
                let stored = self.store.triggers().await?.into_iter();
                let memory = |state| TriggerMemory { state, ..TriggerMemory::default() };
                stored.map(|(name, state)| (name, memory(state))).collect()
            }
        };
        let brought = self.bring_up_to_date(&mut states).await;
        *guard = Some(states);
        brought.map(|()| StatesGuard::new(guard))
    }

    async fn bring_up_to_date(&self, states: &mut TriggerMemories) -> Result<(), StorageError> {
        let known = self.all();
        for (name, trigger) in &known {
            let memory = states.entry(name.clone()).or_default();
            if memory.state.follow(&trigger.config.rule()) {
                (memory.files, memory.next_poll) = (None, None);
                self.store.set_trigger(name, &memory.state).await?;
            }
        }
        let removed: Vec<_> =
            states.keys().filter(|name| !known.contains_key(*name)).cloned().collect();
        for name in removed {
            self.store.forget_trigger(&name).await?;
            states.remove(&name);
        }
        Ok(())
    }

    /// Stores a state.
    pub async fn store(&self, name: &str, state: &TriggerState) -> Result<(), StorageError> {
        self.store.set_trigger(name, state).await
    }
}

/// Rules of the valid triggers; a configuration with an invalid one is refused before.
fn rules(
    config: &BTreeMap<String, Trigger>,
    secrets: &SecretStore,
) -> BTreeMap<String, Arc<KnownTrigger>> {
    let rules = |(name, config): (&String, &Trigger)| match config.rules(name) {
        Ok(rules) => {
            let (config, secrets) = (config.clone(), secrets.clone());
            Some((name.clone(), Arc::new(KnownTrigger::new(config, rules, secrets))))
        }
        Err(why) => {
            tracing::warn!(trigger = name, %why, "invalid trigger ignored");
            None
        }
    };
    config.iter().filter_map(rules).collect()
}
