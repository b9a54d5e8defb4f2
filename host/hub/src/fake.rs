//! An agent for unit tests: it does what a closure says, without a component, a program or a port.

#![allow(
    clippy::unwrap_used,
    reason = "a panic is how a test fails; with the feature, this is no test to the lint"
)]

#[cfg(test)]
use crate::agents::Agent;
#[cfg(test)]
use a2a_hub_config::AgentConfig;
use a2a_hub_core::{grant::Ask, recovery::Resumability};
use a2a_hub_protocol::{
    card::AgentCard,
    id::TaskId,
    message::{Message, Metadata, Role},
    operation::HealthStatus,
    task::{Task, TaskState},
};
use a2a_hub_runtime::{
    Call, Ended, Failure, Report, Run, Runtime, Work,
    port::tasks::{Answer, Emitted, Need, TaskPort},
};
use futures::future::BoxFuture;
use serde_json::Value;
use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What the agent does with a task.
type Script = dyn Fn(Stage) -> BoxFuture<'static, Ended> + Send + Sync;

/// A fake agent, and what it was asked for.
#[derive(Clone)]
pub struct Fake {
    script: Arc<Script>,
    ask: Ask,
    hold: Resumability,
    is_silent: bool,
    card: Metadata,
    /// What it was asked for, in that order.
    pub seen: Arc<Mutex<Vec<String>>>,
}

/// What a script works with.
pub struct Stage {
    /// The task, and what the client said.
    pub work: Work,
    /// Where events and questions go.
    pub port: Arc<dyn TaskPort>,
    /// Cancelled when the task is to end.
    pub cancel: CancellationToken,
}

impl Fake {
    /// An agent that does `script` with each task, and keeps nothing of it.
    pub fn new<F>(script: impl Fn(Stage) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        let script = Arc::new(move |stage| Box::pin(script(stage)) as BoxFuture<'static, Ended>);
        Self {
            script,
            ask: Ask::default(),
            hold: Resumability::Nothing,
            is_silent: false,
            card: Metadata::new(),
            seen: Arc::default(),
        }
    }

    /// The same, and it has this of a task whose hub is gone.
    #[must_use]
    pub fn holding(self, hold: Resumability) -> Self {
        Self { hold, ..self }
    }

    /// The same, and it does one task of a conversation at a time.
    #[must_use]
    pub fn one_per_context(mut self) -> Self {
        self.ask.one_per_context = true;
        self
    }

    /// The same, and it never says how it is.
    #[must_use]
    pub fn silent(self) -> Self {
        Self { is_silent: true, ..self }
    }

    /// The agent called `fake`, as its operator configures it.
    #[cfg(test)]
    pub(crate) fn agent(&self, config: AgentConfig) -> Arc<Agent> {
        let (id, runtime) =
            (a2a_hub_protocol::id::AgentId::parse("fake").unwrap(), Arc::new(self.clone()));
        Arc::new(Agent::by_itself(id, runtime, self.card(), config))
    }

    /// The card of such an agent.
    pub(crate) fn card(&self) -> AgentCard {
        AgentCard {
            name: "Fake".to_owned(),
            description: String::new(),
            version: "1".to_owned(),
            skills: Vec::new(),
            other: self.card.clone(),
        }
    }

    /// The same, whose card says this as well.
    #[must_use]
    pub fn with_card(mut self, member: &str, value: Value) -> Self {
        self.card.insert(member.to_owned(), value);
        self
    }

    fn saw(&self, what: String) {
        self.seen.lock().unwrap().push(what);
    }

    fn run(&self, call: &Call, work: Work) -> Box<dyn Run> {
        let (cancel, mut run) = (CancellationToken::new(), JoinSet::new());
        let port = call.ports.tasks.clone().unwrap();
        run.spawn((self.script)(Stage { work, port, cancel: cancel.clone() }));
        Box::new(FakeRun { run, cancel, goes_on: self.hold == Resumability::Work })
    }
}

impl Stage {
    /// Says that it is at work.
    pub async fn say(&self, text: &str) {
        let message = Some(Message::text(Role::Agent, text));
        let said = Emitted::Working { message, metadata: None };
        self.port.emit(vec![said]).await.unwrap();
    }

    /// Asks the client.
    pub async fn ask(&self, prompt: &str, patience: Option<Duration>) -> Result<Answer, Failure> {
        self.port.ask(Need::Input, Message::text(Role::Agent, prompt), patience).await
    }
}

/// The end of a task that was done.
pub fn completed(text: &str) -> Ended {
    let message = Some(Message::text(Role::Agent, text));
    Ended::Status { state: TaskState::Completed, message, metadata: None }
}

#[async_trait::async_trait]
impl Runtime for Fake {
    fn ask(&self) -> &Ask {
        &self.ask
    }

    fn start(&self, call: Call, work: Work) -> Box<dyn Run> {
        self.saw(format!("start: {}", work.message.joined_text()));
        self.run(&call, work)
    }

    fn follow(&self, call: Call, task: Task) -> Option<Box<dyn Run>> {
        self.saw("follow".to_owned());
        let message = task.history.last().cloned().unwrap();
        let work = Work { task, message, history: Vec::new(), live: true };
        (self.hold == Resumability::Work).then(|| self.run(&call, work))
    }

    async fn resumability(&self, _task: &TaskId) -> Resumability {
        self.hold
    }

    async fn health(&self, _call: Call) -> Result<Report, Failure> {
        if self.is_silent {
            std::future::pending::<()>().await;
        }
        Ok(Report { status: HealthStatus::Healthy, version: None, detail: None, fix: None })
    }

    async fn clean_up(&self, _call: Call, _task: &TaskId) -> Result<(), Failure> {
        self.saw("clean up".to_owned());
        Ok(())
    }

    async fn forget(&self, _task: &TaskId) {
        self.saw("forget".to_owned());
    }
}

struct FakeRun {
    run: JoinSet<Ended>,
    cancel: CancellationToken,
    goes_on: bool,
}

#[async_trait::async_trait]
impl Run for FakeRun {
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        match self.run.poll_join_next(cx) {
            Poll::Ready(Some(ended)) => Poll::Ready(ended.unwrap()),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn cancel(&self) {
        self.cancel.cancel();
    }

    async fn leave(&mut self) -> bool {
        self.goes_on
    }

    async fn end(&mut self) {
        self.run.shutdown().await;
    }
}
