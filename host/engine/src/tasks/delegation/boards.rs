//! Blackboards of flows, for programs of the agents that work on them.

use super::program_calls::MAX_LEVELS;
use crate::{
    error::HubError,
    tasks::{
        Tasks,
        command::{ActorCommand, BoardChange},
    },
};
use a2a_hub_protocol::boards::{BoardContribution, answer_to, has_boards, has_open_board};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::{MessageId, TaskId},
    task::Task,
};
use a2a_hub_store::StoredTask;
use serde_json::Value;
use std::time::Duration;
use tokio::{sync::oneshot, time::timeout};

/// Time for the answer of a flow, which only has to look at its board.
const ANSWER: Duration = Duration::from_secs(10);

impl Tasks {
    /// Nearest task above this one that has or had a blackboard.
    pub async fn nearest_board_task(&self, task: &TaskId) -> Result<Option<Task>, HubError> {
        let mut at = task.clone();
        for _ in 0..MAX_LEVELS {
            let Some(parent) = self.head(&at).await?.parent else { break };
            let ancestor = self.get(&parent).await?.task;
            if has_boards(ancestor.metadata.as_ref()) {
                return Ok(Some(ancestor));
            }
            at = parent;
        }
        Ok(None)
    }

    /// Records a change of a blackboard in the log of the task whose agent's program makes it, and
    /// returns the answer of the flow, which called the task. `None` if it has not answered in
    /// time.
    pub async fn change_board(
        &self,
        task: &TaskId,
        contribution: BoardContribution,
    ) -> Result<Option<Value>, HubError> {
        let refused = |why: String| A2aError::new(ErrorKind::UnsupportedOperation, why);
        let parent = match self.head(task).await?.parent {
            Some(parent) => Some(self.get(&parent).await?),
            None => None,
        };
        let is_open = |flow: &StoredTask| has_open_board(flow.task.metadata.as_ref());
        let Some(flow) = parent.filter(is_open) else {
            let why = format!(
                "task `{task}` is no turn at a blackboard: only an agent that a flow's step `blackboard` asks changes one"
            );
            return Err(refused(why).into());
        };
        // Subscribed before the flow can answer.
        let subscription = self.follow(&flow.task.id, flow.seq).await?;
        // The flow needs a run permit to answer.
        let mut subscription = subscription.lending(self.calls_of(task)?.lend().await);
        let id = MessageId::fresh().to_string();
        let (reply_tx, recorded) = oneshot::channel();
        let change = BoardChange { id: id.clone(), contribution, reply_tx };
        let change = ActorCommand::ChangeBoard(Box::new(change));
        let recorded = match self.find(task) {
            Some(running) if running.commands.send(change).await.is_ok() => recorded.await.ok(),
            Some(_) | None => None,
        };
        recorded.unwrap_or_else(|| Err(refused(format!("task `{task}` is no longer at work"))))?;
        let answer = async {
            while let Some(Ok(event)) = subscription.next().await {
                if let TaskEvent::Status(update) = &event.event
                    && let Some(answer) = answer_to(update.metadata.as_ref(), &id)
                {
                    return Some(answer);
                }
            }
            None
        };
        Ok(timeout(ANSWER, answer).await.ok().flatten())
    }
}
