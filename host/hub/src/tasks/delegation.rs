//! An agent at work that has other agents do something: its calls are tasks of the others, children of its own.
//!
//! Two listen to a child, each at its own pace: the guest, when it asks what is new, and the hub, which hands the child's
//! questions on to the parent's client and takes the answers back.

use super::{
    NewTask, SubmitError, Subscription, Tasks,
    feed::StreamEnd,
    port::{GuestRequest, Question},
    relations::{Calls, OtherTasks},
};
use crate::{agents::Agent, error::HubError};
use a2a_hub_core::{
    access::Principal,
    facts,
    question::handed_on,
    trace::Trace,
    tree::{NoChild, Usage},
};
use a2a_hub_protocol::{
    client::ClientCapabilities,
    error::{A2aError, ErrorKind},
    event::{StatusUpdate, TaskEvent},
    id::{AgentId, ContextId, TaskId},
    message::{Message, Role},
    parent::Parent,
    question::{QUESTION, Question as Asked, QuestionKind},
    task::Task,
};
use a2a_hub_runtime::{
    Ended, Failure,
    port::{
        delegate::{CallPort, ChildRequest, ChildTask, DelegatePort, Update},
        tasks::{Answer, Need},
    },
};
use a2a_hub_store::{HeadFilter, StorageError};
use futures::future::{BoxFuture, join_all};
use serde_json::Value;
use std::{
    future::pending,
    path::{Component, Path},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    task::JoinError,
    time::Instant,
};
use tokio_util::task::TaskTracker;

/// How long the children of a task that is over may take to end: more than each has by itself.
const END_DEADLINE: Duration = Duration::from_secs(60);

/// The calls of one task's agent. Cheap to clone but for the task.
#[derive(Clone)]
struct Delegation {
    tasks: Tasks,
    /// The agent that calls.
    agent: Arc<Agent>,
    /// The task that it is at work on, as it stood when this run began.
    task: Task,
    /// The actor of that task.
    queue: mpsc::Sender<GuestRequest>,
    /// Held while a child's question stands before the client: one at a time.
    asking: Arc<Mutex<()>>,
}

/// A call of a guest's.
struct ChildCall {
    tasks: Tasks,
    by: Principal,
    task: TaskId,
    heard: Subscription,
    is_over: bool,
}

impl Delegation {
    fn principal(&self) -> Principal {
        Principal::AgentTask { agent: self.agent.id.clone(), task: self.task.id.clone() }
    }

    /// Where the child works: in the parent's directory, or further down.
    fn directory(&self, wanted: Option<String>) -> Result<Option<String>, Failure> {
        let own = facts::working_directory(&self.task);
        let Some(wanted) = wanted else { return Ok(own) };
        let is_plain =
            Path::new(&wanted).components().all(|part| !matches!(part, Component::ParentDir));
        match &own {
            Some(own) if is_plain && Path::new(&wanted).starts_with(own) => Ok(Some(wanted)),
            // The client said nothing: it may be where the agent itself may work.
            None if is_plain && self.agent.may_work_in(&wanted) => Ok(Some(wanted)),
            _ => Err(Failure::Denied(format!(
                "have another agent work in `{wanted}`: it works in the directory of this task{}, or in one below",
                own.map(|own| format!(", `{own}`")).unwrap_or_default()
            ))),
        }
    }

    /// The child that there is under this key.
    async fn known(&self, key: &str, agent: &AgentId) -> Result<Option<TaskId>, Failure> {
        let children = self.children().await?;
        match children.into_iter().find(|child| child.key.as_deref() == Some(key)) {
            Some(known) if known.agent != *agent => Err(Failure::Invalid(format!(
                "call `{agent}` with the key `{key}`: this task has called `{}` with that key; take another key",
                known.agent
            ))),
            known => Ok(known.map(|known| known.task)),
        }
    }

    /// Begins a child, and has its questions handed on.
    async fn begin(
        &self,
        request: ChildRequest,
        child: Arc<Agent>,
    ) -> Result<Subscription, Failure> {
        let ChildRequest { message, key, timeout_ms, budget, context_id, .. } = request;
        let answers = request.answers_questions;
        let directory = self.directory(request.working_directory)?;
        child.must_work().await.map_err(|why| refused(HubError::from(why)))?;
        child.admit().map_err(|why| refused(HubError::from(why)))?;
        let limits = child.config.tree_limits().narrowed(budget);
        let id = TaskId::fresh();
        let above = {
            let mut trees = self.tasks.trees();
            trees.grow(&self.task.id, id.clone(), limits).map_err(|why| no_child(&why))?;
            trees.above(&self.task.id)
        };
        let parent = Parent {
            task: self.task.id.clone(),
            root: above.last().unwrap_or(&self.task.id).clone(),
            depth: u32::try_from(above.len()).unwrap_or(u32::MAX),
            key,
        };
        let of_kin = self.tasks.is_at_work(&above, &child.id);
        let message = self.message(message, &id, context_id, directory.as_deref());
        let new = NewTask {
            agent: Arc::clone(&child),
            message,
            working_directory: directory,
            timeout_ms,
            streamed: true,
            client: ClientCapabilities::default(),
            request: None,
            by: self.principal(),
            limits,
        };
        match self.tasks.submit_as(id.clone(), new, Some(parent), of_kin).await {
            Ok(heard) => {
                self.look_after(&child.id, &heard, answers);
                Ok(heard.until(StreamEnd::Over))
            }
            Err(why) => {
                self.tasks.trees().fell(&id);
                Err(match why {
                    SubmitError::Busy { .. } => Failure::Unavailable(why.to_string()),
                    SubmitError::Storage(_) => Failure::Internal(why.to_string()),
                })
            }
        }
    }

    /// What the child is told, with its place in the trace.
    fn message(
        &self,
        message: Message,
        child: &TaskId,
        context: Option<String>,
        directory: Option<&str>,
    ) -> Message {
        let trace = Trace::of(&self.task.id, self.task.metadata.as_ref()).child(child);
        let mut facts = message.metadata.clone().unwrap_or_default();
        // Rights are not handed on: what an operator said to the parent is no word to its children.
        for right in ["resume", "workingDirectory", "targetAgent"] {
            facts.remove(right);
        }
        facts.extend(trace.members());
        facts.extend(directory.map(|dir| ("workingDirectory".to_owned(), dir.into())));
        let context_id = context.map(ContextId::new);
        Message { role: Role::User, task_id: None, context_id, metadata: Some(facts), ..message }
    }

    /// Hands the child's questions on, and ends it when its parent may call its agent no more.
    fn look_after(&self, child: &AgentId, heard: &Subscription, answers: bool) {
        let follow = self.tasks.listen(heard.task(), heard.after());
        let Some(follow) = follow else { return };
        let care = Care {
            tasks: self.tasks.clone(),
            by: self.principal(),
            queue: self.queue.clone(),
            asking: Arc::clone(&self.asking),
            child: child.clone(),
            answers,
        };
        let (parent, child) = (Arc::clone(&self.agent), child.clone());
        self.tasks.actors.spawn(async move {
            let (tasks, by, task) = (care.tasks.clone(), care.by.clone(), follow.task().clone());
            tokio::select! {
                () = care.hand_on(follow) => {}
                () = parent.may_no_longer_call(&child) => {
                    // It may have ended meanwhile.
                    let _ = tasks.cancel(&task, by).await;
                }
            }
        });
    }
}

#[async_trait::async_trait]
impl DelegatePort for Delegation {
    fn agents(&self) -> Vec<Value> {
        self.agent.peers()
    }

    async fn start(&self, request: ChildRequest) -> Result<Box<dyn CallPort>, Failure> {
        let heard = self.open(request).await?;
        let (tasks, by, task) = (self.tasks.clone(), self.principal(), heard.task().clone());
        Ok(Box::new(ChildCall { tasks, by, task, heard, is_over: false }))
    }

    async fn children(&self) -> Result<Vec<ChildTask>, Failure> {
        let children = self.tasks.children(&self.task.id).await;
        children.map_err(|why| Failure::Unavailable(format!("list children: {why}")))
    }
}

#[async_trait::async_trait]
impl Calls for Delegation {
    async fn open(&self, request: ChildRequest) -> Result<Subscription, Failure> {
        let what = format!("call `{}`", request.agent);
        let named = AgentId::parse(&request.agent);
        let agent = named.map_err(|why| Failure::Invalid(format!("{what}: {why}")))?;
        self.agent.may_call(&agent)?;
        let child = self.tasks.agent(&agent);
        let child = child.ok_or_else(|| Failure::Unavailable(format!("{what}: it has left")))?;
        let joined = match &request.key {
            Some(key) => self.known(key, &agent).await?,
            None => None,
        };
        match joined {
            Some(known) => self.tasks.follow(&known, 0).await.map_err(refused),
            None => {
                // To its end, although the caller may be ended meanwhile: a child is never half begun.
                let this = self.clone();
                let begun = async move { this.begin(request, child).await };
                let broke = |why: JoinError| Err(Failure::Internal(why.to_string()));
                self.tasks.actors.spawn(begun).await.unwrap_or_else(broke)
            }
        }
    }

    async fn lend(&self) -> Box<dyn Send + Sync> {
        // An actor that is gone needs no turn.
        let _ = self.queue.send(GuestRequest::Rest).await;
        Box::new(Lent { queue: self.queue.clone(), actors: self.tasks.actors.clone() })
    }
}

/// A task's turn, lent to other tasks. Dropping it asks for the turn back.
struct Lent {
    queue: mpsc::Sender<GuestRequest>,
    actors: TaskTracker,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let queue = self.queue.clone();
        self.actors.spawn(async move {
            let (call, _) = oneshot::channel();
            let _ = queue.send(GuestRequest::Resume(call)).await;
        });
    }
}

#[async_trait::async_trait]
impl CallPort for ChildCall {
    fn task(&self) -> &TaskId {
        &self.task
    }

    async fn next(&mut self) -> Result<Update, Failure> {
        loop {
            if self.is_over {
                return Err(Failure::Invalid("hear more of a call: it has ended".to_owned()));
            }
            let Some(event) = self.heard.next().await else {
                return Err(Failure::Unavailable("the hub is stopping".to_owned()));
            };
            let event = event.map_err(|why| Failure::Internal(why.to_string()))?;
            if let Some(update) = update(&event.event) {
                self.is_over = matches!(update, Update::Finished(_));
                return Ok(update);
            }
        }
    }

    async fn answer(&self, message: Message) -> Result<(), Failure> {
        let task = self.tasks.get(&self.task).await.map_err(refused)?.task;
        let asked =
            Asked::of(task.metadata.as_ref()).filter(|_| task.status.state.is_interrupted());
        let Some(asked) = asked else {
            return Err(Failure::Invalid("answer a call: it asks nothing now".to_owned()));
        };
        if asked.kind != QuestionKind::Input {
            return Err(Failure::Denied(
                "answer a call: it asks for permission or for a login, which is for the client to answer".to_owned(),
            ));
        }
        let message = answer_to(&asked, &task, message);
        let by = self.by.clone();
        let told =
            self.tasks.answer(&self.task, message, ClientCapabilities::default(), None, by).await;
        told.map(drop).map_err(refused)
    }

    async fn cancel(&self) -> Result<(), Failure> {
        match self.tasks.cancel(&self.task, self.by.clone()).await {
            Ok(_) => Ok(()),
            Err(why) => match A2aError::from(why) {
                why if why.kind == ErrorKind::TaskNotCancelable => Ok(()),
                why => Err(failure(&why)),
            },
        }
    }
}

/// What looks after one child on behalf of its parent's client.
struct Care {
    tasks: Tasks,
    by: Principal,
    queue: mpsc::Sender<GuestRequest>,
    asking: Arc<Mutex<()>>,
    child: AgentId,
    /// Whether the parent's agent answers what it can.
    answers: bool,
}

impl Care {
    /// Has the parent ask what the child asks, and the child hear the answer, until the child is over.
    async fn hand_on(&self, mut heard: Subscription) {
        let child = heard.task().clone();
        let mut open: Option<OpenQuestion<'_>> = None;
        loop {
            tokio::select! {
                biased;
                event = heard.next() => {
                    let Some(Ok(event)) = event else { return };
                    let TaskEvent::Status(update) = &event.event else { continue };
                    let asked = self.asked(&child, update);
                    let is_same = |open: &OpenQuestion<'_>| {
                        asked.as_ref().is_some_and(|(asked, ..)| asked.id == open.asked.id)
                    };
                    // It asks no more, or something else: the parent asks that no more either.
                    if !open.as_ref().is_some_and(is_same) {
                        open = asked.map(|(asked, prompt, need)| OpenQuestion {
                            answer: Box::pin(self.ask(need, asked.clone(), prompt)),
                            asked,
                        });
                    }
                }
                answer = answered(&mut open) => {
                    if let (Some(open), Ok(answer)) = (open.take(), answer) {
                        self.take_back(&child, &open.asked, answer).await;
                    }
                }
            }
        }
    }

    /// What the child asks with this status, as its parent asks it; nothing if the parent's agent answers it.
    fn asked(&self, child: &TaskId, update: &StatusUpdate) -> Option<(Asked, Message, Need)> {
        if !update.status.state.is_interrupted() {
            return None;
        }
        let asked = Asked::of(update.metadata.as_ref())?;
        if self.answers && asked.kind == QuestionKind::Input {
            return None;
        }
        let prompt = update.status.message.clone()?;
        let need = if asked.kind == QuestionKind::Auth { Need::Auth } else { Need::Input };
        let (question, prompt) = handed_on(child, &self.child, &asked, prompt);
        Some((question, prompt, need))
    }

    async fn ask(&self, need: Need, asked: Asked, prompt: Message) -> Result<Answer, Failure> {
        let _one_at_a_time = self.asking.lock().await;
        let (answer, answered) = oneshot::channel();
        let question = Question { need, prompt, patience: None, answer, of_child: Some(asked) };
        self.queue
            .send(GuestRequest::Ask(Box::new(question)))
            .await
            .map_err(|_| Failure::Cancelled)?;
        answered.await.unwrap_or(Err(Failure::Cancelled))
    }

    /// Hands the client's answer to the child. One that comes too late finds another question there, or none, and is refused.
    async fn take_back(&self, task: &TaskId, asked: &Asked, answer: Answer) {
        let Ok(stored) = self.tasks.get(task).await else { return };
        let Answer { message, client } = answer;
        let message = answer_to(asked, &stored.task, message);
        if let Err(why) = self.tasks.answer(task, message, client, None, self.by.clone()).await {
            tracing::info!(%task, why = %refused(why), "an answer came too late");
        }
    }
}

/// A child's question that stands before the client. Dropping it withdraws it.
struct OpenQuestion<'a> {
    asked: Asked,
    answer: BoxFuture<'a, Result<Answer, Failure>>,
}

/// The answer, if something is asked.
async fn answered(open: &mut Option<OpenQuestion<'_>>) -> Result<Answer, Failure> {
    match open {
        Some(open) => open.answer.as_mut().await,
        None => pending().await,
    }
}

/// The message as an answer to what a task asks.
pub(super) fn answer_to(asked: &Asked, task: &Task, message: Message) -> Message {
    let mut facts = message.metadata.unwrap_or_default();
    facts.insert(QUESTION.to_owned(), asked.id.as_str().into());
    let (task_id, context_id) = (Some(task.id.clone()), Some(task.context_id.clone()));
    Message { role: Role::User, task_id, context_id, metadata: Some(facts), ..message }
}

/// What a caller hears of an event.
fn update(event: &TaskEvent) -> Option<Update> {
    match event {
        TaskEvent::Status(update) if update.status.state.is_final() => {
            let (state, message) = (update.status.state, update.status.message.clone());
            let metadata = update.metadata.clone();
            Some(Update::Finished(Ended::Status { state, message, metadata }))
        }
        TaskEvent::Status(update) => Some(Update::Status(update.clone())),
        TaskEvent::Artifact(update) => Some(Update::Artifact(update.clone())),
        TaskEvent::Reply(message) => Some(Update::Finished(Ended::Reply(message.clone()))),
        TaskEvent::Created(_) | TaskEvent::Input(_) => None,
    }
}

fn no_child(why: &NoChild) -> Failure {
    match why {
        NoChild::Exhausted { .. } => Failure::Exhausted(why.to_string()),
        NoChild::Closed(_) => Failure::Cancelled,
    }
}

fn refused(why: impl Into<HubError>) -> Failure {
    failure(&A2aError::from(why.into()))
}

/// The same for whoever hears it over the wire.
pub(super) fn refused_to(why: Failure) -> HubError {
    let (kind, said) = match why {
        Failure::Invalid(said) => (ErrorKind::InvalidParams, said),
        Failure::Denied(said) => (ErrorKind::Authentication, said),
        Failure::Timeout => (ErrorKind::Timeout, why.to_string()),
        Failure::Unsupported(_)
        | Failure::Cancelled
        | Failure::Unavailable(_)
        | Failure::HubFull
        | Failure::Exhausted(_)
        | Failure::Internal(_)
        | Failure::Trapped(_) => (ErrorKind::AgentUnavailable, why.to_string()),
    };
    A2aError::new(kind, said).into()
}

fn failure(why: &A2aError) -> Failure {
    let said = why.message.clone();
    if why.kind == ErrorKind::Timeout {
        Failure::Timeout
    } else if why.kind == ErrorKind::InvalidParams {
        Failure::Invalid(said)
    } else {
        Failure::Unavailable(said)
    }
}

impl Tasks {
    /// What its parent calls this child.
    async fn key_of(&self, task: &TaskId) -> Result<Option<String>, StorageError> {
        let first = self.storage.events(task, 0, 1).await?.pop();
        Ok(match first.map(|first| first.event) {
            Some(TaskEvent::Created(created)) => created.parent.and_then(|parent| parent.key),
            _ => None,
        })
    }

    /// The children of a task, oldest first.
    pub async fn children(&self, task: &TaskId) -> Result<Vec<ChildTask>, StorageError> {
        let its = HeadFilter { parent: Some(task.clone()), ..HeadFilter::default() };
        let mut children = Vec::new();
        for head in self.storage.heads(its).await?.into_iter().rev() {
            let key = self.key_of(&head.task).await?;
            children.push(ChildTask { task: head.task, agent: head.agent, key, state: head.state });
        }
        Ok(children)
    }

    /// A task is over: what it used counts for those above, and it has no children any more.
    pub(super) fn leave_tree(&self, task: &TaskId, used: Usage) {
        let mut trees = self.trees();
        trees.spend(task, used);
        trees.fell(task);
    }

    /// Whether one of these tasks is this agent's.
    fn is_at_work(&self, tasks: &[TaskId], agent: &AgentId) -> bool {
        let running = self.running();
        tasks.iter().any(|task| running.get(task).is_some_and(|it| it.agent == *agent))
    }
}

#[async_trait::async_trait]
impl OtherTasks for Tasks {
    fn delegation(
        &self,
        agent: &Arc<Agent>,
        task: &Task,
        queue: mpsc::Sender<GuestRequest>,
    ) -> Arc<dyn DelegatePort> {
        let (tasks, agent, asking) = (self.clone(), Arc::clone(agent), Arc::default());
        let delegation = Arc::new(Delegation { tasks, agent, task: task.clone(), queue, asking });
        if let Some(running) = self.running().get_mut(&task.id) {
            let calls: Arc<dyn Calls> = delegation.clone();
            running.calls = Some(Arc::downgrade(&calls));
        }
        delegation
    }

    async fn end_children(&self, task: &TaskId, by: &Principal) -> bool {
        let mut children = self.trees().close(task);
        let were_any = !children.is_empty();
        let until = Instant::now() + END_DEADLINE;
        while !children.is_empty() && Instant::now() < until {
            let ends = children.iter().map(|child| async move {
                if self.find(child).is_none() {
                    // It is being written into the log, or being reaped.
                    tokio::time::sleep(super::LOOK).await;
                } else if let Err(why) = self.cancel(child, by.clone()).await {
                    let why = refused(why);
                    tracing::debug!(%task, %child, %why, "a child has come to an end of its own");
                }
            });
            join_all(ends).await;
            children = self.trees().children(task);
        }
        for child in children {
            // Its parent is not kept from its end; where it stands, its own log tells.
            tracing::error!(%task, %child, "a child has not ended, and is left behind");
            self.trees().fell(&child);
        }
        were_any
    }
}
