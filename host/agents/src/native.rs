//! Agents that are functions of the program that embeds the hub: the third kind of [`Runtime`],
//! next to components and remote agents. They are trusted like the program itself: no sandbox, no
//! limits, and no capabilities beyond those that the function captures.

use a2a_hub_core::{
    grant::{Ask, Reports, Resume, delegate::PeersAsk, memory::MemoryAsk},
    task::recovery::Resumability,
};
use a2a_hub_protocol::{
    id::{ArtifactId, TaskId},
    message::{Message, Part, Role},
    operation::HealthStatus,
    task::{Artifact, TaskState},
};
use a2a_hub_runtime::{
    Call, Crash, Ended, Failure, HealthReport, Run, Runtime, Work,
    port::{
        context_memory::ContextMemoryPort,
        delegate::{CallPort, ChildRequest, DelegatePort, Update},
        tasks::{ClientAnswer, Emitted, Need, TaskPort, WaitsFor},
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

/// Function that performs one task.
type Function = dyn Fn(Stage) -> BoxFuture<'static, Ended> + Send + Sync;

/// An agent that is a function. Cheap to clone.
#[derive(Clone)]
pub struct Native {
    function: Arc<Function>,
    ask: Ask,
}

/// Inputs of the function. Dropping the run drops the function's future at its next `await`.
pub struct Stage {
    /// The task, the client's latest message, and the earlier history.
    pub work: Work,
    /// The hub's side of the task.
    pub port: Arc<dyn TaskPort>,
    /// Agents that this one may call, if the operator allows any.
    pub delegate: Option<Arc<dyn DelegatePort>>,
    /// Context memory of the task's context, if the agent asked for it and the operator granted it.
    pub memory: Option<Arc<dyn ContextMemoryPort>>,
    /// Cancelled when the task is cancelled or times out.
    pub cancelled: CancellationToken,
}

impl Native {
    /// Creates an agent that runs this function for each task. A panic of the function fails only
    /// its own task (`agent_crashed`).
    pub fn new<F>(function: impl Fn(Stage) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        let function =
            Arc::new(move |stage| Box::pin(function(stage)) as BoxFuture<'static, Ended>);
        Self { function, ask: Ask::default() }
    }

    /// Asks for the right to call other agents: those that the operator names in `delegate` of its
    /// grant.
    #[must_use]
    pub fn calling_others(mut self) -> Self {
        self.ask.delegate.agents = PeersAsk::Any(true);
        self
    }

    /// Asks for `max_bytes` of context memory: [`Stage::memory`].
    #[must_use]
    pub fn remembering(mut self, max_bytes: u64) -> Self {
        self.ask.memory = Some(MemoryAsk { max_bytes, max_items: None, reason: None });
        self
    }

    /// Restricts the agent to one task of a context at a time.
    #[must_use]
    pub fn one_per_context(mut self) -> Self {
        self.ask.one_per_context = true;
        self
    }

    /// Declares that the agent may answer with a direct message in place of a task
    /// ([`Ended::Reply`]).
    #[must_use]
    pub fn direct_message(mut self) -> Self {
        self.ask.direct_message = true;
        self
    }

    /// Declares that the agent can continue a task in another run, with the conversation so far:
    /// after a restart, and after the reset of a used-up quota.
    #[must_use]
    pub fn keeping_sessions(mut self) -> Self {
        self.ask.resume = Resume::Session;
        self
    }

    /// Declares which usage the agent reports in the metadata of its tasks.
    #[must_use]
    pub fn reporting(mut self, usage: Reports) -> Self {
        self.ask.reports = Some(usage);
        self
    }
}

impl Stage {
    /// Text of the client's latest message.
    pub fn text(&self) -> String {
        self.work.message.joined_text()
    }

    /// Reports `working` with a message. Subscribers receive it once it is stored.
    pub async fn report_working(&self, text: &str) -> Result<(), Failure> {
        let message = Some(Message::text(Role::Agent, text));
        self.port.emit(vec![Emitted::Working { message, metadata: None }]).await
    }

    /// Sends data to the client as an artifact.
    pub async fn data(&self, data: serde_json::Value) -> Result<(), Failure> {
        let artifact_id = ArtifactId::fresh();
        let (name, description, metadata) = (None, None, None);
        let (parts, extensions) = (vec![Part::data(data)], Vec::new());
        let artifact = Artifact { artifact_id, name, description, parts, metadata, extensions };
        self.artifact(artifact).await
    }

    /// Sends a whole artifact to the client.
    pub async fn artifact(&self, artifact: Artifact) -> Result<(), Failure> {
        self.port.emit(vec![Emitted::Artifact { artifact, append: false, last_chunk: true }]).await
    }

    /// Asks the client and waits for the answer. The timeout is the agent's `answer_timeout_ms`, or
    /// `timeout` if that is shorter; after it the result is [`Failure::Timeout`].
    pub async fn ask(
        &self,
        prompt: &str,
        timeout: Option<Duration>,
    ) -> Result<ClientAnswer, Failure> {
        self.port.ask(Need::Input, Message::text(Role::Agent, prompt), timeout).await
    }

    /// Starts a child task of another agent. Returns [`Failure::Denied`] unless the operator allows
    /// the call.
    pub async fn call(&self, request: ChildRequest) -> Result<Box<dyn CallPort>, Failure> {
        match &self.delegate {
            Some(delegate) => delegate.start(request).await,
            None => Err(Failure::Denied(format!(
                "call `{}`: the agent asks for no other agents, or is granted none",
                request.agent
            ))),
        }
    }

    /// Starts a child task and waits for its end; other tasks of this agent run meanwhile.
    pub async fn outcome_of(&self, request: ChildRequest) -> Result<Ended, Failure> {
        let mut call = self.call(request).await?;
        self.port.release_permit(WaitsFor::Agents).await;
        let ended = loop {
            match call.next().await {
                Ok(Update::Finished(ended)) => break Ok(ended),
                Ok(Update::Status(_) | Update::Artifact(_)) => {}
                Err(why) => break Err(why),
            }
        };
        self.port.reacquire_permit(WaitsFor::Agents).await?;
        ended
    }
}

/// A completed status with the agent's last message.
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
        match self.ask.resume {
            Resume::Session => Resumability::Session,
            Resume::Replay | Resume::Nothing => Resumability::Nothing,
        }
    }

    async fn health(&self, _call: Call) -> Result<HealthReport, Failure> {
        Ok(HealthReport { status: HealthStatus::Healthy, version: None, detail: None, fix: None })
    }

    async fn clean_up(&self, _call: Call, _task: &TaskId) -> Result<(), Failure> {
        Ok(())
    }
}

struct NativeRun {
    /// The function's future; empty once it has ended.
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

/// Result of a function that panicked.
fn broke(why: JoinError) -> Ended {
    let Ok(panic) = why.try_into_panic() else { return Ended::Failed(Failure::Cancelled) };
    let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::warn!(panic = ?message, "an agent's function panicked");
    Ended::Failed(Failure::Trapped(Crash::panic(message)))
}
