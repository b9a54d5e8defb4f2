//! Turn of a session: one prompt from its message to its stop reason.

use super::{
    activity,
    capabilities::ClientFeatures,
    children::{ChildCalls, ChildWatch},
    commands, elicitation, permission,
    updates::{self, MESSAGE, SentTexts},
    wire::{Refusal, Wire},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::conversations::handoff;
use a2a_hub_engine::{Reply, ReplyStream, tasks::Subscription};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::TaskId,
    member,
    operation::{Answer, Operation},
    question::{Question, QuestionKind},
    task::{Task, TaskState},
};
use a2a_hub_rpc::{
    begun_tasks::{Begun, CancelOnDrop, unexpected},
    dispatcher::Dispatcher,
    message_builder, question_view,
    stream_quota::StreamPermit,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{future::pending, time::Duration};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Time within which a task repeats a question that the answer to another one interrupted.
const REPEATED_WITHIN: Duration = Duration::from_millis(100);

/// A turn of a session.
pub(super) struct Turn<'a> {
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) caller: &'a Principal,
    pub(super) wire: &'a Wire,
    pub(super) session: &'a str,
    pub(super) client: ClientFeatures,
    /// True if the client knew commands of the session before the turn.
    pub(super) had_commands: bool,
    /// Names of the commands that the turn's agents reported last; `None` if they reported none.
    pub(super) commands: &'a Mutex<Option<Vec<String>>>,
    /// Cancelled when the client cancels the turn.
    pub(super) off: CancellationToken,
    /// Cancelled when the hub stops; tasks continue after a restart.
    pub(super) stop: &'a CancellationToken,
}

/// Open question at the end of a turn, which the next prompt answers.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) task: TaskId,
    pub(super) question: Option<String>,
    /// Texts and tool calls of the task that the client has.
    pub(super) shown: Box<ShownTask>,
}

/// Texts and tool calls that a turn sent, for the next turn of its task.
#[derive(Debug, Default)]
pub(super) struct ShownTask {
    sent: SentTexts,
    children: ChildCalls,
}

impl Open {
    /// Creates the question of a task of which the client has nothing yet.
    pub(super) fn new(task: TaskId, question: Option<String>) -> Self {
        Self { task, question, shown: Box::default() }
    }
}

/// Result of a turn.
pub(super) struct Ended {
    /// Response to the client.
    pub(super) answer: Value,
    pub(super) open: Option<Open>,
}

/// End of an event stream.
enum TurnStreamEnd {
    /// The task ended or waits, after the event of this number.
    Task(u64),
    Message,
    Off,
}

/// Next step of a turn.
enum Step {
    Send(Operation),
    /// Follow a task that goes on, after the event of this number.
    Follow(TaskId, u64),
}

/// Result of a question to the user.
enum PendingReply {
    Answer(String),
    /// The user gave no answer.
    Unanswered,
    /// The task does not wait any more: another client answered it.
    Elsewhere,
    /// The client cancelled the turn.
    Off,
}

impl Turn<'_> {
    /// Sends the message and requests the user's permissions until the turn ends. `shown` is what
    /// earlier turns of the task sent. Dropping the turn earlier cancels its task.
    ///
    /// No tool call stays open at the client, except the tasks of other agents while the task waits
    /// for the next prompt.
    pub(super) async fn run(
        &self,
        operation: Operation,
        shown: ShownTask,
    ) -> Result<Ended, Refusal> {
        let mut guard = None;
        let ShownTask { mut sent, children } = shown;
        sent.begin_turn();
        let mut children = ChildWatch::begin(self.dispatcher, self.caller, children).await;
        let ended = self.work(operation, &mut guard, &mut sent, &mut children).await;
        if let Some(guard) = guard {
            guard.disarm();
        }
        let is_open = ended.as_ref().is_ok_and(|ended| ended.open.is_some());
        let open_children = if is_open { Vec::new() } else { children.end().await };
        for update in sent.activity.end(true).into_iter().chain(open_children) {
            self.send_update(update).await;
        }
        let mut ended = ended?;
        if let Some(open) = &mut ended.open {
            *open.shown = ShownTask { sent, children: children.into_calls() };
        }
        Ok(ended)
    }

    async fn work(
        &self,
        operation: Operation,
        guard: &mut Option<CancelOnDrop>,
        sent: &mut SentTexts,
        children: &mut ChildWatch<'_>,
    ) -> Result<Ended, Refusal> {
        let mut step = Step::Send(operation);
        loop {
            let (mut events, id, _permit) = self.step(step, guard).await?;
            sent.set_task(&id);
            children.set_root(&id);
            let end = self.follow_events(&mut events, sent, children).await?;
            for update in children.drain().await {
                self.send_update(update).await;
            }
            let after = match end {
                TurnStreamEnd::Message => {
                    for update in sent.activity.end(false) {
                        self.send_update(update).await;
                    }
                    return Ok(stopped("end_turn", &id));
                }
                TurnStreamEnd::Off => return self.call_off(&id).await,
                TurnStreamEnd::Task(after) => after,
            };
            let task =
                self.one(Operation::GetTask { id: id.clone(), history_length: Some(0) }).await?;
            if let Some(next) = handoff::successor(&task) {
                for update in sent.activity.end(true) {
                    self.send_update(update).await;
                }
                step = Step::Follow(next, 0);
                continue;
            }
            let kind = question_view::kind(&task);
            step = match self.ask(&task, after, sent).await {
                Some(PendingReply::Answer(answer)) => {
                    let question = question_view::id(&task);
                    let text = message_builder::text(&answer);
                    Step::Send(
                        message_builder::answer(&id, text, question.as_deref()).map_err(refusal)?,
                    )
                }
                Some(PendingReply::Elsewhere) => Step::Follow(id, after),
                Some(PendingReply::Off) => return self.call_off(&id).await,
                Some(PendingReply::Unanswered) if kind == QuestionKind::Permission => {
                    return self.call_off(&id).await;
                }
                Some(PendingReply::Unanswered) | None => return self.end(&task, sent).await,
            };
        }
    }

    /// Sends a message, or follows its task again, and returns the task's events.
    async fn step(
        &self,
        step: Step,
        guard: &mut Option<CancelOnDrop>,
    ) -> Result<(ReplyStream, TaskId, Option<StreamPermit>), Refusal> {
        match step {
            Step::Send(operation) => {
                let begun = self.dispatcher.begin(self.caller, operation, self.stop);
                let Begun { events, task, guard: new, permit } = begun.await.map_err(refusal)?;
                if let Some(before) = guard.replace(new) {
                    before.disarm();
                }
                Ok((events, task, permit))
            }
            Step::Follow(id, after) => {
                let (events, permit) = self.follow(&id, after).await?;
                Ok((events, id, permit))
            }
        }
    }

    async fn follow(
        &self,
        id: &TaskId,
        after: u64,
    ) -> Result<(ReplyStream, Option<StreamPermit>), Refusal> {
        let resubscribe = Operation::Resubscribe { id: id.clone(), after: Some(after) };
        match self.dispatcher.ask(self.caller, resubscribe).await.map_err(refusal)? {
            (Reply::Stream(events), permit) => Ok((events, permit)),
            (Reply::One(_), _) => Err(refusal(unexpected())),
        }
    }

    async fn follow_events(
        &self,
        events: &mut ReplyStream,
        sent: &mut SentTexts,
        children: &mut ChildWatch<'_>,
    ) -> Result<TurnStreamEnd, Refusal> {
        let ReplyStream::Task(events) = events else { return Err(refusal(unexpected())) };
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = self.off.cancelled() => return Ok(TurnStreamEnd::Off),
                () = children.due() => {
                    for update in children.read().await {
                        self.send_update(update).await;
                    }
                    continue;
                }
            };
            let Some(event) = event else { return Ok(TurnStreamEnd::Task(events.after())) };
            let event = event.map_err(|why| {
                tracing::error!(task = %events.task(), %why, "prompt turn failed");
                refusal(A2aError::new(
                    ErrorKind::Internal,
                    "the store failed; the task may go on without this turn",
                ))
            })?;
            #[cfg(test)]
            crate::tests::panic_if_told(&event.event);
            for update in sent.updates(&event.event) {
                self.send_update(update).await;
            }
            if let TaskEvent::Reply(_) = event.event {
                return Ok(TurnStreamEnd::Message);
            }
        }
    }

    /// Asks the user for a permission, or by a form for another answer. `None` if the task asks
    /// nothing, or nothing that the client shows: then the next prompt is the answer.
    async fn ask(&self, task: &Task, after: u64, sent: &mut SentTexts) -> Option<PendingReply> {
        if !task.status.state.is_interrupted() {
            return None;
        }
        let kind = question_view::kind(task);
        let mut call = None;
        let (method, params) = match kind {
            QuestionKind::Permission => {
                let request = permission::request(self.session, task, &mut sent.activity);
                if let Some(announced) = request.announced {
                    self.send_update(announced).await;
                }
                call = Some(request.call);
                (permission::METHOD, request.params)
            }
            QuestionKind::Input if self.client.shows_forms => {
                // The question is part of the conversation, also after the form is closed.
                for question in sent.last(task) {
                    self.send_update(question).await;
                }
                (elicitation::METHOD, elicitation::form(self.session, task))
            }
            // A form must not ask for passwords or keys.
            QuestionKind::Input | QuestionKind::Auth => return None,
        };
        let read = |answer: &Value| match kind {
            QuestionKind::Permission => permission::chosen(answer).map(str::to_owned),
            QuestionKind::Input | QuestionKind::Auth => elicitation::answer(task, answer),
        };
        let reply = tokio::select! {
            answer = self.wire.ask(method, params) => {
                answer.as_ref().and_then(read).map_or(PendingReply::Unanswered, PendingReply::Answer)
            }
            () = self.answered_elsewhere(task, after) => PendingReply::Elsewhere,
            () = self.off.cancelled() => PendingReply::Off,
        };
        let is_allowed = match &reply {
            PendingReply::Answer(choice) => Some(!permission::is_denial(choice)),
            PendingReply::Elsewhere => Some(true),
            // The turn ends, and with it the call.
            PendingReply::Unanswered | PendingReply::Off => None,
        };
        if let (Some(call), Some(is_allowed)) = (call, is_allowed)
            && let Some(decided) = sent.activity.decided(&call, is_allowed)
        {
            self.send_update(decided).await;
        }
        Some(reply)
    }

    /// Waits until the task goes on, or asks another question, without this client's answer.
    async fn answered_elsewhere(&self, task: &Task, after: u64) {
        let question = question_view::id(task);
        let resubscribe = Operation::Resubscribe { id: task.id.clone(), after: Some(after) };
        // Without a stream permit: the turn has one.
        let followed = self.dispatcher.hub().handle(self.caller, None, resubscribe).await;
        if let Ok(Reply::Stream(events)) = followed
            && let ReplyStream::Task(mut events) = events.to_the_end()
        {
            while let Some(Ok(event)) = events.next().await {
                if let TaskEvent::Status(update) = &event.event {
                    let current_question = Question::from_metadata(update.metadata.as_ref());
                    let is_other = current_question
                        .is_some_and(|it| Some(it.id.as_str()) != question.as_deref());
                    if !update.status.state.is_interrupted()
                        || is_other && !repeats(&mut events, question.as_deref()).await
                    {
                        return;
                    }
                }
            }
        }
        // The hub stops, or its store fails: this client's answer may count nevertheless.
        pending::<()>().await;
    }

    /// Result of a turn that was not cancelled.
    async fn end(&self, task: &Task, sent: &mut SentTexts) -> Result<Ended, Refusal> {
        let last = sent.last(task);
        let is_failed = !matches!(
            task.status.state,
            TaskState::Completed | TaskState::InputRequired | TaskState::AuthRequired
        );
        let context = activity::context(task.metadata.as_ref());
        for update in sent.activity.end(is_failed).into_iter().chain(context) {
            self.send_update(update).await;
        }
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
        let is_rejected = task.status.state == TaskState::Rejected;
        if is_rejected && question_view::prompt(task).trim().is_empty() {
            let why = "The agent rejected the request, and does not say why.";
            self.send_update(updates::chunk(MESSAGE, why)).await;
        }
        for update in last {
            self.send_update(update).await;
        }
        // At `refusal`, editors remove the prompt and all that follows it, also the reason.
        let mut ended = stopped("end_turn", &task.id);
        if is_rejected && let Some(meta) = ended.answer.get_mut("_meta") {
            member::set(meta, "a2a-hub/state", json!(task.status.state.name()));
        }
        updates::add_usage(&mut ended.answer, task);
        ended.open = task
            .status
            .state
            .is_interrupted()
            .then(|| Open::new(task.id.clone(), question_view::id(task)));
        Ok(ended)
    }

    async fn call_off(&self, id: &TaskId) -> Result<Ended, Refusal> {
        // A failure is ignored: the task may have ended already, and the client gets `cancelled` in
        // any case.
        let _ended = self.one(Operation::CancelTask { id: id.clone() }).await;
        Ok(stopped("cancelled", id))
    }

    async fn send_update(&self, update: Value) {
        if update["sessionUpdate"] == commands::UPDATE {
            let (names, mut reported) = (commands::names(&update), self.commands.lock());
            let had_some = reported.as_ref().map_or(self.had_commands, |it| !it.is_empty());
            if names.is_empty() && !had_some {
                return;
            }
            *reported = Some(names);
        }
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

/// True if the task asks this question again at once: the answer to another one interrupted it.
async fn repeats(events: &mut Subscription, question: Option<&str>) -> bool {
    let again = async {
        while let Some(Ok(event)) = events.next().await {
            if let TaskEvent::Status(update) = &event.event {
                let current = Question::from_metadata(update.metadata.as_ref());
                return current.is_some_and(|current| Some(current.id.as_str()) == question);
            }
        }
        false
    };
    timeout(REPEATED_WITHIN, again).await.unwrap_or(false)
}
