//! A local task that a remote agent works on: its events become the local task's, and its questions
//! go to the local client.

#[cfg(test)]
mod tests;

use super::peer::{RemotePeer, Responses};
use a2a_hub_client::{ClientError, PAUSES, with_trace};
use a2a_hub_core::task::{
    fold::TaskFold,
    state,
    trace_context::{self, Trace, without_trace},
};
use a2a_hub_process::Panicked;
use a2a_hub_protocol::{
    error::ErrorKind,
    event::{ArtifactUpdate, StreamResponse, TaskEvent},
    hub_metadata::ADDITIONAL_DIRECTORIES,
    id::{ContextId, QuestionId, TaskId},
    message::{Message, Metadata, Role},
    operation::SendMessage,
    question::{QUESTION, Question},
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_runtime::{
    Call, Ended, Failure, Run, Work,
    port::{
        Ports,
        tasks::{ClientAnswer, Emitted, Need, TaskPort},
    },
};
use futures::StreamExt as _;
use serde_json::json;
use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// Time that a cancel request to a remote agent may take.
const STOP: Duration = Duration::from_secs(2);

/// Interval at which an interrupted remote task is polled: the agent may continue without an
/// answer.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Failure of a task that the remote agent no longer knows.
const LOST: &str = "the agent elsewhere does not know the task any more; send its message anew";

/// Run of a remote agent. Dropping it only stops listening.
#[derive(Debug)]
pub(super) struct RemoteRun {
    run: JoinSet<Ended>,
    cancel: CancellationToken,
    peer: RemotePeer,
    /// Local id of the task.
    task: TaskId,
}

impl RemoteRun {
    pub(super) fn start(peer: RemotePeer, call: &Call, work: Work) -> Self {
        let message = work.message;
        let input = ClientAnswer { message, client: call.client.clone() };
        Self::new(peer, &call.ports, work.task, Some(input))
    }

    /// Reattaches to a remote task after a restart of the hub.
    pub(super) fn follow(peer: RemotePeer, call: &Call, task: Task) -> Self {
        Self::new(peer, &call.ports, task, None)
    }

    fn new(peer: RemotePeer, ports: &Ports, ours: Task, input: Option<ClientAnswer>) -> Self {
        let (cancel, task) = (CancellationToken::new(), ours.id.clone());
        let mut run = JoinSet::new();
        if let Some(port) = ports.tasks.clone() {
            let (peer, theirs, question, prompt) = (peer.clone(), None, None, None);
            let ours = TaskFold::new(ours);
            let remote = RemoteTask { peer, port, ours, theirs, asking: false, question, prompt };
            let trace = trace_context::message_context(Some(&remote.trace()));
            let work = with_trace(trace, remote.run(input, cancel.clone()));
            run.spawn(work.in_current_span());
        } else {
            let why = "talk to the agent: the call has nobody to tell of the task".to_owned();
            run.spawn(async { Ended::Failed(Failure::Internal(why)) });
        }
        Self { run, cancel, peer, task }
    }
}

#[async_trait::async_trait]
impl Run for RemoteRun {
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        match self.run.poll_join_next(cx) {
            Poll::Ready(Some(Ok(ended))) => Poll::Ready(ended),
            Poll::Ready(Some(Err(why))) => {
                let why = Panicked::from(why);
                Poll::Ready(Ended::Failed(Failure::Internal(format!("talk to the agent: {why}"))))
            }
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Cancels the remote task unless it waits for the client: such a task outlives the hub, and
    /// `Runtime::clean_up` ends it.
    fn cancel(&self) {
        self.cancel.cancel();
    }

    async fn detach(&mut self) -> bool {
        self.run.shutdown().await;
        self.peer.has(&self.task).await
    }

    async fn end(&mut self) {
        self.run.shutdown().await;
    }
}

/// A local task and its remote counterpart.
struct RemoteTask {
    peer: RemotePeer,
    port: Arc<dyn TaskPort>,
    /// The local task, updated by the events received so far.
    ours: TaskFold,
    /// Remote id of the task, once known.
    theirs: Option<TaskId>,
    /// True if the remote agent waits for the client.
    asking: bool,
    /// Remote id of the last question, if it has one.
    question: Option<QuestionId>,
    /// The last question.
    prompt: Option<(Need, Message)>,
}

/// Failure of a remote task.
enum Broken {
    /// The remote agent refuses, or does not answer.
    There(ClientError),
    /// A local failure.
    Here(Failure),
}

impl From<ClientError> for Broken {
    fn from(why: ClientError) -> Self {
        Self::There(why)
    }
}

impl From<Failure> for Broken {
    fn from(why: Failure) -> Self {
        Self::Here(why)
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::There(why) => failure(&why),
            Broken::Here(why) => why,
        }
    }
}

/// State in which a remote task comes to rest.
enum Rest {
    Ended(Ended),
    Asks(Need, Message),
}

impl RemoteTask {
    /// Runs the task. `input` is the client's message; without it, the remote agent already has the
    /// task.
    async fn run(mut self, input: Option<ClientAnswer>, cancel: CancellationToken) -> Ended {
        let ended = cancel.run_until_cancelled(self.talk(input)).await;
        match ended {
            Some(Ok(ended)) => ended,
            Some(Err(why)) => {
                self.stop().await;
                Ended::Failed(why)
            }
            // The remote task stays pending, because a question outlives the hub. If the task
            // itself was cancelled, `Runtime::clean_up` cancels the remote task.
            None if self.asking => Ended::Failed(Failure::Cancelled),
            None => {
                self.stop().await;
                Ended::Failed(Failure::Cancelled)
            }
        }
    }

    /// Cancels the remote task. Failures are logged and ignored.
    async fn stop(&self) {
        let stopped = self.peer.stop(&self.ours.task().id, self.theirs.clone());
        if let Ok(Err(why)) = timeout(STOP, stopped).await {
            tracing::debug!(task = %self.ours.task().id, %why, "cannot cancel the task at a remote agent");
        }
    }

    /// Relays messages until the remote agent asks no further question.
    async fn talk(&mut self, mut input: Option<ClientAnswer>) -> Result<Ended, Failure> {
        let context = self.peer.context(&self.ours.task().context_id).await;
        // Known if the task was working or interrupted when the previous process ended.
        self.theirs = self.peer.task(&self.ours.task().id).await;
        loop {
            let answers = input.is_some() && self.theirs.is_some();
            let rest = match self.exchange(input.take(), context.as_ref()).await {
                Ok(rest) => rest,
                Err(Broken::There(why)) if answers => self.not_taken(why).await?,
                Err(why) => return Err(why.into()),
            };
            match rest {
                Rest::Ended(ended) => return Ok(ended),
                Rest::Asks(need, prompt) => input = self.ask(need, prompt).await?,
            }
        }
    }

    /// Sends the client's message, if any, and handles the response.
    async fn exchange(
        &mut self,
        input: Option<ClientAnswer>,
        context: Option<&ContextId>,
    ) -> Result<Rest, Broken> {
        let Some(input) = input else {
            let stream = self.listen()?;
            return self.follow(stream).await;
        };
        let mut pauses = PAUSES.iter();
        let stream = loop {
            match (self.send_input(input.clone(), context.cloned()).await, self.theirs.is_some()) {
                // Nothing was delivered, so the message can be sent again.
                (Err(Broken::There(why)), true) if why.was_not_sent() => {
                    let Some(pause) = pauses.next() else { return Err(why.into()) };
                    sleep(Duration::from_secs(*pause)).await;
                }
                (stream, _) => break stream?,
            }
        };
        self.follow(stream).await
    }

    /// Asks the client the remote agent's question. Returns none if the remote agent has continued
    /// without the answer or asks something else; the remote task is polled for that.
    async fn ask(&mut self, need: Need, prompt: Message) -> Result<Option<ClientAnswer>, Failure> {
        self.asking = true;
        let text = prompt.joined_text();
        self.prompt = Some((need, prompt.clone()));
        let port = Arc::clone(&self.port);
        let mut answer = port.ask(need, prompt, None);
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break Some(answer?),
                () = sleep(POLL_INTERVAL) => {}
            }
            let Some(theirs) = self.theirs.clone() else { continue };
            // An unreachable agent is polled again.
            let Ok(now) = self.peer.client().get(theirs).await else { continue };
            let question_id =
                Question::from_metadata(now.metadata.as_ref()).map(|question| question.id);
            let current_text =
                now.status.message.map(|message| message.joined_text()).unwrap_or_default();
            let is_the_same = if self.question.is_some() {
                question_id == self.question
            } else {
                current_text == text
            };
            if !now.status.state.is_interrupted() || !is_the_same {
                break None;
            }
        };
        self.asking = false;
        Ok(answer)
    }

    /// State of a remote task after a refused answer: a new question goes to the client, and a
    /// final state ends the task. If the agent was not reached, the same question is asked again.
    async fn not_taken(&mut self, why: ClientError) -> Result<Rest, Failure> {
        let tell = |prefix: &str| {
            let message = Message::text(Role::Agent, format!("{prefix}: {why}"));
            vec![Emitted::Working { message: Some(message), metadata: None }]
        };
        if why.was_not_sent()
            && let Some((need, prompt)) = self.prompt.clone()
        {
            self.emit(tell("the agent elsewhere was not reached with the answer; answer again"))
                .await?;
            return Ok(Rest::Asks(need, prompt));
        }
        let (ClientError::Refused(_), Some(theirs)) = (&why, self.theirs.clone()) else {
            return Err(failure(&why));
        };
        let now = self.peer.client().get(theirs).await.map_err(|_| failure(&why))?;
        self.emit(tell("the agent elsewhere did not take the answer")).await?;
        match self.handle_event(StreamResponse::Task(Box::new(now))).await? {
            Some(rest) => Ok(rest),
            None => {
                let stream = self.listen()?;
                Ok(self.follow(stream).await?)
            }
        }
    }

    /// Trace context for the remote task: a span below that of the local task.
    fn trace(&self) -> Metadata {
        let ours = self.ours.task();
        Trace::for_task(&ours.id, ours.metadata.as_ref()).members()
    }

    /// Rewrites the client's message for the remote agent: with remote ids, and with the local
    /// trace context.
    fn to_remote_message(&self, message: Message, context: Option<ContextId>) -> Message {
        let mut metadata = without_trace(message.metadata.unwrap_or_default());
        metadata.retain(|name, _| {
            ![
                "targetAgent",
                "targetSkill",
                "targetVersion",
                "allowOlder",
                "workingDirectory",
                ADDITIONAL_DIRECTORIES,
                QUESTION,
            ]
            .contains(&&**name)
        });
        if let Some(question) = &self.question {
            metadata.insert(QUESTION.to_owned(), question.as_str().into());
        }
        metadata.extend(self.trace());
        Message {
            task_id: self.theirs.clone(),
            // The remote task already belongs to a context.
            context_id: context.filter(|_| self.theirs.is_none()),
            metadata: Some(metadata),
            reference_task_ids: Vec::new(),
            ..message
        }
    }

    async fn send_input(
        &self,
        input: ClientAnswer,
        context: Option<ContextId>,
    ) -> Result<Responses, Broken> {
        let ClientAnswer { message, client } = input;
        let send = SendMessage::new(self.to_remote_message(message, context), None);
        let send = send.map_err(|why| Failure::Invalid(why.to_string()))?;
        let send = SendMessage { client, ..send };
        Ok(self.peer.client().stream(send).await?)
    }

    fn listen(&self) -> Result<Responses, Failure> {
        let theirs = self.theirs.clone().ok_or_else(|| Failure::Unavailable(LOST.to_owned()))?;
        Ok(self.peer.client().subscribe(theirs))
    }

    async fn follow(&mut self, mut stream: Responses) -> Result<Rest, Broken> {
        while let Some(event) = stream.next().await {
            if let Some(rest) = self.handle_event(event?).await? {
                return Ok(rest);
            }
        }
        Err(Failure::Unavailable("it hung up before the task ended".to_owned()).into())
    }

    /// Handles an event of the remote task; returns the resting state, if it has one.
    async fn handle_event(&mut self, event: StreamResponse) -> Result<Option<Rest>, Failure> {
        match event {
            StreamResponse::Message(message) => Ok(Some(Rest::Ended(Ended::Reply(anew(message))))),
            StreamResponse::Task(task) => {
                self.knows(&task.id, &task.context_id).await;
                let is_last = task.status.state.is_final();
                let new: Vec<_> = task
                    .artifacts
                    .into_iter()
                    .filter_map(|now| {
                        let before = self.ours.artifact(&now.artifact_id);
                        state::catch_up(before, now, is_last)
                    })
                    .collect();
                self.make(new).await?;
                if self.is_redundant(&task.status) {
                    return Ok(None);
                }
                self.status(task.status, task.metadata).await
            }
            StreamResponse::Status { task, context, update } => {
                self.knows(&task, &context).await;
                self.status(update.status, update.metadata).await
            }
            StreamResponse::Artifact { update, .. } => {
                self.make(vec![update]).await?;
                Ok(None)
            }
        }
    }

    /// True if a status adds nothing to the last one.
    fn is_redundant(&self, now: &TaskStatus) -> bool {
        let before = &self.ours.task().status;
        let id = |status: &TaskStatus| status.message.as_ref().map(|it| it.message_id.clone());
        let silent = now.message.is_none() || id(now) == id(before);
        now.state == TaskState::Working && before.state == TaskState::Working && silent
    }

    async fn status(
        &mut self,
        status: TaskStatus,
        metadata: Option<Metadata>,
    ) -> Result<Option<Rest>, Failure> {
        let message = status.message.map(anew);
        let question = Question::from_metadata(metadata.as_ref());
        let asks = |need, message: Option<Message>| {
            let mut prompt = message.unwrap_or_else(|| Message::text(Role::Agent, ""));
            if let Some(Question { kind, .. }) = &question {
                let facts = prompt.metadata.get_or_insert_with(Metadata::new);
                facts.insert(QUESTION.to_owned(), json!({ "kind": kind }));
            }
            self.question = question.map(|it| it.id);
            Rest::Asks(need, prompt)
        };
        Ok(match status.state {
            TaskState::Submitted => None,
            // The message of a state that this version does not know is progress.
            TaskState::Unknown if message.is_none() => None,
            TaskState::Working | TaskState::Unknown => {
                let status = self.ours.status_mut();
                (status.state, status.message) = (TaskState::Working, message.clone());
                self.emit(vec![Emitted::Working { message, metadata }]).await?;
                None
            }
            TaskState::InputRequired => Some(asks(Need::Input, message)),
            TaskState::AuthRequired => Some(asks(Need::Auth, message)),
            TaskState::Completed
            | TaskState::Failed
            | TaskState::Canceled
            | TaskState::Rejected => {
                Some(Rest::Ended(Ended::Status { state: status.state, message, metadata }))
            }
        })
    }

    async fn knows(&mut self, task: &TaskId, context: &ContextId) {
        if self.theirs.as_ref() != Some(task) {
            self.theirs = Some(task.clone());
            let ours = self.ours.task();
            self.peer.remember((&ours.id, &ours.context_id), (task, context)).await;
        }
    }

    async fn make(&mut self, updates: Vec<ArtifactUpdate>) -> Result<(), Failure> {
        let mut emitted = Vec::with_capacity(updates.len());
        for update in updates {
            let mut event = TaskEvent::Artifact(update);
            self.ours.begin_artifact(&mut event);
            // A task that is not final accepts any artifact.
            let _ = self.ours.apply(&event);
            if let TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk }) = event {
                emitted.push(Emitted::Artifact { artifact, append, last_chunk });
            }
        }
        self.emit(emitted).await
    }

    async fn emit(&self, events: Vec<Emitted>) -> Result<(), Failure> {
        if events.is_empty() { Ok(()) } else { self.port.emit(events).await }
    }
}

/// Removes remote ids from a message; the hub adds its own.
fn anew(message: Message) -> Message {
    Message { task_id: None, context_id: None, reference_task_ids: Vec::new(), ..message }
}

fn failure(why: &ClientError) -> Failure {
    // An answer that cannot be read is no fault of the client's request.
    if why.is_passing() || matches!(why, ClientError::Senseless { .. }) {
        Failure::Unavailable(why.to_string())
    } else if matches!(why, ClientError::Refused(why) if why.kind == ErrorKind::TaskNotFound) {
        Failure::Unavailable(LOST.to_owned())
    } else {
        Failure::Invalid(why.to_string())
    }
}
