//! Port for a task's events, and for questions to its client.

use crate::failure::Failure;
use a2a_hub_protocol::{
    client::ClientCapabilities,
    message::{Message, Metadata},
    permission::PermissionRequest,
    task::{Artifact, TaskState},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Kind of input that an agent needs from its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// An answer; the task is `input-required` meanwhile.
    Input,
    /// A login that only the client can make; the task is `auth-required` meanwhile.
    Auth,
}

impl Need {
    /// State of the waiting task.
    pub fn state(self) -> TaskState {
        match self {
            Self::Input => TaskState::InputRequired,
            Self::Auth => TaskState::AuthRequired,
        }
    }
}

/// Party that an agent waits for while it does nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The client, for the answer to a posed question.
    Client,
    /// Other agents, for delegated tasks.
    Agents,
}

/// Answer of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientAnswer {
    /// The client's message.
    pub message: Message,
    /// Capabilities of the client from now on.
    pub client: ClientCapabilities,
}

/// Event that an agent emits. The hub adds the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Emitted {
    /// The agent is at work.
    Working {
        /// Message about its work; none if it has none.
        message: Option<Message>,
        /// Metadata to merge into the task's.
        metadata: Option<Metadata>,
    },
    /// A chunk of an artifact.
    Artifact {
        /// The artifact, with the new parts.
        artifact: Artifact,
        /// True if its parts are appended to the artifact of that id.
        append: bool,
        /// True if the artifact is now complete.
        last_chunk: bool,
    },
}

/// Answer of the operator's rules to a request for permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleReply {
    /// Allowed, this time, by the rule with this id.
    Allowed(String),
    /// Denied, with the reason for the program.
    Denied(String),
}

/// Port of one task.
#[async_trait::async_trait]
pub trait TaskPort: Send + Sync {
    /// Emits events that are stored together; waits while too many are pending (backpressure).
    async fn emit(&self, events: Vec<Emitted>) -> Result<(), Failure>;
    /// Asks the client and waits for the answer. [`Failure::Timeout`] if none arrives in time.
    async fn ask(
        &self,
        need: Need,
        prompt: Message,
        timeout: Option<Duration>,
    ) -> Result<ClientAnswer, Failure>;

    /// Asks the client while the agent works on. The task's time limit keeps running, and the agent
    /// keeps its run permit except between [`release_permit`](Self::release_permit) and
    /// [`reacquire_permit`](Self::reacquire_permit).
    async fn pose(
        &self,
        need: Need,
        prompt: Message,
        timeout: Option<Duration>,
    ) -> Result<ClientAnswer, Failure> {
        self.ask(need, prompt, timeout).await
    }

    /// Applies the operator's standing permissions to a request of the agent's program. Returns
    /// once the answer is in the task's log; none if no rule answers it. With `only_denials`, rules
    /// that allow are left out.
    async fn apply_rules(
        &self,
        _request: &PermissionRequest,
        _only_denials: bool,
    ) -> Result<Option<RuleReply>, Failure> {
        Ok(None)
    }

    /// Asks the client for permission, like [`pose`](Self::pose), for a request of the agent's
    /// program.
    async fn pose_request(
        &self,
        _request: PermissionRequest,
        prompt: Message,
        timeout: Option<Duration>,
    ) -> Result<ClientAnswer, Failure> {
        self.pose(Need::Input, prompt, timeout).await
    }

    /// Waits for the oldest message that the client sent to the task at work and that the agent has
    /// not received. [`Failure::Timeout`] if none arrives in time; no message is lost then.
    async fn next_message(&self, _timeout: Option<Duration>) -> Result<ClientAnswer, Failure> {
        Err(Failure::Unsupported("read a message: nobody can send one here".to_owned()))
    }

    /// Bytes that are stored and sent again beside a status emitted now: the child's question with
    /// which the task waits.
    fn extra_status_bytes(&self) -> u64 {
        0
    }

    /// Releases the run permit: the agent only waits, and its other tasks may run.
    async fn release_permit(&self, _waits_for: WaitsFor) {}

    /// Ends the wait; returns once the task has its run permit again.
    async fn reacquire_permit(&self, _waits_for: WaitsFor) -> Result<(), Failure> {
        Ok(())
    }
}
