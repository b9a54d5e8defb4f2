//! One agent: its component, what it holds, and how it is.

mod calls;
mod health_check;
mod health_monitor;
mod lending;
mod narrowed;
mod only_answers;
mod remedy;
mod report;
mod source;
mod turns;
mod version;

pub use health_check::lately;
pub use health_monitor::Unavailable;
pub use report::{Late, NotWorking};
pub(crate) use source::Source;
pub(crate) use turns::Turns;
pub use version::AgentVersion;

use crate::{
    event_sink::EventSink,
    port::{
        confining::{self, Confining},
        context_memory::Mind,
        door::Door,
        files::Files,
        http::Http,
        live_grant::LiveGrant,
        memory::BoundedMemory,
        peer_directory::{PeerDirectory, Peers},
        programs::{Holder, KeptPrograms, Programs, Seat},
        secrets::SecretStore,
        tools::Tools,
        workspace::Workspace,
    },
};
use a2a_hub_clock as clock;
use a2a_hub_config::{self as config, AgentConfig, Permissions};
use a2a_hub_core::{
    access::Principal,
    breaker,
    context_memory::model::MemoryRoom,
    facts,
    grant::{EffectiveGrant, Grant, Resume, intersect},
    installation::InstallationId,
    lacks::lacks,
    quota,
    recovery::Resumability,
    redact::Secrets,
    trace::PARENT_TASK,
};
use a2a_hub_process::Supervisor;
use a2a_hub_protocol::{
    card::AgentCard,
    client::ClientCapabilities,
    id::{AgentId, ContextId, TaskId, TenantId},
    operation::{
        AgentBreaker, AgentHealth, AgentInfo, HeldBack, NotGranted, Operated, ProgramTier,
    },
    task::Task,
};
use a2a_hub_runtime::{
    Call, Failure, HubWork, Room, Run, Runtime, Work,
    port::{Ports, delegate::DelegatePort, journal::JournalPort, tasks::TaskPort},
};
use a2a_hub_store::Memories;
use health_monitor::HealthMonitor;
use narrowed::{most, narrowed};
use remedy::remedied;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
use tokio::{sync::Mutex, time::timeout};
use tokio_util::sync::CancellationToken;

/// How long an agent may take to clean up after a cancelled task.
const CLEAN_UP_DEADLINE: Duration = Duration::from_secs(2);

/// How long the programs of a call that is over may take to be gone, before that is reported and left.
const PROGRAMS_GONE: Duration = Duration::from_secs(8);

/// What an agent is granted, and whose its memory and its programs' home are.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// What its memory and home are kept under.
    pub installation: InstallationId,
    /// What it may do.
    pub grant: Grant,
}

/// What the hub gives an agent to work with.
pub(crate) struct AgentDeps {
    /// The operator's settings for it.
    pub config: AgentConfig,
    /// What it is granted, and what it keeps is kept under.
    pub terms: Terms,
    /// Directories it may work in, unless its own settings name others.
    pub workspaces: Vec<PathBuf>,
    /// Where its programs are at home.
    pub home: PathBuf,
    /// The hub's data directory, which no confined program sees.
    pub data_dir: PathBuf,
    /// Where programs find the hub, of agents that may call others.
    pub door: Option<Door>,
    /// Runs its programs, each in a tree of its own.
    pub supervisor: Supervisor,
    /// Keeps some of them between tasks.
    pub kept: KeptPrograms,
    /// Keeps the values that it remembers between tasks.
    pub storage: Arc<dyn Memories>,
    /// Writes files for its programs.
    pub files: Files,
    /// Knows the secrets that the hub puts into its requests.
    pub http_secrets: SecretStore,
    /// Tells which other agents there are.
    pub peers: Peers,
    /// When it is left alone.
    pub breaker: breaker::Settings,
    /// Hears how it is.
    pub events: Arc<dyn EventSink>,
    /// The turns of those that are asked how they are.
    pub asking: Arc<Turns>,
    /// Cancelled when it leaves, or another takes its place.
    pub left: CancellationToken,
}

/// The hub's side of one task.
pub struct TaskPorts {
    /// Hears of the task.
    pub task: Arc<dyn TaskPort>,
    /// Where the agent gives tasks to others, if it may.
    pub delegation: Option<Arc<dyn DelegatePort>>,
    /// Where what the agent is answered is recorded, if its run is.
    pub journal: Option<Arc<dyn JournalPort>>,
    /// Who gave the task, or said more to it; none if that is not known.
    pub by: Option<Principal>,
}

/// An agent of this hub.
pub struct Agent {
    /// Its name on this hub.
    pub id: AgentId,
    /// What it says of itself.
    pub card: AgentCard,
    /// The operator's settings for it.
    pub config: AgentConfig,
    pub(crate) source: Source,
    /// The name of the operator's key that signed its component.
    pub(crate) signed_by: Option<String>,
    /// Shared with the agent that takes its place under other settings.
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) terms: Terms,
    held: Arc<EffectiveGrant>,
    /// What of it is not taken away meanwhile.
    pub(crate) live: LiveGrant,
    programs: Arc<Programs>,
    values: Option<Arc<BoundedMemory>>,
    storage: Arc<dyn Memories>,
    files: Files,
    http: Option<Arc<Http>>,
    peers: Option<Arc<PeerDirectory>>,
    tools: Option<Arc<Tools>>,
    settings: Arc<BTreeMap<String, String>>,
    secrets: Arc<Secrets>,
    /// When it joined: RFC 3339 in UTC.
    pub registered_at: String,
    monitor: HealthMonitor,
    /// Held while it is asked how it is, so that it is not asked twice at once.
    checking: Mutex<()>,
    asking: Arc<Turns>,
    pub(crate) left: CancellationToken,
}

impl Agent {
    pub(crate) fn new(
        id: AgentId,
        runtime: Arc<dyn Runtime>,
        card: AgentCard,
        source: Source,
        deps: AgentDeps,
    ) -> Self {
        let AgentDeps {
            config, terms, workspaces, home, data_dir, supervisor, storage, files, ..
        } = deps;
        let AgentDeps { peers, breaker, events, asking, left, .. } = deps;
        let mut held = intersect(runtime.ask(), &terms.grant);
        held.furnish(&config.programs, &config.env);
        for name in config.programs.keys().filter(|name| !held.programs.contains_key(*name)) {
            tracing::warn!(agent = %id, program = name, "`programs` says where it is, but the agent may not run it");
        }
        let granted =
            held.directories.as_ref().map(|dirs| dirs.iter().map(PathBuf::from).collect());
        let workspaces = granted.or_else(|| config.workspaces.clone()).unwrap_or(workspaces);
        let is_stranger = matches!(source, Source::File(_));
        let confining = Confining::of(&id, source.origin(), &config, &data_dir);
        let delegates = !held.agents.is_empty();
        let door = deps.door.filter(|_| delegates);
        let at_the_door = door.iter().flat_map(Door::told).collect::<Vec<_>>();
        let kept = config.limits.with(&terms.grant.limits).kept();
        let seat = Seat { agent: id.clone(), kept: deps.kept, limits: kept, left: left.clone() };
        let programs =
            Programs::new(seat, &held, &workspaces, home, confining, supervisor, is_stranger)
                .at(door);
        let mut passed = held.passed();
        passed.extend(config.mcp.values().flat_map(|server| server.env.iter().cloned()));
        let passed = config::environment(&passed);
        let mut settings = config.told(programs.first_directory());
        settings.extend(at_the_door);
        let known = passed.into_iter().chain(settings.clone());
        let secrets = Arc::new(deps.http_secrets.among(known, &held));
        let held = Arc::new(held);
        let live = LiveGrant::new(Arc::clone(&held));
        let values = held.memory_bytes.map(|max| {
            let owner = terms.installation.clone();
            Arc::new(BoundedMemory::new(owner, max, live.clone(), storage.clone()))
        });
        let http = Http::of(&id, live.clone(), &deps.http_secrets);
        let peers =
            delegates.then(|| Arc::new(PeerDirectory::new(id.clone(), live.clone(), peers)));
        let programs = Arc::new(programs);
        let tools = Tools::of(&id, &live, &config, &programs, &files, http.as_ref());
        let monitor = HealthMonitor::new(id.clone(), breaker, events);
        Self {
            id,
            card,
            settings: Arc::new(settings),
            secrets,
            config,
            source,
            signed_by: None,
            runtime,
            terms,
            held,
            live,
            tools,
            programs,
            values,
            storage,
            files,
            http,
            peers,
            registered_at: clock::now(),
            monitor,
            checking: Mutex::default(),
            asking,
            left,
        }
    }

    /// Sets it to work on a task, of which `ports` hear.
    pub fn start(
        &self,
        ports: TaskPorts,
        working_directory: Option<String>,
        client: ClientCapabilities,
        work: Work,
    ) -> Box<dyn Run> {
        let most = most(&work.task, facts::has(&work.task, PARENT_TASK));
        let (owner, context) = (work.task.id.as_str(), &work.task.context_id);
        let ports = Some((ports, context));
        let call = self.call((owner, context.tenant()), ports, most, working_directory);
        self.runtime.start(Call { client, ..call }, work)
    }

    /// What it does with a task that its hub's end cut off.
    pub fn resume(&self) -> Resume {
        self.runtime.ask().resume
    }

    /// What the operator set for it, as it is told in this task.
    pub fn settings(&self, task: &Task) -> Arc<BTreeMap<String, String>> {
        narrowed(&self.settings, most(task, facts::has(task, PARENT_TASK)))
    }

    /// Whether there is room for it to work on one more task.
    pub fn has_room(&self) -> bool {
        self.room().is_none_or(|room| room.taken < room.most)
    }

    /// The room that each of its tasks takes up a place of; none if they take up none.
    pub fn room(&self) -> Option<Room> {
        self.runtime.room()
    }

    /// What keeps this machine from confining its programs as they must be, and the ways out.
    pub async fn shortfall(&self) -> Option<String> {
        self.programs.shortfall().await
    }

    /// How many of its tasks run and wait.
    pub fn quota(&self) -> quota::QuotaLimits {
        self.config.quota(!self.held.programs.is_empty())
    }

    /// Whether it does one task of a conversation at a time.
    pub fn one_per_context(&self) -> bool {
        self.runtime.ask().one_per_context
    }

    /// Listens again to what it does for a task that it was given before this hub started; none if its work ended with that
    /// hub.
    pub fn follow(&self, port: Arc<dyn TaskPort>, task: Task) -> Option<Box<dyn Run>> {
        let ports = TaskPorts { task: port, delegation: None, journal: None, by: None };
        let (owner, context) = (task.id.as_str(), &task.context_id);
        let call = self.call((owner, context.tenant()), Some((ports, context)), None, None);
        self.runtime.follow(call, task)
    }

    /// Does some of the hub's work for its tasks, as urgently as its own work is done.
    pub async fn on_behalf(&self, work: HubWork) {
        self.runtime.on_behalf(work).await;
    }

    /// Whether it is another one by now, and is to join anew.
    pub(crate) fn is_renewed(&self) -> bool {
        self.runtime.is_renewed()
    }

    /// Whether the operator knows of it: it came with the hub, is named in the configuration, or this very component was granted
    /// something. Any other was dropped into the plugins folder, by whomever.
    pub fn is_vouched_for(&self) -> bool {
        !matches!(self.source, Source::File(_)) || self.terms.grant != Grant::default()
    }

    /// What it still has of a task whose hub is gone.
    pub async fn resumability(&self, task: &TaskId) -> Resumability {
        self.runtime.resumability(task).await
    }

    /// What a call for `owner` comes with, on behalf of a tenant; `ports` hear of the task, if it is one, of a conversation.
    fn call(
        &self,
        (owner, tenant): (&str, &TenantId),
        ports: Option<(TaskPorts, &ContextId)>,
        most: Option<Permissions>,
        working_directory: Option<String>,
    ) -> Call {
        let (id, told_of) = (self.id.clone(), owner.to_owned());
        let log = move |level, line: &str| log_line(&id, &told_of, level, line);
        let files = Arc::new(self.files.of(owner, self.live.clone()));
        let (tasks, delegation, journal, by, mind) = match ports {
            Some((it, context)) => {
                (Some(it.task), it.delegation, it.journal, it.by, self.mind(context))
            }
            None => (None, None, None, None, None),
        };
        let settings = narrowed(&self.settings, most);
        let holder = Holder {
            principal: by.as_ref().map(Principal::identity),
            tenant: tenant.clone(),
            settings: Arc::clone(&settings),
        };
        let live = self.live.clone();
        let programs = Programs::of(&self.programs, owner, holder, Arc::clone(&files), live);
        let ports = Ports {
            tasks,
            process: Some(Arc::new(programs)),
            memory: self.values.as_ref().map(|values| Arc::new(values.of(tenant)) as _),
            context_memory: mind.map(|mind| Arc::new(mind) as _),
            files: self.held.files_bytes.map(|_| files as _),
            http: self.http.clone().map(|http| http as _),
            workspace: Workspace::of(&self.programs, &self.live).map(|held| held as _),
            tools: self.tools.clone().map(|tools| tools as _),
            delegate: delegation.or_else(|| self.peers.clone().map(|peers| peers as _)),
            journal,
            settings,
            log: Some(Arc::new(log)),
            refused: None,
        };
        Call {
            agent: self.id.clone(),
            limits: self.config.limits.with(&self.terms.grant.limits).limits(),
            held: Arc::clone(&self.held),
            ports: Arc::new(ports),
            secrets: Arc::clone(&self.secrets),
            working_directory,
            client: ClientCapabilities::default(),
        }
    }

    /// What it has in mind in a conversation; none if it may not remember.
    pub fn mind(&self, context: &ContextId) -> Option<Mind> {
        let held = &self.held;
        let room = MemoryRoom { max_bytes: held.memory_bytes?, max_items: held.memory_items };
        let (owner, storage) = (self.terms.installation.clone(), self.storage.clone());
        Some(Mind::new(owner, context.clone(), room, self.live.clone(), storage))
    }

    /// Whether it is one that works elsewhere, and not on this hub.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.source, Source::Remote(_))
    }

    /// Waits until no program of `owner` is left, but not for ever.
    pub async fn programs_gone(&self, owner: &str) {
        if timeout(PROGRAMS_GONE, self.programs.ended(owner)).await.is_err() {
            tracing::error!(agent = %self.id, owner, "programs are still there after what they ran for ended");
        }
    }

    /// Lets it clean up after a cancelled task; what it fails at is logged and left.
    pub async fn clean_up(&self, task: &Task) {
        let (id, owner) = (&task.id, format!("{}/cancel", task.id));
        let call = self.call((&owner, task.context_id.tenant()), None, None, None);
        let cleaned = timeout(CLEAN_UP_DEADLINE, self.runtime.clean_up(call, id)).await;
        if let Err(why) = cleaned.unwrap_or(Err(Failure::Timeout)) {
            tracing::warn!(agent = %self.id, task = %id, %why, "clean-up after cancel failed");
        }
        self.programs_gone(&owner).await;
    }

    /// How it is, as far as is known.
    pub fn health(&self) -> AgentHealth {
        self.monitor.health()
    }

    /// Whether tasks reach it.
    pub fn breaker(&self) -> AgentBreaker {
        self.monitor.breaker()
    }

    /// Whether its breaker lets no task through now.
    pub fn is_left_alone(&self) -> bool {
        self.monitor.is_left_alone()
    }

    /// Lets a task through to it, or says why not.
    pub fn admit(&self) -> Result<(), Unavailable> {
        self.monitor.admit()
    }

    /// Learns from how a task of its ended.
    pub async fn task_ended(&self, task: &Task) {
        self.monitor.task_ended(task);
        if task.status.state.is_final() {
            self.forget(&task.id).await;
        }
    }

    /// What its runtime knows of a run that is over is of no use any more.
    pub async fn forget(&self, task: &TaskId) {
        self.runtime.forget(task).await;
    }

    /// How its programs are held, if it may run any.
    pub(crate) fn tier(&self) -> Option<ProgramTier> {
        (!self.programs.is_empty() || self.tools.is_some())
            .then(|| confining::told(self.programs.confining()))
    }

    /// How many of its programs are kept between its tasks.
    pub fn kept(&self) -> usize {
        self.programs.kept()
    }

    /// How the operator runs it.
    pub fn operated(&self) -> Operated {
        let quota::QuotaLimits { max_running, max_queued, .. } = self.quota();
        let timeout = self.config.timeout().as_millis();
        Operated {
            status: self.health().status,
            task_timeout_ms: u64::try_from(timeout).unwrap_or(u64::MAX),
            max_running,
            max_queued,
        }
    }

    /// What it asks for and does not hold. An agent that came with the hub and whose grant nobody has stated holds what it is meant
    /// to.
    pub(crate) fn not_granted(&self) -> Vec<NotGranted> {
        let came_along = matches!(self.source, Source::BuiltIn | Source::Native);
        if came_along && self.config.grant.is_none() {
            return Vec::new();
        }
        let is_by_command = matches!(self.source, Source::File(_)) && self.config.grant.is_none();
        let lacks = lacks(self.runtime.ask(), &self.live.now()).into_iter();
        lacks.map(|lack| remedied(lack, is_by_command.then_some(&self.id))).collect()
    }

    /// What the hub tells of it; another component in its file may be held back.
    pub(crate) fn info(
        &self,
        health: Option<AgentHealth>,
        held_back: Option<HeldBack>,
    ) -> AgentInfo {
        AgentInfo {
            id: self.id.clone(),
            name: self.card.name.clone(),
            card: self.card.published(Some(&self.id)),
            health,
            breaker: self.breaker(),
            registered_at: self.registered_at.clone(),
            source: self.source.to_string(),
            signed_by: self.signed_by.clone(),
            not_granted: self.not_granted(),
            held_back,
            tier: self.tier(),
            permissions: self.tier().map(|_| self.config.permissions.word().to_owned()),
            kept: self.kept(),
        }
    }
}

fn log_line(agent: &AgentId, owner: &str, level: tracing::Level, line: &str) {
    match level {
        tracing::Level::ERROR => tracing::error!(%agent, task = owner, "{line}"),
        tracing::Level::WARN => tracing::warn!(%agent, task = owner, "{line}"),
        tracing::Level::INFO => tracing::info!(%agent, task = owner, "{line}"),
        tracing::Level::DEBUG | tracing::Level::TRACE => {
            tracing::debug!(%agent, task = owner, "{line}");
        }
    }
}
