//! One delegation call, from the caller's side: the child's events, answers to its questions,
//! cancellation.

use super::{
    call_errors::{failed, refused},
    child_message::further,
    question_relay::answer_to,
};
use crate::tasks::{Subscription, Tasks};
use a2a_hub_agents::Agent;
use a2a_hub_core::{access_control::Principal, grant::delegate::Callee, task::metadata};
use a2a_hub_protocol::{
    client::ClientCapabilities,
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::TaskId,
    message::{Message, Role},
    question::Question as AgentQuestion,
};
use a2a_hub_runtime::{
    Ended, Failure,
    port::delegate::{CallPort, Update},
};
use a2a_hub_store::{StorageError, StoredTask};
use std::sync::Arc;

/// A guest's call of another agent.
pub(in crate::tasks) struct ChildCall {
    tasks: Tasks,
    /// The calling agent.
    parent: Arc<Agent>,
    by: Principal,
    task: TaskId,
    subscription: Subscription,
    is_over: bool,
}

impl ChildCall {
    /// Creates a call by `parent` whose child's events arrive in `subscription`.
    pub(in crate::tasks) fn new(
        tasks: Tasks,
        parent: Arc<Agent>,
        by: Principal,
        subscription: Subscription,
    ) -> Self {
        let task = subscription.task().clone();
        Self { tasks, parent, by, task, subscription, is_over: false }
    }

    /// Error for a subscription that ended before its child: the hub stops, or its store fails.
    /// Subscribes to the child again.
    async fn broke_off(&mut self, why: Option<StorageError>) -> Failure {
        let action = "hear another agent";
        if self.tasks.phase.is_stopping() {
            return Failure::HubNotUp(format!("{action}: the hub is stopping"));
        }
        match self.tasks.follow(&self.task, self.subscription.after()).await {
            Ok(subscription) => self.subscription = subscription,
            Err(why) => return refused(why),
        }
        match why {
            Some(why) => failed(action, &why),
            None => Failure::HubNotUp(format!("{action}: the hub cannot store what it does now")),
        }
    }
}

#[async_trait::async_trait]
impl CallPort for ChildCall {
    fn task(&self) -> &TaskId {
        &self.task
    }

    async fn next(&mut self) -> Result<Update, Failure> {
        loop {
            if self.is_over {
                return Err(Failure::Invalid("hear more of a call: it has ended".to_owned()));
            }
            let event = match self.subscription.next().await {
                Some(Ok(event)) => event,
                Some(Err(why)) => return Err(self.broke_off(Some(why)).await),
                None => return Err(self.broke_off(None).await),
            };
            if let Some(update) = update(&event.event) {
                self.is_over = matches!(update, Update::Finished(_));
                return Ok(update);
            }
        }
    }

    async fn answer(&self, message: Message) -> Result<(), Failure> {
        let stored = self.tasks.get(&self.task).await.map_err(refused)?;
        let task = &stored.task;
        // A replayed caller sends the message again.
        if task.history.iter().any(|sent| sent.message_id == message.message_id) {
            return Ok(());
        }
        let question = AgentQuestion::from_metadata(task.metadata.as_ref())
            .filter(|_| task.status.state.is_interrupted());
        let Some(question) = question else {
            return Err(Failure::Invalid("answer a call: it asks nothing now".to_owned()));
        };
        let StoredTask { agent, .. } = &stored;
        let child = Callee { agent: agent.clone(), skill: metadata::first_skill(task) };
        if !self.parent.answers(&child, &question) {
            return Err(Failure::Denied(format!(
                "answer a call: it asks for permission or for a login, which is for the client to answer; the operator leaves permissions to this \
                 agent with `approve = true` in `[agents.{}.grant.delegate.\"{child}\"]`",
                self.parent.id
            )));
        }
        let message = answer_to(&question, task, message);
        let by = self.by.clone();
        let answered =
            self.tasks.answer(&self.task, message, ClientCapabilities::default(), None, by).await;
        answered.map(drop).map_err(refused)
    }

    async fn send(&self, message: Message) -> Result<(), Failure> {
        let task = self.tasks.get(&self.task).await.map_err(refused)?.task;
        // A replayed caller sends the message again.
        if task.history.iter().any(|sent| sent.message_id == message.message_id) {
            return Ok(());
        }
        let (task_id, context_id) = (Some(task.id), Some(task.context_id));
        let message = further(message);
        let message = Message { role: Role::User, task_id, context_id, ..message };
        self.tasks.send_further(&self.task, message, self.by.clone()).await.map_err(refused)
    }

    async fn cancel(&self) -> Result<(), Failure> {
        match self.tasks.cancel(&self.task, self.by.clone()).await {
            Ok(_) => Ok(()),
            Err(why) => {
                let is_over = |why: &A2aError| why.kind == ErrorKind::TaskNotCancelable;
                if is_over(why.error()) { Ok(()) } else { Err(refused(why)) }
            }
        }
    }
}

/// Converts an event to the caller's update; none for events that a caller does not see.
fn update(event: &TaskEvent) -> Option<Update> {
    match event {
        TaskEvent::Status(update) if update.status.state.is_final() => {
            let (state, message) = (update.status.state, update.status.message.clone());
            let metadata = update.metadata.clone();
            Some(Update::Finished(Ended::Status { state, message, metadata }))
        }
        TaskEvent::Status(update) => Some(Update::Status(update.clone())),
        TaskEvent::Artifact(update) => Some(Update::Artifact(update.clone())),
        TaskEvent::Reply(message) => Some(Update::Finished(Ended::Reply(message.clone()))),
        TaskEvent::Created(_) | TaskEvent::Input(_) => None,
    }
}
