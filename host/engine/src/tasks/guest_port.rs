//! Port from a running guest to its task's actor: one bounded queue that keeps the order.

use a2a_hub_clock as clock;
use a2a_hub_core::task::{
    list_limits::{ListEntry, TaskLists},
    metadata,
    replay::Recorded,
};
use a2a_hub_protocol::{
    event::{ArtifactUpdate, TaskEvent},
    id::QuestionId,
    message::{Message, Metadata},
    permission::{PermissionRequest, RuleAnswer},
    question::Question as AgentQuestion,
    task::{Task, TaskState},
};
use a2a_hub_runtime::{
    Ended, Failure,
    port::{
        journal::{JournalAnswer, JournalPort},
        tasks::{ClientAnswer, Emitted, Need, RuleReply, TaskPort, WaitsFor},
    },
};
use a2a_hub_store::StorageError;
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// Receiver of the next message of a task at work.
pub(super) type MessageReader = oneshot::Sender<Result<ClientAnswer, Failure>>;

/// Request of a guest to its task's actor.
pub(super) enum GuestRequest {
    /// Publish events.
    Emit(Vec<Emitted>),
    /// Ask the client a question.
    Ask(Box<GuestQuestion>),
    /// Report a request that a rule has answered; the sender is notified once that is stored.
    Ruled(Box<AnsweredRequest>, oneshot::Sender<()>),
    /// Wait for the next message; without a reader, wait no longer.
    Read(Option<MessageReader>),
    /// Release the run permit: the guest only waits for others.
    Rest(WaitsFor),
    /// Reacquire the run permit; the sender is notified once the guest may continue.
    Resume(WaitsFor, oneshot::Sender<()>),
    /// Store a journal entry before the guest receives its content; the sender is notified once it
    /// is stored.
    Record(Box<Recorded<JournalAnswer>>, oneshot::Sender<()>),
}

/// A question to the client.
pub(super) struct GuestQuestion {
    pub(super) id: QuestionId,
    pub(super) opened_at: String,
    pub(super) need: Need,
    pub(super) prompt: Message,
    /// Time limit of the answer.
    pub(super) timeout: Option<Duration>,
    pub(super) answer: oneshot::Sender<Result<ClientAnswer, Failure>>,
    /// Request of the agent's program that the question is about, if it named one.
    pub(super) request: Option<PermissionRequest>,
    /// The original question, if a child asks it.
    pub(super) of_child: Option<AgentQuestion>,
    /// True if the agent does nothing until it has the answer.
    pub(super) waits: bool,
}

/// Rules that answer the requests of one run for permission.
#[async_trait::async_trait]
pub(super) trait AnswerRequests: Send + Sync {
    /// Answer to a request; none if no rule answers it. With `only_denials`, rules that allow are
    /// left out.
    async fn answer(
        &self,
        request: &PermissionRequest,
        only_denials: bool,
    ) -> Result<Option<AnsweredRequest>, StorageError>;
}

/// Answer of the rules: for the agent, for the task's log, and a text for people.
pub(super) struct AnsweredRequest {
    pub(super) reply: RuleReply,
    pub(super) answer: RuleAnswer,
    pub(super) text: String,
}

/// Port of a run: queues its requests for the actor of its task.
pub(super) struct ActorPort {
    pub(super) queue: mpsc::Sender<GuestRequest>,
    /// Number of bytes that are repeated beside a status, as of the task's current state.
    pub(super) repeated_bytes: Arc<AtomicU64>,
    /// Id of an artifact that only the hub writes in this task.
    pub(super) of_hub: Option<&'static str>,
    /// Lists of the task with everything that was queued; none for what the hub itself emits, which
    /// is little.
    pub(super) lists: Option<Mutex<TaskLists>>,
    /// Rules that answer requests for permission; none for what the hub itself emits.
    pub(super) rules: Option<Arc<dyn AnswerRequests>>,
}

/// Event for the task's log, from a guest's output.
pub(super) fn event(task: &Task, emitted: Emitted) -> TaskEvent {
    match emitted {
        Emitted::Working { message, metadata } => {
            let metadata = metadata.and_then(metadata::of_agent);
            metadata::status(task, TaskState::Working, message, metadata, clock::now())
        }
        Emitted::Artifact { artifact, append, last_chunk } => {
            TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk })
        }
    }
}

/// Entry that a guest's output adds to the lists of its task.
fn list_entry(emitted: &Emitted) -> ListEntry<'_> {
    match emitted {
        Emitted::Working { metadata, .. } => ListEntry::Status(metadata.as_ref()),
        Emitted::Artifact { artifact, append, .. } => ListEntry::Artifact(artifact, *append),
    }
}

/// State and final event of the task, from a guest's end.
pub(super) fn last(task: &Task, ended: Ended) -> (TaskState, TaskEvent) {
    let now = clock::now();
    match ended {
        Ended::Reply(message) => {
            (TaskState::Completed, TaskEvent::Reply(metadata::addressed(task, message)))
        }
        Ended::Status { state, message, metadata } => {
            let metadata = metadata.and_then(metadata::of_agent);
            (state, metadata::status(task, state, message, metadata, now))
        }
        Ended::Failed(failure) => match failure.reason() {
            Some(reason) => {
                (TaskState::Failed, metadata::failed(task, reason, &failure.to_string(), now))
            }
            None => (TaskState::Canceled, metadata::canceled(task, None, now)),
        },
    }
}

impl ActorPort {
    async fn question(
        &self,
        need: Need,
        prompt: Message,
        timeout: Option<Duration>,
        (request, waits): (Option<PermissionRequest>, bool),
    ) -> Result<ClientAnswer, Failure> {
        let (answer, answered) = oneshot::channel();
        let (id, opened_at, of_child) = (QuestionId::fresh(), clock::now(), None);
        let question = GuestQuestion {
            id,
            opened_at,
            need,
            prompt,
            timeout,
            answer,
            request,
            of_child,
            waits,
        };
        self.queue
            .send(GuestRequest::Ask(Box::new(question)))
            .await
            .map_err(|_| Failure::Cancelled)?;
        answered.await.unwrap_or(Err(Failure::Cancelled))
    }
}

#[async_trait::async_trait]
impl TaskPort for ActorPort {
    async fn emit(&self, events: Vec<Emitted>) -> Result<(), Failure> {
        let is_of_hub = |event: &Emitted| match event {
            Emitted::Artifact { artifact, .. } => {
                Some(artifact.artifact_id.as_str()) == self.of_hub
            }
            Emitted::Working { .. } => false,
        };
        if let (true, Some(id)) = (events.iter().any(is_of_hub), self.of_hub) {
            return Err(Failure::Invalid(format!(
                "emit the artifact `{id}`: in a worktree it holds the changes, and the hub writes it; take another id"
            )));
        }
        if let Some(lists) = &self.lists {
            let added = lists.lock().add(events.iter().map(list_entry));
            added.map_err(|full| Failure::Exhausted(full.to_string()))?;
        }
        self.queue.send(GuestRequest::Emit(events)).await.map_err(|_| Failure::Cancelled)
    }

    async fn ask(
        &self,
        need: Need,
        prompt: Message,
        timeout: Option<Duration>,
    ) -> Result<ClientAnswer, Failure> {
        self.question(need, prompt, timeout, (None, true)).await
    }

    async fn pose(
        &self,
        need: Need,
        prompt: Message,
        timeout: Option<Duration>,
    ) -> Result<ClientAnswer, Failure> {
        self.question(need, prompt, timeout, (None, false)).await
    }

    async fn pose_request(
        &self,
        request: PermissionRequest,
        prompt: Message,
        timeout: Option<Duration>,
    ) -> Result<ClientAnswer, Failure> {
        self.question(Need::Input, prompt, timeout, (Some(request), false)).await
    }

    async fn apply_rules(
        &self,
        request: &PermissionRequest,
        only_denials: bool,
    ) -> Result<Option<RuleReply>, Failure> {
        let Some(rules) = &self.rules else { return Ok(None) };
        let answered = match rules.answer(request, only_denials).await {
            Ok(answered) => answered,
            // Rules that cannot be read allow nothing: the client is asked, or else it is denied.
            Err(why) => {
                tracing::warn!(%why, only_denials, "cannot read the standing permissions");
                let reason =
                    "the standing permissions of the operator cannot be read now; try again later";
                return Ok(only_denials.then(|| RuleReply::Denied(reason.to_owned())));
            }
        };
        let Some(answered) = answered else { return Ok(None) };
        if let Some(lists) = &self.lists {
            let facts = Metadata::from_iter([answered.answer.member()]);
            let added = lists.lock().add([ListEntry::Status(Some(&facts))]);
            added.map_err(|full| Failure::Exhausted(full.to_string()))?;
        }
        let (reply, (stored_tx, stored)) = (answered.reply.clone(), oneshot::channel());
        let sent = self.queue.send(GuestRequest::Ruled(Box::new(answered), stored_tx)).await;
        sent.map_err(|_| Failure::Cancelled)?;
        stored.await.map_err(|_| Failure::Cancelled)?;
        Ok(Some(reply))
    }

    async fn next_message(&self, max_wait: Option<Duration>) -> Result<ClientAnswer, Failure> {
        let (reader, mut message) = oneshot::channel();
        let closed = |_| Failure::Cancelled;
        self.queue.send(GuestRequest::Read(Some(reader))).await.map_err(closed)?;
        if let Some(max_wait) = max_wait {
            if let Ok(message) = timeout(max_wait, &mut message).await {
                return message.unwrap_or(Err(Failure::Cancelled));
            }
            // The actor answers: a message that it has just recorded as received is not lost.
            self.queue.send(GuestRequest::Read(None)).await.map_err(closed)?;
        }
        message.await.unwrap_or(Err(Failure::Cancelled))
    }

    fn extra_status_bytes(&self) -> u64 {
        self.repeated_bytes.load(Ordering::Relaxed)
    }

    async fn release_permit(&self, waits_for: WaitsFor) {
        // An actor that is gone needs no run permit.
        let _ = self.queue.send(GuestRequest::Rest(waits_for)).await;
    }

    async fn reacquire_permit(&self, waits_for: WaitsFor) -> Result<(), Failure> {
        let (call, called) = oneshot::channel();
        let sent = self.queue.send(GuestRequest::Resume(waits_for, call)).await;
        sent.map_err(|_| Failure::Cancelled)?;
        called.await.map_err(|_| Failure::Cancelled)
    }
}

#[async_trait::async_trait]
impl JournalPort for ActorPort {
    async fn record(&self, recorded: Recorded<JournalAnswer>) -> Result<(), Failure> {
        let (keep, stored) = oneshot::channel();
        let sent = self.queue.send(GuestRequest::Record(Box::new(recorded), keep)).await;
        sent.map_err(|_| Failure::Cancelled)?;
        stored.await.map_err(|_| Failure::Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ContextId, TaskId},
        task::TaskStatus,
    };
    use serde_json::json;

    /// Applies to the final event as well, since another run of the agent may follow.
    #[test]
    fn hub_facts_are_stripped_from_agent_metadata() {
        let status =
            TaskStatus { state: TaskState::Working, message: None, timestamp: String::new() };
        let (id, context_id) = (TaskId::new("t"), ContextId::new("c"));
        let (artifacts, history) = (Vec::new(), Vec::new());
        let task = Task { id, context_id, status, artifacts, history, metadata: None };
        let said = json!({
            "grantedPermissions": "full", "parentTaskId": null, "question": { "id": "q" }, "tokens": 1,
            "blackboardChange": { "id": "c" }
        });
        let metadata: Option<Metadata> = said.as_object().cloned();
        let (state, message) = (TaskState::Completed, None);
        let working = Emitted::Working { message: None, metadata: metadata.clone() };
        let (_, ended) = last(&task, Ended::Status { state, message, metadata });
        for told in [event(&task, working), ended] {
            let TaskEvent::Status(update) = told else { panic!("{told:?}") };
            assert_eq!(json!(update.metadata), json!({ "tokens": 1 }));
        }
    }
}
