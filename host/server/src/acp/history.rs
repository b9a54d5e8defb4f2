//! Replay of a conversation for a client that loads it: every message and artifact of its tasks, in
//! the order of their logs.

use super::{
    children,
    turn::refusal,
    updates::{self, MESSAGE, SentTexts},
    wire::{Refusal, Wire},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::{Reply, ReplyStream};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::{ContextId, TaskId},
    message::Role,
    operation::{Answer, Operation, Page, TaskQuery},
    task::TaskState,
};
use a2a_hub_rpc::{begun_tasks::unexpected, dispatcher::Dispatcher};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Number of tasks that are listed at once.
const PAGE: usize = 200;

/// Length of a chunk in bytes at which it is sent; the pieces of a stream are joined up to it.
const ENOUGH: usize = 16 << 10;

/// A conversation that is replayed for a client.
pub(super) struct History<'a> {
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) caller: &'a Principal,
    pub(super) wire: &'a Wire,
    pub(super) session: &'a str,
}

impl History<'_> {
    /// Sends the whole conversation, oldest task first.
    pub(super) async fn replay(&self) -> Result<(), Refusal> {
        for task in self.tasks().await?.into_iter().rev() {
            match self.task(task).await {
                Ok(()) => {}
                // Retention deleted the task in the meantime.
                Err(why) if why.kind == ErrorKind::TaskNotFound => {}
                Err(why) => return Err(refusal(why)),
            }
        }
        Ok(())
    }

    /// All tasks of the conversation, newest first.
    async fn tasks(&self) -> Result<Vec<TaskId>, Refusal> {
        let (mut tasks, mut known) = (Vec::new(), HashSet::new());
        for offset in (0..).step_by(PAGE) {
            let list = Operation::ListTasks(TaskQuery {
                context: Some(ContextId::new(self.session)),
                history_length: Some(0),
                ..TaskQuery::all(Page { limit: PAGE, offset })
            });
            let Reply::One(Answer::Tasks { tasks: page, .. }) =
                self.ask(list).await.map_err(refusal)?
            else {
                return Err(refusal(unexpected()));
            };
            let is_last = page.len() < PAGE;
            // A task that began meanwhile moves others to this page, which the last one had.
            let new = page.into_iter().map(|listed| listed.task.id);
            tasks.extend(new.filter(|id| known.insert(id.clone())));
            if is_last {
                break;
            }
        }
        Ok(tasks)
    }

    /// Sends the events of a task up to now.
    async fn task(&self, id: TaskId) -> Result<(), A2aError> {
        // The stream of an unfinished task goes on, so its current event is asked for first.
        let ReplyStream::Task(mut now) = self.events(&id, None).await? else {
            return Err(unexpected());
        };
        let now = now.next().await.transpose().map_err(|why| broken(&id, &why))?;
        let Some(now) = now else { return Ok(()) };
        // Without `to_the_end`, the stream would end at the task's first question.
        let ReplyStream::Task(mut events) = self.events(&id, Some(0)).await?.to_the_end() else {
            return Err(unexpected());
        };
        let mut shown = Shown::default();
        shown.sent.set_task(&id);
        while let Some(event) = events.next().await {
            let event = event.map_err(|why| broken(&id, &why))?;
            for update in shown.updates(&event.event) {
                self.send_update(update).await;
            }
            if event.seq >= now.seq {
                break;
            }
        }
        for update in shown.end() {
            self.send_update(update).await;
        }
        for update in children::loaded(self.dispatcher, self.caller, &id).await {
            self.send_update(update).await;
        }
        Ok(())
    }

    async fn events(&self, id: &TaskId, after: Option<u64>) -> Result<ReplyStream, A2aError> {
        match self.ask(Operation::Resubscribe { id: id.clone(), after }).await? {
            Reply::Stream(events) => Ok(events),
            Reply::One(_) => Err(unexpected()),
        }
    }

    /// Asks without a stream permit: the connection was admitted, and a replay reads one stream at
    /// a time.
    async fn ask(&self, operation: Operation) -> Result<Reply, A2aError> {
        self.dispatcher.hub().handle(self.caller, None, operation).await
    }

    async fn send_update(&self, update: Value) {
        let params = json!({ "sessionId": self.session, "update": update });
        self.wire.notify("session/update", params).await;
    }
}

fn broken(task: &TaskId, why: &impl std::fmt::Display) -> A2aError {
    tracing::error!(%task, %why, "cannot replay a task");
    A2aError::new(ErrorKind::Internal, "the store failed; load the session again later")
}

fn is_failure(state: TaskState) -> bool {
    matches!(state, TaskState::Failed | TaskState::Canceled | TaskState::Rejected)
}

/// Updates of a task's events, with the pieces of a stream joined.
#[derive(Default)]
struct Shown {
    sent: SentTexts,
    /// Text of the agent that was not sent yet, and the id of its message.
    pending: String,
    message: Value,
    /// True if the latest status is a failure.
    is_failed: bool,
}

impl Shown {
    fn updates(&mut self, event: &TaskEvent) -> Vec<Value> {
        let mut all = Vec::new();
        for update in self.each(event) {
            let text = update["content"]["text"].as_str();
            match text.filter(|_| update["sessionUpdate"] == MESSAGE) {
                Some(text) => {
                    if update["messageId"] != self.message {
                        all.extend(self.flush());
                        self.message = update["messageId"].clone();
                    }
                    self.pending += text;
                }
                None => {
                    all.extend(self.flush());
                    all.push(update);
                }
            }
            if self.pending.len() >= ENOUGH {
                all.extend(self.flush());
            }
        }
        all
    }

    fn each(&mut self, event: &TaskEvent) -> Vec<Value> {
        match event {
            TaskEvent::Created(created) => {
                created.task.history.iter().flat_map(updates::of_user).collect()
            }
            TaskEvent::Input(message) if message.role == Role::User => updates::of_user(message),
            TaskEvent::Input(message) => self.sent.message(message),
            TaskEvent::Status(update) if update.status.state != TaskState::Working => {
                self.is_failed = is_failure(update.status.state);
                let message = update.status.message.as_ref();
                message.map(|message| self.sent.message(message)).unwrap_or_default()
            }
            TaskEvent::Status(_) | TaskEvent::Artifact(_) | TaskEvent::Reply(_) => {
                self.sent.updates(event)
            }
        }
    }

    /// Text that was not sent yet, and the ends of the tool calls that the agent left open: nothing
    /// follows a task that is still at work.
    fn end(&mut self) -> Vec<Value> {
        let open = self.sent.activity.end(self.is_failed);
        self.flush().into_iter().chain(open).collect()
    }

    /// Text that was not sent yet.
    fn flush(&mut self) -> Option<Value> {
        let text = std::mem::take(&mut self.pending);
        let content = json!({ "type": "text", "text": text });
        let id = &self.message;
        (!text.is_empty())
            .then(|| json!({ "sessionUpdate": MESSAGE, "content": content, "messageId": id }))
    }
}
