//! Call of an MCP tool: sends a message for the caller, reports progress, and returns the result.

use super::{
    progress::Narration,
    question, result,
    tasks::{self, TaskForm},
    tools::{Answer, Ask},
};
use crate::http::context;
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::conversations::handoff;
use a2a_hub_engine::{Reply, ReplyStream};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::{AgentId, TaskId},
    message::Message,
    operation::{self, Operation},
    task::{Task, TaskState},
    trace::TraceContext,
};
use a2a_hub_rpc::{
    begun_tasks::{Begun, CancelOnDrop, unexpected},
    dispatcher::Dispatcher,
    message_builder::{self, Beginning},
    question_view,
};
use http::request::Parts;
use rmcp::{
    RoleServer,
    model::{
        CallToolResponse, ClientCapabilities, ElicitRequestParams, ElicitResult, JsonObject,
        ProgressNotificationParam, ProtocolVersion,
    },
    service::RequestContext,
};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// Time for which text is collected before it is sent as progress.
const MOMENT: Duration = Duration::from_millis(250);

/// Timeout for the user's answer to a form, while the call waits.
const FORM_TIMEOUT: Duration = Duration::from_secs(600);

/// A tool call with its caller.
pub(super) struct McpCall<'a> {
    pub(super) dispatcher: &'a Dispatcher,
    /// Cancelled when the hub stops.
    pub(super) stop: &'a CancellationToken,
    pub(super) caller: Principal,
    pub(super) context: RequestContext<RoleServer>,
}

/// End of an event stream.
pub(super) enum McpStreamEnd {
    /// The task has ended, or waits for an answer.
    Task,
    /// The agent replied with a message; no task exists.
    Message(Message),
    /// The call's timeout has expired.
    Late,
    /// The client cancelled the call.
    Cancelled,
}

/// Outcome of a form.
pub(super) enum FormOutcome {
    /// The user gave this answer.
    Answered(String),
    /// The user gave no answer.
    Unanswered,
    /// The client cancelled the call.
    Cancelled,
}

/// Handling of a task's question.
enum Put {
    /// The user answered; the task continues with this operation.
    Answered(Box<Operation>),
    /// The client asks its user and repeats the call.
    Form(Box<CallToolResponse>),
    /// The result of the call contains the question.
    Unanswered,
}

impl McpCall<'_> {
    /// Sends a message to an agent. A repeated call with the user's answer continues the task that
    /// asked.
    pub(super) async fn agent(
        &self,
        agent: &AgentId,
        ask: &Ask,
        directory: Option<&str>,
        back: Option<(question::CallState, Option<String>)>,
    ) -> Result<CallToolResponse, A2aError> {
        let operation = match back {
            Some((call_state, Some(answer))) => message_builder::answer(
                &call_state.task,
                message_builder::text(&answer),
                call_state.question.as_deref(),
            )?,
            Some((call_state, None)) => {
                return Ok(self.current_result(&call_state.task).await?.into());
            }
            None => self.beginning(agent, ask, directory)?,
        };
        let form = TaskForm::for_version(self.context.protocol_version().as_ref(), &self.caller);
        let client = self.context.client_capabilities();
        let hands_over = form.is_some_and(|form| form.hands_over(client.as_ref()));
        let wait = if hands_over { ask.wait_as_task() } else { ask.wait() };
        self.converse(operation, Some(agent.as_str()), wait, hands_over).await
    }

    /// Builds the message to an agent.
    pub(super) fn beginning(
        &self,
        agent: &AgentId,
        ask: &Ask,
        directory: Option<&str>,
    ) -> Result<Operation, A2aError> {
        if ask.input.is_none() && ask.message.trim().is_empty() {
            return Err(A2aError::invalid("message", "is empty; say what is to be done"));
        }
        let beginning = Beginning {
            effort: None,
            agent: Some(agent),
            skill: ask.input.as_ref().map(|input| input.skill.as_str()),
            parts: match &ask.input {
                Some(input) => message_builder::data(&input.data, input.text.as_deref()),
                None => message_builder::text(&ask.message),
            },
            context: ask.context_id.as_deref(),
            directory: ask.working_directory.as_deref().or(directory),
            model: ask.model.as_deref(),
            permissions: None,
        };
        let mut operation = beginning.operation()?;
        operation.in_trace(&self.trace());
        Ok(operation)
    }

    /// Trace context of the call: from its `_meta`, otherwise from the headers of its request.
    fn trace(&self) -> TraceContext {
        let meta: &JsonObject = &self.context.meta;
        let from_meta = TraceContext::of_metadata(Some(meta));
        let parts = self.context.extensions.get::<Parts>();
        match parts.filter(|_| from_meta == TraceContext::default()) {
            Some(parts) => context::trace(&parts.headers),
            None => from_meta,
        }
    }

    /// Answers a task's question.
    pub(super) async fn answer(&self, answer: &Answer) -> Result<CallToolResponse, A2aError> {
        let task = TaskId::new(&*answer.task_id);
        let operation = message_builder::answer(
            &task,
            message_builder::text(&answer.message),
            answer.question_id.as_deref(),
        )?;
        self.converse(operation, None, answer.wait(), false).await
    }

    /// Waits for the end of a running task, and of those that go on with it, and returns its state.
    pub(super) async fn check(
        &self,
        task: &TaskId,
        wait: Duration,
    ) -> Result<CallToolResponse, A2aError> {
        let (mut task, until) = (task.clone(), Instant::now() + wait);
        loop {
            let now = self.task(&task).await?;
            if let Some(next) = handoff::successor(&now) {
                task = next;
                continue;
            }
            let state = now.status.state;
            if state.is_final() || state.is_interrupted() || Instant::now() >= until {
                break;
            }
            // A failure is ignored: the task may have ended in the meantime.
            let listening = Operation::Resubscribe { id: task.clone(), after: None };
            let reply = self.dispatcher.ask(&self.caller, listening).await;
            let Ok((Reply::Stream(mut events), _permit)) = reply else { break };
            // A cancelled `check_task` does not cancel the task.
            let McpStreamEnd::Task = self.follow_events(&mut events, until).await? else { break };
        }
        Ok(self.current_result(&task).await?.into())
    }

    /// Cancels a task.
    pub(super) async fn cancel(&self, task: &TaskId) -> Result<CallToolResponse, A2aError> {
        let task = self.end(task).await?;
        let mut result = result::of_task(&task);
        // A cancelled task is the requested result, not an error.
        result.is_error = Some(task.status.state != TaskState::Canceled);
        Ok(result.into())
    }

    /// Sends a message and follows its task, including questions that the user answers. Dropping
    /// the call earlier cancels its task. With `hands_over`, a call that takes longer than `wait`
    /// is answered with a task.
    async fn converse(
        &self,
        operation: Operation,
        agent: Option<&str>,
        wait: Duration,
        hands_over: bool,
    ) -> Result<CallToolResponse, A2aError> {
        let mut guard = None;
        let response =
            self.wait_until_settled(operation, agent, (wait, hands_over), &mut guard).await;
        if let Some(guard) = guard {
            guard.disarm();
        }
        response
    }

    async fn wait_until_settled(
        &self,
        mut operation: Operation,
        agent: Option<&str>,
        (wait, hands_over): (Duration, bool),
        guard: &mut Option<CancelOnDrop>,
    ) -> Result<CallToolResponse, A2aError> {
        loop {
            let until = Instant::now() + wait;
            let begun = self.dispatcher.begin(&self.caller, operation, self.stop).await?;
            let Begun { mut events, task: id, guard: new, permit: _permit } = begun;
            if let Some(before) = guard.replace(new) {
                before.disarm();
            }
            match self.follow_events(&mut events, until).await? {
                McpStreamEnd::Message(message) => return Ok(result::of_message(&message).into()),
                McpStreamEnd::Cancelled => return Ok(result::of_task(&self.end(&id).await?).into()),
                McpStreamEnd::Late | McpStreamEnd::Task => {}
            }
            let task = self.task(&id).await?;
            if let Some(next) = handoff::successor(&task) {
                let remaining = until.saturating_duration_since(Instant::now());
                return Box::pin(self.check(&next, remaining)).await;
            }
            if !task.status.state.is_interrupted() {
                let goes_on = hands_over && !task.status.state.is_final();
                return Ok(if goes_on {
                    tasks::created(&task).into()
                } else {
                    result::of_task(&task).into()
                });
            }
            match self.put(&task, agent).await? {
                Put::Answered(answer) => operation = *answer,
                Put::Form(form) => return Ok(*form),
                Put::Unanswered => return Ok(result::of_task(&task).into()),
            }
        }
    }

    /// Follows the events until the task ends or waits, and sends progress to the client.
    pub(super) async fn follow_events(
        &self,
        events: &mut ReplyStream,
        until: Instant,
    ) -> Result<McpStreamEnd, A2aError> {
        let ReplyStream::Task(events) = events else { return Err(unexpected()) };
        let (mut narration, mut tell_at) = (Narration::default(), None);
        let mut sent = 0;
        loop {
            let moment = tell_at.unwrap_or(until);
            let event = tokio::select! {
                event = events.next() => event,
                () = self.context.ct.cancelled() => return Ok(self.end_reason()),
                () = sleep_until(moment.min(until)) => {
                    self.send_progress(&mut narration, &mut sent).await;
                    tell_at = None;
                    if Instant::now() >= until {
                        return Ok(McpStreamEnd::Late);
                    }
                    continue;
                }
            };
            let Some(event) = event else { break };
            let event = event.map_err(|why| {
                tracing::error!(task = %events.task(), %why, "tool call failed");
                A2aError::new(
                    ErrorKind::Internal,
                    "the store failed; `check_task` tells what became of the task",
                )
            })?;
            #[cfg(test)]
            crate::tests::panic_if_told(&event.event);
            if let TaskEvent::Reply(message) = &event.event {
                return Ok(McpStreamEnd::Message(message.clone()));
            }
            if narration.add(&event.event) {
                self.send_progress(&mut narration, &mut sent).await;
                tell_at = None;
            } else if !narration.is_empty() && tell_at.is_none() {
                tell_at = Some(Instant::now() + MOMENT);
            }
        }
        self.send_progress(&mut narration, &mut sent).await;
        Ok(McpStreamEnd::Task)
    }

    /// Reason for the end of the client's connection. During a stop of the hub the task continues.
    fn end_reason(&self) -> McpStreamEnd {
        if self.stop.is_cancelled() { McpStreamEnd::Late } else { McpStreamEnd::Cancelled }
    }

    /// Sends the collected lines as progress, if the client gave a token.
    async fn send_progress(&self, narration: &mut Narration, sent: &mut u32) {
        let lines = narration.take_lines();
        let Some(token) = self.context.meta.get_progress_token() else { return };
        for line in lines {
            *sent += 1;
            let progress = ProgressNotificationParam::new(token.clone(), f64::from(*sent));
            // A disconnect is detected by the call's cancellation token.
            let _ = self.context.peer.notify_progress(progress.with_message(line)).await;
        }
    }

    /// Presents a task's question to the user, if the client supports it.
    async fn put(&self, task: &Task, agent: Option<&str>) -> Result<Put, A2aError> {
        // A question of an agent's child task goes to the client of the root task instead.
        let is_program = matches!(self.caller, Principal::AgentTask { .. });
        if is_program || !self.shows_forms() {
            return Ok(Put::Unanswered);
        }
        let Some(form) = question::form(task, agent) else { return Ok(Put::Unanswered) };
        if self.repeats_calls() {
            return Ok(Put::Form(Box::new(result::asks(task, form).into())));
        }
        Ok(match self.fill(task, form).await {
            FormOutcome::Answered(answer) => {
                let answer = message_builder::answer(
                    &task.id,
                    message_builder::text(&answer),
                    question_view::id(task).as_deref(),
                )?;
                Put::Answered(Box::new(answer))
            }
            FormOutcome::Unanswered => Put::Unanswered,
            FormOutcome::Cancelled => {
                if let McpStreamEnd::Cancelled = self.end_reason() {
                    self.end(&task.id).await?;
                }
                Put::Unanswered
            }
        })
    }

    /// True if the client shows forms to its user.
    pub(super) fn shows_forms(&self) -> bool {
        self.context.client_capabilities().is_some_and(|can| asks_users(&can))
    }

    /// True if the client shows a form that is the result of a call, and repeats the call with the
    /// user's answer; other versions have requests of the server.
    pub(super) fn repeats_calls(&self) -> bool {
        self.context.protocol_version() >= Some(ProtocolVersion::V_2026_07_28)
    }

    /// Shows the user the form of a task's question, in versions with requests of the server.
    pub(super) async fn fill(&self, task: &Task, form: ElicitRequestParams) -> FormOutcome {
        match self.elicit(form).await {
            Some(filled) => question::answer(task, &filled)
                .map_or(FormOutcome::Unanswered, FormOutcome::Answered),
            None if self.context.ct.is_cancelled() => FormOutcome::Cancelled,
            None => FormOutcome::Unanswered,
        }
    }

    /// Shows the user a form, in versions with requests of the server; `None` without an answer in
    /// time, or if the client cancels the call.
    pub(super) async fn elicit(&self, form: ElicitRequestParams) -> Option<ElicitResult> {
        tokio::select! {
            filled = timeout(FORM_TIMEOUT, self.context.peer.create_elicitation(form)) => {
                filled.ok()?.ok()
            }
            () = self.context.ct.cancelled() => None,
        }
    }

    async fn current_result(&self, task: &TaskId) -> Result<rmcp::model::CallToolResult, A2aError> {
        Ok(result::of_task(&self.task(task).await?))
    }

    pub(super) async fn task(&self, id: &TaskId) -> Result<Task, A2aError> {
        self.one(Operation::GetTask { id: id.clone(), history_length: Some(0) }).await
    }

    /// Cancels the task.
    pub(super) async fn end(&self, id: &TaskId) -> Result<Task, A2aError> {
        self.one(Operation::CancelTask { id: id.clone() }).await
    }

    /// Carries out an operation whose answer is a task.
    pub(super) async fn one(&self, operation: Operation) -> Result<Task, A2aError> {
        match self.dispatcher.ask(&self.caller, operation).await?.0 {
            Reply::One(operation::Answer::Task(task)) => Ok(*task),
            Reply::One(_) | Reply::Stream(_) => Err(unexpected()),
        }
    }
}

/// True if the client can show forms. Elicitation without modes means forms.
fn asks_users(client: &ClientCapabilities) -> bool {
    client.elicitation.as_ref().is_some_and(|can| can.form.is_some() || can.url.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_without_form_mode_gets_no_form() {
        for (can, asks) in [
            (serde_json::json!({}), false),
            (serde_json::json!({ "elicitation": {} }), true),
            (serde_json::json!({ "elicitation": { "form": {} } }), true),
            (serde_json::json!({ "elicitation": { "form": {}, "url": {} } }), true),
            (serde_json::json!({ "elicitation": { "url": {} } }), false),
        ] {
            let client = serde_json::from_value(can.clone()).unwrap();
            assert_eq!(asks_users(&client), asks, "{can}");
        }
    }
}
