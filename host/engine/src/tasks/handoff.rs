//! Handoff of a task: the old task ends before the agent of the new one begins.

use super::{CANCEL_DEADLINE, Tasks, command::ActorCommand, ports::Handoff};
use a2a_hub_conversations::handoff::{self, MAX_HANDOFFS};
use a2a_hub_protocol::{
    message::{Message, Role},
    task::TaskState,
};
use a2a_hub_runtime::{Ended, Failure};
use tokio::time::timeout;

impl Tasks {
    /// Cancels the old task, and the tasks before it that wait for its turn, unless they are over;
    /// returns the end of the new one if that must not begin.
    pub(super) async fn end_old_task(self, handoff: Handoff) -> Option<Ended> {
        let Handoff { mut old, mut task, mut agent, by } = handoff;
        for _ in 0..MAX_HANDOFFS {
            if let Some(running) = self.find(&old) {
                let facts = Some(handoff::fact_of_old(&agent, &task));
                let cancel = ActorCommand::Cancel { by: by.clone(), facts };
                let cancelled = async {
                    // Its last state tells whether it received the command or had just ended.
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
            let stored = match self.stored(&old).await {
                // Retention may have deleted it.
                Ok(stored) => stored?,
                Err(why) => return Some(Ended::Failed(Failure::HubNotUp(why.to_string()))),
            };
            if let Err(refused) = handoff::require_may_begin(&stored.task, &task) {
                return Some(ended(TaskState::Rejected, refused));
            }
            (task, agent) = (old, stored.agent);
            old = handoff::predecessor(&stored.task)?;
        }
        None
    }
}

fn ended(state: TaskState, why: String) -> Ended {
    Ended::Status { state, message: Some(Message::text(Role::Agent, why)), metadata: None }
}
