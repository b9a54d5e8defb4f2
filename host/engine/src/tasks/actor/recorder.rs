//! A task and its log: events are applied to the task, stored, and only then published.

use crate::{
    observability::{hub_events::Events, metrics::Metrics, span_export::Spans},
    tasks::login_user::login_user,
};
use a2a_hub_core::{
    access_control::Principal,
    identity::LoginUser,
    task::{
        fold::TaskFold,
        list_limits::{HistorySize, ListFull, ListLimits},
        prices::Prices,
    },
};
use a2a_hub_protocol::{
    event::{SequencedEvent, TaskEvent},
    hub::event::HubEventKind,
    id::{AgentId, QuestionId},
    message::Message,
    task::{Task, TaskState},
};
use a2a_hub_store::{
    StorageError, StoredTask, TaskStore,
    feed::{Feed, FeedHandle},
};
use std::{mem, sync::Arc, time::Duration};
use tokio::{sync::oneshot, time::Instant};

/// Error of the store, already logged.
pub(in crate::tasks) struct Unstorable(pub(in crate::tasks) StorageError);

/// Time that the first event of a task waits for the agent's output, so that both are stored in one
/// write. Longer than a busy hub takes to start an agent, and shorter than anybody notices.
const BIRTH: Duration = Duration::from_millis(100);

/// A task that is not in the log yet: its first event is stored together with the agent's first
/// output.
pub(in crate::tasks) struct DeferredCreation {
    /// Caller that requested the task.
    by: Principal,
    /// Notified once the task is in the log.
    stored_tx: oneshot::Sender<Result<(), StorageError>>,
    /// Time by which the task is stored, whatever its agent does.
    deadline: Instant,
    /// True if nobody takes an event before: the output may be collected.
    collects: bool,
}

impl DeferredCreation {
    /// Creation that `by` requested now. With `collects`, the agent's output is collected until its
    /// end; otherwise its first output ends the delay.
    pub(in crate::tasks) fn new(
        by: Principal,
        stored_tx: oneshot::Sender<Result<(), StorageError>>,
        collects: bool,
    ) -> Self {
        Self { by, stored_tx, deadline: Instant::now() + BIRTH, collects }
    }
}

/// Number of events that a deferred creation collects at most: the store writes more of them as a
/// long append.
const COLLECTED: usize = 8;

/// Writes the log of one task.
pub(in crate::tasks) struct Recorder {
    /// The task, with all recorded events applied, stored or not.
    task: TaskFold,
    /// Size of the task's history.
    history: HistorySize,
    /// Number of the last stored event.
    seq: u64,
    agent: AgentId,
    storage: Arc<dyn TaskStore>,
    events: Events,
    spans: Spans,
    feed: Feed,
    /// Recorded events that are not stored yet.
    pending: Vec<Arc<TaskEvent>>,
    /// States that the pending events lead to.
    moves: Vec<TaskState>,
    /// Set until the first event is stored.
    unborn: Option<DeferredCreation>,
    prices: Arc<Prices>,
}

impl Recorder {
    /// Creates the recorder of a task of `agent` whose log ends at event `seq`.
    pub(in crate::tasks) fn new(
        task: Task,
        seq: u64,
        agent: AgentId,
        storage: Arc<dyn TaskStore>,
        (events, spans): (Events, Spans),
        feed: Feed,
    ) -> Self {
        let (pending, moves) = (Vec::new(), Vec::new());
        let (unborn, prices) = (None, Arc::default());
        let history = HistorySize::new(&task.history);
        let task = TaskFold::new(task);
        Self {
            task,
            history,
            seq,
            agent,
            storage,
            events,
            spans,
            feed,
            pending,
            moves,
            unborn,
            prices,
        }
    }

    /// Turns the tokens that the agent reports into dollars by this list.
    pub(in crate::tasks) fn with_prices(self, prices: Arc<Prices>) -> Self {
        Self { prices, ..self }
    }

    /// Begins a new task with this event, which is stored with the next ones.
    pub(in crate::tasks) fn beginning(
        self,
        created: Arc<TaskEvent>,
        unborn: DeferredCreation,
    ) -> Self {
        Self { pending: vec![created], unborn: Some(unborn), ..self }
    }

    /// True if not even the first event is stored.
    pub(in crate::tasks) fn is_unborn(&self) -> bool {
        self.unborn.is_some()
    }

    /// Deadline of a deferred creation, until the first event is stored.
    pub(in crate::tasks) fn deadline(&self) -> Option<Instant> {
        self.unborn.as_ref().map(|unborn| unborn.deadline)
    }

    /// True if the recorded events may wait for further output of the agent.
    pub(in crate::tasks) fn may_collect(&self) -> bool {
        self.pending.len() < COLLECTED && self.unborn.as_ref().is_some_and(|unborn| unborn.collects)
    }

    /// Handle to subscribe to the task.
    pub(in crate::tasks) fn listener(&self) -> FeedHandle {
        self.feed.listener()
    }

    pub(in crate::tasks) fn task(&self) -> &Task {
        self.task.task()
    }

    /// Refuses a question, or a further message of the client, for which the task's history has no
    /// room.
    pub(in crate::tasks) fn require_history_capacity(&self) -> Result<(), ListFull> {
        self.history.require_capacity(&ListLimits::default())
    }

    /// Events of the hub.
    pub(in crate::tasks) fn events(&self) -> &Events {
        &self.events
    }

    /// Metrics of the hub.
    pub(in crate::tasks) fn metrics(&self) -> &Metrics {
        self.events.metrics()
    }

    /// Number of the last stored event.
    pub(in crate::tasks) fn seq(&self) -> u64 {
        self.seq
    }

    pub(in crate::tasks) fn storage(&self) -> &Arc<dyn TaskStore> {
        &self.storage
    }

    /// Number of events that wait to be stored.
    pub(in crate::tasks) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Applies an event and queues it for the next write. An event that the task's state does not
    /// allow is left out and logged: no guest can cause one.
    pub(in crate::tasks) fn record(&mut self, mut event: TaskEvent) {
        let before = self.task().status.state;
        self.task.begin_artifact(&mut event);
        self.prices.apply(self.task.task().metadata.as_ref(), &mut event);
        match self.task.apply(&event) {
            Ok(()) => {
                let task = self.task.task();
                self.history.update(&task.history);
                let state = task.status.state;
                self.moves.extend((state != before).then_some(state));
                self.pending.push(Arc::new(event));
            }
            Err(why) => tracing::error!(task = %self.task().id, %why, "invalid event dropped"),
        }
    }

    /// Stores the recorded events, which `by` requested, then publishes them. If the first event is
    /// among them, the principal is the one that requested the task.
    pub(in crate::tasks) async fn flush(
        &mut self,
        by: Option<&Principal>,
    ) -> Result<(), Unstorable> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (pending, moves) = (mem::take(&mut self.pending), mem::take(&mut self.moves));
        let unborn = self.unborn.take();
        let by = unborn.as_ref().map_or(by, |unborn| Some(&unborn.by));
        let stored = self.storage.append_by(&self.task().id, self.seq, pending.clone(), by).await;
        if let Err(why) = stored {
            tracing::error!(task = %self.task().id, %why, "cannot store events");
            if !self.has_landed(&why, &pending).await {
                // The caller may be gone; then nobody needs the reply.
                unborn.map(|unborn| unborn.stored_tx.send(Err(why.clone())));
                return Err(Unstorable(why));
            }
        }
        if let Some(unborn) = unborn {
            self.events.publish(created(self.task(), &self.agent));
            let _ = unborn.stored_tx.send(Ok(()));
        }
        let Task { id, context_id, .. } = self.task.task();
        let sequenced = pending.into_iter().map(|event| {
            self.seq += 1;
            SequencedEvent {
                task: id.clone(),
                context: context_id.clone(),
                seq: self.seq,
                event: Arc::unwrap_or_clone(event),
            }
        });
        self.feed.publish(sequenced.collect::<Vec<_>>());
        self.publish_states(moves);
        Ok(())
    }

    /// Stores the first event, if it is not stored yet.
    pub(in crate::tasks) async fn be_born(&mut self) -> Result<(), Unstorable> {
        if self.is_unborn() { self.flush(None).await } else { Ok(()) }
    }

    /// True if no event was ever stored.
    pub(in crate::tasks) fn never_was(&self) -> bool {
        self.seq == 0
    }

    /// True if the events are in the log although the store reported that it was unavailable: only
    /// the reply was lost.
    async fn has_landed(&self, why: &StorageError, pending: &[Arc<TaskEvent>]) -> bool {
        if !matches!(why, StorageError::Unavailable(_)) {
            return false;
        }
        let found = self.storage.events(&self.task().id, self.seq, pending.len() + 1).await;
        found
            .is_ok_and(|found| found.iter().map(|it| &it.event).eq(pending.iter().map(Arc::as_ref)))
    }

    fn publish_states(&self, moves: Vec<TaskState>) {
        for state in moves {
            if state.is_final() {
                self.spans.record(&self.agent, self.task());
            }
            self.events.publish(HubEventKind::TaskState {
                task_id: self.task().id.clone(),
                context_id: self.task().context_id.clone(),
                agent_id: self.agent.clone(),
                state,
            });
        }
    }

    /// Tells the listeners of the hub that the open questions of the task changed, although its state
    /// did not.
    pub(in crate::tasks) fn publish_questions(&self) {
        self.events.publish(HubEventKind::QuestionsChanged {
            task_id: self.task().id.clone(),
            context_id: self.task().context_id.clone(),
            agent_id: self.agent.clone(),
        });
    }

    /// Tells the listeners of the hub that the deadline of an open question of the task is near.
    pub(in crate::tasks) fn publish_expiring(&self, question: QuestionId, expires_at: String) {
        self.events.publish(HubEventKind::QuestionExpiring {
            question_id: question,
            task_id: self.task().id.clone(),
            context_id: self.task().context_id.clone(),
            agent_id: self.agent.clone(),
            expires_at,
        });
    }

    /// Reverts to the stored state: drops events that were not stored, publishes events that were
    /// stored without a reply. False if the task was deleted.
    pub(in crate::tasks) async fn take_back(&mut self) -> Result<bool, Unstorable> {
        self.pending.clear();
        self.moves.clear();
        let stored = self.storage.task(&self.task().id).await.map_err(Unstorable)?;
        let Some(StoredTask { seq, task, .. }) = stored else { return Ok(false) };
        let (known, limit) = (self.seq, usize::try_from(seq.saturating_sub(self.seq)).unwrap_or(0));
        let unpublished =
            self.storage.events(&self.task().id, known, limit).await.map_err(Unstorable)?;
        self.feed.publish(unpublished);
        self.seq = seq;
        self.history = HistorySize::new(&task.history);
        self.task = TaskFold::new(task);
        Ok(true)
    }

    /// Latest `limit` messages of the conversation, without those of the task's history at the
    /// indexes `pending_indexes`.
    pub(in crate::tasks) async fn earlier_messages(
        &self,
        limit: usize,
        pending_indexes: &[usize],
    ) -> Result<Vec<Message>, StorageError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut messages = self.storage.conversation(&self.task().context_id, limit).await?;
        let task_messages = self.task().history.iter().enumerate().rev();
        let task_messages = task_messages
            .filter(|(at, _)| !pending_indexes.contains(at))
            .map(|(_, own)| own.clone());
        let latest: Vec<_> = task_messages.take(limit).collect();
        messages.extend(latest.into_iter().rev());
        messages.drain(..messages.len().saturating_sub(limit));
        Ok(messages)
    }

    /// Principal that began the task; none for a task of an older hub.
    pub(in crate::tasks) async fn begun_by(&self) -> Result<Option<Principal>, StorageError> {
        let askers = self.storage.askers(&self.task().id).await?;
        Ok(askers.into_iter().next().map(|(_, by)| by))
    }

    /// Party that began the tree of the task.
    pub(in crate::tasks) async fn login_user(&self) -> Result<LoginUser, StorageError> {
        login_user(&*self.storage, &self.task().id).await
    }

    /// Disconnects all subscribers; they may subscribe again.
    pub(in crate::tasks) fn hang_up(&mut self) {
        self.feed = Feed::new(self.seq);
    }
}

/// Event for a new task.
pub(in crate::tasks) fn created(task: &Task, agent: &AgentId) -> HubEventKind {
    let (task_id, context_id) = (task.id.clone(), task.context_id.clone());
    HubEventKind::TaskCreated { task_id, context_id, agent_id: agent.clone() }
}
