//! What a task's listeners hear: everything from any place on, then everything as it happens.

use crate::storage::{Storage, StorageError};
use a2a_hub_protocol::{
    event::{Recorded, TaskEvent},
    id::{ContextId, TaskId},
    task::TaskState,
};
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::watch;

/// Events kept at hand for those who listen live; who is further behind reads the log.
const RECENT: usize = 256;

/// Events read from the log at once.
const PAGE: usize = 256;

/// The speaking end, held by the task's actor: speaks of what is stored, never before.
pub(super) struct Feed(watch::Sender<Heard>);

#[derive(Debug, Default)]
struct Heard {
    /// The number of the latest event.
    seq: u64,
    /// The latest events, the last of them number `seq`.
    recent: VecDeque<Arc<Recorded>>,
}

impl Feed {
    /// A feed that has spoken of the events up to `seq`.
    pub(super) fn new(seq: u64) -> Self {
        Self(watch::Sender::new(Heard { seq, recent: VecDeque::new() }))
    }

    pub(super) fn publish(&self, events: impl IntoIterator<Item = Arc<Recorded>>) {
        self.0.send_modify(|heard| {
            for event in events {
                heard.seq = event.seq;
                heard.recent.push_back(event);
            }
            let surplus = heard.recent.len().saturating_sub(RECENT);
            heard.recent.drain(..surplus);
        });
    }

    /// A listener for those who come later.
    pub(super) fn listener(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

/// Lets others subscribe to a task, also after its actor is gone.
#[derive(Clone, Debug)]
pub(super) struct Listener(watch::Receiver<Heard>);

impl Listener {
    /// Hears what comes after event `after`.
    pub(super) fn subscribe(
        &self,
        task: TaskId,
        context: ContextId,
        storage: Arc<dyn Storage>,
        after: u64,
    ) -> Subscription {
        let pages = VecDeque::new();
        let heard = self.0.clone();
        Subscription { task, context, storage, heard, after, told: after, pages, over: false }
    }

    /// The number of the latest event.
    pub(super) fn seq(&self) -> u64 {
        self.0.borrow().seq
    }
}

/// The listening end. Each keeps its own place, so a slow one holds up nobody and misses nothing.
pub struct Subscription {
    task: TaskId,
    context: ContextId,
    storage: Arc<dyn Storage>,
    heard: watch::Receiver<Heard>,
    /// The number of the last event that was taken.
    after: u64,
    /// Events up to this one are of the past: none of them ends the stream.
    told: u64,
    /// Events read from the log and not yet taken.
    pages: VecDeque<Arc<Recorded>>,
    over: bool,
}

/// What a subscriber finds when it looks.
enum Found {
    Event(Arc<Recorded>),
    /// It is further behind than what is kept at hand.
    Behind,
    Nothing,
}

impl Subscription {
    /// The task listened to.
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// The task's conversation.
    pub fn context(&self) -> &ContextId {
        &self.context
    }

    /// Goes on after event `after` instead, for a client that has heard so much of the task.
    pub fn resume(&mut self, after: u64) {
        self.told = self.told.max(self.after);
        self.after = after;
        self.pages.clear();
    }

    /// The next event. Nothing after one that ends the task or leaves it waiting for its client, and nothing when the
    /// hub stopped before: the log then has the rest.
    pub async fn next(&mut self) -> Option<Result<Arc<Recorded>, StorageError>> {
        if self.over {
            return None;
        }
        loop {
            if let Some(event) = self.pages.pop_front() {
                return Some(Ok(self.take(event)));
            }
            match self.look() {
                Found::Event(event) => return Some(Ok(self.take(event))),
                Found::Behind => match self.storage.events(&self.task, self.after, PAGE).await {
                    Ok(events) => self.pages = events.into_iter().map(Arc::new).collect(),
                    Err(why) => {
                        self.over = true;
                        return Some(Err(why));
                    }
                },
                // The actor is gone and all it said was taken.
                Found::Nothing => self.heard.changed().await.ok()?,
            }
        }
    }

    fn look(&mut self) -> Found {
        let heard = self.heard.borrow_and_update();
        let Some(behind) = heard.seq.checked_sub(self.after).filter(|behind| *behind > 0) else {
            return Found::Nothing;
        };
        let at_hand = heard.recent.len() as u64;
        match at_hand.checked_sub(behind).and_then(|at| usize::try_from(at).ok()) {
            Some(at) => heard.recent.get(at).cloned().map_or(Found::Behind, Found::Event),
            None => Found::Behind,
        }
    }

    fn take(&mut self, event: Arc<Recorded>) -> Arc<Recorded> {
        self.after = event.seq;
        let state = state_after(&event.event);
        let ends = state.is_some_and(|state| state.is_final() || state.is_interrupted());
        self.over = ends && event.seq > self.told;
        event
    }
}

/// The state an event leaves its task in, if it says so.
fn state_after(event: &TaskEvent) -> Option<TaskState> {
    match event {
        TaskEvent::Created(created) => Some(created.task.status.state),
        TaskEvent::Status(update) => Some(update.status.state),
        TaskEvent::Reply(_) => Some(TaskState::Completed),
        TaskEvent::Artifact(_) | TaskEvent::Input(_) => None,
    }
}
