//! Stream of a task's updates as server-sent events: the current state first, then each change
//! until the end. Each update is complete by itself. The first and the last one contain all
//! artifacts.
//!
//! A client resumes with `Last-Event-ID`: the log is read from the beginning, and updates that the
//! client received are skipped.

use super::refusals::{named, refused};
use crate::five_step::model::{EVENT, status::TaskSnapshot};
use crate::http::{
    context::{hub_url, last_event},
    sse::{NamedEvent, event_stream, from_the_start, with_keep_alive},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::{ClientContext, Reply, ReplyStream};
use a2a_hub_protocol::{
    error::A2aError,
    event::{ArtifactUpdate, SequencedEvent, TaskEvent},
    hub::answer::AGENTS,
    id::{AgentId, TaskId},
    interface::Version,
    operation::{Answer, Operation},
    task::{Artifact, Task},
};
use a2a_hub_rpc::{
    begun_tasks::unexpected,
    dispatcher::{Dispatcher, HUB},
    stream_quota::StreamPermit,
};
use axum::{
    Extension,
    extract::{Path, State},
    http::HeaderMap,
    response::Response,
};
use futures::stream;
use serde_json::Value;

pub(super) async fn at_root(
    State(dispatcher): State<Dispatcher>,
    Path(task): Path<String>,
    Extension(caller): Extension<Principal>,
    headers: HeaderMap,
) -> Response {
    let agent = dispatcher.public_endpoints().root_agent.clone();
    let path = agent.as_ref().map_or_else(|| HUB.to_owned(), |agent| format!("{AGENTS}{agent}"));
    respond(dispatcher, agent, &path, TaskId::new(task), caller, &headers).await
}

pub(super) async fn of_agent(
    State(dispatcher): State<Dispatcher>,
    Path((id, task)): Path<(String, String)>,
    Extension(caller): Extension<Principal>,
    headers: HeaderMap,
) -> Response {
    match named(&dispatcher, &id) {
        Ok(agent) => {
            let path = format!("{AGENTS}{agent}");
            respond(dispatcher, Some(agent), &path, TaskId::new(task), caller, &headers).await
        }
        Err(why) => refused(&why),
    }
}

/// Streams the updates of a task; `path` is the endpoint for answers to its questions.
async fn respond(
    dispatcher: Dispatcher,
    agent: Option<AgentId>,
    path: &str,
    task: TaskId,
    caller: Principal,
    headers: &HeaderMap,
) -> Response {
    let after = last_event(headers).and_then(|id| id.parse().ok());
    let root = hub_url(&dispatcher, headers);
    let answer_url = format!("{}{path}", root.trim_end_matches('/'));
    let snapshot = TaskSnapshot::new(task.clone(), answer_url);
    match Updates::begin(dispatcher, caller, agent, task, after, snapshot).await {
        Ok(updates) => {
            let frames = stream::unfold(updates, async |mut updates| {
                Some((Ok(with_keep_alive(updates.next()).await?), updates))
            });
            event_stream(from_the_start(frames))
        }
        Err(why) => refused(&why),
    }
}

/// Updates of a task for one client. `next` is cancel-safe.
struct Updates {
    dispatcher: Dispatcher,
    caller: Principal,
    task: TaskId,
    events: ReplyStream,
    snapshot: TaskSnapshot,
    /// Sequence number of the last event that the client received.
    after: u64,
    /// Sequence number of the final event, until its update is sent.
    ending: Option<u64>,
    over: bool,
    _permit: Option<StreamPermit>,
}

impl Updates {
    /// Subscribes to the task, if it belongs to this endpoint's agent. The hub's endpoint accepts
    /// all tasks.
    async fn begin(
        dispatcher: Dispatcher,
        caller: Principal,
        agent: Option<AgentId>,
        task: TaskId,
        after: Option<u64>,
        snapshot: TaskSnapshot,
    ) -> Result<Self, A2aError> {
        if agent.is_some() {
            let client_context =
                ClientContext { agent, version: Version::V1, extensions: Vec::new() };
            let known = Operation::GetTask { id: task.clone(), history_length: Some(0) };
            dispatcher.hub().handle(&caller, Some(&client_context), known).await?;
        }
        let listen = Operation::Resubscribe { id: task.clone(), after };
        let (reply, permit) = dispatcher.ask(&caller, listen).await?;
        let Reply::Stream(events) = reply else { return Err(unexpected()) };
        let mut events = events.to_the_end();
        if let (ReplyStream::Task(events), Some(_)) = (&mut events, after) {
            events.resume(0);
        }
        let after = after.unwrap_or(0);
        Ok(Self {
            dispatcher,
            caller,
            task,
            events,
            snapshot,
            after,
            ending: None,
            over: false,
            _permit: permit,
        })
    }

    /// Next encoded update; `None` at the end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if self.over {
                return None;
            }
            if let Some(number) = self.ending {
                let update = match self.full_task().await {
                    Ok(task) => self.snapshot.to_final_json(task),
                    // The task may have been deleted in the meantime.
                    Err(why) => {
                        tracing::warn!(task = %self.task, %why, "cannot read the ended task, sending its final update without artifacts");
                        self.snapshot.to_json(&[])
                    }
                };
                (self.ending, self.over) = (None, true);
                return Some(frame(number, &update));
            }
            let ReplyStream::Task(events) = &mut self.events else { return None };
            let event = match events.next().await? {
                Ok(event) => event,
                Err(why) => {
                    tracing::error!(task = %self.task, %why, "update stream failed");
                    return None;
                }
            };
            if let Some(update) = self.apply(&event) {
                return Some(frame(event.seq, &update));
            }
        }
    }

    /// Applies an event; returns its update, unless the event changes nothing or the client
    /// received it before.
    fn apply(&mut self, SequencedEvent { seq, event, .. }: &SequencedEvent) -> Option<Value> {
        let mut new_artifacts: &[Artifact] = &[];
        match event {
            TaskEvent::Created(created) => {
                let Task { status, metadata, artifacts, .. } = &created.task;
                self.snapshot.apply_status(status, metadata.as_ref());
                new_artifacts = artifacts;
            }
            TaskEvent::Status(update) => {
                self.snapshot.apply_status(&update.status, update.metadata.as_ref());
            }
            TaskEvent::Reply(message) => self.snapshot.apply_reply(message),
            // Growing artifacts are sent once, at the end: sending the whole text after each chunk
            // would have quadratic cost.
            TaskEvent::Artifact(ArtifactUpdate { artifact, append: false, last_chunk: true }) => {
                new_artifacts = std::slice::from_ref(artifact);
            }
            TaskEvent::Artifact(_) | TaskEvent::Input(_) => return None,
        }
        if *seq <= self.after {
            self.over = self.snapshot.is_over();
            return None;
        }
        if self.snapshot.is_over() {
            self.ending = Some(*seq);
            return None;
        }
        Some(self.snapshot.to_json(new_artifacts))
    }

    async fn full_task(&self) -> Result<Task, A2aError> {
        let get = Operation::GetTask { id: self.task.clone(), history_length: Some(0) };
        // Boxed because the future is large and needed only once.
        match Box::pin(self.dispatcher.ask(&self.caller, get)).await?.0 {
            Reply::One(Answer::Task(task)) => Ok(*task),
            Reply::One(_) | Reply::Stream(_) => Err(unexpected()),
        }
    }
}

fn frame(number: u64, update: &Value) -> Vec<u8> {
    NamedEvent { event: EVENT, number, text: &update.to_string() }.frame()
}
