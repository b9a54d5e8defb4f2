//! Journal entries of a recorded run, and the reader of its part of the task's log.

use a2a_hub_agents::AgentVersion;
use a2a_hub_protocol::{
    client::ClientCapabilities,
    message::{Message, Metadata},
};
use a2a_hub_runtime::{RunFacts, Work};
use a2a_hub_store::{StorageError, TaskStore};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;

/// Number of events of a log that are read at once.
const PAGE: usize = 1_000;

/// First entry of a journal: all inputs of the run.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::tasks) struct Began {
    /// Last event of the task's log at the time.
    pub(in crate::tasks) seq: u64,
    /// Number that distinguishes the run from earlier runs on the task; none for the first, and in
    /// journals of earlier hubs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::tasks) run: Option<u64>,
    pub(in crate::tasks) at_ms: u64,
    pub(in crate::tasks) message: Message,
    pub(in crate::tasks) history: Vec<Message>,
    pub(in crate::tasks) metadata: Option<Metadata>,
    pub(in crate::tasks) directory: Option<String>,
    pub(in crate::tasks) client: ClientCapabilities,
    pub(in crate::tasks) live: bool,
    /// Component at work; no other component can replay the run. None in journals of earlier hubs.
    #[serde(default)]
    pub(in crate::tasks) agent: Option<AgentVersion>,
    pub(in crate::tasks) settings: BTreeMap<String, String>,
}

/// A recorded run, as held by its task's actor.
pub(in crate::tasks) struct RecordedRun {
    /// Number of journal entries.
    pub(in crate::tasks) entries: u64,
}

/// Reads the facts about the current run from the task's log, after that event.
pub(in crate::tasks) async fn run_facts(
    storage: &dyn TaskStore,
    work: &Work,
    after: u64,
) -> Result<RunFacts, StorageError> {
    let (mut facts, mut seq) = (RunFacts::default(), after);
    loop {
        let events = storage.events(&work.task.id, seq, PAGE).await?;
        let is_last = events.len() < PAGE;
        for event in events {
            seq = event.seq;
            facts.follow(event.event);
        }
        if is_last {
            return Ok(facts);
        }
    }
}

/// Parses a journal entry.
pub(in crate::tasks) fn read<T: DeserializeOwned>(
    work: &Work,
    entry: &str,
) -> Result<T, StorageError> {
    serde_json::from_str(entry).map_err(|why| StorageError::Corrupt {
        subject: format!("the journal of task {}", work.task.id),
        why: why.to_string(),
    })
}

/// Serializes a journal entry.
pub(in crate::tasks) fn json(it: &impl Serialize) -> Result<String, StorageError> {
    serde_json::to_string(it)
        .map_err(|why| StorageError::Unavailable(format!("write a journal as JSON: {why}")))
}
