//! A task of ours at work at an agent elsewhere: what that tells becomes ours, and its questions our client's.

#[cfg(test)]
mod tests;

use super::peer::{Peer, Responses};
use a2a_hub_client::{ClientError, PAUSES, with_trace};
use a2a_hub_core::{
    task,
    trace::{self, Trace, without_trace},
};
use a2a_hub_process::Panicked;
use a2a_hub_protocol::{
    error::ErrorKind,
    event::{ArtifactUpdate, StreamResponse, TaskEvent},
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
        tasks::{Answer, Emitted, Need, TaskPort},
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

/// How long an agent may take to hear that it is to stop.
const STOP: Duration = Duration::from_secs(2);

/// How often a task is looked at that waits for our client: its agent may go on without us.
const LOOK: Duration = Duration::from_secs(30);

/// What is told of a task that the agent has forgotten.
const LOST: &str = "the agent elsewhere does not know the task any more; send its message anew";

/// An agent elsewhere at work on a task of ours. Dropping it only stops listening.
#[derive(Debug)]
pub(super) struct RemoteRun {
    run: JoinSet<Ended>,
    cancel: CancellationToken,
    peer: Peer,
    /// Our name for the task.
    task: TaskId,
}

impl RemoteRun {
    pub(super) fn start(peer: Peer, call: &Call, work: Work) -> Self {
        let message = work.message;
        let said = Answer { message, client: call.client.clone() };
        Self::new(peer, &call.ports, work.task, Some(said))
    }

    /// Listens again to what goes on since the hub before this one ended.
    pub(super) fn follow(peer: Peer, call: &Call, task: Task) -> Self {
        Self::new(peer, &call.ports, task, None)
    }

    fn new(peer: Peer, ports: &Ports, ours: Task, said: Option<Answer>) -> Self {
        let (cancel, task) = (CancellationToken::new(), ours.id.clone());
        let mut run = JoinSet::new();
        if let Some(port) = ports.tasks.clone() {
            let (peer, theirs, question, prompt) = (peer.clone(), None, None, None);
            let remote = RemoteTask { peer, port, ours, theirs, asking: false, question, prompt };
            let trace = trace::beside(Some(&remote.trace()));
            let work = with_trace(trace, remote.run(said, cancel.clone()));
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

    /// Has the agent stop, unless it waits for our client: that outlives the hub, and `Runtime::clean_up` ends it.
    fn cancel(&self) {
        self.cancel.cancel();
    }

    async fn leave(&mut self) -> bool {
        self.run.shutdown().await;
        self.peer.has(&self.task).await
    }

    async fn end(&mut self) {
        self.run.shutdown().await;
    }
}

/// A task of ours and the one at the agent elsewhere that stands for it.
struct RemoteTask {
    peer: Peer,
    port: Arc<dyn TaskPort>,
    /// Our task, as far as it was told.
    ours: Task,
    /// What the agent calls the task, once it has said so.
    theirs: Option<TaskId>,
    /// Whether the agent waits for our client.
    asking: bool,
    /// What the agent calls the question that it asked last, if it gives questions names.
    question: Option<QuestionId>,
    /// What it asked last.
    prompt: Option<(Need, Message)>,
}

/// What went wrong with a task at an agent elsewhere.
enum Broken {
    /// It refuses, or does not answer.
    There(ClientError),
    /// Something of ours.
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

/// Where the agent came to rest.
enum Rest {
    Ended(Ended),
    Asks(Need, Message),
}

impl RemoteTask {
    /// `said` is what the client says; without it, the agent has the task already.
    async fn run(mut self, said: Option<Answer>, cancel: CancellationToken) -> Ended {
        let ended = cancel.run_until_cancelled(self.talk(said)).await;
        match ended {
            Some(Ok(ended)) => ended,
            Some(Err(why)) => {
                self.stop().await;
                Ended::Failed(why)
            }
            // A question outlives the hub; who cancels the task stops the agent as well.
            None if self.asking => Ended::Failed(Failure::Cancelled),
            None => {
                self.stop().await;
                Ended::Failed(Failure::Cancelled)
            }
        }
    }

    /// What goes wrong here is the same as never having heard of it.
    async fn stop(&self) {
        let stopped = self.peer.stop(&self.ours.id, self.theirs.clone());
        if let Ok(Err(why)) = timeout(STOP, stopped).await {
            tracing::debug!(task = %self.ours.id, %why, "an agent elsewhere was not stopped");
        }
    }

    /// Says what the client says, until the agent asks no more.
    async fn talk(&mut self, mut said: Option<Answer>) -> Result<Ended, Failure> {
        let context = self.peer.context(&self.ours.context_id).await;
        // It was at work, or waited for its client, when the hub before this one ended.
        self.theirs = self.peer.task(&self.ours.id).await;
        loop {
            let answers = said.is_some() && self.theirs.is_some();
            let rest = match self.exchange(said.take(), context.as_ref()).await {
                Ok(rest) => rest,
                Err(Broken::There(why)) if answers => self.not_taken(why).await?,
                Err(why) => return Err(why.into()),
            };
            match rest {
                Rest::Ended(ended) => return Ok(ended),
                Rest::Asks(need, prompt) => said = self.ask(need, prompt).await?,
            }
        }
    }

    /// Says what the client says, if it says something, and hears what comes of it.
    async fn exchange(
        &mut self,
        said: Option<Answer>,
        context: Option<&ContextId>,
    ) -> Result<Rest, Broken> {
        let Some(said) = said else {
            let stream = self.listen()?;
            return self.follow(stream).await;
        };
        let mut pauses = PAUSES.iter();
        let stream = loop {
            match (self.say(said.clone(), context.cloned()).await, self.theirs.is_some()) {
                // It has heard nothing, and waits for this.
                (Err(Broken::There(why)), true) if why.was_not_sent() => {
                    let Some(pause) = pauses.next() else { return Err(why.into()) };
                    sleep(Duration::from_secs(*pause)).await;
                }
                (stream, _) => break stream?,
            }
        };
        self.follow(stream).await
    }

    /// Has the client answer what the agent asks; nothing if the agent has gone on without the answer, or asks something else by now,
    /// which is looked for now and then.
    async fn ask(&mut self, need: Need, prompt: Message) -> Result<Option<Answer>, Failure> {
        self.asking = true;
        let text = prompt.joined_text();
        self.prompt = Some((need, prompt.clone()));
        let port = Arc::clone(&self.port);
        let mut answer = port.ask(need, prompt, None);
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break Some(answer?),
                () = sleep(LOOK) => {}
            }
            let Some(theirs) = self.theirs.clone() else { continue };
            // One that cannot be reached is looked for again.
            let Ok(now) = self.peer.client().get(theirs).await else { continue };
            let asked = Question::of(now.metadata.as_ref()).map(|asked| asked.id);
            let said = now.status.message.map(|said| said.joined_text()).unwrap_or_default();
            let is_the_same =
                if self.question.is_some() { asked == self.question } else { said == text };
            if !now.status.state.is_interrupted() || !is_the_same {
                break None;
            }
        };
        self.asking = false;
        Ok(answer)
    }

    /// Where the agent stands that did not take an answer: what it asks by now is our client's to answer, and its end is the task's.
    /// One that was not reached is asked for again.
    async fn not_taken(&mut self, why: ClientError) -> Result<Rest, Failure> {
        let tell = |what: &str| {
            let message = Message::text(Role::Agent, format!("{what}: {why}"));
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
        match self.hear(StreamResponse::Task(Box::new(now))).await? {
            Some(rest) => Ok(rest),
            None => {
                let stream = self.listen()?;
                Ok(self.follow(stream).await?)
            }
        }
    }

    /// Where its task is in the trace: a span below that of ours.
    fn trace(&self) -> Metadata {
        Trace::of(&self.ours.id, self.ours.metadata.as_ref()).members()
    }

    /// What the client says, as the agent is to hear it: with its own names for things, and of ours those of the trace.
    fn said(&self, message: Message, context: Option<ContextId>) -> Message {
        let mut metadata = without_trace(message.metadata.unwrap_or_default());
        metadata.retain(|name, _| {
            ![
                "targetAgent",
                "targetSkill",
                "targetVersion",
                "allowOlder",
                "workingDirectory",
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
            // It knows which conversation its task belongs to.
            context_id: context.filter(|_| self.theirs.is_none()),
            metadata: Some(metadata),
            reference_task_ids: Vec::new(),
            ..message
        }
    }

    async fn say(&self, said: Answer, context: Option<ContextId>) -> Result<Responses, Broken> {
        let Answer { message, client } = said;
        let send = SendMessage::new(self.said(message, context), None);
        let send = send.map_err(|why| Failure::Invalid(why.to_string()))?;
        let send = SendMessage { client, ..send };
        Ok(self.peer.client().stream(send).await?)
    }

    fn listen(&self) -> Result<Responses, Failure> {
        let theirs = self.theirs.clone().ok_or_else(|| Failure::Unavailable(LOST.to_owned()))?;
        Ok(self.peer.client().subscribe(theirs))
    }

    async fn follow(&mut self, mut stream: Responses) -> Result<Rest, Broken> {
        while let Some(told) = stream.next().await {
            if let Some(rest) = self.hear(told?).await? {
                return Ok(rest);
            }
        }
        Err(Failure::Unavailable("it hung up before the task ended".to_owned()).into())
    }

    /// Takes in what the agent tells; where it came to rest, if it did.
    async fn hear(&mut self, told: StreamResponse) -> Result<Option<Rest>, Failure> {
        match told {
            StreamResponse::Message(message) => Ok(Some(Rest::Ended(Ended::Reply(anew(message))))),
            StreamResponse::Task(task) => {
                self.knows(&task.id, &task.context_id).await;
                let is_last = task.status.state.is_final();
                let new: Vec<_> = task
                    .artifacts
                    .into_iter()
                    .filter_map(|now| task::catch_up(&self.ours.artifacts, now, is_last))
                    .collect();
                self.make(new).await?;
                if self.has_said(&task.status) {
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

    /// Whether nothing is new about its work.
    fn has_said(&self, now: &TaskStatus) -> bool {
        let before = &self.ours.status;
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
        let question = Question::of(metadata.as_ref());
        let asks = |need, message: Option<Message>| {
            let mut prompt = message.unwrap_or_else(|| Message::text(Role::Agent, ""));
            if let Some(Question { kind, .. }) = &question {
                let facts = prompt.metadata.get_or_insert_with(Metadata::new);
                facts.insert(QUESTION.to_owned(), json!({ "kind": kind }));
            }
            self.question = question.map(|asked| asked.id);
            Rest::Asks(need, prompt)
        };
        Ok(match status.state {
            TaskState::Submitted | TaskState::Unknown => None,
            TaskState::Working => {
                (self.ours.status.state, self.ours.status.message) =
                    (TaskState::Working, message.clone());
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
            self.peer.remember((&self.ours.id, &self.ours.context_id), (task, context)).await;
        }
    }

    async fn make(&mut self, updates: Vec<ArtifactUpdate>) -> Result<(), Failure> {
        let mut made = Vec::with_capacity(updates.len());
        for update in updates {
            let mut event = TaskEvent::Artifact(update);
            task::begin_artifact(&self.ours, &mut event);
            // A task that lives takes any artifact.
            let _ = task::apply(&mut self.ours, &event);
            if let TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk }) = event {
                made.push(Emitted::Artifact { artifact, append, last_chunk });
            }
        }
        self.emit(made).await
    }

    async fn emit(&self, events: Vec<Emitted>) -> Result<(), Failure> {
        if events.is_empty() { Ok(()) } else { self.port.emit(events).await }
    }
}

/// The same without its names for the task and the conversation: the hub puts its own.
fn anew(message: Message) -> Message {
    Message { task_id: None, context_id: None, reference_task_ids: Vec::new(), ..message }
}

fn failure(why: &ClientError) -> Failure {
    if why.is_passing() {
        Failure::Unavailable(why.to_string())
    } else if matches!(why, ClientError::Refused(why) if why.kind == ErrorKind::TaskNotFound) {
        Failure::Unavailable(LOST.to_owned())
    } else {
        Failure::Invalid(why.to_string())
    }
}
