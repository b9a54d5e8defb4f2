//! One call of a tool: a message on behalf of whoever calls, what happens meanwhile, and what came of it.

use super::{
    narration::Narration,
    outcome, question,
    tools::{Answer, Ask},
};
use crate::{
    asked,
    begun::{Begun, CancelOnDrop, unexpected},
    dispatcher::Dispatcher,
    http_context,
    said::{self, Beginning},
};
use a2a_hub_core::access::Principal;
use a2a_hub_hub::{Reply, ReplyStream};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    event::TaskEvent,
    id::{AgentId, TaskId},
    message::Message,
    operation::{self, Operation},
    task::{Task, TaskState},
    trace::TraceContext,
};
use http::request::Parts;
use rmcp::{
    RoleServer,
    model::{
        CallToolResponse, ClientCapabilities, JsonObject, ProgressNotificationParam,
        ProtocolVersion,
    },
    service::RequestContext,
};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// How long text is gathered before it is told.
const MOMENT: Duration = Duration::from_millis(250);

/// How long the user may take to answer a form, while the call waits.
const PATIENCE: Duration = Duration::from_secs(600);

/// A call, and who makes it.
pub(super) struct Call<'a> {
    pub(super) dispatcher: &'a Dispatcher,
    /// Fires when the hub stops.
    pub(super) stop: &'a CancellationToken,
    pub(super) caller: Principal,
    pub(super) context: RequestContext<RoleServer>,
}

/// What a task's events end with.
enum Heard {
    /// The task is over, or waits.
    Task,
    /// The agent answered with a message, and there is no task to look at.
    Message(Message),
    /// The call waits no longer.
    Late,
    /// The client does not want the result any more.
    Cancelled,
}

/// What is done about a question.
enum Put {
    /// The user answered: the task goes on with that.
    Answered(Box<Operation>),
    /// The client asks its user, and then calls again.
    Form(Box<CallToolResponse>),
    /// It is told as the result.
    Left,
}

impl Call<'_> {
    /// Has an agent work on a message. A call that comes back with the user's answer goes on with the task that asked.
    pub(super) async fn agent(
        &self,
        agent: &AgentId,
        ask: &Ask,
        directory: Option<&str>,
        back: Option<(question::Asked, Option<String>)>,
    ) -> Result<CallToolResponse, A2aError> {
        let operation = match back {
            Some((asked, Some(answer))) => {
                said::answer(&asked.task, said::text(&answer), asked.question.as_deref())?
            }
            Some((asked, None)) => return Ok(self.standing(&asked.task).await?.into()),
            None => {
                if ask.message.trim().is_empty() {
                    return Err(A2aError::invalid("message", "is empty; say what is to be done"));
                }
                let beginning = Beginning {
                    agent: Some(agent),
                    parts: said::text(&ask.message),
                    context: ask.context_id.as_deref(),
                    directory: ask.working_directory.as_deref().or(directory),
                    model: ask.model.as_deref(),
                    permissions: None,
                };
                let mut operation = beginning.operation()?;
                operation.in_trace(&self.trace());
                operation
            }
        };
        self.converse(operation, agent.as_str(), ask.wait()).await
    }

    /// The trace that the call is part of: as the call itself says, where MCP has it (`_meta`), or else the headers of its request.
    fn trace(&self) -> TraceContext {
        let meta: &JsonObject = &self.context.meta;
        let said = TraceContext::of_metadata(Some(meta));
        let parts = self.context.extensions.get::<Parts>();
        match parts.filter(|_| said == TraceContext::default()) {
            Some(parts) => http_context::trace(&parts.headers),
            None => said,
        }
    }

    /// Answers what a task asks.
    pub(super) async fn answer(&self, answer: &Answer) -> Result<CallToolResponse, A2aError> {
        let task = TaskId::new(&*answer.task_id);
        let operation =
            said::answer(&task, said::text(&answer.message), answer.question_id.as_deref())?;
        self.converse(operation, "of this task", answer.wait()).await
    }

    /// Waits for the end of a task that is at work, and tells where it stands.
    pub(super) async fn check(
        &self,
        task: &TaskId,
        wait: Duration,
    ) -> Result<CallToolResponse, A2aError> {
        let now = self.task(task).await?;
        if now.status.state.is_final() || now.status.state.is_interrupted() || wait.is_zero() {
            return Ok(outcome::of_task(&now).into());
        }
        let until = Instant::now() + wait;
        // It may have ended meanwhile, and then there is nothing to hear.
        let listening = Operation::Resubscribe { id: task.clone(), after: None };
        if let Ok((Reply::Stream(mut heard), _permit)) =
            self.dispatcher.ask(&self.caller, listening).await
        {
            // Who only looks cancels nothing.
            self.hear(&mut heard, until).await?;
        }
        Ok(self.standing(task).await?.into())
    }

    /// Stops a task.
    pub(super) async fn cancel(&self, task: &TaskId) -> Result<CallToolResponse, A2aError> {
        let task = self.stop(task).await?;
        let mut result = outcome::of_task(&task);
        // That is what was asked for.
        result.is_error = Some(task.status.state != TaskState::Canceled);
        Ok(result.into())
    }

    /// Sends a message and hears its task out, through all that it asks and the user answers. A call that is dropped first cancels its
    /// task.
    async fn converse(
        &self,
        operation: Operation,
        agent: &str,
        wait: Duration,
    ) -> Result<CallToolResponse, A2aError> {
        let mut guard = None;
        let came = self.hear_out(operation, agent, wait, &mut guard).await;
        if let Some(guard) = guard {
            guard.disarm();
        }
        came
    }

    async fn hear_out(
        &self,
        mut operation: Operation,
        agent: &str,
        wait: Duration,
        guard: &mut Option<CancelOnDrop>,
    ) -> Result<CallToolResponse, A2aError> {
        loop {
            let until = Instant::now() + wait;
            let begun = self.dispatcher.begin(&self.caller, operation, self.stop).await?;
            let Begun { mut heard, task: id, guard: new, permit: _permit } = begun;
            if let Some(before) = guard.replace(new) {
                before.disarm();
            }
            match self.hear(&mut heard, until).await? {
                Heard::Message(message) => return Ok(outcome::of_message(&message).into()),
                Heard::Cancelled => return Ok(outcome::of_task(&self.stop(&id).await?).into()),
                Heard::Late | Heard::Task => {}
            }
            let task = self.task(&id).await?;
            if !task.status.state.is_interrupted() {
                return Ok(outcome::of_task(&task).into());
            }
            match self.put(&task, agent).await? {
                Put::Answered(answer) => operation = *answer,
                Put::Form(form) => return Ok(*form),
                Put::Left => return Ok(outcome::of_task(&task).into()),
            }
        }
    }

    /// Listens until the task is over or waits, and tells the client what happens, if it wants to know.
    async fn hear(&self, heard: &mut ReplyStream, until: Instant) -> Result<Heard, A2aError> {
        let ReplyStream::Task(heard) = heard else { return Err(unexpected()) };
        let (mut narration, mut tell_at) = (Narration::default(), None);
        let mut told = 0;
        loop {
            let moment = tell_at.unwrap_or(until);
            let event = tokio::select! {
                event = heard.next() => event,
                () = self.context.ct.cancelled() => return Ok(self.left()),
                () = sleep_until(moment.min(until)) => {
                    self.tell(&mut narration, &mut told).await;
                    tell_at = None;
                    if Instant::now() >= until {
                        return Ok(Heard::Late);
                    }
                    continue;
                }
            };
            let Some(event) = event else { break };
            let event = event.map_err(|why| {
                tracing::error!(task = %heard.task(), %why, "a call broke");
                A2aError::new(
                    ErrorKind::Internal,
                    "the store failed; `check_task` tells what became of the task",
                )
            })?;
            #[cfg(test)]
            crate::tests::panic_if_told(&event.event);
            if let TaskEvent::Reply(message) = &event.event {
                return Ok(Heard::Message(message.clone()));
            }
            if narration.hear(&event.event) {
                self.tell(&mut narration, &mut told).await;
                tell_at = None;
            } else if !narration.is_empty() && tell_at.is_none() {
                tell_at = Some(Instant::now() + MOMENT);
            }
        }
        self.tell(&mut narration, &mut told).await;
        Ok(Heard::Task)
    }

    /// What it means that the call is over for its client: a hub that stops hangs up too, and cancels nothing.
    fn left(&self) -> Heard {
        if self.stop.is_cancelled() { Heard::Late } else { Heard::Cancelled }
    }

    /// Sends what there is to tell as progress, to a client that gave a token for it.
    async fn tell(&self, narration: &mut Narration, told: &mut u32) {
        let lines = narration.tell();
        let Some(token) = self.context.meta.get_progress_token() else { return };
        for line in lines {
            *told += 1;
            let progress = ProgressNotificationParam::new(token.clone(), f64::from(*told));
            // A client that is gone ends the call elsewhere.
            let _ = self.context.peer.notify_progress(progress.with_message(line)).await;
        }
    }

    /// Puts the question of a task to the user, where the client can.
    async fn put(&self, task: &Task, agent: &str) -> Result<Put, A2aError> {
        // What a task below an agent's own asks, the hub puts to the client of the task at the root.
        let is_program = matches!(self.caller, Principal::AgentTask { .. });
        if is_program || !self.context.client_capabilities().is_some_and(|can| asks_users(&can)) {
            return Ok(Put::Left);
        }
        let Some(form) = question::form(task, agent) else { return Ok(Put::Left) };
        if self.context.protocol_version() >= Some(ProtocolVersion::V_2026_07_28) {
            return Ok(Put::Form(Box::new(outcome::asks(task, form).into())));
        }
        let filled = tokio::select! {
            filled = timeout(PATIENCE, self.context.peer.create_elicitation(form)) => filled,
            () = self.context.ct.cancelled() => {
                if let Heard::Cancelled = self.left() {
                    self.stop(&task.id).await?;
                }
                return Ok(Put::Left);
            }
        };
        let Ok(Ok(filled)) = filled else { return Ok(Put::Left) };
        Ok(match question::answer(asked::kind(task), &filled) {
            Some(answer) => {
                let answer =
                    said::answer(&task.id, said::text(&answer), asked::id(task).as_deref())?;
                Put::Answered(Box::new(answer))
            }
            None => Put::Left,
        })
    }

    async fn standing(&self, task: &TaskId) -> Result<rmcp::model::CallToolResult, A2aError> {
        Ok(outcome::of_task(&self.task(task).await?))
    }

    async fn task(&self, id: &TaskId) -> Result<Task, A2aError> {
        self.one(Operation::GetTask { id: id.clone(), history_length: Some(0) }).await
    }

    async fn stop(&self, id: &TaskId) -> Result<Task, A2aError> {
        self.one(Operation::CancelTask { id: id.clone() }).await
    }

    async fn one(&self, operation: Operation) -> Result<Task, A2aError> {
        match self.dispatcher.ask(&self.caller, operation).await?.0 {
            Reply::One(operation::Answer::Task(task)) => Ok(*task),
            Reply::One(_) | Reply::Stream(_) => Err(unexpected()),
        }
    }
}

/// Whether a client puts forms to its user. One that names no mode means these.
fn asks_users(client: &ClientCapabilities) -> bool {
    client.elicitation.as_ref().is_some_and(|can| can.form.is_some() || can.url.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_only_opens_pages_is_given_no_form() {
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
