//! What is kept of a run that is recorded, and what a task's log tells of it.

use a2a_hub_agents::AgentVersion;
use a2a_hub_core::facts;
use a2a_hub_protocol::{
    client::ClientCapabilities,
    event::TaskEvent,
    message::{Message, Metadata, Role},
    question::{QUESTION, Question as Asked},
};
use a2a_hub_runtime::{Work, port::tasks::Emitted};
use a2a_hub_store::{StorageError, TaskStore};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, VecDeque};

/// How many events of a log are read at once.
const PAGE: usize = 1_000;

/// What a journal begins with: all that the run was given.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Began {
    /// The last event of the task's log by then.
    pub(super) seq: u64,
    /// By what the run is known from those before it on the task; none for the first, and in journals of earlier hubs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<u64>,
    pub(super) at_ms: u64,
    pub(super) message: Message,
    pub(super) history: Vec<Message>,
    pub(super) metadata: Option<Metadata>,
    pub(super) directory: Option<String>,
    pub(super) client: ClientCapabilities,
    pub(super) live: bool,
    /// The component that is at work, which no other can go on for; none in journals of earlier hubs.
    #[serde(default)]
    pub(super) agent: Option<AgentVersion>,
    pub(super) settings: BTreeMap<String, String>,
}

/// A run that is recorded, as its task's actor has it.
pub(super) struct RecordedRun {
    /// How many entries there are.
    pub(super) entries: u64,
}

/// What a task's log tells of the run that is at work on it.
#[derive(Default)]
pub(super) struct Told {
    /// What its agent has told.
    pub(super) emitted: Vec<Emitted>,
    /// What its client has answered.
    pub(super) answers: VecDeque<(Asked, Message)>,
    /// What is asked, and not answered.
    open: Option<Asked>,
    /// Whether the run is over, and the next has not begun.
    pub(super) is_over: bool,
}

impl Told {
    fn follow(&mut self, event: TaskEvent) {
        match event {
            TaskEvent::Artifact(update) => self.emitted.push(Emitted::Artifact {
                artifact: update.artifact,
                append: update.append,
                last_chunk: update.last_chunk,
            }),
            TaskEvent::Status(update) => {
                let state = update.status.state;
                let facts = update.metadata.as_ref();
                self.is_over |= facts.is_some_and(|facts| facts.contains_key(facts::UNHEARD));
                if state.is_interrupted() {
                    self.open = Asked::of(facts).filter(|_| update.status.message.is_some());
                    return;
                }
                if facts.is_some_and(|facts| facts.contains_key(QUESTION)) {
                    self.open = None;
                }
                let metadata = update.metadata.and_then(facts::of_agent).filter(is_agents);
                let message = update.status.message;
                if message.is_some() || metadata.is_some() {
                    self.emitted.push(Emitted::Working { message, metadata });
                }
            }
            TaskEvent::Input(message) if message.role == Role::User => {
                self.answers.extend(self.open.take().map(|asked| (asked, message)));
            }
            TaskEvent::Input(_) | TaskEvent::Created(_) | TaskEvent::Reply(_) => {}
        }
    }
}

/// Whether an agent says so. What the hub says takes facts back: they are null.
fn is_agents(facts: &Metadata) -> bool {
    facts.values().any(|fact| !fact.is_null())
}

/// What a task's log tells after that event of the run that is at work on it.
pub(super) async fn told(
    storage: &dyn TaskStore,
    work: &Work,
    after: u64,
) -> Result<Told, StorageError> {
    let (mut told, mut seq) = (Told::default(), after);
    loop {
        let events = storage.events(&work.task.id, seq, PAGE).await?;
        let is_last = events.len() < PAGE;
        for event in events {
            seq = event.seq;
            told.follow(event.event);
        }
        if is_last {
            return Ok(told);
        }
    }
}

/// An entry of a journal.
pub(super) fn read<T: DeserializeOwned>(work: &Work, entry: &str) -> Result<T, StorageError> {
    serde_json::from_str(entry).map_err(|why| StorageError::Corrupt {
        what: format!("the journal of task {}", work.task.id),
        why: why.to_string(),
    })
}

/// An entry of a journal, to be kept.
pub(super) fn json(it: &impl Serialize) -> Result<String, StorageError> {
    serde_json::to_string(it)
        .map_err(|why| StorageError::Unavailable(format!("write a journal as JSON: {why}")))
}
