//! A task and its log: events are applied to the task, stored, and only then published.

use super::feed::{Feed, Listener};
use crate::{events::Events, metrics::Metrics, spans::Spans};
use a2a_hub_core::{access::Principal, task};
use a2a_hub_protocol::{
    event::{SequencedEvent, TaskEvent},
    hub::event::Happened,
    id::AgentId,
    message::Message,
    task::{Task, TaskState},
};
use a2a_hub_store::{StorageError, StoredTask, TaskStore};
use std::{mem, sync::Arc};
use tokio::sync::oneshot;

/// The store refused, and its reason is logged.
pub(super) struct Unstorable(pub(super) StorageError);

/// A task that is not in the log yet: its first event is stored with what the agent says first.
pub(super) struct Unborn {
    /// Who asked for the task.
    pub(super) by: Principal,
    /// Who waits until it is in the log.
    pub(super) told: oneshot::Sender<Result<(), StorageError>>,
}

/// Writes one task's log.
pub(super) struct Recorder {
    /// The task as it is once all that was recorded is stored.
    task: Task,
    /// The number of the last event that is stored.
    seq: u64,
    agent: AgentId,
    storage: Arc<dyn TaskStore>,
    events: Events,
    spans: Spans,
    feed: Feed,
    /// What is recorded and not stored.
    pending: Vec<Arc<TaskEvent>>,
    /// The states that the pending events lead to.
    moves: Vec<TaskState>,
    /// Until the first event is stored, if it was not before.
    unborn: Option<Unborn>,
}

impl Recorder {
    /// A task of `agent` that is in the log with events up to `seq`.
    pub(super) fn new(
        task: Task,
        seq: u64,
        agent: AgentId,
        storage: Arc<dyn TaskStore>,
        (events, spans): (Events, Spans),
        feed: Feed,
    ) -> Self {
        let (pending, moves) = (Vec::new(), Vec::new());
        Self { task, seq, agent, storage, events, spans, feed, pending, moves, unborn: None }
    }

    /// The same for a task that begins with this event, which is stored with the next ones.
    pub(super) fn beginning(self, created: Arc<TaskEvent>, unborn: Unborn) -> Self {
        Self { pending: vec![created], unborn: Some(unborn), ..self }
    }

    /// Whether not even its first event is stored.
    pub(super) fn is_unborn(&self) -> bool {
        self.unborn.is_some()
    }

    /// What others hear of it.
    pub(super) fn listener(&self) -> Listener {
        self.feed.listener()
    }

    pub(super) fn task(&self) -> &Task {
        &self.task
    }

    /// Where it is counted what passes by.
    pub(super) fn metrics(&self) -> &Metrics {
        self.events.metrics()
    }

    /// The number of the last event that is stored.
    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    pub(super) fn storage(&self) -> &Arc<dyn TaskStore> {
        &self.storage
    }

    /// How many events wait to be stored.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Applies an event, to be stored with the others. What the task's state does not allow is left out and logged: a guest
    /// cannot cause it.
    pub(super) fn record(&mut self, mut event: TaskEvent) {
        let before = self.task.status.state;
        task::begin_artifact(&self.task, &mut event);
        match task::apply(&mut self.task, &event) {
            Ok(()) => {
                let state = self.task.status.state;
                self.moves.extend((state != before).then_some(state));
                self.pending.push(Arc::new(event));
            }
            Err(why) => tracing::error!(task = %self.task.id, %why, "an event was left out"),
        }
    }

    /// Stores what was recorded, which `by` asked for, then publishes it. Of what begins with the task, whoever asked for that asked for
    /// the first event.
    pub(super) async fn flush(&mut self, by: Option<&Principal>) -> Result<(), Unstorable> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (pending, moves) = (mem::take(&mut self.pending), mem::take(&mut self.moves));
        let unborn = self.unborn.take();
        let by = unborn.as_ref().map_or(by, |unborn| Some(&unborn.by));
        let stored = self.storage.append_by(&self.task.id, self.seq, pending.clone(), by).await;
        if let Err(why) = stored {
            tracing::error!(task = %self.task.id, %why, "events could not be stored");
            if !self.has_landed(&why, &pending).await {
                // Who asked may have gone; there is nobody to tell then.
                unborn.map(|unborn| unborn.told.send(Err(why.clone())));
                return Err(Unstorable(why));
            }
        }
        if let Some(unborn) = unborn {
            self.events.publish(created(&self.task, &self.agent));
            let _ = unborn.told.send(Ok(()));
        }
        let sequenced = pending.into_iter().map(|event| {
            self.seq += 1;
            SequencedEvent {
                task: self.task.id.clone(),
                context: self.task.context_id.clone(),
                seq: self.seq,
                event: Arc::unwrap_or_clone(event),
            }
        });
        self.feed.publish(sequenced.collect::<Vec<_>>());
        self.tell(moves);
        Ok(())
    }

    /// Stores the first event, if it is not stored yet.
    pub(super) async fn be_born(&mut self) -> Result<(), Unstorable> {
        if self.is_unborn() { self.flush(None).await } else { Ok(()) }
    }

    /// Whether it was never stored at all.
    pub(super) fn never_was(&self) -> bool {
        self.seq == 0
    }

    /// Whether events are in the log although the store said that it could not be reached: the answer was lost, not they.
    async fn has_landed(&self, why: &StorageError, pending: &[Arc<TaskEvent>]) -> bool {
        if !matches!(why, StorageError::Unavailable(_)) {
            return false;
        }
        let found = self.storage.events(&self.task.id, self.seq, pending.len() + 1).await;
        found
            .is_ok_and(|found| found.iter().map(|it| &it.event).eq(pending.iter().map(Arc::as_ref)))
    }

    fn tell(&self, moves: Vec<TaskState>) {
        for state in moves {
            if state.is_final() {
                self.spans.of(&self.agent, &self.task);
            }
            self.events.publish(Happened::TaskState {
                task_id: self.task.id.clone(),
                context_id: self.task.context_id.clone(),
                agent_id: self.agent.clone(),
                state,
            });
        }
    }

    /// What was not stored never happened; what was stored, and not known to be, is published. False if the task was forgotten.
    pub(super) async fn take_back(&mut self) -> Result<bool, Unstorable> {
        self.pending.clear();
        self.moves.clear();
        let stored = self.storage.task(&self.task.id).await.map_err(Unstorable)?;
        let Some(StoredTask { seq, task, .. }) = stored else { return Ok(false) };
        let (known, limit) = (self.seq, usize::try_from(seq.saturating_sub(self.seq)).unwrap_or(0));
        let unheard = self.storage.events(&self.task.id, known, limit).await.map_err(Unstorable)?;
        self.feed.publish(unheard);
        (self.seq, self.task) = (seq, task);
        Ok(true)
    }

    /// The latest `limit` messages of the conversation, but for those of the task's history that the agent has not heard.
    pub(super) async fn said_before(
        &self,
        limit: usize,
        unheard: &[usize],
    ) -> Result<Vec<Message>, StorageError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut said = self.storage.conversation(&self.task.context_id, limit).await?;
        let own = self.task.history.iter().enumerate();
        said.extend(own.filter(|(at, _)| !unheard.contains(at)).map(|(_, own)| own.clone()));
        said.drain(..said.len().saturating_sub(limit));
        Ok(said)
    }

    /// Lets go of whoever listens; they may ask again.
    pub(super) fn hang_up(&mut self) {
        self.feed = Feed::new(self.seq);
    }
}

/// There is a new task.
pub(super) fn created(task: &Task, agent: &AgentId) -> Happened {
    let (task_id, context_id) = (task.id.clone(), task.context_id.clone());
    Happened::TaskCreated { task_id, context_id, agent_id: agent.clone() }
}
