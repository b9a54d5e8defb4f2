//! Items of a stream for one client, before they are encoded and wrapped.

use crate::stream_quota::StreamPermit;
use a2a_hub_engine::ReplyStream;
use a2a_hub_engine::conversations::generation;
use a2a_hub_protocol::{
    dialect::{Dialect, EncodedEvent},
    error::{A2aError, ErrorKind},
    event::{SequencedEvent, StatusUpdate, TaskEvent},
    hub::event::HubEvent,
    id::TaskId,
    member,
    task::{TaskState, TaskStatus},
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    fmt::{self, Display},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// Wait for an agent that may answer with a direct message, as its manifest says. In official A2A a
/// stream is either one message or a task, and the first events do not tell which one it will be.
const UNDECIDED: Duration = Duration::from_millis(250);

/// A stream of events for one client. `next` is cancel-safe.
pub struct TaskStream {
    dialect: Dialect,
    events: ReplyStream,
    /// Deadline for the decision between message and task; `None` after the decision.
    undecided: Option<Instant>,
    /// Events received before the decision.
    buffered: VecDeque<Arc<EncodedEvent>>,
    /// Time of the task's last status change.
    since: String,
    over: bool,
    /// True if each event has its generation.
    generations: bool,
    _permit: Option<StreamPermit>,
}

/// Id of an event, after which a client can resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventId {
    /// Number in the log of the stream's task.
    Number(u64),
    /// Cursor in the stream of the hub.
    Cursor(String),
}

impl Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Cursor(cursor) => cursor.fmt(f),
        }
    }
}

/// An item of a stream.
pub struct Item {
    /// Id of the event.
    pub id: Option<EventId>,
    /// Content of the item, or the error that ends the stream.
    pub content: Result<ItemContent, A2aError>,
}

/// Content of an item before it is encoded.
pub enum ItemContent {
    /// Event of a task, but never the client's own message.
    Event(Arc<EncodedEvent>),
    /// Event of the hub.
    Value(Value),
}

impl TaskStream {
    /// Creates a stream of the events in `events`. Only the answer to a message that created a task
    /// may be a direct message.
    pub fn new(dialect: Dialect, events: ReplyStream, permit: Option<StreamPermit>) -> Self {
        let may_be_message = match &events {
            ReplyStream::Task(events) => events.may_be_message() && dialect != Dialect::Hub,
            ReplyStream::Hub(_) => false,
        };
        Self {
            dialect,
            events,
            undecided: may_be_message.then(|| Instant::now() + UNDECIDED),
            buffered: VecDeque::new(),
            since: String::new(),
            over: false,
            generations: false,
            _permit: permit,
        }
    }

    /// Adds its generation to each event, or not.
    #[must_use]
    pub(crate) fn with_generations(self, generations: bool) -> Self {
        Self { generations, ..self }
    }

    /// Underlying event stream.
    pub fn events(&self) -> &ReplyStream {
        &self.events
    }

    /// Next item; `None` at the end.
    pub async fn next(&mut self) -> Option<Item> {
        if self.over {
            return None;
        }
        match &mut self.events {
            ReplyStream::Task(_) => {}
            ReplyStream::Hub(events) => {
                let (mut id, event) = (None, events.next().await);
                let value = match event {
                    Ok(event) => {
                        id = event.cursor.clone().map(EventId::Cursor);
                        hub_event(&event)
                    }
                    // Sent on every transport: further events exist, and the client should
                    // subscribe again.
                    Err(end) => {
                        self.over = true;
                        json!({ "kind": "stream-end", "reason": end, "retryable": true })
                    }
                };
                return Some(Item { id, content: Ok(ItemContent::Value(value)) });
            }
        }
        loop {
            match self.next_event().await? {
                Ok(event) => {
                    // Clients do not receive their own messages.
                    if !matches!(event.event, TaskEvent::Input(_)) {
                        let id = Some(EventId::Number(event.seq));
                        let mut event = self.official(event);
                        if self.generations {
                            event = Arc::new(EncodedEvent::new(generation::of_event(&event)));
                        }
                        let content = Ok(ItemContent::Event(event));
                        return Some(Item { id, content });
                    }
                }
                Err(why) => return Some(Item { id: None, content: Err(why) }),
            }
        }
    }

    /// Next event, after the decision between message and task.
    async fn next_event(&mut self) -> Option<Result<Arc<EncodedEvent>, A2aError>> {
        let ReplyStream::Task(events) = &mut self.events else { return None };
        while let Some(until) = self.undecided {
            match timeout_at(until, events.next()).await {
                Ok(Some(Ok(event))) => {
                    if let TaskEvent::Reply(_) = event.event {
                        self.undecided = None;
                        self.over = true;
                        return Some(Ok(event));
                    }
                    if !is_quiet(&event.event) {
                        self.undecided = None;
                    }
                    self.buffered.push_back(event);
                }
                Ok(Some(Err(why))) => {
                    self.undecided = None;
                    self.buffered.clear();
                    return Some(Err(broken(events.task(), &why)));
                }
                Ok(None) | Err(_) => self.undecided = None,
            }
        }
        match self.buffered.pop_front() {
            Some(event) => Some(Ok(event)),
            None => Some(events.next().await?.map_err(|why| broken(events.task(), &why))),
        }
    }

    /// Adapts an event to official A2A, where a stream that began with a task ends with one: the
    /// agent's message becomes its last status.
    fn official(&mut self, event: Arc<EncodedEvent>) -> Arc<EncodedEvent> {
        match &event.event {
            TaskEvent::Created(created) => self.since.clone_from(&created.task.status.timestamp),
            TaskEvent::Status(update) => self.since.clone_from(&update.status.timestamp),
            TaskEvent::Reply(message) if self.dialect != Dialect::Hub && !self.over => {
                let (message, timestamp) = (Some(message.clone()), self.since.clone());
                let status = TaskStatus { state: TaskState::Completed, message, timestamp };
                let last = TaskEvent::Status(StatusUpdate { status, metadata: None });
                return Arc::new(EncodedEvent::new(SequencedEvent {
                    task: event.task.clone(),
                    context: event.context.clone(),
                    seq: event.seq,
                    event: last,
                }));
            }
            TaskEvent::Reply(_) | TaskEvent::Artifact(_) | TaskEvent::Input(_) => {}
        }
        event
    }
}

/// True if the stream may still become a single message after this event.
fn is_quiet(event: &TaskEvent) -> bool {
    match event {
        TaskEvent::Created(created) => created.task.status.state == TaskState::Submitted,
        TaskEvent::Status(StatusUpdate { status, .. }) => {
            status.state == TaskState::Working && status.message.is_none()
        }
        TaskEvent::Artifact(_) | TaskEvent::Input(_) | TaskEvent::Reply(_) => false,
    }
}

fn hub_event(event: &HubEvent) -> Value {
    let mut value = json!(event);
    member::set(&mut value, "kind", "hub-event");
    value
}

fn broken(task: &TaskId, why: &impl Display) -> A2aError {
    tracing::error!(%task, %why, "task stream failed");
    let text = "the stream broke; ask for the task to learn what became of it";
    A2aError::new(ErrorKind::Internal, text)
}
