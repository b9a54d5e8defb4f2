//! How a run of an agent ends.

use crate::failure::Failure;
use a2a_hub_protocol::{
    message::{Message, Metadata},
    task::TaskState,
};
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    /// With a direct answer and no task result.
    Reply(Message),
    /// With a final status of the task.
    Status {
        /// The state, a final one.
        state: TaskState,
        /// What the agent says.
        message: Option<Message>,
        /// Facts to be merged into the task's.
        metadata: Option<Metadata>,
    },
    /// Without a final status: why the agent could not bring the task to an end.
    Failed(Failure),
}
