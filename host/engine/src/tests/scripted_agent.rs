//! Agent for unit tests, scripted by a closure, without a component, a program or a port.

use a2a_hub_agents::Agent;
use a2a_hub_agents::native::{Native, Stage};
use a2a_hub_config::AgentConfig;
use a2a_hub_core::{
    grant::{Ask, Grant, Reports, Resume},
    task::recovery::Resumability,
};
use a2a_hub_protocol::{
    card::AgentCard,
    id::{AgentId, TaskId},
    message::Metadata,
    operation::HealthStatus,
    task::Task,
};
use a2a_hub_runtime::{
    Call, Ended, Failure, HealthReport, Run, RunCapacity, Runtime, Work, port::journal::JournalPort,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

/// A fake agent, and a record of its calls.
#[derive(Clone)]
pub(crate) struct Fake {
    native: Native,
    ask: Ask,
    hold: Resumability,
    room: Option<RunCapacity>,
    is_silent: bool,
    is_enclosed: bool,
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    journals: Journals,
}

/// Journal ports of the running tasks, by task.
pub(crate) type Journals = Arc<Mutex<HashMap<TaskId, Arc<dyn JournalPort>>>>;

impl Fake {
    /// Creates an agent that runs `script` for each task, and cannot resume any.
    pub(crate) fn new<F>(script: impl Fn(Stage) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        Self {
            native: Native::new(script),
            ask: Ask::default(),
            hold: Resumability::Nothing,
            room: None,
            is_silent: false,
            is_enclosed: false,
            seen: Arc::default(),
            journals: Journals::default(),
        }
    }

    /// Records its runs in `journals`, and replays them in the next process.
    pub(crate) fn replayed(mut self, journals: Journals) -> Self {
        self.ask.resume = Resume::Replay;
        Self { journals, hold: Resumability::Replay, ..self }
    }

    /// Sets how the agent resumes after it was evicted.
    pub(crate) fn resuming(mut self, resume: Resume) -> Self {
        self.ask.resume = resume;
        self
    }

    fn being(self, native: Native) -> Self {
        let ask = Ask { resume: self.ask.resume, ..native.ask().clone() };
        Self { native, ask, ..self }
    }

    /// Sets what the agent has of a task after a restart.
    pub(crate) fn holding(self, hold: Resumability) -> Self {
        Self { hold, ..self }
    }

    /// Sets the capacity that its tasks use.
    pub(crate) fn in_room_for(self, most: usize) -> Self {
        Self { room: Some(RunCapacity { running: 0, max: most }), ..self }
    }

    /// Lets the agent ask to call other agents.
    pub(crate) fn calling_others(self) -> Self {
        let native = self.native.clone().calling_others();
        self.being(native)
    }

    /// Lets the agent ask for a context memory of this size.
    pub(crate) fn remembering(self, bytes: u64) -> Self {
        let native = self.native.clone().remembering(bytes);
        self.being(native)
    }

    /// Limits the agent to one task of a conversation at a time.
    pub(crate) fn one_per_context(self) -> Self {
        let native = self.native.clone().one_per_context();
        self.being(native)
    }

    /// Declares that the agent may answer with a direct message.
    pub(crate) fn direct_message(self) -> Self {
        let native = self.native.clone().direct_message();
        self.being(native)
    }

    /// Declares that the agent reports tokens and no dollars.
    pub(crate) fn reporting_tokens(self) -> Self {
        let native = self.native.clone().reporting(Reports::Tokens);
        self.being(native)
    }

    /// Makes health checks of the agent hang.
    pub(crate) fn silent(self) -> Self {
        Self { is_silent: true, ..self }
    }

    /// Marks the agent as enclosed: like a component, it can act only through its ports.
    pub(crate) fn enclosed(self) -> Self {
        Self { is_enclosed: true, ..self }
    }

    /// Agent called `fake`, with this configuration.
    pub(crate) fn agent(&self, config: AgentConfig) -> Arc<Agent> {
        self.agent_called("fake", config)
    }

    /// Agent of that name, with this configuration.
    pub(crate) fn agent_called(&self, id: &str, config: AgentConfig) -> Arc<Agent> {
        let card = AgentCard {
            name: "Fake".to_owned(),
            description: String::new(),
            version: "1".to_owned(),
            skills: Vec::new(),
            other: Metadata::new(),
        };
        let (id, runtime) = (AgentId::parse(id).unwrap(), Arc::new(self.clone()));
        Arc::new(Agent::by_itself(id, runtime, card, config, Vec::new()))
    }

    /// Agent of that name, which may call these peers.
    pub(crate) fn agent_among(&self, id: &str, config: AgentConfig, peers: &[&str]) -> Arc<Agent> {
        let agent = self.agent_called(id, config.clone());
        let delegate = peers.iter().map(|&peer| peer.to_owned()).collect();
        let grant = Some(Grant { delegate, ..Grant::everything(self.ask()) });
        let config = AgentConfig { grant, ..config };
        let peers = peers.iter().map(|peer| AgentId::parse(*peer).unwrap()).collect();
        let (card, runtime) = (agent.card.clone(), Arc::new(self.clone()));
        Arc::new(Agent::by_itself(agent.id.clone(), runtime, card, config, peers))
    }

    fn saw(&self, what: String) {
        self.seen.lock().unwrap().push(what);
    }

    fn run(&self, call: Call, work: Work) -> Box<dyn Run> {
        if let Some(journal) = &call.ports.journal {
            self.journals.lock().unwrap().insert(work.task.id.clone(), Arc::clone(journal));
        }
        let run = self.native.start(call, work);
        Box::new(FakeRun { run, goes_on: self.hold == Resumability::Work })
    }
}

#[async_trait::async_trait]
impl Runtime for Fake {
    fn ask(&self) -> &Ask {
        &self.ask
    }

    fn run_capacity(&self) -> Option<RunCapacity> {
        self.room
    }

    fn is_enclosed(&self) -> bool {
        self.is_enclosed
    }

    fn start(&self, call: Call, work: Work) -> Box<dyn Run> {
        self.saw(format!("start: {}", work.message.joined_text()));
        self.run(call, work)
    }

    fn follow(&self, call: Call, task: Task) -> Option<Box<dyn Run>> {
        self.saw("follow".to_owned());
        let message = task.history.last().cloned().unwrap();
        let work = Work { task, message, history: Vec::new(), live: true, journal: None };
        (self.hold == Resumability::Work).then(|| self.run(call, work))
    }

    async fn resumability(&self, _task: &TaskId) -> Resumability {
        self.hold
    }

    async fn health(&self, _call: Call) -> Result<HealthReport, Failure> {
        if self.is_silent {
            std::future::pending::<()>().await;
        }
        Ok(HealthReport { status: HealthStatus::Healthy, version: None, detail: None, fix: None })
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
    run: Box<dyn Run>,
    goes_on: bool,
}

#[async_trait::async_trait]
impl Run for FakeRun {
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        self.run.poll_ended(cx)
    }

    fn cancel(&self) {
        self.run.cancel();
    }

    async fn detach(&mut self) -> bool {
        self.goes_on
    }

    async fn end(&mut self) {
        self.run.end().await;
    }
}
