//! What a stream tells, in its client's dialect and without the envelope of what it travels on.

use a2a_hub_hub::ReplyStream;
use a2a_hub_protocol::{
    dialect::{Dialect, HeardEvent},
    error::{A2aError, ErrorKind},
    event::{SequencedEvent, StatusUpdate, TaskEvent},
    hub::event::HubEvent,
    id::TaskId,
    member,
    task::{TaskState, TaskStatus},
};
use serde_json::{Value, json};
use std::{collections::VecDeque, fmt::Display, sync::Arc, time::Duration};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout_at},
};

/// How long a stream waits to see whether its agent answers with a message alone. Official A2A wants a stream to be one
/// message or a task, and which of them it is shows only in what the agent does.
const UNDECIDED: Duration = Duration::from_millis(250);

/// A stream of what happens. Asking for the next item may be given up and done again.
pub(super) struct TaskStream {
    dialect: Dialect,
    heard: ReplyStream,
    /// Until when it may still turn out to be a message; none once that is decided.
    undecided: Option<Instant>,
    /// What was heard before it was decided.
    held: VecDeque<Arc<HeardEvent>>,
    /// Since when the task is where it is.
    since: String,
    over: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

/// One thing that is told.
pub(super) struct Item {
    /// The number of the event it tells, to go on after.
    pub(super) number: Option<u64>,
    /// What is told, or why there is no more.
    pub(super) told: Result<Told, A2aError>,
}

/// What a stream tells, before it is spelled.
pub(super) enum Told {
    /// What happened to a task; never a client's own words.
    Event(Arc<HeardEvent>),
    /// What happened in the hub.
    Value(Value),
}

impl TaskStream {
    /// Tells what is `heard`; `is_new` if that is the answer to a message that began a task.
    pub(super) fn new(
        dialect: Dialect,
        heard: ReplyStream,
        is_new: bool,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let may_be_message = is_new && dialect != Dialect::Hub;
        Self {
            dialect,
            heard,
            undecided: may_be_message.then(|| Instant::now() + UNDECIDED),
            held: VecDeque::new(),
            since: String::new(),
            over: false,
            _permit: permit,
        }
    }

    /// What is listened to.
    pub(super) fn heard(&self) -> &ReplyStream {
        &self.heard
    }

    /// The next item; none at the end.
    pub(super) async fn next(&mut self) -> Option<Item> {
        if self.over {
            return None;
        }
        match &mut self.heard {
            ReplyStream::Task(_) => {}
            ReplyStream::Hub(heard) => {
                let told = match heard.next().await {
                    Ok(event) => hub_event(&event),
                    // Told on every transport: there is more, and the client is to ask anew.
                    Err(end) => {
                        self.over = true;
                        json!({ "kind": "stream-end", "reason": end, "retryable": true })
                    }
                };
                return Some(Item { number: None, told: Ok(Told::Value(told)) });
            }
        }
        loop {
            match self.next_event().await? {
                Ok(event) => {
                    // What the client itself said, it need not hear.
                    if !matches!(event.event, TaskEvent::Input(_)) {
                        let number = Some(event.seq);
                        let told = Ok(Told::Event(self.official(event)));
                        return Some(Item { number, told });
                    }
                }
                Err(why) => return Some(Item { number: None, told: Err(why) }),
            }
        }
    }

    /// The next event, once it is decided what this is a stream of.
    async fn next_event(&mut self) -> Option<Result<Arc<HeardEvent>, A2aError>> {
        let ReplyStream::Task(heard) = &mut self.heard else { return None };
        while let Some(until) = self.undecided {
            match timeout_at(until, heard.next()).await {
                Ok(Some(Ok(event))) => {
                    if let TaskEvent::Reply(_) = event.event {
                        self.undecided = None;
                        self.over = true;
                        return Some(Ok(event));
                    }
                    if !is_quiet(&event.event) {
                        self.undecided = None;
                    }
                    self.held.push_back(event);
                }
                Ok(Some(Err(why))) => {
                    self.undecided = None;
                    self.held.clear();
                    return Some(Err(broken(heard.task(), &why)));
                }
                Ok(None) | Err(_) => self.undecided = None,
            }
        }
        match self.held.pop_front() {
            Some(event) => Some(Ok(event)),
            None => Some(heard.next().await?.map_err(|why| broken(heard.task(), &why))),
        }
    }

    /// The event as official A2A has it: what began as a task ends as one, with the agent's message as its last word.
    fn official(&mut self, event: Arc<HeardEvent>) -> Arc<HeardEvent> {
        match &event.event {
            TaskEvent::Created(created) => self.since.clone_from(&created.task.status.timestamp),
            TaskEvent::Status(update) => self.since.clone_from(&update.status.timestamp),
            TaskEvent::Reply(message) if self.dialect != Dialect::Hub && !self.over => {
                let (message, timestamp) = (Some(message.clone()), self.since.clone());
                let status = TaskStatus { state: TaskState::Completed, message, timestamp };
                let last = TaskEvent::Status(StatusUpdate { status, metadata: None });
                return Arc::new(HeardEvent::new(SequencedEvent {
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

/// Whether an event leaves it open what the answer will be.
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
    let mut told = json!(event);
    member::set(&mut told, "kind", "hub-event");
    told
}

fn broken(task: &TaskId, why: &impl Display) -> A2aError {
    tracing::error!(%task, %why, "a stream broke");
    let text = "the stream broke; ask for the task to learn what became of it";
    A2aError::new(ErrorKind::Internal, text)
}
