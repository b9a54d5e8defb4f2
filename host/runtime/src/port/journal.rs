//! Port for the journal of a run: answers to the agent are recorded before it receives them, so
//! that it can be replayed (`resume = "replay"`).

use super::{
    delegate::{ChildTask, Update},
    tasks::{ClientAnswer, Emitted},
};
use crate::failure::Failure;
use a2a_hub_core::task::replay::Recorded;
use a2a_hub_protocol::id::TaskId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An answer that an agent received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JournalAnswer {
    /// Result of a call of another agent: the child.
    Called(Result<TaskId, Failure>),
    /// Next update of a child.
    Update(Result<Update, Failure>),
    /// Result of answering a child.
    Answered(Result<(), Failure>),
    /// List of children.
    Children(Result<Vec<ChildTask>, Failure>),
    /// Message that the client sent to the task at work.
    Message(Result<ClientAnswer, Failure>),
    /// Answer of the client.
    Reply(Result<ClientAnswer, Failure>),
    /// Indexes of the ready ones among several sources.
    Ready(Result<Vec<u32>, Failure>),
}

impl JournalAnswer {
    /// Failure in the answer, if it is one.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Called(result) => result.as_ref().err(),
            Self::Update(result) => result.as_ref().err(),
            Self::Answered(result) => result.as_ref().err(),
            Self::Children(result) => result.as_ref().err(),
            Self::Message(result) | Self::Reply(result) => result.as_ref().err(),
            Self::Ready(result) => result.as_ref().err(),
        }
    }
}

/// Journal of a recorded run.
#[derive(Clone, Debug)]
pub struct Journal {
    /// Start time, in milliseconds since the Unix epoch.
    pub began_ms: u64,
    /// Number that distinguishes the run from others on its task; none for the first.
    pub run: Option<u64>,
    /// Random seed.
    pub seed: u64,
    /// Operator's settings for the agent when the run began.
    pub settings: BTreeMap<String, String>,
    /// Recorded answers; empty for a new run.
    pub answers: Vec<Recorded<JournalAnswer>>,
    /// Events that the agent emitted, read from the task's log.
    pub emitted: Vec<Emitted>,
}

/// Writer of the journal.
#[async_trait::async_trait]
pub trait JournalPort: Send + Sync {
    /// Stores the next answer durably, after all events emitted so far; the agent receives it
    /// afterwards.
    async fn record(&self, answer: Recorded<JournalAnswer>) -> Result<(), Failure>;
}
