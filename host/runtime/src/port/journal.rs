//! Where what an agent is answered is recorded before it hears it, so that it can be run again (`resume = "replay"`).

use super::{
    delegate::{ChildTask, Update},
    tasks::{Answer, Emitted},
};
use crate::failure::Failure;
use a2a_hub_core::replay::Recorded;
use a2a_hub_protocol::id::TaskId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Something that an agent was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Heard {
    /// A call of another agent: the child.
    Called(Result<TaskId, Failure>),
    /// What happened to a child next.
    Update(Result<Update, Failure>),
    /// Whether a child took an answer.
    Answered(Result<(), Failure>),
    /// The children.
    Children(Result<Vec<ChildTask>, Failure>),
    /// What the client answered.
    Reply(Result<Answer, Failure>),
    /// Which of several things had something to tell.
    Ready(Result<Vec<u32>, Failure>),
}

impl Heard {
    /// Why the agent was refused what it asked, if it was.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Called(heard) => heard.as_ref().err(),
            Self::Update(heard) => heard.as_ref().err(),
            Self::Answered(heard) => heard.as_ref().err(),
            Self::Children(heard) => heard.as_ref().err(),
            Self::Reply(heard) => heard.as_ref().err(),
            Self::Ready(heard) => heard.as_ref().err(),
        }
    }
}

/// A run of an agent that is recorded.
#[derive(Clone, Debug)]
pub struct Journal {
    /// When it began: milliseconds since the Unix epoch.
    pub began_ms: u64,
    /// By what it is known from the other runs on its task; none for the first.
    pub run: Option<u64>,
    /// What its random numbers are made of.
    pub seed: u64,
    /// What the operator had set for the agent when the run began.
    pub settings: BTreeMap<String, String>,
    /// What it has heard; nothing if it begins now.
    pub heard: Vec<Recorded<Heard>>,
    /// What it has told, as the task's log has it.
    pub told: Vec<Emitted>,
}

/// The hub's side: keeps the journal.
#[async_trait::async_trait]
pub trait JournalPort: Send + Sync {
    /// Keeps what the agent is about to hear, durably, behind all that it has told by now.
    async fn record(&self, heard: Recorded<Heard>) -> Result<(), Failure>;
}
