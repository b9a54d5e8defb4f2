//! Generations of tasks for clients of official A2A that activate the extension, if the operator
//! allows it: on tasks and their events, as the condition of a message, and as a long poll.

use crate::dispatcher::{Dispatcher, RequestContext};
use a2a_hub_core::access_control::Caller;
use a2a_hub_engine::conversations::generation::{self, EXTENSION, TaskTimeline};
use a2a_hub_engine::{ClientContext, Reply, ReplyStream};
use a2a_hub_protocol::{
    dialect::{Dialect, Wire},
    error::{A2aError, ErrorKind},
    id::{AgentId, TaskId},
    member,
    operation::{Answer, Operation},
    task::Task,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Maximum time for which `GetTask` waits for a change: less than proxies wait for an answer.
const LONG_POLL: Duration = Duration::from_secs(30);

/// A read of a task.
struct TaskRead<'a> {
    id: &'a TaskId,
    history_length: Option<usize>,
    /// Generation that the client has already; the read waits for another one.
    known: Option<u64>,
    /// True if the timeline is read as well.
    timeline: bool,
}

impl Dispatcher {
    /// True if this request gets generations.
    pub(crate) fn numbers(&self, dialect: Dialect, of: &RequestContext<'_>) -> bool {
        let is_official = matches!(dialect, Dialect::Official(_));
        self.has_generations() && is_official && of.extensions.iter().any(|uri| uri == EXTENSION)
    }

    /// Describes the client of a request, without an extension that the hub does not offer.
    pub(crate) fn client_context(
        &self,
        of: &RequestContext<'_>,
        wire: Wire,
        agent: Option<AgentId>,
    ) -> ClientContext {
        let mut client_context = of.client_context(wire, agent);
        client_context.extensions.retain(|uri| self.has_generations() || uri != EXTENSION);
        client_context
    }

    /// Declares the extension in a card, if the hub offers it.
    pub fn declare_generations(&self, card: &mut Value) {
        if !self.has_generations() {
            return;
        }
        let about = "Generation of tasks and events, after a draft of A2A 1.1";
        let extension = json!({ "uri": EXTENSION, "description": about, "required": false });
        let Some(capabilities) = card.get_mut("capabilities") else { return };
        match capabilities.get_mut("extensions").and_then(Value::as_array_mut) {
            Some(all) => all.push(extension),
            None => member::set(capabilities, "extensions", json!([extension])),
        }
    }

    /// Carries out an operation of a client of official A2A. With `numbers`, tasks have their
    /// generation.
    pub(crate) async fn for_client(
        &self,
        caller: Caller,
        client_context: &ClientContext,
        operation: Operation,
        (of, numbers): (&RequestContext<'_>, bool),
    ) -> Result<Reply, A2aError> {
        if !numbers {
            return self.hub().handle(caller, Some(client_context), operation).await;
        }
        let mut history_length = None;
        if let Operation::GetTask { id, history_length } = &operation {
            let history_length = *history_length;
            let known = of.last_event_id.as_deref().and_then(|id| id.parse().ok());
            let timeline = history_length != Some(0);
            let read = TaskRead { id, history_length, known, timeline };
            let task = Box::pin(self.numbered(&caller, client_context, read)).await?;
            return Ok(Reply::One(Answer::Task(Box::new(task))));
        }
        if let Operation::SendMessage(send) | Operation::StreamMessage(send) = &operation {
            history_length = send.history_length;
            let is_new = send.message.task_id.is_none();
            if is_new && generation::expected(&send.message)?.is_some() {
                let path = format!("message.metadata.{EXTENSION}.ifGenerationMatch");
                let why = "names the generation of a task, and the message has no `taskId`";
                return Err(A2aError::invalid(&path, why));
            }
        }
        let reply = self.hub().handle(caller.clone(), Some(client_context), operation).await?;
        let Reply::One(Answer::Task(task)) = &reply else { return Ok(reply) };
        let (id, known, timeline) = (&task.id, None, false);
        let read = TaskRead { id, history_length, known, timeline };
        let task = Box::pin(self.numbered(&caller, client_context, read)).await?;
        Ok(Reply::One(Answer::Task(Box::new(task))))
    }

    /// Reads a task. Its generation is read before it, so that a client never takes an event for
    /// seen that is not in the task.
    async fn numbered(
        &self,
        caller: &Caller,
        client_context: &ClientContext,
        read: TaskRead<'_>,
    ) -> Result<Task, A2aError> {
        let TaskRead { id, history_length, known, timeline } = read;
        let get = || Operation::GetTask { id: id.clone(), history_length };
        // The access of this caller at this endpoint is checked first.
        self.hub().handle(caller.clone(), Some(client_context), get()).await?;
        let (mut generation, events) = self.generation(caller, id).await?;
        if known == Some(generation) {
            let _permit = self.admit(&caller.principal).map_err(|refused| refused.why)?;
            if let ReplyStream::Task(mut events) = events.to_the_end() {
                let _ = timeout(LONG_POLL, events.next()).await;
            }
            generation = self.generation(caller, id).await?.0;
        }
        let annotation = match timeline {
            true => self.timeline(caller, id, generation).await?.to_json(generation),
            false => json!({ "generation": generation }),
        };
        let reply = self.hub().handle(caller.clone(), Some(client_context), get()).await?;
        let Reply::One(Answer::Task(mut task)) = reply else { return Err(no_task_answer()) };
        generation::note(&mut task.metadata, annotation);
        Ok(*task)
    }

    /// Current generation of a task, and what follows it.
    async fn generation(
        &self,
        caller: &Caller,
        id: &TaskId,
    ) -> Result<(u64, ReplyStream), A2aError> {
        let listen = |after| Operation::Resubscribe { id: id.clone(), after };
        let reply = self.hub().handle(caller.clone(), None, listen(None)).await?;
        let Reply::Stream(ReplyStream::Task(mut events)) = reply else {
            return Err(no_task_answer());
        };
        let generation = match events.next().await {
            Some(Ok(event)) => event.seq,
            Some(Err(_)) | None => return Err(no_task_answer()),
        };
        let reply = self.hub().handle(caller.clone(), None, listen(Some(generation))).await?;
        match reply {
            Reply::Stream(events) => Ok((generation, events)),
            Reply::One(_) => Err(no_task_answer()),
        }
    }

    /// Timeline of a task up to this generation.
    async fn timeline(
        &self,
        caller: &Caller,
        id: &TaskId,
        generation: u64,
    ) -> Result<TaskTimeline, A2aError> {
        let all = Operation::Resubscribe { id: id.clone(), after: Some(0) };
        let reply = self.hub().handle(caller.clone(), None, all).await?;
        let Reply::Stream(events) = reply else { return Err(no_task_answer()) };
        let ReplyStream::Task(mut events) = events.to_the_end() else {
            return Err(no_task_answer());
        };
        let mut timeline = TaskTimeline::default();
        while let Some(event) = events.next().await {
            let event = event.map_err(|_| no_task_answer())?;
            timeline.add(&event);
            if event.seq >= generation {
                break;
            }
        }
        Ok(timeline)
    }
}

fn no_task_answer() -> A2aError {
    A2aError::new(ErrorKind::Internal, "the task's log cannot be read")
}
