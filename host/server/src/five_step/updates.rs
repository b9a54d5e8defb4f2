//! Stream of a task's updates as server-sent events: the current state first, then each change
//! until the end. Each update is complete by itself. The first and the last one contain all
//! artifacts.
//!
//! A client resumes with `Last-Event-ID`: the log is read from the beginning, and updates that the
//! client received are skipped.

use super::refusals::{named, refused};
use crate::http::{
    context::{last_event, own_url},
    sse::{NamedEvent, event_stream, from_the_start, kept_alive},
};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::{ClientContext, Reply, ReplyStream};
use a2a_hub_five_step::{EVENT, status::TaskSnapshot};
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
    let after = last_event(headers);
    let root = own_url(&dispatcher, headers);
    let answer_url = format!("{}{path}", root.trim_end_matches('/'));
    let standing = TaskSnapshot::new(task.clone(), answer_url);
    match Updates::begin(dispatcher, caller, agent, task, after, standing).await {
        Ok(updates) => {
            let frames = stream::unfold(updates, async |mut updates| {
                Some((Ok(kept_alive(updates.next()).await?), updates))
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
    heard: ReplyStream,
    standing: TaskSnapshot,
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
        standing: TaskSnapshot,
    ) -> Result<Self, A2aError> {
        if agent.is_some() {
            let visit = ClientContext { agent, version: Version::V1, extensions: Vec::new() };
            let known = Operation::GetTask { id: task.clone(), history_length: Some(0) };
            dispatcher.hub().handle(&caller, Some(&visit), known).await?;
        }
        let listen = Operation::Resubscribe { id: task.clone(), after };
        let (reply, permit) = dispatcher.ask(&caller, listen).await?;
        let Reply::Stream(heard) = reply else { return Err(unexpected()) };
        let mut heard = heard.to_the_end();
        if let (ReplyStream::Task(heard), Some(_)) = (&mut heard, after) {
            heard.resume(0);
        }
        let after = after.unwrap_or(0);
        Ok(Self {
            dispatcher,
            caller,
            task,
            heard,
            standing,
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
                let told = match self.whole().await {
                    Ok(task) => self.standing.told_whole(task),
                    // The task may have been deleted in the meantime.
                    Err(why) => {
                        tracing::warn!(task = %self.task, %why, "the end of a task is told without what it made");
                        self.standing.told(&[])
                    }
                };
                (self.ending, self.over) = (None, true);
                return Some(frame(number, &told));
            }
            let ReplyStream::Task(heard) = &mut self.heard else { return None };
            let event = match heard.next().await? {
                Ok(event) => event,
                Err(why) => {
                    tracing::error!(task = %self.task, %why, "a stream of updates broke");
                    return None;
                }
            };
            if let Some(told) = self.hear(&event) {
                return Some(frame(event.seq, &told));
            }
        }
    }

    /// Applies an event; returns its update, unless the event changes nothing or the client
    /// received it before.
    fn hear(&mut self, SequencedEvent { seq, event, .. }: &SequencedEvent) -> Option<Value> {
        let mut made: &[Artifact] = &[];
        match event {
            TaskEvent::Created(created) => {
                let Task { status, metadata, artifacts, .. } = &created.task;
                self.standing.hear(status, metadata.as_ref());
                made = artifacts;
            }
            TaskEvent::Status(update) => {
                self.standing.hear(&update.status, update.metadata.as_ref());
            }
            TaskEvent::Reply(message) => self.standing.hear_reply(message),
            // Growing artifacts are sent once, at the end: sending the whole text after each chunk
            // would have quadratic cost.
            TaskEvent::Artifact(ArtifactUpdate { artifact, append: false, last_chunk: true }) => {
                made = std::slice::from_ref(artifact);
            }
            TaskEvent::Artifact(_) | TaskEvent::Input(_) => return None,
        }
        if *seq <= self.after {
            self.over = self.standing.is_over();
            return None;
        }
        if self.standing.is_over() {
            self.ending = Some(*seq);
            return None;
        }
        Some(self.standing.told(made))
    }

    async fn whole(&self) -> Result<Task, A2aError> {
        let whole = Operation::GetTask { id: self.task.clone(), history_length: Some(0) };
        // Boxed because the future is large and needed only once.
        match Box::pin(self.dispatcher.ask(&self.caller, whole)).await?.0 {
            Reply::One(Answer::Task(task)) => Ok(*task),
            Reply::One(_) | Reply::Stream(_) => Err(unexpected()),
        }
    }
}

fn frame(number: u64, told: &Value) -> Vec<u8> {
    NamedEvent { event: EVENT, number, text: &told.to_string() }.frame()
}
