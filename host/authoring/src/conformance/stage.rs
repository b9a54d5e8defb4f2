//! Test environment of a component: a hub's sandbox with ports that only record calls.

use super::report::sanitize;
use a2a_hub_core::grant::{Ask, EffectiveGrant, Grant, intersect};
use a2a_hub_protocol::{
    card::AgentCard,
    client::ClientCapabilities,
    id::{AgentId, ContextId, TaskId},
    message::{Message, Role},
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_runtime::{
    Call, Ended, Failure, HealthReport, Limits, Runtime, Work,
    port::{
        Ports,
        context_memory::EphemeralMemory,
        files::FilesPort,
        memory::MemoryPort,
        process::{ChildPort, PermittedLaunch, ProcessPort},
        tasks::{ClientAnswer, Emitted, Need, TaskPort},
    },
};
use a2a_hub_sandbox::{Engine, Plugin};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

/// Time after which a running task is cancelled. Without a program, a host or a model, an answer
/// arrives sooner; running longer is no failure.
const RUN_TIMEOUT: Duration = Duration::from_secs(4);

/// CPU limit of a run.
const CPU: Duration = Duration::from_secs(3);

/// Time that a cancelled task has to end. A hub allows half of it, because its machine is not busy
/// with these checks.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// Timeout and CPU limit of a health report without any grant; as in a hub.
const HEALTH: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(100));

/// Timeout of cleaning up.
const CLEAN_UP: Duration = Duration::from_secs(2);

/// Timeout of ending a guest by force.
const END: Duration = Duration::from_secs(10);

/// Maximum number of a task's questions that are answered.
const ANSWERS: usize = 8;

/// A component, with its test environment.
pub(super) struct ConformanceBench {
    /// Engine and content from which the component was loaded.
    source: (Engine, Bytes),
    plugin: Plugin,
    agent: AgentId,
    client: ClientCapabilities,
    grant: Arc<EffectiveGrant>,
}

/// Reaction of the task port to a component's events and questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PortReaction {
    /// Accepts events and answers questions.
    #[default]
    All,
    /// Blocks the first call forever: the component runs until its time limit.
    Nothing,
    /// Blocks the first call forever and cancels the task at once.
    Cancelling,
}

/// One run: the message for the component, and the conditions.
#[derive(Clone, Debug)]
pub(super) struct TrialRun {
    pub(super) message: Message,
    pub(super) history: Vec<Message>,
    pub(super) limits: Limits,
    /// Reaction of the task port.
    pub(super) reaction: PortReaction,
    /// Time after which the running task is cancelled.
    pub(super) timeout: Duration,
}

impl TrialRun {
    pub(super) fn new(message: Message) -> Self {
        let limits = Limits { cpu: CPU, ..Limits::default() };
        Self {
            message,
            history: Vec::new(),
            limits,
            reaction: PortReaction::All,
            timeout: RUN_TIMEOUT,
        }
    }

    pub(super) fn saying(text: &str) -> Self {
        Self::new(Message::text(Role::User, text))
    }
}

/// End of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TrialEnd {
    /// The task ended by itself.
    Ended(Ended),
    /// The task ended within the grace period after its cancellation.
    Stopped(Ended),
    /// The task exceeded the grace period and was ended by force.
    Cut,
}

/// Observations of a run.
#[derive(Debug)]
pub(super) struct RunObservations {
    pub(super) end: TrialEnd,
    /// Capabilities that were denied, in the words of a grant.
    pub(super) refused: BTreeSet<String>,
    /// Number of calls that emitted events.
    pub(super) emit_calls: usize,
}

impl ConformanceBench {
    /// Creates a test environment that grants nothing.
    pub(super) fn new(
        source: (Engine, Bytes),
        plugin: Plugin,
        agent: AgentId,
        card: &AgentCard,
    ) -> Self {
        let extensions = card.extensions().map(|(uri, _)| uri.to_owned()).collect();
        let client = ClientCapabilities { extensions, ..ClientCapabilities::default() };
        let grant = Arc::new(intersect(plugin.ask(), &Grant::default()));
        Self { source, plugin, agent, client, grant }
    }

    pub(super) fn ask(&self) -> &Ask {
        self.plugin.ask()
    }

    /// Grants memory and files, as far as the component asks for them: neither reaches the outside.
    /// Returns `None` if it asks for neither.
    pub(super) fn harmless(&self) -> Option<Self> {
        let ask = self.ask();
        let all = Grant::everything(ask);
        let grant =
            intersect(ask, &Grant { memory: all.memory, files: all.files, ..Grant::default() });
        let has_some = grant.memory_bytes.is_some() || grant.files_bytes.is_some();
        has_some.then(|| self.with(self.plugin.clone(), grant))
    }

    /// Loads the same component again.
    pub(super) async fn reloaded(&self) -> Result<Self, String> {
        let (engine, bytes) = &self.source;
        let plugin = Plugin::load(engine, bytes.clone()).await.map_err(|why| why.to_string())?;
        Ok(self.with(plugin, EffectiveGrant::clone(&self.grant)))
    }

    fn with(&self, plugin: Plugin, grant: EffectiveGrant) -> Self {
        let (source, agent) = (self.source.clone(), self.agent.clone());
        Self { source, plugin, agent, client: self.client.clone(), grant: Arc::new(grant) }
    }

    /// Requests the card again.
    pub(super) async fn card(&self) -> Result<AgentCard, String> {
        self.plugin.card(&self.agent).await.map_err(|why| why.in_full())
    }

    /// Requests the health report; `None` after a timeout.
    pub(super) async fn health(&self) -> Option<Result<HealthReport, Failure>> {
        let (deadline, cpu) = HEALTH;
        let (call, _) = self.call(Limits { cpu, ..Limits::default() }, None);
        timeout(deadline, self.plugin.health(call)).await.ok()
    }

    /// Runs the cleaning up after a task; `None` after a timeout.
    pub(super) async fn clean_up(&self) -> Option<Result<(), Failure>> {
        let (call, _) = self.call(Limits { cpu: CPU, ..Limits::default() }, None);
        timeout(CLEAN_UP, self.plugin.clean_up(call, &TaskId::fresh())).await.ok()
    }

    /// Runs the component on a task until the task ends or is cancelled.
    pub(super) async fn run(&self, trial: &TrialRun) -> RunObservations {
        let listener =
            Arc::new(ScriptedClient { reaction: trial.reaction, ..ScriptedClient::default() });
        let (call, refused) = self.call(trial.limits, Some(Arc::clone(&listener)));
        let mut run = Runtime::start(&self.plugin, call, work(trial));
        let ended = {
            let mut ended = pin!(run.ended());
            tokio::select! {
                biased;
                ended = &mut ended => Some(ended),
                () = listener.blocked.notified() => None,
                () = sleep(trial.timeout) => None,
            }
        };
        let end = match ended {
            Some(ended) => TrialEnd::Ended(ended),
            None => {
                run.cancel();
                let stopped = timeout(GRACE, run.ended()).await;
                stopped.map_or(TrialEnd::Cut, TrialEnd::Stopped)
            }
        };
        // A guest that still runs after this ends with the process.
        let _ = timeout(END, run.end()).await;
        let refused = std::mem::take(&mut *refused.lock());
        RunObservations { end, refused, emit_calls: listener.emit_calls.load(Relaxed) }
    }

    fn call(
        &self,
        limits: Limits,
        tasks: Option<Arc<ScriptedClient>>,
    ) -> (Call, DeniedCapabilities) {
        let refused = DeniedCapabilities::default();
        let denied = Arc::clone(&refused);
        let keep = move |capability: &str| {
            let mut refused = denied.lock();
            // Components choose the names, so their number is bounded.
            if refused.len() < 32 {
                refused.insert(sanitize(capability));
            }
        };
        let to_usize = |bytes: Option<u64>| bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let values = |bytes| Arc::new(Values { max_bytes: bytes, values: Mutex::default() });
        let ports = Ports {
            tasks: tasks.map(|listener| listener as _),
            process: Some(Arc::new(NoPrograms)),
            memory: to_usize(self.grant.memory_bytes).map(|bytes| values(bytes) as _),
            context_memory: to_usize(self.grant.memory_bytes)
                .map(|bytes| Arc::new(EphemeralMemory::new(bytes)) as _),
            files: to_usize(self.grant.files_bytes).map(|_| Arc::new(NoPrograms) as _),
            settings: Arc::new(settings()),
            refused: Some(Arc::new(keep)),
            ..Ports::default()
        };
        let call = Call {
            grant: Arc::clone(&self.grant),
            ports: Arc::new(ports),
            client: self.client.clone(),
            ..Call::bare(self.agent.clone(), limits)
        };
        (call, refused)
    }
}

type DeniedCapabilities = Arc<Mutex<BTreeSet<String>>>;

/// Settings that every agent has.
fn settings() -> BTreeMap<String, String> {
    [("permissions", "ask"), ("approval_timeout", "1000")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

fn work(trial: &TrialRun) -> Work {
    let status =
        TaskStatus { state: TaskState::Submitted, message: None, timestamp: String::new() };
    let (id, context_id) = (TaskId::fresh(), ContextId::fresh());
    let mut message = trial.message.clone();
    message.task_id = Some(id.clone());
    message.context_id.get_or_insert_with(|| context_id.clone());
    let task = Task {
        id,
        context_id,
        status,
        artifacts: Vec::new(),
        history: vec![message.clone()],
        metadata: None,
    };
    Work { task, message, history: trial.history.clone(), live: true, journal: None }
}

/// Client that answers a limited number of questions.
#[derive(Default)]
struct ScriptedClient {
    reaction: PortReaction,
    blocked: Notify,
    emit_calls: AtomicUsize,
    questions: AtomicUsize,
}

impl ScriptedClient {
    /// Blocks forever, or returns at once, depending on the configured reaction.
    async fn react(&self) {
        match self.reaction {
            PortReaction::All => return,
            PortReaction::Nothing => {}
            PortReaction::Cancelling => self.blocked.notify_one(),
        }
        pending::<()>().await;
    }
}

#[async_trait::async_trait]
impl TaskPort for ScriptedClient {
    async fn emit(&self, _: Vec<Emitted>) -> Result<(), Failure> {
        self.emit_calls.fetch_add(1, Relaxed);
        self.react().await;
        Ok(())
    }

    async fn ask(
        &self,
        need: Need,
        _: Message,
        _: Option<Duration>,
    ) -> Result<ClientAnswer, Failure> {
        self.react().await;
        let number = self.questions.fetch_add(1, Relaxed);
        if need == Need::Auth || number >= ANSWERS {
            return Err(Failure::Timeout);
        }
        let message = Message::text(Role::User, "yes");
        Ok(ClientAnswer { message, client: ClientCapabilities::default() })
    }
}

/// Process port without programs, and files port whose files no program reads.
struct NoPrograms;

#[async_trait::async_trait]
impl ProcessPort for NoPrograms {
    async fn fingerprint(&self, program: &str) -> Result<String, Failure> {
        Err(Failure::Unavailable(format!("look at `{program}`: there are no programs here")))
    }

    async fn spawn(&self, launch: PermittedLaunch) -> Result<Box<dyn ChildPort>, Failure> {
        let PermittedLaunch { program, .. } = launch;
        Err(Failure::Unavailable(format!("run `{program}`: there are no programs here")))
    }

    async fn take_up(
        &self,
        _: &str,
        _: PermittedLaunch,
    ) -> Result<Option<Box<dyn ChildPort>>, Failure> {
        Ok(None)
    }
}

#[async_trait::async_trait]
impl FilesPort for NoPrograms {
    async fn put(&self, name: &str, _: Vec<u8>) -> Result<String, Failure> {
        Ok(format!("/files/{name}"))
    }
}

/// In-memory values of one run.
struct Values {
    max_bytes: usize,
    values: Mutex<BTreeMap<String, Vec<u8>>>,
}

#[async_trait::async_trait]
impl MemoryPort for Values {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.values.lock().get(key).cloned())
    }

    async fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Failure> {
        let mut values = self.values.lock();
        let others = values.iter().filter(|(other, _)| *other != key);
        let used: usize = others.map(|(key, value)| key.len() + value.len()).sum();
        if used + key.len() + value.len() > self.max_bytes {
            return Err(Failure::Exhausted("remember more: the bytes are used up".to_owned()));
        }
        values.insert(key.to_owned(), value);
        Ok(())
    }

    async fn delete(&self, key: &str) -> Result<(), Failure> {
        self.values.lock().remove(key);
        Ok(())
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let values = self.values.lock();
        Ok(values.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }
}
