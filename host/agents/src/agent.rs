//! One agent: its component, its effective grant, its ports and its health.

pub(crate) mod acp;
mod calls;
mod driven_program;
pub(crate) mod flow_file;
mod grant_hint;
mod health_check;
mod health_check_limits;
mod health_monitor;
mod is_pure;
mod lending;
mod login_wait;
mod memory;
mod origin;
mod permission_limits;
mod refusals;
mod report;
mod script;
mod source;
mod task_ports;
mod version;

pub use health_check::lately;
pub(crate) use health_check_limits::HealthCheckPermits;
pub use health_monitor::Unavailable;
pub use report::{Late, NotWorking};
pub(crate) use script::SCRIPT;
pub(crate) use source::{AgentSource, FLOW_RUNNER};
pub use task_ports::TaskPorts;
pub use version::AgentVersion;

use crate::{
    agent::refusals::RefusalsByTask,
    event_sink::EventSink,
    port::{
        confinement::{self, Confining},
        files::Files,
        http::AgentHttp,
        hub_access::HubAccess,
        live_grant::LiveGrant,
        logins::Logins,
        memory::BoundedMemory,
        peer_directory::{PeerAccess, PeerDirectory},
        programs::{AgentPool, IdlePrograms, ProgramHolder, Programs},
        tools::AgentTools,
        workspace::Workspace,
    },
};
use a2a_hub_clock as clock;
use a2a_hub_config::{self as config, AgentConfig, Permissions, SecretStore};
use a2a_hub_core::{
    access_control::Principal,
    grant::{EffectiveGrant, Grant, Reports, Resume, intersect},
    health::circuit_breaker,
    identity::LoginUser,
    plugin::{installation::InstallationId, missing_grants::lacks},
    scheduling::task_admission,
    task::{
        metadata::{self, RefusedCapabilities},
        recovery::Resumability,
        trace_context::PARENT_TASK,
    },
    text::redact::Secrets,
};
use a2a_hub_process::Supervisor;
use a2a_hub_protocol::{
    card::AgentCard,
    client::ClientCapabilities,
    id::{AgentId, ContextId, TaskId, TenantId},
    operation::{
        AgentBreaker, AgentChoice, AgentHealth, AgentInfo, HeldBack, NotGranted, Operated,
        ProgramTier,
    },
    task::Task,
};
use a2a_hub_runtime::{
    Call, Failure, HubWork, Limits, Run, RunCapacity, Runtime, Work,
    directories::{self, TaskDirectories},
    port::{Ports, tasks::TaskPort},
};
use a2a_hub_store::Memories;
use grant_hint::remedied;
use health_monitor::HealthMonitor;
use login_wait::LoginWait;
use permission_limits::{max_permissions, narrowed};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
use tokio::{sync::Mutex, time::timeout};
use tokio_util::sync::CancellationToken;

/// Time that an agent may take to clean up after a cancelled task.
const CLEAN_UP_DEADLINE: Duration = Duration::from_secs(2);

/// Time that the programs of a finished call may take to exit before the delay is logged and
/// ignored.
const PROGRAM_EXIT_TIMEOUT: Duration = Duration::from_secs(8);

/// Grant of an agent, and the installation that owns its memory and its programs' home.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Key under which the agent's memory and home are stored.
    pub installation: InstallationId,
    /// Capabilities granted by the operator.
    pub grant: Grant,
}

/// Everything that the hub passes to a new agent.
pub(crate) struct AgentDeps {
    /// The operator's settings for the agent.
    pub config: AgentConfig,
    /// Grant and installation of the agent.
    pub terms: Terms,
    /// Directories in which the agent may work, unless its own settings name others.
    pub workspaces: Vec<PathBuf>,
    /// Home directory of the agent's programs.
    pub home: PathBuf,
    /// The hub's data directory, hidden from confined programs.
    pub data_dir: PathBuf,
    /// Logins of people and workspaces at the agent's vendor.
    pub logins: Logins,
    /// Connection to the hub for programs of agents that may call others.
    pub hub_access: Option<HubAccess>,
    /// Runs the agent's programs, each in a separate process tree.
    pub supervisor: Supervisor,
    /// Pool of programs that stay idle between tasks.
    pub idle_programs: IdlePrograms,
    /// Stores the values that the agent remembers between tasks.
    pub storage: Arc<dyn Memories>,
    /// Writes files for the agent's programs.
    pub files: Files,
    /// Looks up the secrets that the hub adds to the agent's HTTP requests.
    pub http_secrets: SecretStore,
    /// Directory of the other agents.
    pub peers: PeerAccess,
    /// Settings of the agent's circuit breaker.
    pub breaker: circuit_breaker::BreakerSettings,
    /// Receives health and breaker events of the agent.
    pub events: Arc<dyn EventSink>,
    /// Concurrency limits for health checks.
    pub asking: Arc<HealthCheckPermits>,
    /// Cancelled when the agent leaves or is replaced.
    pub shutdown: CancellationToken,
}

/// An agent of this hub.
pub struct Agent {
    /// Id of the agent on this hub.
    pub id: AgentId,
    /// Card that the agent itself provides.
    pub card: AgentCard,
    /// The operator's settings for the agent.
    pub config: AgentConfig,
    pub(crate) source: AgentSource,
    /// Name of the operator's key that signed the agent's component.
    pub(crate) signed_by: Option<String>,
    /// Shared with the agent that replaces this one under other settings.
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) terms: Terms,
    effective: Arc<EffectiveGrant>,
    /// The effective grant, minus everything that was revoked since.
    pub(crate) live: LiveGrant,
    programs: Arc<Programs>,
    values: Option<Arc<BoundedMemory>>,
    storage: Arc<dyn Memories>,
    files: Files,
    http: Option<Arc<AgentHttp>>,
    peers: Option<Arc<PeerDirectory>>,
    tools: Option<Arc<AgentTools>>,
    settings: Arc<BTreeMap<String, String>>,
    secrets: Arc<Secrets>,
    /// Time of registration: RFC 3339 in UTC.
    pub registered_at: String,
    monitor: HealthMonitor,
    refusals: RefusalsByTask,
    /// Held during a health check, so that concurrent checks share one.
    checking: Mutex<()>,
    asking: Arc<HealthCheckPermits>,
    pub(crate) shutdown: CancellationToken,
}

impl Agent {
    pub(crate) fn new(
        id: AgentId,
        runtime: Arc<dyn Runtime>,
        card: AgentCard,
        source: AgentSource,
        deps: AgentDeps,
    ) -> Self {
        let AgentDeps {
            mut config,
            terms,
            workspaces,
            home,
            data_dir,
            logins,
            supervisor,
            storage,
            files,
            ..
        } = deps;
        let AgentDeps { peers, breaker, events, asking, shutdown, .. } = deps;
        source.relax(&id, &mut config);
        let mut effective = intersect(runtime.ask(), &terms.grant);
        effective.apply_overrides(&config.programs, &config.env);
        for name in config.programs.keys().filter(|name| !effective.programs.contains_key(*name)) {
            tracing::warn!(agent = %id, program = name, "`programs` configures a program that the agent is not granted");
        }
        let granted =
            effective.directories.as_ref().map(|dirs| dirs.iter().map(PathBuf::from).collect());
        let workspaces = granted.or_else(|| config.workspaces.clone()).unwrap_or(workspaces);
        let is_stranger = matches!(source, AgentSource::File(_) | AgentSource::Script);
        let origin = source.origin();
        let confining = Confining::for_agent(&id, origin, &config, &data_dir, logins.clone());
        let data_dir = data_dir.canonicalize().unwrap_or_else(|_| data_dir.clone());
        let delegates = !effective.agents.is_empty();
        let hub_access = deps.hub_access.filter(|_| delegates);
        let hub_settings = hub_access.iter().flat_map(HubAccess::to_settings).collect::<Vec<_>>();
        let idle_limits = config.limits.with(&terms.grant.limits).idle_limits();
        let pool = AgentPool {
            agent: id.clone(),
            idle_programs: deps.idle_programs,
            limits: idle_limits,
            shutdown: shutdown.clone(),
        };
        let programs =
            Programs::new(pool, &effective, &workspaces, home, confining, supervisor, is_stranger)
                .at(hub_access)
                .with_data(data_dir.clone(), logins);
        let mut passed = effective.passed();
        passed.extend(config.mcp.values().flat_map(|server| server.env.iter().cloned()));
        let passed = config::environment(&passed);
        let mut settings = config.effective_settings(programs.first_directory());
        settings.extend(hub_settings);
        settings.extend(acp::setting(&id, &config));
        let known = passed.into_iter().chain(settings.clone());
        let secrets = Arc::new(deps.http_secrets.among(known, &effective));
        // Last, so that the operator's settings cannot replace them.
        settings.extend(source.settings(&id));
        let effective = Arc::new(effective);
        let live = LiveGrant::new(Arc::clone(&effective));
        let values = effective.memory_bytes.map(|max| {
            let owner = terms.installation.clone();
            Arc::new(BoundedMemory::new(owner, max, live.clone(), storage.clone()))
        });
        let http = AgentHttp::for_agent(&id, live.clone(), &deps.http_secrets);
        let peers =
            delegates.then(|| Arc::new(PeerDirectory::new(id.clone(), live.clone(), peers)));
        let programs = Arc::new(programs);
        let tools = AgentTools::for_agent(&id, &live, &config, &programs, &files, http.as_ref());
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
            effective,
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
            refusals: RefusalsByTask::default(),
            checking: Mutex::default(),
            asking,
            shutdown,
        }
    }

    /// Starts a run for a task; `ports` receive its events.
    pub fn start(
        &self,
        ports: TaskPorts,
        working_directory: Option<String>,
        client: ClientCapabilities,
        mut work: Work,
    ) -> Box<dyn Run> {
        let max_permissions = max_permissions(&work.task, metadata::has(&work.task, PARENT_TASK));
        let (owner, context) = (work.task.id.as_str(), &work.task.context_id);
        let login = self.programs.may_have_logins().then(|| {
            let owner = format!("{owner}/login");
            let files = Arc::new(self.files.instance(&owner, self.live.clone()));
            LoginWait::new(&self.programs, &ports, working_directory.clone(), (owner, files))
        });
        let ports = Some((ports, context));
        let additional = directories::additional(&work.task);
        directories::set(&mut work.message, &additional);
        let directories = TaskDirectories { working: working_directory, additional };
        let call = self.call((owner, context.tenant()), ports, max_permissions, directories);
        let (runtime, call) = (Arc::clone(&self.runtime), Call { client, ..call });
        match login {
            Some(login) => login.run(Box::new(move || runtime.start(call, work))),
            None => runtime.start(call, work),
        }
    }

    /// Policy for a task that was interrupted by the end of its hub's process.
    pub fn resume(&self) -> Resume {
        self.runtime.ask().resume
    }

    /// The operator's settings for the agent, narrowed to the permissions of this task.
    pub fn settings(&self, task: &Task) -> Arc<BTreeMap<String, String>> {
        narrowed(&self.settings, max_permissions(task, metadata::has(task, PARENT_TASK)))
    }

    /// True if the agent has capacity for one more task.
    pub fn has_capacity(&self) -> bool {
        self.run_capacity().is_none_or(|capacity| capacity.running < capacity.max)
    }

    /// Capacity that the agent's tasks share; none if its tasks use none.
    pub fn run_capacity(&self) -> Option<RunCapacity> {
        self.runtime.run_capacity()
    }

    /// Reason why this machine cannot confine the agent's programs as required, with the ways out;
    /// none if it can.
    pub async fn shortfall(&self) -> Option<String> {
        self.programs.shortfall().await
    }

    /// Limits on the agent's running and queued tasks.
    pub fn quota(&self) -> task_admission::QuotaLimits {
        self.config.quota(!self.effective.programs.is_empty())
    }

    /// True if the agent handles one task of a context at a time.
    pub fn one_per_context(&self) -> bool {
        self.runtime.ask().one_per_context
    }

    /// True if the agent may answer with a direct message in place of a task.
    pub fn may_reply_directly(&self) -> bool {
        self.runtime.ask().direct_message
    }

    /// Usage that the agent reports, if its manifest says so.
    pub fn reports(&self) -> Option<Reports> {
        self.runtime.ask().reports
    }

    /// Reattaches to a task that the agent was given before this process started; none if its work
    /// ended with the previous process.
    pub fn follow(&self, port: Arc<dyn TaskPort>, task: Task) -> Option<Box<dyn Run>> {
        let ports = TaskPorts::of_followed(port);
        let (owner, context) = (task.id.as_str(), &task.context_id);
        let ports = Some((ports, context));
        let call = self.call((owner, context.tenant()), ports, None, TaskDirectories::default());
        self.runtime.follow(call, task)
    }

    /// Does hub work for the agent's tasks at the same priority as the agent's own work.
    pub async fn run_hub_work(&self, work: HubWork) {
        self.runtime.run_hub_work(work).await;
    }

    /// True if the agent has changed since it was registered and has to be registered anew.
    pub(crate) fn has_changed(&self) -> bool {
        self.runtime.is_renewed()
    }

    /// True if the operator approved the agent: it came with the hub, is named in the
    /// configuration, or has a grant. Any other agent is an unknown file in the plugins folder.
    pub fn is_vouched_for(&self) -> bool {
        !matches!(self.source, AgentSource::File(_)) || self.terms.grant != Grant::default()
    }

    /// State that the agent still has of a task whose hub process ended.
    pub async fn resumability(&self, task: &TaskId) -> Resumability {
        self.runtime.resumability(task).await
    }

    /// Builds a call for `owner` on behalf of a tenant. `ports` are those of a task and its
    /// context, if the call belongs to one.
    fn call(
        &self,
        (owner, tenant): (&str, &TenantId),
        ports: Option<(TaskPorts, &ContextId)>,
        max_permissions: Option<Permissions>,
        directories: TaskDirectories,
    ) -> Call {
        let (id, log_owner) = (self.id.clone(), owner.to_owned());
        let log = move |level, line: &str| log_line(&id, &log_owner, level, line);
        let files = Arc::new(self.files.instance(owner, self.live.clone()));
        let refused = ports.is_some().then(|| self.refusals.port(owner));
        // Health checks and clean-ups use the operator's own login.
        let user = ports.as_ref().map_or(LoginUser::Operator, |(it, _)| it.login_user.clone());
        let (tasks, delegation, journal, by, context_memory) = match ports {
            Some((it, context)) => {
                let memory = self.context_memory(context, it.memory_by.as_ref());
                (Some(it.task), it.delegation, it.journal, (it.by, it.memory_by), memory)
            }
            None => (None, None, None, (None, None), None),
        };
        let (by, memory_by) = by;
        let settings = narrowed(&self.settings, max_permissions);
        let holder = ProgramHolder {
            principal: by.as_ref().map(Principal::identity),
            tenant: tenant.clone(),
            settings: Arc::clone(&settings),
        };
        let live = self.live.clone();
        let working_directory = directories.working.clone();
        let directory = working_directory.as_deref();
        let workspace = Workspace::for_task(&self.programs, directory, &self.live);
        let files_of = Arc::clone(&files);
        let programs =
            Programs::for_run(&self.programs, owner, (directories, user), holder, files_of, live);
        let ports = Ports {
            tasks,
            process: Some(Arc::new(programs)),
            memory: self.values_for(tenant, memory_by.as_ref()),
            context_memory: context_memory.map(|memory| Arc::new(memory) as _),
            files: self.effective.files_bytes.map(|_| files as _),
            http: self.http.clone().map(|http| http as _),
            workspace: workspace.map(|granted| granted as _),
            tools: self.tools.clone().map(|tools| tools as _),
            delegate: delegation.or_else(|| self.peers.clone().map(|peers| peers as _)),
            journal,
            settings,
            log: Some(Arc::new(log)),
            refused,
        };
        Call {
            agent: self.id.clone(),
            limits: self.limits(),
            grant: Arc::clone(&self.effective),
            ports: Arc::new(ports),
            secrets: Arc::clone(&self.secrets),
            working_directory,
            client: ClientCapabilities::default(),
        }
    }

    /// Limits of each of the agent's runs: those of its grant, then those of the configuration.
    pub fn limits(&self) -> Limits {
        self.config.limits.with(&self.terms.grant.limits).limits()
    }

    /// Waits until no program of `owner` is left, for a limited time.
    pub async fn wait_for_programs(&self, owner: &str) {
        if timeout(PROGRAM_EXIT_TIMEOUT, self.programs.ended(owner)).await.is_err() {
            tracing::error!(agent = %self.id, owner, "programs still run after their task or check ended");
        }
    }

    /// Lets the agent clean up after a cancelled task; failures are logged and ignored.
    pub async fn clean_up(&self, task: &Task) {
        let (id, owner) = (&task.id, format!("{}/cancel", task.id));
        let none = TaskDirectories::default();
        let call = self.call((&owner, task.context_id.tenant()), None, None, none);
        let cleaned = timeout(CLEAN_UP_DEADLINE, self.runtime.clean_up(call, id)).await;
        if let Err(why) = cleaned.unwrap_or(Err(Failure::Timeout)) {
            tracing::warn!(agent = %self.id, task = %id, %why, "clean-up after cancel failed");
        }
        self.wait_for_programs(&owner).await;
    }

    /// Health of the agent as last reported.
    pub fn health(&self) -> AgentHealth {
        self.monitor.health()
    }

    /// State of the agent's circuit breaker.
    pub fn breaker(&self) -> AgentBreaker {
        self.monitor.breaker()
    }

    /// True if the agent's circuit breaker admits no task now.
    pub fn is_breaker_open(&self) -> bool {
        self.monitor.is_breaker_open()
    }

    /// True if its account took no tasks a short time ago.
    pub fn is_over_quota(&self) -> bool {
        self.monitor.is_over_quota()
    }

    /// Admits one task through the circuit breaker, or returns the reason for the refusal.
    pub fn admit(&self) -> Result<(), Unavailable> {
        self.monitor.admit()
    }

    /// Records the result of a task in the circuit breaker.
    pub async fn task_ended(&self, task: &Task) {
        self.monitor.task_ended(task);
        if task.status.state.is_final() {
            self.forget(&task.id).await;
        }
    }

    /// Reports that the quota is used up and resets after `wait`: groups prefer other agents.
    pub fn quota_used_up(&self, wait: Duration) {
        self.monitor.quota_used_up(wait);
    }

    /// Drops the runtime's state of a finished run.
    pub async fn forget(&self, task: &TaskId) {
        self.refusals.forget(task);
        self.runtime.forget(task).await;
    }

    /// Confinement tier of the agent's programs; none if it may run none.
    pub(crate) fn confinement_tier(&self) -> Option<ProgramTier> {
        (!self.programs.is_empty() || self.tools.is_some())
            .then(|| confinement::program_tier(self.programs.confining()))
    }

    /// Number of programs that stay idle between the agent's tasks.
    pub fn idle_count(&self) -> usize {
        self.programs.idle_count()
    }

    /// The operator's limits for the agent, and its health status.
    pub fn operated(&self) -> Operated {
        let task_admission::QuotaLimits { max_running, max_queued, .. } = self.quota();
        let timeout = self.config.timeout().as_millis();
        Operated {
            status: self.health().status,
            task_timeout_ms: u64::try_from(timeout).unwrap_or(u64::MAX),
            max_running,
            max_queued,
        }
    }

    /// Capabilities that a task of the agent requested in vain, with the command that grants them;
    /// `None` if it requested none in vain.
    pub fn refused_in(&self, task: &TaskId) -> Option<RefusedCapabilities> {
        self.refusals.refused_in(task, &self.id, || self.not_granted())
    }

    /// Capabilities that the agent asks for and does not have. A built-in agent without an explicit
    /// grant lacks nothing.
    pub(crate) fn not_granted(&self) -> Vec<NotGranted> {
        if self.is_first_party() && self.config.grant.is_none() {
            return Vec::new();
        }
        let is_by_command =
            matches!(self.source, AgentSource::File(_)) && self.config.grant.is_none();
        let lacks = lacks(self.runtime.ask(), &self.live.now()).into_iter();
        lacks.map(|lack| remedied(lack, is_by_command.then_some(&self.id))).collect()
    }

    /// Public description of the agent; `pending_approval` describes a newer component in its file
    /// that awaits approval.
    pub(crate) fn info(
        &self,
        health: Option<AgentHealth>,
        pending_approval: Option<HeldBack>,
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
            held_back: pending_approval,
            tier: self.confinement_tier(),
            permissions: self.confinement_tier().map(|_| self.config.permissions.word().to_owned()),
            models: self.choice("model", "models"),
            efforts: self.choice("effort", "efforts"),
            kept: self.idle_count(),
            unlisted: self.is_unlisted(),
        }
    }

    /// Values that the operator's setting `list` allows clients, with those of `default`.
    fn choice(&self, default: &str, list: &str) -> Option<AgentChoice> {
        let setting = |name: &str| self.settings.get(name).map(String::as_str);
        AgentChoice::from_settings(setting(default), setting(list))
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
