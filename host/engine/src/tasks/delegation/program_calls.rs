//! Task operations for programs that an agent started: delegate to other agents as the agent may,
//! and manage the delegated tasks.

use super::{call_errors::refused_to, question_relay::answer_to};
use crate::{
    error::HubError,
    tasks::{EndsAt, Subscription, Tasks, ports::ProgramCalls},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{
    client::ClientCapabilities,
    error::{A2aError, ErrorKind},
    id::TaskId,
    message::Message,
    question::{Question, QuestionKind},
};
use a2a_hub_runtime::port::delegate::ChildRequest;
use std::sync::Arc;

/// Limit of the ancestor search; more than a tree has levels.
pub(super) const MAX_LEVELS: usize = 1_000;

impl Tasks {
    /// Delegates a task to another agent, on behalf of a program of the agent that works on `task`.
    /// The run permit of `task` is lent to other tasks while the subscription lives.
    pub async fn give(
        &self,
        task: &TaskId,
        request: ChildRequest,
    ) -> Result<Subscription, HubError> {
        let calls = self.calls_of(task)?;
        let subscription = calls.open(request).await.map_err(refused_to)?;
        let lent = calls.lend().await;
        Ok(subscription.lending(lent))
    }

    /// Subscribes a program that repeats its request to the existing task, after event `after`.
    pub async fn give_again(
        &self,
        task: &TaskId,
        child: &TaskId,
        after: u64,
    ) -> Result<Subscription, HubError> {
        let calls = self.calls_of(task)?;
        let subscription = self.repeat(child, after).await?.until(EndsAt::Over);
        let lent = calls.lend().await;
        Ok(subscription.lending(lent))
    }

    /// Delegation port of the agent that works on `task`, for its programs.
    pub(super) fn calls_of(&self, task: &TaskId) -> Result<Arc<dyn ProgramCalls>, A2aError> {
        let calls = self.find(task).and_then(|running| running.calls?.upgrade());
        calls.ok_or_else(|| {
            let why = format!(
                "give another agent a task: task `{task}`, which this program was started for, is not at work, or its agent is \
                 granted no other agents (`delegate` in its grant)"
            );
            A2aError::new(ErrorKind::PermissionDenied, why)
        })
    }

    /// Answers a question of a task below `task`, on behalf of a program of the agent that works on
    /// `task`. Requests for permission and for logins are left to the client.
    pub async fn answer_descendant(
        &self,
        id: &TaskId,
        message: Message,
        by: Principal,
    ) -> Result<Subscription, HubError> {
        let task = self.get(id).await?.task;
        let question = Question::from_metadata(task.metadata.as_ref());
        let Some(question) = question.filter(|_| task.status.state.is_interrupted()) else {
            return Err(crate::conversations::refusals::not_waiting(id, task.status.state).into());
        };
        if question.kind != QuestionKind::Input {
            let why = format!(
                "answer task `{id}`: it asks for permission or for a login, which is for the client of the task at the root"
            );
            return Err(A2aError::new(ErrorKind::PermissionDenied, why).into());
        }
        let message = answer_to(&question, &task, message);
        self.answer(id, message, ClientCapabilities::default(), None, by).await
    }

    /// Refuses a task that is neither `root` nor a descendant of it.
    pub async fn require_within(&self, root: &TaskId, task: &TaskId) -> Result<(), HubError> {
        let mut at = task.clone();
        for _ in 0..MAX_LEVELS {
            if at == *root {
                return Ok(());
            }
            match self.storage.head(&at).await?.and_then(|head| head.parent) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        // Does not reveal to an agent's program whether the task exists.
        Err(A2aError::no_task(task).into())
    }
}
