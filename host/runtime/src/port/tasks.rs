//! Where an agent tells of its task, and asks its client.

use crate::failure::Failure;
use a2a_hub_protocol::{
    client::ClientCapabilities,
    message::{Message, Metadata},
    task::{Artifact, TaskState},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What an agent needs from its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// An answer from the client: the task is `input-required` meanwhile.
    Input,
    /// A login that only the client can make: the task is `auth-required` meanwhile.
    Auth,
}

impl Need {
    /// The state a task waits in.
    pub fn state(self) -> TaskState {
        match self {
            Self::Input => TaskState::InputRequired,
            Self::Auth => TaskState::AuthRequired,
        }
    }
}

/// Whom an agent waits for that does nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Its client, for the answer to a question that it has posed.
    Client,
    /// Other agents, for the tasks that it gave them.
    Agents,
}

/// What a client answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The client's message.
    pub message: Message,
    /// What it can do with an answer of the agent's, from now on.
    pub client: ClientCapabilities,
}

/// Something an agent emits. The hub stamps the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Emitted {
    /// It is at work, and has this to say.
    Working {
        /// What the agent says of its work; none if it says nothing.
        message: Option<Message>,
        /// Facts to be merged into the task's.
        metadata: Option<Metadata>,
    },
    /// It made a piece of something.
    Artifact {
        /// The artifact, with the parts that are new.
        artifact: Artifact,
        /// Whether its parts are added to the artifact of that name.
        append: bool,
        /// Whether the artifact is now complete.
        last_chunk: bool,
    },
}

/// The hub's side of one task.
#[async_trait::async_trait]
pub trait TaskPort: Send + Sync {
    /// Takes events, to be stored together; waits while too many are on their way.
    async fn emit(&self, events: Vec<Emitted>) -> Result<(), Failure>;
    /// Asks the client, and does nothing until there is the answer. [`Failure::Timeout`] when there was none in time.
    async fn ask(
        &self,
        need: Need,
        prompt: Message,
        timeout: Option<Duration>,
    ) -> Result<Answer, Failure>;

    /// The same of an agent that works on meanwhile. Its task's time goes on, and its turn is its own, but while it says that it
    /// [`rests`](Self::rest).
    async fn pose(
        &self,
        need: Need,
        prompt: Message,
        timeout: Option<Duration>,
    ) -> Result<Answer, Failure> {
        self.ask(need, prompt, timeout).await
    }

    /// How many bytes are stored and told once more behind a status that is emitted now: the question of a child's that the task waits with.
    fn told_beside(&self) -> u64 {
        0
    }

    /// The agent only waits, and other tasks of its may run meanwhile.
    async fn rest(&self, _waits_for: WaitsFor) {}

    /// The agent waits no longer, and goes on once it is its task's turn again.
    async fn resume(&self, _waits_for: WaitsFor) -> Result<(), Failure> {
        Ok(())
    }
}
