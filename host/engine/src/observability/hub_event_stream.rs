//! Stream of hub events for one subscriber, as far as it may see them.
//!
//! A resumable stream takes the changes of tasks from the store, in their order, and everything
//! else from the event bus. The bus reports a change after it is stored: each report has the stream
//! read the store. So a stream neither misses a change nor sends it twice, also if the cursor is
//! from before a restart.

use crate::observability::hub_events::Listener;
use a2a_hub_clock as clock;
use a2a_hub_core::text::plain_text::line;
use a2a_hub_protocol::{
    error::A2aError,
    hub::event::{HubEvent, HubEventKind, StreamEnd},
    id::TenantId,
};
use a2a_hub_store::{
    ChangeCursor, ChangeLog, ChangePage, ChangesAfter, CursorLoss, MAX_CHANGES, StorageError,
    TaskChange,
};
use futures::future::BoxFuture;
use serde_json::json;
use std::{collections::VecDeque, fmt, future::pending, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};

/// Changes that are read together.
const PAGE: usize = 256;

/// Pause after the store could not be read.
const RETRY: Duration = Duration::from_secs(1);

/// True for an event that a subscriber may see.
pub(crate) type EventFilter = Arc<dyn Fn(Arc<HubEvent>) -> BoxFuture<'static, bool> + Send + Sync>;

/// Reason why a stream cannot resume.
#[derive(Debug)]
pub(crate) enum ResumeFailure {
    /// The store cannot be read.
    Storage(StorageError),
    /// The cursor does not count, with the way out.
    Refused(A2aError),
}

impl From<StorageError> for ResumeFailure {
    fn from(why: StorageError) -> Self {
        Self::Storage(why)
    }
}

impl From<A2aError> for ResumeFailure {
    fn from(why: A2aError) -> Self {
        Self::Refused(why)
    }
}

/// Subscription to the events of the hub. `next` is cancel-safe.
pub struct HubEventStream {
    live: Listener,
    filter: Option<EventFilter>,
    /// Events that were received and not filtered yet.
    received: VecDeque<Arc<HubEvent>>,
    /// Reader of the changes of tasks; none for a stream without cursors.
    changes: Option<ChangeReader>,
}

impl HubEventStream {
    /// Creates a stream of events from now on, without cursors.
    pub(crate) fn live(live: Listener, filter: Option<EventFilter>) -> Self {
        Self { live, filter, received: VecDeque::new(), changes: None }
    }

    /// Adds cursors, and begins with the changes of the tenant's tasks after the cursor `after`.
    ///
    /// # Errors
    ///
    /// If the store cannot be read, if `after` is no cursor, or if some changes after it cannot be
    /// listed any more.
    pub(crate) async fn resumable(
        self,
        log: Arc<dyn ChangeLog>,
        tenant: TenantId,
        after: Option<&str>,
    ) -> Result<Self, ResumeFailure> {
        let latest = log.latest_change().await?;
        let (position, lags) = match after {
            None => (StreamCursor { changes: latest, partial: None }, false),
            Some(text) => {
                let position = StreamCursor::parse(text).ok_or_else(|| no_cursor(text, &latest))?;
                let found = log.changes(&position.changes, Some(&tenant), 1).await?;
                if let ChangesAfter::Lost(loss) = found {
                    return Err(lost(loss, &latest).into());
                }
                (position, true)
            }
        };
        let changes = ChangeReader {
            log,
            tenant,
            position,
            lags,
            retry_at: None,
            is_subscribed: false,
            seq: 0,
        };
        Ok(Self { changes: Some(changes), ..self })
    }

    /// Next event, or the reason why the stream has ended.
    pub async fn next(&mut self) -> Result<Arc<HubEvent>, StreamEnd> {
        loop {
            if let Some(event) = self.received.front() {
                let passes = match &self.filter {
                    Some(filter) => filter(Arc::clone(event)).await,
                    None => true,
                };
                match self.received.pop_front() {
                    Some(event) if passes => return Ok(self.sent(event)),
                    Some(_) | None => continue,
                }
            }
            let Some(changes) = &mut self.changes else {
                self.received.push_back(self.live.next().await?);
                continue;
            };
            if changes.is_due() {
                self.received.extend(changes.read().await?);
                continue;
            }
            let event = tokio::select! {
                event = self.live.next() => event?,
                () = changes.wait() => continue,
            };
            changes.seq = event.seq;
            changes.is_subscribed = true;
            if event.what.is_task_change() {
                changes.lags = true;
            } else {
                self.received.push_back(event);
            }
        }
    }

    /// Adds a cursor to an event that has none: that after all changes that were read. Such an
    /// event is received once their events are sent, or hidden from the subscriber.
    fn sent(&self, event: Arc<HubEvent>) -> Arc<HubEvent> {
        let Some(changes) = &self.changes else { return event };
        if event.cursor.is_some() {
            return event;
        }
        let cursor = Some(changes.position.to_string());
        Arc::new(HubEvent { cursor, ..Arc::unwrap_or_clone(event) })
    }
}

/// Position in a stream: after these changes, and after the first events of the next one.
#[derive(Debug, PartialEq, Eq)]
struct StreamCursor {
    changes: ChangeCursor,
    /// Number of the change of which some events were sent, and the number of these events. The
    /// change may be gone with its task, so that another one is the next.
    partial: Option<(u64, usize)>,
}

impl StreamCursor {
    /// Separator between the number of a change and the number of its events.
    const PART: char = '+';

    fn parse(text: &str) -> Option<Self> {
        let Some((change, part)) = text.split_once(Self::PART) else {
            return Some(Self { changes: text.parse().ok()?, partial: None });
        };
        let (changes, number) = change.parse::<ChangeCursor>().ok()?.before()?;
        let part = part.parse().ok().filter(|part| *part > 0)?;
        Some(Self { changes, partial: Some((number, part)) })
    }
}

impl fmt::Display for StreamCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.partial {
            None => self.changes.fmt(f),
            Some((number, part)) => {
                write!(f, "{}{}{part}", self.changes.at(number), Self::PART)
            }
        }
    }
}

/// Reads the changes of tasks for one stream.
struct ChangeReader {
    log: Arc<dyn ChangeLog>,
    tenant: TenantId,
    /// Position after the changes that were read.
    position: StreamCursor,
    /// True if the store may have changes that were not read.
    lags: bool,
    /// Time of the next attempt, after the store could not be read.
    retry_at: Option<Instant>,
    /// True once the stream has begun with its first event.
    is_subscribed: bool,
    /// Number of the latest event on the bus.
    seq: u64,
}

impl ChangeReader {
    /// True if changes are to be read now.
    fn is_due(&self) -> bool {
        self.lags && self.is_subscribed && self.retry_at.is_none_or(|time| time <= Instant::now())
    }

    /// Waits until changes are to be read again after a failure.
    async fn wait(&self) {
        match self.retry_at.filter(|_| self.lags) {
            Some(time) => sleep_until(time).await,
            None => pending().await,
        }
    }

    /// Events of the next changes.
    async fn read(&mut self) -> Result<Vec<Arc<HubEvent>>, StreamEnd> {
        let StreamCursor { changes: after, partial } = &self.position;
        let page = match self.log.changes(after, Some(&self.tenant), PAGE).await {
            Ok(ChangesAfter::Page(page)) => page,
            // Only for a stream that nobody reads while many changes happen.
            Ok(ChangesAfter::Lost(_)) => return Err(StreamEnd::TooSlow),
            Err(why) => {
                self.fail(&why);
                return Ok(Vec::new());
            }
        };
        let ChangePage { changes, next, is_last } = page;
        let mut events = Vec::new();
        for change in changes {
            let sent = partial.filter(|(number, _)| *number == change.number);
            let of_change = self.events(change, &next);
            events.extend(of_change.into_iter().skip(sent.map_or(0, |(_, part)| part)));
        }
        self.position = StreamCursor { changes: next, partial: None };
        self.lags = !is_last;
        self.retry_at = None;
        Ok(events)
    }

    fn fail(&mut self, why: &StorageError) {
        tracing::warn!(%why, "cannot read the changes of tasks for a stream of hub events");
        self.retry_at = Some(Instant::now() + RETRY);
    }

    /// Events of one change, each with its cursor.
    fn events(&self, change: TaskChange, read: &ChangeCursor) -> Vec<Arc<HubEvent>> {
        let timestamp = clock::at_ms(change.at_ms).unwrap_or_else(clock::now);
        let TaskChange { number, task, context, agent, moves, .. } = change;
        let created = moves.is_new.then(|| HubEventKind::TaskCreated {
            task_id: task.clone(),
            context_id: context.clone(),
            agent_id: agent.clone(),
        });
        let states = moves.states.into_iter().map(|state| HubEventKind::TaskState {
            task_id: task.clone(),
            context_id: context.clone(),
            agent_id: agent.clone(),
            state,
        });
        let kinds: Vec<_> = created.into_iter().chain(states).collect();
        let count = kinds.len();
        let event = |(part, what)| {
            let partial = (part < count).then_some((number, part));
            let cursor = StreamCursor { changes: read.at(number), partial }.to_string();
            let (seq, timestamp) = (self.seq, timestamp.clone());
            Arc::new(HubEvent { seq, cursor: Some(cursor), timestamp, what })
        };
        (1..).zip(kinds).map(event).collect()
    }
}

/// Way out for a client whose cursor does not count.
const RESYNC: &str = "subscribe without `after`, then read the current state with `hub/agents/list` and \
                      `hub/tasks/list`";

fn no_cursor(text: &str, latest: &ChangeCursor) -> A2aError {
    let text = line(text, 100);
    resync(&format!("`{text}` is no cursor: one is the `cursor` of an earlier event"), latest)
}

fn lost(loss: CursorLoss, latest: &ChangeCursor) -> A2aError {
    let why = match loss {
        CursorLoss::Dropped => format!(
            "the cursor is too old: the hub keeps the latest {MAX_CHANGES} changes, and has dropped some \
             that came after it"
        ),
        CursorLoss::Foreign => {
            "the cursor is of another store, or of one whose later part is gone, as after \
                                a restored backup"
                .to_owned()
        }
    };
    resync(&why, latest)
}

fn resync(why: &str, latest: &ChangeCursor) -> A2aError {
    let data = json!({ "field": "after", "resync": true, "latest": latest.to_string() });
    A2aError::invalid("after", format!("{why}; {RESYNC}")).with(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observability::hub_events::Events;
    use a2a_hub_protocol::{
        event::{Created, StatusUpdate, TaskEvent},
        id::{AgentId, ContextId, TaskId},
        message::{Message, Role},
        task::{Task, TaskState, TaskStatus},
    };
    use a2a_hub_store::{TaskLog as _, memory::MemoryStorage};

    fn left() -> HubEventKind {
        HubEventKind::AgentLeft { agent_id: AgentId::parse("echo").unwrap() }
    }

    fn status(state: TaskState) -> TaskStatus {
        TaskStatus { state, message: None, timestamp: clock::now() }
    }

    fn update(state: TaskState) -> Arc<TaskEvent> {
        Arc::new(TaskEvent::Status(StatusUpdate { status: status(state), metadata: None }))
    }

    /// A store and the bus of a hub; tasks are stored, and then published, as actors do.
    #[derive(Default)]
    struct ChangingHub {
        storage: Arc<MemoryStorage>,
        events: Events,
    }

    impl ChangingHub {
        /// Stores a task that came to these states, without publishing it.
        async fn store(&self, states: &[TaskState]) -> TaskId {
            let task = Task {
                id: TaskId::fresh(),
                context_id: ContextId::fresh(),
                status: status(TaskState::Submitted),
                artifacts: Vec::new(),
                history: vec![Message::text(Role::User, "hi")],
                metadata: None,
            };
            let id = task.id.clone();
            let created = Created::new(AgentId::parse("echo").unwrap(), task);
            let created = Arc::new(TaskEvent::Created(Box::new(created)));
            let log = [created].into_iter().chain(states.iter().map(|state| update(*state)));
            self.storage.append(&id, 0, log.collect()).await.unwrap();
            id
        }

        fn publish(&self, task: &TaskId) {
            self.events.publish(HubEventKind::TaskCreated {
                task_id: task.clone(),
                context_id: ContextId::new("c"),
                agent_id: AgentId::parse("echo").unwrap(),
            });
        }

        async fn watch(&self, after: Option<&str>) -> Result<HubEventStream, ResumeFailure> {
            let live = HubEventStream::live(self.events.subscribe(&TenantId::default()), None);
            let log = Arc::<MemoryStorage>::clone(&self.storage);
            live.resumable(log, TenantId::default(), after).await
        }
    }

    /// Events that are there by now: task and state, or the name of the event.
    async fn next(stream: &mut HubEventStream, count: usize) -> Vec<(String, String)> {
        let mut seen = Vec::new();
        for _ in 0..count {
            let event = tokio::time::timeout(RETRY * 3, stream.next()).await.unwrap().unwrap();
            let what = if let HubEventKind::TaskCreated { task_id, .. } = &event.what {
                format!("{task_id} created")
            } else if let HubEventKind::TaskState { task_id, state, .. } = &event.what {
                format!("{task_id} {}", state.name())
            } else {
                let is_first = event.what == HubEventKind::Subscribed;
                if is_first { "subscribed" } else { "other" }.to_owned()
            };
            seen.push((what, event.cursor.clone().unwrap()));
        }
        assert!(futures::poll!(Box::pin(stream.next())).is_pending(), "{seen:?}");
        seen
    }

    /// From each event on, a stream continues with exactly the events after it.
    #[tokio::test(start_paused = true)]
    async fn stream_resumes_after_each_event() {
        let hub = ChangingHub::default();
        let mut stream = hub.watch(None).await.unwrap();
        let one = hub.store(&[TaskState::Working, TaskState::Completed]).await;
        let two = hub.store(&[]).await;
        // The bus reports in another order.
        hub.publish(&two);
        hub.publish(&one);
        hub.events.publish(left());
        hub.storage.append(&two, 1, vec![update(TaskState::Working)]).await.unwrap();
        hub.publish(&two);
        let seen = next(&mut stream, 7).await;
        let what: Vec<_> = seen.iter().map(|(what, _)| what.clone()).collect();
        let [first, second] = [&one, &two];
        let wanted = [
            "subscribed".to_owned(),
            format!("{first} created"),
            format!("{first} working"),
            format!("{first} completed"),
            format!("{second} created"),
            format!("{second} working"),
            "other".to_owned(),
        ];
        assert_eq!(what, wanted);
        for (at, (_, cursor)) in seen.iter().enumerate() {
            let mut resumed = hub.watch(Some(cursor)).await.unwrap();
            let later: Vec<_> = what[at + 1..].iter().filter(|it| *it != "other").collect();
            let again = next(&mut resumed, later.len() + 1).await;
            assert_eq!(again[0], ("subscribed".to_owned(), cursor.clone()));
            assert!(again[1..].iter().map(|(what, _)| what).eq(later), "{cursor}: {again:?}");
        }
    }

    /// Otherwise a client that sees few of many tasks resumes after changes that are long gone.
    #[tokio::test(start_paused = true)]
    async fn changes_without_events_move_cursor() {
        let hub = ChangingHub::default();
        let id = hub.store(&[]).await;
        let mut stream = hub.watch(None).await.unwrap();
        let input = TaskEvent::Input(Message::text(Role::User, "more"));
        hub.storage.append(&id, 1, vec![Arc::new(input)]).await.unwrap();
        hub.publish(&id);
        hub.events.publish(left());
        let seen = next(&mut stream, 2).await;
        let latest = hub.storage.latest_change().await.unwrap().to_string();
        assert_eq!(seen[1], ("other".to_owned(), latest));
    }

    /// A task that is deleted after some of its events were sent hides no event of another task.
    #[tokio::test(start_paused = true)]
    async fn deleted_task_hides_no_later_event() {
        let hub = ChangingHub::default();
        let mut stream = hub.watch(None).await.unwrap();
        let gone = hub.store(&[TaskState::Working, TaskState::Completed]).await;
        hub.publish(&gone);
        let seen = next(&mut stream, 4).await;
        let stays = hub.store(&[TaskState::Working]).await;
        assert_eq!(hub.storage.forget_tasks(vec![gone]).await, Ok(1));
        for (_, cursor) in &seen {
            let mut resumed = hub.watch(Some(cursor)).await.unwrap();
            let again = next(&mut resumed, 3).await;
            assert_eq!(again[1].0, format!("{stays} created"), "{cursor}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cursor_of_another_store_is_refused_with_way_out() {
        let (hub, other) = (ChangingHub::default(), ChangingHub::default());
        other.store(&[]).await;
        let foreign = other.storage.latest_change().await.unwrap().to_string();
        let ahead = hub.storage.latest_change().await.unwrap().to_string() + "9";
        for after in ["", "7", "x-7", "a-7+0", "a-0+1", "a-7+", "a\u{1b}[2J-7", &foreign, &ahead] {
            let Err(ResumeFailure::Refused(refused)) = hub.watch(Some(after)).await else {
                panic!("{after}")
            };
            assert!(refused.message.contains("subscribe without `after`"), "{refused:?}");
            assert!(!refused.message.contains('\u{1b}'), "{refused:?}");
            assert_eq!(refused.details.as_ref().unwrap()["resync"], true, "{refused:?}");
        }
    }

    /// Many changes are read in pages, and a change without a state is no event.
    #[tokio::test(start_paused = true)]
    async fn long_gap_is_read_in_pages() {
        let hub = ChangingHub::default();
        let cursor = hub.storage.latest_change().await.unwrap().to_string();
        let id = hub.store(&[TaskState::Working]).await;
        for seq in 2..2 + 3 * PAGE as u64 {
            let input = TaskEvent::Input(Message::text(Role::User, "more"));
            hub.storage.append(&id, seq, vec![Arc::new(input)]).await.unwrap();
        }
        let last = hub.store(&[]).await;
        let mut resumed = hub.watch(Some(&cursor)).await.unwrap();
        let seen = next(&mut resumed, 4).await;
        assert_eq!(seen[3].0, format!("{last} created"));
    }

    #[tokio::test]
    async fn filter_hides_events_and_loses_none() {
        let events = Events::default();
        let is_odd: EventFilter = Arc::new(|event| {
            Box::pin(async move {
                tokio::task::yield_now().await;
                event.seq % 2 == 1 || event.what == HubEventKind::Subscribed
            })
        });
        let live = events.subscribe(&TenantId::default());
        let mut listener = HubEventStream::live(live, Some(is_odd));
        assert_eq!(listener.next().await.unwrap().what, HubEventKind::Subscribed);
        (0..4).for_each(|_| events.publish(left()));
        // The dropped future has taken the first event from the channel.
        assert!(futures::poll!(Box::pin(listener.next())).is_pending());
        assert_eq!(listener.next().await.unwrap().seq, 1);
        assert_eq!(listener.next().await.unwrap().seq, 3);
    }
}
