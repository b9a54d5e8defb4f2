//! Handoff of a task: the old task ends before the agent of the new one begins.

use super::{CANCEL_DEADLINE, Tasks, command::ActorCommand, ports::Handoff};
use a2a_hub_conversations::handoff;
use a2a_hub_protocol::{
    message::{Message, Role},
    task::TaskState,
};
use a2a_hub_runtime::{Ended, Failure};
use tokio::time::timeout;

impl Tasks {
    /// Cancels the old task, unless it is over; returns the end of the new one if that must not
    /// begin.
    pub(super) async fn end_old_task(self, handoff: Handoff) -> Option<Ended> {
        let Handoff { old, task, agent, by } = handoff;
        if let Some(running) = self.find(&old) {
            let facts = handoff::fact_of_old(&agent, &task);
            let cancelled = async {
                // Its last state tells whether it received the command or had just ended.
                let cancel = ActorCommand::Cancel { by, facts: Some(facts) };
                let _ = running.commands.send(cancel).await;
                running.commands.closed().await;
            };
            if timeout(CANCEL_DEADLINE, cancelled).await.is_err() {
                let why = format!(
                    "Task `{old}` was told to stop and has not ended; hand it over again once it has: \
                     `a2a-hub task handoff {old} {agent}`"
                );
                return Some(ended(TaskState::Failed, why));
            }
        }
        match self.stored(&old).await {
            // Retention may have deleted it.
            Ok(None) => None,
            Ok(Some(stored)) => {
                let refused = handoff::require_may_begin(&stored.task, &task).err()?;
                Some(ended(TaskState::Rejected, refused))
            }
            Err(why) => Some(Ended::Failed(Failure::HubNotUp(why.to_string()))),
        }
    }
}

fn ended(state: TaskState, why: String) -> Ended {
    Ended::Status { state, message: Some(Message::text(Role::Agent, why)), metadata: None }
}
