//! Agents that are functions of the very program that holds the hub: the third kind behind [`Runtime`], beside components and
//! agents elsewhere. They are trusted as the program is: no sandbox, no limits, no capabilities but what the function captures.

use a2a_hub_core::{grant::Ask, memory_grant::MemoryAsk, recovery::Resumability};
use a2a_hub_protocol::{
    id::{ArtifactId, TaskId},
    message::{Message, Part, Role},
    operation::HealthStatus,
    task::{Artifact, TaskState},
};
use a2a_hub_runtime::{
    Call, Crash, Ended, Failure, Report, Run, Runtime, Work,
    port::{
        context_memory::ContextMemoryPort,
        delegate::{CallPort, ChildRequest, DelegatePort, Update},
        tasks::{Answer, Emitted, Need, TaskPort, WaitsFor},
    },
};
use futures::future::BoxFuture;
use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// What such an agent does with a task.
type Function = dyn Fn(Stage) -> BoxFuture<'static, Ended> + Send + Sync;

/// An agent that is a function. Cheap to clone.
#[derive(Clone)]
pub struct Native {
    function: Arc<Function>,
    ask: Ask,
}

/// What the function works with. Dropping the run drops the function's future at its next `await`.
pub struct Stage {
    /// The task, the client's latest message, and what was said before it.
    pub work: Work,
    /// The hub's side of the task.
    pub port: Arc<dyn TaskPort>,
    /// The agents that it may call, if its operator lets it call any.
    pub delegate: Option<Arc<dyn DelegatePort>>,
    /// What it has in mind in the task's conversation, if it asked to remember and its operator lets it.
    pub memory: Option<Arc<dyn ContextMemoryPort>>,
    /// Cancelled when the task is, or when its time is over.
    pub cancelled: CancellationToken,
}

impl Native {
    /// An agent that does this with each task. A function that panics ends its task as failed (`agent_crashed`), and no other.
    pub fn new<F>(function: impl Fn(Stage) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        let function =
            Arc::new(move |stage| Box::pin(function(stage)) as BoxFuture<'static, Ended>);
        Self { function, ask: Ask::default() }
    }

    /// The same, and it asks to call other agents: those that the operator names in `delegate` of its grant.
    #[must_use]
    pub fn calling_others(mut self) -> Self {
        self.ask.delegate.agents = true;
        self
    }

    /// The same, and it asks to remember so many bytes: [`Stage::memory`].
    #[must_use]
    pub fn remembering(mut self, max_bytes: u64) -> Self {
        self.ask.memory = Some(MemoryAsk { max_bytes, max_items: None, reason: None });
        self
    }

    /// The same, and it does one task of a conversation at a time.
    #[must_use]
    pub fn one_per_context(mut self) -> Self {
        self.ask.one_per_context = true;
        self
    }
}

impl Stage {
    /// The text of the client's latest message.
    pub fn text(&self) -> String {
        self.work.message.joined_text()
    }

    /// Says that it is at work. Listeners hear it once it is stored.
    pub async fn say(&self, text: &str) -> Result<(), Failure> {
        let message = Some(Message::text(Role::Agent, text));
        self.port.emit(vec![Emitted::Working { message, metadata: None }]).await
    }

    /// Hands data to the client, as an artifact.
    pub async fn data(&self, data: serde_json::Value) -> Result<(), Failure> {
        let artifact_id = ArtifactId::fresh();
        let (name, description, metadata) = (None, None, None);
        let (parts, extensions) = (vec![Part::data(data)], Vec::new());
        let made = Artifact { artifact_id, name, description, parts, metadata, extensions };
        self.artifact(made).await
    }

    /// Hands a whole artifact to the client.
    pub async fn artifact(&self, artifact: Artifact) -> Result<(), Failure> {
        self.port.emit(vec![Emitted::Artifact { artifact, append: false, last_chunk: true }]).await
    }

    /// Asks the client and waits for the answer, for as long as the agent's `answer_timeout_ms` allows if `patience` says no
    /// less. [`Failure::Timeout`] when there was none in time.
    pub async fn ask(&self, prompt: &str, patience: Option<Duration>) -> Result<Answer, Failure> {
        self.port.ask(Need::Input, Message::text(Role::Agent, prompt), patience).await
    }

    /// Gives another agent a task, a child of this one. [`Failure::Denied`] unless the operator lets this agent call that one.
    pub async fn call(&self, request: ChildRequest) -> Result<Box<dyn CallPort>, Failure> {
        match &self.delegate {
            Some(delegate) => delegate.start(request).await,
            None => Err(Failure::Denied(format!(
                "call `{}`: the agent asks for no other agents, or is granted none",
                request.agent
            ))),
        }
    }

    /// The same, and waits for the child's end; other tasks of this agent run meanwhile.
    pub async fn outcome_of(&self, request: ChildRequest) -> Result<Ended, Failure> {
        let mut call = self.call(request).await?;
        self.port.rest(WaitsFor::Agents).await;
        let ended = loop {
            match call.next().await {
                Ok(Update::Finished(ended)) => break Ok(ended),
                Ok(Update::Status(_) | Update::Artifact(_)) => {}
                Err(why) => break Err(why),
            }
        };
        self.port.resume(WaitsFor::Agents).await?;
        ended
    }
}

/// The end of a task that was done, with the agent's last words.
pub fn completed(text: &str) -> Ended {
    let message = Some(Message::text(Role::Agent, text));
    Ended::Status { state: TaskState::Completed, message, metadata: None }
}

#[async_trait::async_trait]
impl Runtime for Native {
    fn ask(&self) -> &Ask {
        &self.ask
    }

    fn start(&self, call: Call, work: Work) -> Box<dyn Run> {
        let (cancelled, mut run) = (CancellationToken::new(), JoinSet::new());
        match call.ports.tasks.clone() {
            Some(port) => {
                let (delegate, cancelled) = (call.ports.delegate.clone(), cancelled.clone());
                let memory = call.ports.context_memory.clone();
                let stage = Stage { work, port, delegate, memory, cancelled };
                run.spawn((self.function)(stage).in_current_span());
            }
            None => {
                let why = Failure::Internal("the call has no task to tell of".to_owned());
                run.spawn(async { Ended::Failed(why) });
            }
        }
        Box::new(NativeRun { run, cancelled })
    }

    async fn resumability(&self, _task: &TaskId) -> Resumability {
        Resumability::Nothing
    }

    async fn health(&self, _call: Call) -> Result<Report, Failure> {
        Ok(Report { status: HealthStatus::Healthy, version: None, detail: None, fix: None })
    }

    async fn clean_up(&self, _call: Call, _task: &TaskId) -> Result<(), Failure> {
        Ok(())
    }
}

struct NativeRun {
    /// One future, or none once it has ended.
    run: JoinSet<Ended>,
    cancelled: CancellationToken,
}

#[async_trait::async_trait]
impl Run for NativeRun {
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        match self.run.poll_join_next(cx) {
            Poll::Ready(Some(ended)) => Poll::Ready(ended.unwrap_or_else(broke)),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn cancel(&self) {
        self.cancelled.cancel();
    }

    async fn end(&mut self) {
        self.run.shutdown().await;
    }
}

/// The end of a function that panicked.
fn broke(why: JoinError) -> Ended {
    let Ok(panic) = why.try_into_panic() else { return Ended::Failed(Failure::Cancelled) };
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::warn!(panic = ?said, "an agent's function panicked");
    Ended::Failed(Failure::Trapped(Crash::panic(said)))
}
