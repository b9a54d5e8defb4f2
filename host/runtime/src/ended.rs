//! End of an agent's run.

use crate::failure::Failure;
use a2a_hub_protocol::{
    message::{Message, Metadata},
    task::TaskState,
};
use serde::{Deserialize, Serialize};

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    /// A direct answer, without a task result.
    Reply(Message),
    /// A final status of the task.
    Status {
        /// Final state.
        state: TaskState,
        /// Message of the agent.
        message: Option<Message>,
        /// Metadata to merge into the task's.
        metadata: Option<Metadata>,
    },
    /// No final status: the failure that ended the run.
    Failed(Failure),
}
