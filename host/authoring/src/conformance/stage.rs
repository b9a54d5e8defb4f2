//! Where a component is tried: the sandbox as a hub has it, and behind it nothing but what is counted here.

use super::report::said;
use a2a_hub_core::grant::{Ask, EffectiveGrant, Grant, intersect};
use a2a_hub_protocol::{
    card::AgentCard,
    client::ClientCapabilities,
    id::{AgentId, ContextId, TaskId},
    message::{Message, Role},
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_runtime::{
    Call, Ended, Failure, Limits, Report, Runtime, Work,
    port::{
        Ports,
        context_memory::FleetingMind,
        files::FilesPort,
        memory::MemoryPort,
        process::{ChildPort, Launch, ProcessPort},
        tasks::{Answer, Emitted, Need, TaskPort},
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

/// How long a task may be at work before it is cancelled: an answer without a program, a host or a model is there sooner, and to be at
/// work for longer is no fault.
const PATIENCE: Duration = Duration::from_secs(4);

/// How much of the processor it may use meanwhile.
const CPU: Duration = Duration::from_secs(3);

/// How long a task that is cancelled may take to end. A hub gives it half as long, on a machine that is not busy with this.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// How long a component has to say how it is that was granted nothing, and of that on the processor; as in a hub.
const HEALTH: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(100));

/// How long it has to clean up.
const CLEAN_UP: Duration = Duration::from_secs(2);

/// How long it is waited for a guest that is ended by force.
const END: Duration = Duration::from_secs(10);

/// How many questions of one task are answered.
const ANSWERS: usize = 8;

/// A component, and what it is tried with.
pub(super) struct Stage {
    /// Where it was loaded, and from what.
    source: (Engine, Bytes),
    plugin: Plugin,
    agent: AgentId,
    client: ClientCapabilities,
    held: Arc<EffectiveGrant>,
}

/// What becomes of what a component tells of its task, and asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hears {
    /// It is taken, and answered.
    #[default]
    All,
    /// The first is never taken: the component is at work, until its time is over.
    Nothing,
    /// The same, and it is cancelled at once.
    Cancelling,
}

/// One run: what the component hears, and under which terms.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) message: Message,
    pub(super) history: Vec<Message>,
    pub(super) limits: Limits,
    /// What becomes of what it tells.
    pub(super) hears: Hears,
    /// How long it may be at work before it is cancelled.
    pub(super) patience: Duration,
}

impl Trial {
    pub(super) fn of(message: Message) -> Self {
        let limits = Limits { cpu: CPU, ..Limits::default() };
        Self { message, history: Vec::new(), limits, hears: Hears::All, patience: PATIENCE }
    }

    pub(super) fn saying(text: &str) -> Self {
        Self::of(Message::text(Role::User, text))
    }
}

/// How a run came to its end.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Came {
    /// By itself.
    Ended(Ended),
    /// Once it was cancelled, within its grace.
    Stopped(Ended),
    /// Not within its grace: it was ended by force.
    Cut,
}

/// What was seen of a run.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) came: Came,
    /// What was asked for and is not held, in the words of a grant.
    pub(super) refused: BTreeSet<String>,
    /// How often it told something.
    pub(super) told: usize,
}

impl Stage {
    /// Grants nothing at all.
    pub(super) fn new(
        source: (Engine, Bytes),
        plugin: Plugin,
        agent: AgentId,
        card: &AgentCard,
    ) -> Self {
        let extensions = card.extensions().map(|(uri, _)| uri.to_owned()).collect();
        let client = ClientCapabilities { extensions, ..ClientCapabilities::default() };
        let held = Arc::new(intersect(plugin.ask(), &Grant::default()));
        Self { source, plugin, agent, client, held }
    }

    pub(super) fn ask(&self) -> &Ask {
        self.plugin.ask()
    }

    /// The same with memory and files, as far as it asks for them: neither reaches anything. None if it asks for neither.
    pub(super) fn harmless(&self) -> Option<Self> {
        let ask = self.ask();
        let all = Grant::everything(ask);
        let held =
            intersect(ask, &Grant { memory: all.memory, files: all.files, ..Grant::default() });
        let has_some = held.memory_bytes.is_some() || held.files_bytes.is_some();
        has_some.then(|| self.with(self.plugin.clone(), held))
    }

    /// The same component, loaded once more.
    pub(super) async fn reloaded(&self) -> Result<Self, String> {
        let (engine, bytes) = &self.source;
        let plugin = Plugin::load(engine, bytes.clone()).await.map_err(|why| why.to_string())?;
        Ok(self.with(plugin, EffectiveGrant::clone(&self.held)))
    }

    fn with(&self, plugin: Plugin, held: EffectiveGrant) -> Self {
        let (source, agent) = (self.source.clone(), self.agent.clone());
        Self { source, plugin, agent, client: self.client.clone(), held: Arc::new(held) }
    }

    /// What it says of itself, asked once more.
    pub(super) async fn card(&self) -> Result<AgentCard, String> {
        self.plugin.card(&self.agent).await.map_err(|why| why.in_full())
    }

    /// How it says that it is; none if it did not in time.
    pub(super) async fn health(&self) -> Option<Result<Report, Failure>> {
        let (deadline, cpu) = HEALTH;
        let (call, _) = self.call(Limits { cpu, ..Limits::default() }, None);
        timeout(deadline, self.plugin.health(call)).await.ok()
    }

    /// What comes of cleaning up after a task; none if it did not end in time.
    pub(super) async fn clean_up(&self) -> Option<Result<(), Failure>> {
        let (call, _) = self.call(Limits { cpu: CPU, ..Limits::default() }, None);
        timeout(CLEAN_UP, self.plugin.clean_up(call, &TaskId::fresh())).await.ok()
    }

    /// Runs it on a task to its end, whichever that is.
    pub(super) async fn run(&self, trial: &Trial) -> Seen {
        let listener = Arc::new(Listener { hears: trial.hears, ..Listener::default() });
        let (call, refused) = self.call(trial.limits, Some(Arc::clone(&listener)));
        let mut run = Runtime::start(&self.plugin, call, work(trial));
        let ended = {
            let mut ended = pin!(run.ended());
            tokio::select! {
                biased;
                ended = &mut ended => Some(ended),
                () = listener.held.notified() => None,
                () = sleep(trial.patience) => None,
            }
        };
        let came = match ended {
            Some(ended) => Came::Ended(ended),
            None => {
                run.cancel();
                let stopped = timeout(GRACE, run.ended()).await;
                stopped.map_or(Came::Cut, Came::Stopped)
            }
        };
        // What is not over by then ends with the process.
        let _ = timeout(END, run.end()).await;
        let refused = std::mem::take(&mut *refused.lock());
        Seen { came, refused, told: listener.told.load(Relaxed) }
    }

    fn call(&self, limits: Limits, tasks: Option<Arc<Listener>>) -> (Call, Refused) {
        let refused = Refused::default();
        let hear = Arc::clone(&refused);
        let keep = move |capability: &str| {
            let mut refused = hear.lock();
            // Names in it are the component's to choose.
            if refused.len() < 32 {
                refused.insert(said(capability));
            }
        };
        let most = |bytes: Option<u64>| bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let values = |bytes| Arc::new(Values { most: bytes, values: Mutex::default() });
        let ports = Ports {
            tasks: tasks.map(|listener| listener as _),
            process: Some(Arc::new(NoPrograms)),
            memory: most(self.held.memory_bytes).map(|bytes| values(bytes) as _),
            context_memory: most(self.held.memory_bytes)
                .map(|bytes| Arc::new(FleetingMind::of(bytes)) as _),
            files: most(self.held.files_bytes).map(|_| Arc::new(NoPrograms) as _),
            settings: Arc::new(settings()),
            refused: Some(Arc::new(keep)),
            ..Ports::default()
        };
        let call = Call {
            held: Arc::clone(&self.held),
            ports: Arc::new(ports),
            client: self.client.clone(),
            ..Call::bare(self.agent.clone(), limits)
        };
        (call, refused)
    }
}

type Refused = Arc<Mutex<BTreeSet<String>>>;

/// What every agent finds among its settings.
fn settings() -> BTreeMap<String, String> {
    [("permissions", "ask"), ("approval_timeout", "1000")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

fn work(trial: &Trial) -> Work {
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

/// A client that answers what it is asked, as often as somebody would.
#[derive(Default)]
struct Listener {
    hears: Hears,
    held: Notify,
    told: AtomicUsize,
    asked: AtomicUsize,
}

impl Listener {
    /// For ever, or not at all.
    async fn hold(&self) {
        match self.hears {
            Hears::All => return,
            Hears::Nothing => {}
            Hears::Cancelling => self.held.notify_one(),
        }
        pending::<()>().await;
    }
}

#[async_trait::async_trait]
impl TaskPort for Listener {
    async fn emit(&self, _: Vec<Emitted>) -> Result<(), Failure> {
        self.told.fetch_add(1, Relaxed);
        self.hold().await;
        Ok(())
    }

    async fn ask(&self, need: Need, _: Message, _: Option<Duration>) -> Result<Answer, Failure> {
        self.hold().await;
        let asked = self.asked.fetch_add(1, Relaxed);
        if need == Need::Auth || asked >= ANSWERS {
            return Err(Failure::Timeout);
        }
        let message = Message::text(Role::User, "yes");
        Ok(Answer { message, client: ClientCapabilities::default() })
    }
}

/// Programs that there are none of, and files that no program reads.
struct NoPrograms;

#[async_trait::async_trait]
impl ProcessPort for NoPrograms {
    async fn fingerprint(&self, program: &str) -> Result<String, Failure> {
        Err(Failure::Unavailable(format!("look at `{program}`: there are no programs here")))
    }

    async fn spawn(&self, launch: Launch) -> Result<Box<dyn ChildPort>, Failure> {
        let Launch { program, .. } = launch;
        Err(Failure::Unavailable(format!("run `{program}`: there are no programs here")))
    }

    async fn take_up(&self, _: &str, _: Launch) -> Result<Option<Box<dyn ChildPort>>, Failure> {
        Ok(None)
    }
}

#[async_trait::async_trait]
impl FilesPort for NoPrograms {
    async fn put(&self, name: &str, _: Vec<u8>) -> Result<String, Failure> {
        Ok(format!("/files/{name}"))
    }
}

/// Values of one run, which nobody keeps.
struct Values {
    most: usize,
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
        let held: usize = others.map(|(key, value)| key.len() + value.len()).sum();
        if held + key.len() + value.len() > self.most {
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
