//! Event stream of a task: replays the log from any event number on, then follows live events.

use crate::{StorageError, TaskLog};
use a2a_hub_core::task::idempotency;
use a2a_hub_protocol::{
    dialect::EncodedEvent,
    event::{Created, SequencedEvent, TaskEvent},
    id::{AgentId, ContextId, TaskId},
    task::{Task, TaskState},
};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::watch;

/// Capacity of the live buffer; a subscriber that is further behind reads the log.
const RECENT: usize = 256;

/// Number of events read from the log at once.
pub const PAGE: usize = 256;

/// Capacity that an empty buffer keeps.
const FEW: usize = 8;

/// Publishing side, held by the task's actor. Publishes only events that are stored.
pub struct Feed(watch::Sender<Mutex<AtHand>>);

/// Buffer of the latest events that some subscriber has yet to take. Events that all have taken are
/// dropped, so that a task that runs for an hour, or waits for a week, keeps none.
#[derive(Debug, Default)]
struct AtHand {
    /// Number of the latest event, buffered or not.
    seq: u64,
    /// Events, each with the number of subscribers that have yet to take it; this number never
    /// falls from one event to the next.
    events: VecDeque<(Arc<EncodedEvent>, usize)>,
    listeners: usize,
}

impl AtHand {
    fn add(&mut self, event: SequencedEvent) {
        if event.seq != self.seq + 1 {
            self.events.clear();
        }
        self.seq = event.seq;
        let entry = match self.listeners {
            0 => return,
            1 => EncodedEvent::new(event),
            _ => EncodedEvent::shared(event),
        };
        self.events.push_back((Arc::new(entry), self.listeners));
        if self.events.len() > RECENT {
            self.events.pop_front();
        }
    }

    /// Index of the first event after number `after`.
    fn index_after(&self, after: u64) -> usize {
        let lag = usize::try_from(self.seq.saturating_sub(after)).unwrap_or(usize::MAX);
        self.events.len().saturating_sub(lag)
    }

    /// Releases one subscriber's claim on the events after number `from`, up to number `to`.
    fn let_go(&mut self, from: u64, to: u64) {
        let released = self.index_after(from)..self.index_after(to);
        for (_, listeners) in self.events.range_mut(released) {
            *listeners -= 1;
        }
        while self.events.pop_front_if(|(_, listeners)| *listeners == 0).is_some() {}
        if self.events.is_empty() {
            self.events.shrink_to(FEW);
        }
    }
}

impl Feed {
    /// Creates a feed whose latest event is number `seq`.
    pub fn new(seq: u64) -> Self {
        Self(watch::Sender::new(Mutex::new(AtHand { seq, ..AtHand::default() })))
    }

    /// Publishes events that are stored.
    pub fn publish(&self, events: impl IntoIterator<Item = SequencedEvent>) {
        self.0.send_modify(|at_hand| {
            let at_hand = at_hand.get_mut();
            events.into_iter().for_each(|event| at_hand.add(event));
        });
    }

    /// Handle from which others subscribe.
    pub fn listener(&self) -> FeedHandle {
        FeedHandle(self.0.subscribe())
    }
}

/// Handle to subscribe to a task, valid also after its actor is gone.
#[derive(Clone, Debug)]
pub struct FeedHandle(watch::Receiver<Mutex<AtHand>>);

impl FeedHandle {
    /// Subscribes to the events after event `after`. Earlier events are read from the log, unless
    /// they are still in the buffer.
    pub fn subscribe(
        &self,
        task: TaskId,
        context: ContextId,
        storage: Arc<dyn TaskLog>,
        after: u64,
    ) -> Subscription {
        let pages = VecDeque::new();
        let cursor = FeedCursor::at(self.0.clone(), after);
        let end = EndsAt::Interrupted;
        let (repeated, may_be_message, over, lent) = (false, false, false, None);
        Subscription {
            task,
            context,
            storage,
            cursor,
            after,
            pages,
            end,
            repeated,
            may_be_message,
            over,
            lent,
        }
    }

    /// Number of the latest event.
    pub fn seq(&self) -> u64 {
        self.0.borrow().lock().seq
    }
}

/// Cursor of a subscriber in a feed: the buffer keeps the events after it.
struct FeedCursor {
    feed: watch::Receiver<Mutex<AtHand>>,
    /// Number of the event before the cursor; never decreases.
    taken: u64,
}

impl FeedCursor {
    fn at(feed: watch::Receiver<Mutex<AtHand>>, after: u64) -> Self {
        let taken = {
            let at_hand = feed.borrow();
            let mut at_hand = at_hand.lock();
            at_hand.listeners += 1;
            let start = at_hand.index_after(after);
            at_hand.events.range_mut(start..).for_each(|(_, listeners)| *listeners += 1);
            after.min(at_hand.seq)
        };
        Self { feed, taken }
    }

    /// Next event after `after`; releases the events up to `after`.
    fn next_after(&mut self, after: u64) -> NextEvent {
        let at_hand = self.feed.borrow_and_update();
        let mut at_hand = at_hand.lock();
        let (found, taken) = match at_hand.events.get(at_hand.index_after(after)) {
            _ if after >= at_hand.seq => (NextEvent::Nothing, at_hand.seq),
            Some((event, _)) if event.seq == after + 1 => {
                (NextEvent::Event(Arc::clone(event)), after + 1)
            }
            Some(_) | None => (NextEvent::Lagged, after),
        };
        if taken > self.taken {
            at_hand.let_go(self.taken, taken);
            self.taken = taken;
        }
        found
    }

    /// Advances the cursor to event `to`, which the subscriber has read from the log.
    fn pass(&mut self, to: u64) {
        let at_hand = self.feed.borrow();
        let mut at_hand = at_hand.lock();
        // The log may be ahead of the feed.
        let to = to.min(at_hand.seq);
        if to > self.taken {
            at_hand.let_go(self.taken, to);
            self.taken = to;
        }
    }

    /// Number of the latest event.
    fn seq(&self) -> u64 {
        self.feed.borrow().lock().seq
    }
}

impl Drop for FeedCursor {
    fn drop(&mut self) {
        let at_hand = self.feed.borrow();
        let mut at_hand = at_hand.lock();
        at_hand.listeners -= 1;
        let latest = at_hand.seq;
        at_hand.let_go(self.taken, latest);
    }
}

/// Point at which a task's stream ends; at the task's end in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndsAt {
    /// Ends as soon as the task waits for its client.
    Interrupted,
    /// Ends as soon as the task waits for its client's answer. A login may complete out of band,
    /// and then the task continues by itself (A2A 1.0, section 7.6.1).
    InputRequired,
    /// Ends only with the task (A2A 1.0, section 3.1.6).
    Over,
}

impl EndsAt {
    fn is_at(self, state: TaskState) -> bool {
        match self {
            _ if state.is_final() => true,
            Self::Interrupted => state.is_interrupted(),
            Self::InputRequired => state == TaskState::InputRequired,
            Self::Over => false,
        }
    }
}

/// Subscribing side. Each subscription has its own cursor: a slow one delays nobody and misses
/// nothing.
pub struct Subscription {
    task: TaskId,
    context: ContextId,
    storage: Arc<dyn TaskLog>,
    cursor: FeedCursor,
    /// Number of the last event that was taken.
    after: u64,
    /// Events read from the log and not yet taken.
    pages: VecDeque<Arc<EncodedEvent>>,
    end: EndsAt,
    /// True if it answers a repeated request.
    repeated: bool,
    /// True if the answer may be a direct message in place of a task.
    may_be_message: bool,
    over: bool,
    /// Run permit that the subscriber lends until the final event.
    lent: Option<Box<dyn Lent>>,
}

/// A run permit lent to other tasks while this subscriber waits; reclaimed before the final event,
/// or on drop.
#[async_trait::async_trait]
pub trait Lent: Send + Sync {
    /// Reclaims the permit and waits for it; cancel-safe, and may be called again.
    async fn back(&mut self);
}

/// Result of looking for the next event.
enum NextEvent {
    Event(Arc<EncodedEvent>),
    /// The subscriber is further behind than the buffer.
    Lagged,
    Nothing,
}

impl Subscription {
    /// Prepends a snapshot of the task as of event `seq`.
    #[must_use]
    pub fn opening(mut self, agent: AgentId, task: Task, seq: u64) -> Self {
        let created = Created::new(agent, task);
        let (task, context) = (self.task.clone(), self.context.clone());
        let event = TaskEvent::Created(Box::new(created));
        let first = SequencedEvent { task, context, seq, event };
        self.pages.push_front(Arc::new(EncodedEvent::new(first)));
        self
    }

    /// Sets the point at which the stream ends.
    #[must_use]
    pub fn until(mut self, end: EndsAt) -> Self {
        self.end = end;
        self
    }

    /// Holds back the final event until the lent permit is reclaimed.
    #[must_use]
    pub fn lending(mut self, lent: Box<dyn Lent>) -> Self {
        self.lent = Some(lent);
        self
    }

    /// Marks the first event, and a final reply, as the answer to a repeated request.
    #[must_use]
    pub fn repeated(mut self) -> Self {
        self.repeated = true;
        self
    }

    /// Sets whether the answer may be a direct message in place of a task.
    #[must_use]
    pub fn with_direct_message(mut self, may_be_message: bool) -> Self {
        self.may_be_message = may_be_message;
        self
    }

    /// True if the answer may be a direct message in place of a task.
    pub fn may_be_message(&self) -> bool {
        self.may_be_message
    }

    /// True if it answers a repeated request.
    pub fn is_repeated(&self) -> bool {
        self.repeated
    }

    /// Task of the subscription.
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// Conversation (context) of the task.
    pub fn context(&self) -> &ContextId {
        &self.context
    }

    /// Number of the last event that was taken.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Moves the cursor to event `after`, for a client that has received the events up to it.
    pub fn resume(&mut self, after: u64) {
        self.after = after;
        self.pages.clear();
    }

    /// Next event. None after the event at which the stream ends, or if the hub stops before; the
    /// log has the rest then.
    pub async fn next(&mut self) -> Option<Result<Arc<EncodedEvent>, StorageError>> {
        while !self.over {
            if let Some(event) = self.pages.front() {
                if self.lent.is_some() && self.ends_with(event) {
                    if let Some(lent) = &mut self.lent {
                        lent.back().await;
                    }
                    self.lent = None;
                }
                let event = self.pages.pop_front()?;
                return Some(Ok(self.advance(event)));
            }
            match self.cursor.next_after(self.after) {
                NextEvent::Event(event) => self.pages.push_back(event),
                NextEvent::Lagged => {
                    match self.storage.events(&self.task, self.after, PAGE).await {
                        // The task was deleted.
                        Ok(events) if events.is_empty() => self.over = true,
                        Ok(events) => {
                            let last = events.last().map_or(self.after, |event| event.seq);
                            self.cursor.pass(last);
                            self.pages = events
                                .into_iter()
                                .map(|event| Arc::new(EncodedEvent::new(event)))
                                .collect();
                        }
                        Err(why) => {
                            self.over = true;
                            return Some(Err(why));
                        }
                    }
                }
                // The actor is gone and all its events were taken.
                NextEvent::Nothing => self.cursor.feed.changed().await.ok()?,
            }
        }
        None
    }

    /// True if the stream ends with this event.
    fn ends_with(&self, event: &SequencedEvent) -> bool {
        let state = state_after(&event.event);
        // A late subscriber skips past questions that were answered.
        let is_latest = self.cursor.seq() <= event.seq;
        state.is_some_and(|state| state.is_final() || (is_latest && self.end.is_at(state)))
    }

    fn advance(&mut self, event: Arc<EncodedEvent>) -> Arc<EncodedEvent> {
        self.after = event.seq;
        self.over = self.ends_with(&event);
        if self.repeated { marked(event) } else { event }
    }
}

/// Marks the event as the answer to a repeated request.
fn marked(event: Arc<EncodedEvent>) -> Arc<EncodedEvent> {
    let mut marked = SequencedEvent::clone(&event);
    let facts = match &mut marked.event {
        TaskEvent::Created(created) => &mut created.task.metadata,
        TaskEvent::Reply(message) => &mut message.metadata,
        TaskEvent::Status(_) | TaskEvent::Artifact(_) | TaskEvent::Input(_) => return event,
    };
    idempotency::mark(facts);
    Arc::new(EncodedEvent::new(marked))
}

/// State of the task after the event, if the event sets one.
fn state_after(event: &TaskEvent) -> Option<TaskState> {
    match event {
        TaskEvent::Created(created) => Some(created.task.status.state),
        TaskEvent::Status(update) => Some(update.status.state),
        TaskEvent::Reply(_) => Some(TaskState::Completed),
        TaskEvent::Artifact(_) | TaskEvent::Input(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStorage;
    use a2a_hub_protocol::{
        event::{Created, StatusUpdate},
        id::AgentId,
        message::{Message, Role},
        task::{Task, TaskStatus},
    };
    use std::ops::Range;

    fn status(state: TaskState) -> TaskStatus {
        TaskStatus { state, message: None, timestamp: String::new() }
    }

    fn update(state: TaskState) -> TaskEvent {
        TaskEvent::Status(StatusUpdate { status: status(state), metadata: None })
    }

    /// Publishes a task of `events` events as an actor does: each is stored first, then published.
    async fn told(storage: &Arc<dyn TaskLog>, events: usize, last: TaskState) -> (Feed, Task) {
        let task = Task {
            id: TaskId::fresh(),
            context_id: ContextId::fresh(),
            status: status(TaskState::Submitted),
            artifacts: Vec::new(),
            history: vec![Message::text(Role::User, "hi")],
            metadata: None,
        };
        let agent = AgentId::parse("echo").unwrap();
        let created = Created::new(agent, task.clone());
        let created = TaskEvent::Created(Box::new(created));
        let feed = Feed::new(0);
        let middle = (2..events).map(|_| update(TaskState::Working));
        for (seq, event) in (1..).zip([created].into_iter().chain(middle).chain([update(last)])) {
            storage.append(&task.id, seq - 1, vec![Arc::new(event.clone())]).await.unwrap();
            let (id, context) = (task.id.clone(), task.context_id.clone());
            feed.publish([SequencedEvent { task: id, context, seq, event }]);
        }
        (feed, task)
    }

    async fn heard(mut subscription: Subscription) -> Vec<u64> {
        let mut heard = Vec::new();
        while let Some(event) = subscription.next().await {
            heard.push(event.unwrap().seq);
        }
        heard
    }

    #[tokio::test]
    async fn late_subscriber_replays_log_without_gaps() {
        let storage: Arc<dyn TaskLog> = Arc::new(MemoryStorage::default());
        let events = RECENT * 3;
        let (feed, task) = told(&storage, events, TaskState::Completed).await;
        for after in [0, 1, RECENT, events - RECENT, events - RECENT - 1, events - 1] {
            let (id, context) = (task.id.clone(), task.context_id.clone());
            let listener = feed.listener();
            let late = listener.subscribe(id, context, Arc::clone(&storage), after as u64);
            let wanted: Vec<_> = (after as u64 + 1..=events as u64).collect();
            assert_eq!(heard(late).await, wanted, "after {after}");
        }
    }

    /// Number of events in the buffer.
    fn at_hand(feed: &Feed) -> usize {
        feed.0.borrow().lock().events.len()
    }

    #[tokio::test]
    async fn events_taken_by_all_are_dropped() {
        let storage: Arc<dyn TaskLog> = Arc::new(MemoryStorage::default());
        let (feed, task) = told(&storage, 5, TaskState::Working).await;
        assert_eq!(at_hand(&feed), 0, "nobody listens");
        let listen = |after| {
            let (id, context) = (task.id.clone(), task.context_id.clone());
            feed.listener().subscribe(id, context, Arc::clone(&storage), after)
        };
        let tell = async |events: Range<u64>| {
            for seq in events {
                let event = update(TaskState::Working);
                storage.append(&task.id, seq - 1, vec![Arc::new(event.clone())]).await.unwrap();
                let (task, context) = (task.id.clone(), task.context_id.clone());
                feed.publish([SequencedEvent { task, context, seq, event }]);
            }
        };
        let hear = async |by: &mut Subscription, events: Range<u64>| {
            for wanted in events {
                assert_eq!(by.next().await.unwrap().unwrap().seq, wanted);
            }
        };
        let (mut quick, mut slow, mut behind) = (listen(5), listen(5), listen(3));
        tell(6..9).await;
        hear(&mut quick, 6..9).await;
        hear(&mut slow, 6..8).await;
        assert_eq!(at_hand(&feed), 3, "one has yet to hear them");
        hear(&mut behind, 4..6).await;
        assert_eq!(at_hand(&feed), 1, "that one reads the log, and has the rest from there");
        hear(&mut behind, 6..9).await;
        let late = listen(8);
        quick.resume(5);
        hear(&mut quick, 6..9).await;
        let events = RECENT as u64 + 5;
        tell(9..9 + events).await;
        assert_eq!(at_hand(&feed), RECENT, "no more, though all have yet to hear more");
        drop((slow, behind));
        hear(&mut quick, 9..9 + events).await;
        assert_eq!(at_hand(&feed), RECENT, "one came later, and has not heard them");
        drop(late);
        assert_eq!(at_hand(&feed), 0);
        drop(quick);
        tell(9 + events..10 + events).await;
        assert_eq!(at_hand(&feed), 0, "nobody listens any more");
    }

    #[tokio::test]
    async fn stream_ends_at_interrupted_state() {
        let storage: Arc<dyn TaskLog> = Arc::new(MemoryStorage::default());
        let (feed, task) = told(&storage, 5, TaskState::InputRequired).await;
        let subscription = feed.listener().subscribe(task.id, task.context_id, storage, 0);
        assert_eq!(heard(subscription).await, [1, 2, 3, 4, 5], "though the feed is still open");
    }

    #[tokio::test]
    async fn stream_end_setting_decides_where_stream_ends() {
        for (end, asks, events) in [
            (EndsAt::Interrupted, TaskState::AuthRequired, 5),
            (EndsAt::InputRequired, TaskState::InputRequired, 5),
            (EndsAt::InputRequired, TaskState::AuthRequired, 7),
            (EndsAt::Over, TaskState::InputRequired, 7),
            (EndsAt::Over, TaskState::AuthRequired, 7),
        ] {
            let storage: Arc<dyn TaskLog> = Arc::new(MemoryStorage::default());
            let (feed, task) = told(&storage, 5, asks).await;
            let (id, context) = (task.id.clone(), task.context_id.clone());
            let heard_of =
                feed.listener().subscribe(id, context, Arc::clone(&storage), 0).until(end);
            let goes_on = async {
                for (seq, state) in [(6, TaskState::Working), (7, TaskState::Completed)] {
                    let (task, context) = (task.id.clone(), task.context_id.clone());
                    let event = update(state);
                    feed.publish([SequencedEvent { task, context, seq, event }]);
                }
            };
            let (heard, ()) = tokio::join!(heard(heard_of), goes_on);
            assert_eq!(heard.len(), events, "{end:?} at {asks:?}: {heard:?}");
        }
    }

    #[tokio::test]
    async fn dropped_feed_ends_its_streams() {
        let storage: Arc<dyn TaskLog> = Arc::new(MemoryStorage::default());
        let (feed, task) = told(&storage, 5, TaskState::Working).await;
        let subscription = feed.listener().subscribe(task.id, task.context_id, storage, 3);
        drop(feed);
        assert_eq!(heard(subscription).await, [4, 5]);
    }
}
