//! Turn of a session: one prompt from its message to its stop reason.

use super::{
    updates::{self, SentTexts},
    wire::{Refusal, Wire},
};
use crate::rpc::{
    begun_tasks::{Begun, CancelOnDrop, unexpected},
    dispatcher::Dispatcher,
    message_builder, question_view,
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::{Reply, ReplyStream};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::TaskId,
    operation::{Answer, Operation},
    question::QuestionKind,
    task::{Task, TaskState},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A turn of a session.
pub(super) struct Turn<'a> {
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) caller: &'a Principal,
    pub(super) wire: &'a Wire,
    pub(super) session: &'a str,
    /// Cancelled when the client cancels the turn.
    pub(super) off: CancellationToken,
    /// Cancelled when the hub stops; tasks continue after a restart.
    pub(super) stop: &'a CancellationToken,
}

/// Open question at the end of a turn, which the next prompt answers.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) task: TaskId,
    pub(super) question: Option<String>,
}

/// Result of a turn.
pub(super) struct Ended {
    /// Response to the client.
    pub(super) answer: Value,
    pub(super) open: Option<Open>,
}

/// End of an event stream.
enum Heard {
    Task,
    Message,
    Off,
}

impl Turn<'_> {
    /// Sends the message and requests the user's permissions until the turn ends. Dropping the turn
    /// earlier cancels its task.
    pub(super) async fn run(&self, operation: Operation) -> Result<Ended, Refusal> {
        let mut guard = None;
        let ended = self.work(operation, &mut guard).await;
        if let Some(guard) = guard {
            guard.disarm();
        }
        ended
    }

    async fn work(
        &self,
        mut operation: Operation,
        guard: &mut Option<CancelOnDrop>,
    ) -> Result<Ended, Refusal> {
        let mut told = SentTexts::default();
        loop {
            let begun = self.dispatcher.begin(self.caller, operation, self.stop);
            let Begun { mut heard, task: id, guard: new, permit: _permit } =
                begun.await.map_err(refusal)?;
            if let Some(before) = guard.replace(new) {
                before.disarm();
            }
            match self.hear(&mut heard, &mut told).await? {
                Heard::Message => return Ok(stopped("end_turn", &id)),
                Heard::Off => return self.call_off(&id).await,
                Heard::Task => {}
            }
            let task =
                self.one(Operation::GetTask { id: id.clone(), history_length: Some(0) }).await?;
            let asks = task.status.state.is_interrupted();
            if !asks || question_view::kind(&task) != QuestionKind::Permission {
                return self.end(&task, &mut told).await;
            }
            let Some(answer) = self.ask(&task).await else { return self.call_off(&id).await };
            let question = question_view::id(&task);
            operation =
                message_builder::answer(&id, message_builder::text(&answer), question.as_deref())
                    .map_err(refusal)?;
        }
    }

    async fn hear(&self, heard: &mut ReplyStream, told: &mut SentTexts) -> Result<Heard, Refusal> {
        let ReplyStream::Task(heard) = heard else { return Err(refusal(unexpected())) };
        loop {
            let event = tokio::select! {
                event = heard.next() => event,
                () = self.off.cancelled() => return Ok(Heard::Off),
            };
            let Some(event) = event else { return Ok(Heard::Task) };
            let event = event.map_err(|why| {
                tracing::error!(task = %heard.task(), %why, "a turn broke");
                refusal(A2aError::new(
                    ErrorKind::Internal,
                    "the store failed; the task may go on without this turn",
                ))
            })?;
            #[cfg(test)]
            crate::tests::panic_if_told(&event.event);
            for update in told.updates(&event.event) {
                self.tell(update).await;
            }
            if let TaskEvent::Reply(_) = event.event {
                return Ok(Heard::Message);
            }
        }
    }

    /// Requests a permission from the user; `None` if the turn was cancelled.
    async fn ask(&self, task: &Task) -> Option<String> {
        let asked =
            self.wire.ask("session/request_permission", updates::permission(self.session, task));
        tokio::select! {
            answer = asked => updates::chosen(&answer?).map(str::to_owned),
            () = self.off.cancelled() => None,
        }
    }

    /// Result of a turn that was not cancelled.
    async fn end(&self, task: &Task, told: &mut SentTexts) -> Result<Ended, Refusal> {
        let last = told.last(task);
        match task.status.state {
            TaskState::Failed => {
                let why = question_view::prompt(task);
                let why = if why.is_empty() {
                    "the agent failed, and does not say why".to_owned()
                } else {
                    why
                };
                let data = json!({ "taskId": task.id, "metadata": task.metadata });
                return Err(Refusal { code: -32603, why, data: Some(data) });
            }
            TaskState::Canceled => return Ok(stopped("cancelled", &task.id)),
            TaskState::Submitted | TaskState::Working => {
                let why = "the hub stopped before the turn ended; the task may go on without it";
                return Err(refusal(A2aError::new(ErrorKind::Internal, why)));
            }
            TaskState::Completed
            | TaskState::Rejected
            | TaskState::InputRequired
            | TaskState::AuthRequired
            | TaskState::Unknown => {}
        }
        if let Some(last) = last {
            self.tell(last).await;
        }
        if task.status.state == TaskState::Rejected {
            return Ok(stopped("refusal", &task.id));
        }
        let mut ended = stopped("end_turn", &task.id);
        ended.open = task
            .status
            .state
            .is_interrupted()
            .then(|| Open { task: task.id.clone(), question: question_view::id(task) });
        Ok(ended)
    }

    async fn call_off(&self, id: &TaskId) -> Result<Ended, Refusal> {
        // A failure is ignored: the task may have ended already, and the client gets `cancelled` in
        // any case.
        let _ended = self.one(Operation::CancelTask { id: id.clone() }).await;
        Ok(stopped("cancelled", id))
    }

    async fn tell(&self, update: Value) {
        let params = json!({ "sessionId": self.session, "update": update });
        self.wire.notify("session/update", params).await;
    }

    async fn one(&self, operation: Operation) -> Result<Task, Refusal> {
        match self.dispatcher.ask(self.caller, operation).await.map_err(refusal)?.0 {
            Reply::One(Answer::Task(task)) => Ok(*task),
            Reply::One(_) | Reply::Stream(_) => Err(refusal(unexpected())),
        }
    }
}

fn stopped(why: &str, task: &TaskId) -> Ended {
    let answer = json!({ "stopReason": why, "_meta": { "a2a-hub/taskId": task } });
    Ended { answer, open: None }
}

/// Converts a refusal of the hub to an ACP error.
pub(super) fn refusal(why: A2aError) -> Refusal {
    let code = if why.kind == ErrorKind::Internal {
        -32603
    } else if why.kind == ErrorKind::ContextNotFound {
        -32002
    } else {
        -32602
    };
    Refusal { code, why: why.message, data: why.details }
}
