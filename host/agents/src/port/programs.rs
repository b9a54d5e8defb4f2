//! Programs of one agent: their paths, environment, working directories and concurrency limits.

mod additional_directories;
mod fingerprint;
mod launch_check;
mod login_command;
mod running;
mod server;
mod workspaces;

pub(crate) use super::programs::launch_check::ProgramHolder;
use super::{
    confinement::{ConfinedProgram, Confining, ProgramPaths, hidden_paths},
    environment::search_path,
    files::InstanceFiles,
    hub_access::HubAccess,
    live_grant::LiveGrant,
    logins::{Logins, ProgramLogin, login_directory, without_secrets},
    programs::{
        additional_directories::{of_additional, require_no_link},
        fingerprint::fingerprint,
        launch_check::LaunchFacts,
    },
};
use a2a_hub_config as config;
use a2a_hub_core::{
    grant::{EffectiveGrant, Pin},
    identity::LoginUser,
    scheduling::process_pool::PoolKey,
};
use a2a_hub_process::{SpawnError, Supervisor, WorkingDirectory, run_blocking};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::{
    Failure,
    directories::TaskDirectories,
    port::process::{ChildPort, PermittedLaunch, ProcessPort},
};
use a2a_hub_worktrees::{PORT_BASE, RepositoryBounds, WorktreeAccess};
pub(crate) use login_command::LoginCommand;
use parking_lot::Mutex;
use running::RunningProgram;
pub use running::is_idle_owner;
pub(crate) use running::{AgentPool, IdlePrograms};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use workspaces::Workspaces;

/// Search path of programs, after the program's own directory, unless the grant passes on the hub's
/// own `PATH`.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Programs that one agent may run, with their workspaces and concurrency limits.
pub(crate) struct Programs {
    agent: AgentId,
    /// The agent's part of the idle pool.
    pool: Arc<AgentPool>,
    programs: BTreeMap<String, Program>,
    workspaces: Workspaces,
    /// Directory with the worktrees of all tasks, with links resolved.
    worktrees: PathBuf,
    /// The hub's data directory, which contains it.
    data_dir: PathBuf,
    /// Home directory of the programs, unless the grant passes on the hub's own `HOME`.
    home: PathBuf,
    /// Confinement of the programs; none if the operator trusts them.
    confining: Option<Confining>,
    /// Logins of people and workspaces at the agent's vendor.
    logins: Logins,
    /// Locks that are granted while a task logs in, by the name of the login.
    logging_in: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// Connection to the hub, if the agent may call others.
    hub_access: Option<HubAccess>,
    supervisor: Supervisor,
    /// True if a program's file must be one that no other user can replace. Set for agents that are
    /// not built in.
    is_guarded: bool,
}

struct Program {
    /// Path found when the grant was read; if none was found, each start searches again.
    path: Option<PathBuf>,
    /// Paths of the program's own files, from the agent's manifest.
    keeps: BTreeSet<String>,
    /// Variables passed on from the hub's environment.
    pass: BTreeSet<String>,
    /// Requirement on the program's file.
    pin: Pin,
    running: Arc<Semaphore>,
}

impl Programs {
    pub(crate) fn new(
        pool: AgentPool,
        grant: &EffectiveGrant,
        workspaces: &[PathBuf],
        home: PathBuf,
        confining: Option<Confining>,
        supervisor: Supervisor,
        is_guarded: bool,
    ) -> Self {
        let programs = grant.programs.iter().map(|(name, granted)| {
            let path = match &granted.path {
                Some(path) => Some(PathBuf::from(path)),
                None => config::find_program(name),
            };
            let running = Arc::new(Semaphore::new(granted.max_running.min(Semaphore::MAX_PERMITS)));
            let (pin, keeps, pass) =
                (granted.pin.clone(), granted.keeps.clone(), granted.pass.clone());
            (name.clone(), Program { path, keeps, pass, pin, running })
        });
        let programs = programs.collect();
        let (agent, pool, hub_access) = (pool.agent.clone(), Arc::new(pool), None);
        let workspaces = Workspaces::new(workspaces, &home);
        let (worktrees, data_dir) = (PathBuf::new(), PathBuf::new());
        let logins = Logins::none(agent.clone());
        Self {
            agent,
            pool,
            programs,
            workspaces,
            worktrees,
            data_dir,
            home,
            confining,
            logins,
            logging_in: Mutex::default(),
            hub_access,
            supervisor,
            is_guarded,
        }
    }

    /// Sets the connection to the hub for the programs.
    pub(crate) fn at(self, hub_access: Option<HubAccess>) -> Self {
        Self { hub_access, ..self }
    }

    /// Sets the hub's data directory, with links resolved, which contains the worktrees of all
    /// tasks, and the logins at the agent's vendor.
    pub(crate) fn with_data(self, data_dir: PathBuf, logins: Logins) -> Self {
        Self { worktrees: data_dir.join(a2a_hub_worktrees::FOLDER), data_dir, logins, ..self }
    }

    /// Confinement of the programs; none without programs or without confinement.
    pub(crate) fn confining(&self) -> Option<&Confining> {
        self.confining.as_ref().filter(|_| !self.programs.is_empty())
    }

    /// True if the agent may run no program.
    pub(crate) fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Reason why this machine cannot confine the programs as required, with the ways out; none if
    /// it can.
    pub(crate) async fn shortfall(&self) -> Option<String> {
        self.confining()?.shortfall(&self.supervisor).await
    }

    /// Programs for one run on behalf of `owner`, whose temporary files are in `files`. The run's
    /// task works in `directories`, and was begun by `user`.
    pub(crate) fn for_run(
        programs: &Arc<Self>,
        owner: &str,
        (directories, user): (TaskDirectories, LoginUser),
        holder: ProgramHolder,
        files: Arc<InstanceFiles>,
        live: LiveGrant,
    ) -> OwnedPrograms {
        let (programs, owner) = (Arc::clone(programs), owner.to_owned());
        OwnedPrograms { programs, owner, directories, user, holder, files, live }
    }

    /// Rights of a task that works in a worktree; none if its directory is in none. Blocks on the
    /// disk.
    pub(crate) fn worktree(&self, directory: Option<&str>) -> Option<WorktreeAccess> {
        WorktreeAccess::to(&self.worktrees, Path::new(directory?))
    }

    /// Number of programs that stay idle between the agent's tasks.
    pub(crate) fn idle_count(&self) -> usize {
        self.pool.count()
    }

    /// Waits until no program of `owner` is left.
    pub(crate) async fn ended(&self, owner: &str) {
        self.supervisor.ended(owner).await;
    }

    fn path(&self, name: &str) -> Result<PathBuf, Failure> {
        let found = self.programs.get(name).and_then(|program| program.path.clone());
        match found.or_else(|| config::find_program(name)) {
            Some(path) if config::is_executable(&path) => Ok(path),
            Some(path) => {
                let path = path.display();
                Err(Failure::Unavailable(format!("run `{name}`: {path} is not a program")))
            }
            None => Err(Failure::Unavailable(format!(
                "run `{name}`: it is not installed, or not on the PATH that the hub was started with; \
                 `agents.{}.programs.{name}` in the configuration can say where it is",
                self.agent
            ))),
        }
    }

    /// Checks that the program's file is the one that the operator granted. Blocks on the disk.
    fn guard(&self, name: &str, path: &Path) -> Result<(), Failure> {
        let denied = |why: config::ProgramFileError| Failure::Denied(why.to_string());
        if self.is_guarded {
            config::guard(path).map_err(denied)?;
        }
        let pin = self.programs.get(name).map(|program| &program.pin);
        pin.map_or(Ok(()), |pin| config::check_pin(path, pin)).map_err(denied)
    }

    fn permit(&self, name: &str, max: usize) -> Result<Option<OwnedSemaphorePermit>, Failure> {
        let Some(program) = self.programs.get(name) else { return Ok(None) };
        Arc::clone(&program.running).try_acquire_owned().map(Some).map_err(|_| {
            Failure::Exhausted(format!(
                "run `{name}`: {max} of it are running for this agent, which is all it may have; \
                 `max_running` in its grant raises that"
            ))
        })
    }

    /// Evicts idle programs of that name in favour of new ones.
    fn evict_idle(&self, name: &str, max: usize) {
        let Some(program) = self.programs.get(name) else { return };
        let free = program.running.available_permits();
        self.pool.evict_idle(name, free.min(max));
    }

    /// True if a program still has the path and the pin that it had when the agent's task began.
    fn is_as_granted(&self, name: &str, grant: &EffectiveGrant) -> bool {
        let Some((then, now)) = self.programs.get(name).zip(grant.programs.get(name)) else {
            return false;
        };
        let same_path =
            now.path.as_deref().is_none_or(|now| then.path.as_deref() == Some(Path::new(now)));
        same_path && then.pin == now.pin
    }

    /// True if a program may still work in this directory, which a workspace contained at its
    /// start. For a worktree, the user's checkout counts. Blocks on the disk.
    fn may_work_in(&self, cwd: &Path, grant: &EffectiveGrant) -> bool {
        let Some(directories) = &grant.directories else { return true };
        let origin = WorktreeAccess::to(&self.worktrees, cwd).map(|worktree| worktree.origin);
        let cwd = origin.as_deref().unwrap_or(cwd);
        let holds = |directory: &Path| {
            fs::canonicalize(directory).is_ok_and(|directory| cwd.starts_with(directory))
        };
        directories.iter().any(|directory| holds(Path::new(directory))) || holds(&self.home)
    }

    /// Default working directory.
    pub(crate) fn first_directory(&self) -> &Path {
        self.workspaces.first()
    }

    /// Opens the working directory: the requested one if a workspace contains it, or by default the
    /// first workspace. A task in a worktree works there and nowhere else. Blocks on the disk.
    pub(crate) fn directory(
        &self,
        requested: Option<&str>,
        worktree: Option<&WorktreeAccess>,
    ) -> Result<WorkingDirectory, Failure> {
        if requested.is_none() && self.workspaces.is_home_alone() {
            self.make_home()
                .map_err(|why| Failure::Unavailable(format!("make the agent's home: {why}")))?;
        }
        let opened = self.workspaces.open(requested, worktree)?;
        // The data directory may lie in a workspace, as below a home directory.
        if worktree.is_none() && opened.path().starts_with(&self.worktrees) {
            return Err(Failure::Denied(format!(
                "work in `{}`: it is in the worktree of another task",
                opened.path().display()
            )));
        }
        if self.logins.hidden().iter().any(|home| opened.path().starts_with(home)) {
            return Err(Failure::Denied(format!(
                "work in `{}`: it holds a login; name another directory",
                opened.path().display()
            )));
        }
        Ok(opened)
    }

    /// Opens the additional directories of a task, each by the rules of its working directory, and
    /// returns their paths with links resolved. Blocks on the disk.
    pub(crate) fn additional(
        &self,
        named: &[String],
        worktree: Option<&WorktreeAccess>,
    ) -> Result<Vec<PathBuf>, Failure> {
        let open = |named: &String| {
            let path = self.directory(Some(named), worktree)?.path().to_owned();
            if let Some(confining) = &self.confining {
                confining.require_visible(&path, self.workspaces.holding(&path, worktree))?;
            }
            Ok(path)
        };
        named.iter().map(open).collect::<Result<_, _>>().map_err(of_additional)
    }

    /// Bounds of a repository that the agent works on: it lies in a workspace, and in no path that
    /// is hidden from confined programs. Blocks on the disk.
    pub(crate) fn repository_bounds(&self) -> RepositoryBounds {
        RepositoryBounds {
            workspaces: Some(self.workspaces.granted().to_vec()),
            hidden: hidden_paths(&self.data_dir, &self.logins),
        }
    }

    /// Builds a clean environment: required, passed and set variables. With a login, the operator's
    /// secrets are left out, and the vendor's files are those of the login.
    fn environment(
        &self,
        pass: &BTreeSet<String>,
        set: &[(String, String)],
        login: Option<&ProgramLogin>,
        program: &Path,
        temporary: &Path,
    ) -> Vec<(String, String)> {
        let fixed = [
            ("PATH", search_path(program, PATH)),
            ("HOME", self.home.display().to_string()),
            ("TMPDIR", temporary.display().to_string()),
            ("LANG", "C.UTF-8".to_owned()),
        ];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value));
        let passed = config::environment(pass);
        let passed = if login.is_some() { without_secrets(passed) } else { passed };
        let of_login = login.into_iter().flat_map(|login| login.env.iter().cloned());
        fixed.into_iter().chain(passed).chain(set.iter().cloned()).chain(of_login).collect()
    }

    /// Creates the agent's home, which exists only once a program needs it.
    pub(crate) fn make_home(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.home)
    }

    /// Prepares a launch: path, directory, environment and confinement. Blocks on the disk, which
    /// may be a network's.
    fn prepare(
        &self,
        launch: PermittedLaunch,
        owner: String,
        (directories, user): (&TaskDirectories, &LoginUser),
        files: &InstanceFiles,
    ) -> Result<PreparedLaunch, Failure> {
        let directory = directories.working.as_deref();
        let program = self.path(&launch.program)?;
        // Taken before the start: a later replacement of the file is then noticed.
        let file = fingerprint(&program).ok();
        let keeps = self.programs.get(&launch.program).map(|program| &program.keeps);
        self.guard(&launch.program, &program)?;
        let worktree = self.worktree(directory);
        let requested = launch.cwd.as_deref().or(directory.filter(|_| worktree.is_some()));
        let cwd = self.directory(requested, worktree.as_ref())?;
        let named = &directories.additional;
        let additional = self.additional(named, worktree.as_ref())?;
        named.iter().zip(&additional).try_for_each(|(named, path)| require_no_link(named, path))?;
        let directory = login_directory(cwd.path(), worktree.as_ref());
        let is_confined = self.confining.is_some();
        let login = self.logins.of_program(user, &directory, keeps, is_confined)?;
        let temporary = self.make_places(files)?;
        let PermittedLaunch { pass, set, args, .. } = launch;
        let mut env = self.environment(&pass, &set, login.as_ref(), &program, &temporary);
        let ports = worktree.as_ref().and_then(|worktree| worktree.port_base);
        env.extend(ports.map(|first| (PORT_BASE.to_owned(), first.to_string())));
        if let Some(hub_access) = &self.hub_access {
            hub_access.add_hub_access(&mut env);
        }
        let hub_access = self.hub_access.as_ref();
        let launch = self.placed(Placing {
            owner,
            program,
            keeps,
            login: login.as_ref(),
            hub_access,
            args,
            env,
            cwd,
            additional: &additional,
            worktree,
            temporary,
        })?;
        Ok(PreparedLaunch { launch, file, additional })
    }

    /// Creates the agent's home and the instance's directory for temporary files; returns the
    /// latter.
    fn make_places(&self, files: &InstanceFiles) -> Result<PathBuf, Failure> {
        let unmade =
            |target: &str, why: io::Error| Failure::Unavailable(format!("make {target}: {why}"));
        self.make_home().map_err(|why| unmade("the agent's home", why))?;
        files.temporary().map_err(|why| unmade("a directory for temporary files", why))
    }

    /// Adds the confinement, if any, to the launch.
    fn placed(&self, placing: Placing<'_>) -> Result<a2a_hub_process::Launch, Failure> {
        let Placing { owner, program, keeps, hub_access, args, env, cwd, additional, .. } = placing;
        let Placing { login, worktree, temporary, .. } = placing;
        let (program, env, confinement) = match &self.confining {
            Some(confining) => {
                let workspace = self.workspaces.holding(cwd.path(), worktree.as_ref());
                let objects = worktree.as_ref().map_or(&[][..], |worktree| &worktree.objects);
                let (program, home, temporary) = (&program, &self.home, &temporary);
                let paths = ProgramPaths {
                    program,
                    keeps,
                    login: login.map(|login| login.home.as_path()),
                    workspace,
                    additional,
                    objects,
                    worktrees: &self.worktrees,
                    home,
                    temporary,
                    hub_access,
                };
                let ConfinedProgram { program, env, confinement } =
                    confining.confine(&paths, env)?;
                (program, env, Some(confinement))
            }
            None => (program, env, None),
        };
        let agent = self.agent.to_string();
        Ok(a2a_hub_process::Launch { agent, owner, program, args, env, cwd, confinement })
    }
}

/// A prepared launch, with the fingerprint of the program's file.
struct PreparedLaunch {
    launch: a2a_hub_process::Launch,
    file: Option<String>,
    /// Additional directories, with links resolved.
    additional: Vec<PathBuf>,
}

/// A launch before its confinement is known.
struct Placing<'p> {
    owner: String,
    program: PathBuf,
    keeps: Option<&'p BTreeSet<String>>,
    login: Option<&'p ProgramLogin>,
    hub_access: Option<&'p HubAccess>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    cwd: WorkingDirectory,
    /// Additional directories, with links resolved.
    additional: &'p [PathBuf],
    worktree: Option<WorktreeAccess>,
    temporary: PathBuf,
}

/// One agent's programs, run for one task.
pub(crate) struct OwnedPrograms {
    programs: Arc<Programs>,
    owner: String,
    /// Directories of the task.
    directories: TaskDirectories,
    /// Party that began the tree of the task.
    user: LoginUser,
    holder: ProgramHolder,
    files: Arc<InstanceFiles>,
    live: LiveGrant,
}

impl OwnedPrograms {
    /// Prepares a launch with these files, and the properties that a readmitted program must share
    /// with it, and the additional directories. The disk access runs on another thread.
    async fn prepare(
        &self,
        launch: PermittedLaunch,
        files: &Arc<InstanceFiles>,
    ) -> Result<(a2a_hub_process::Launch, LaunchFacts, Vec<PathBuf>), Failure> {
        let (programs, files) = (Arc::clone(&self.programs), Arc::clone(files));
        let (owner, directories, user) =
            (self.owner.clone(), self.directories.clone(), self.user.clone());
        let grant = self.live.now();
        let prepared =
            run_blocking(move || programs.prepare(launch, owner, (&directories, &user), &files));
        let prepared = prepared.await;
        let PreparedLaunch { launch, file, additional } =
            prepared.map_err(|why| Failure::Internal(why.to_string()))??;
        let fit = LaunchFacts {
            holder: self.holder.clone(),
            grant,
            file,
            launch: Arc::new(launch.clone()),
        };
        Ok((launch, fit, additional))
    }

    /// Readmits the idle program at `spot` if it equals the one that `launch` would start.
    async fn readmit(
        &self,
        spot: &PoolKey,
        launch: PermittedLaunch,
    ) -> Result<Option<RunningProgram>, Failure> {
        let (pool, program) = (&self.programs.pool, launch.program.clone());
        let permit = self.programs.permit(&program, launch.max_running)?;
        let Some(running) = pool.check_out(spot).await else { return Ok(None) };
        // Until the guest owns the program, dropping it ends it.
        let (_, now, _) = self.prepare(launch, &running.files).await?;
        let differs = running.fit.differs(&now).or_else(|| {
            let is_its_agents = Arc::ptr_eq(&running.pool, pool);
            (!is_its_agents).then_some("its agent was replaced")
        });
        let differs =
            differs.or_else(|| (!running.child.pass_to(&self.owner)).then_some("it has ended"));
        let agent = &self.programs.agent;
        if let Some(why) = differs {
            tracing::info!(%agent, key = spot.key, program, why, "idle program was ended instead of reused");
            return Ok(None);
        }
        tracing::info!(%agent, key = spot.key, program, task = self.owner, "idle program was reused");
        *running.permit.lock() = permit;
        self.files.share(&running.files);
        Ok(Some(running))
    }
}

/// True if a launch is granted, with the program's path and pin as at the start of the task.
fn is_granted(programs: &Programs, launch: &PermittedLaunch, grant: &EffectiveGrant) -> bool {
    let agent = programs.agent.as_str();
    let program = grant.program(agent, &launch.program, &launch.args, &launch.set);
    program.is_ok_and(|granted| launch.pass.is_subset(&granted.pass))
        && programs.is_as_granted(&launch.program, grant)
}

#[async_trait::async_trait]
impl ProcessPort for OwnedPrograms {
    async fn fingerprint(&self, program: &str) -> Result<String, Failure> {
        let action = format!("look at `{program}`");
        self.live.must(&action, |grant| grant.programs.contains_key(program))?;
        let (programs, name) = (Arc::clone(&self.programs), program.to_owned());
        let result = run_blocking(move || fingerprint(&programs.path(&name)?)).await;
        result.map_err(|why| Failure::Internal(why.to_string()))?
    }

    async fn spawn(&self, launch: PermittedLaunch) -> Result<Box<dyn ChildPort>, Failure> {
        let action = format!("run `{}`", launch.program);
        let (programs, of_it) = (Arc::clone(&self.programs), launch.clone());
        let is_granted = move |grant: &EffectiveGrant| is_granted(&programs, &of_it, grant);
        self.live.must(&action, &is_granted)?;
        if let Some(confining) = &self.programs.confining {
            confining.is_possible(&self.programs.supervisor).await?;
        }
        let permit = self.programs.permit(&launch.program, launch.max_running)?;
        self.programs.evict_idle(&launch.program, launch.max_running);
        let program = launch.program.clone();
        let (launch, fit, mut directories) = self.prepare(launch, &self.files).await?;
        directories.push(launch.cwd.path().to_owned());
        let programs = Arc::clone(&self.programs);
        let revocation = self.live.watch(move |grant| {
            is_granted(grant) && directories.iter().all(|it| programs.may_work_in(it, grant))
        });
        // The permit counts until the whole process tree is gone, even after the guest drops its
        // handle; the files stay as long.
        let (permit, files) = (Arc::new(Mutex::new(permit)), Arc::clone(&self.files));
        let guards = (Arc::clone(&permit), Arc::clone(&files));
        let child = self.programs.supervisor.spawn_holding(launch, guards).await;
        let child = child.map_err(|why| not_started(&why))?;
        let pool = Arc::clone(&self.programs.pool);
        Ok(Box::new(RunningProgram::new(child, program, revocation, fit, files, permit, pool)))
    }

    async fn take_up(
        &self,
        key: &str,
        launch: PermittedLaunch,
    ) -> Result<Option<Box<dyn ChildPort>>, Failure> {
        let action = format!("run `{}`", launch.program);
        self.live.must(&action, |grant| is_granted(&self.programs, &launch, grant))?;
        let (agent, tenant) = (self.programs.agent.clone(), self.holder.tenant.clone());
        let spot = PoolKey { agent, tenant, key: key.to_owned() };
        if !self.programs.pool.has(&spot) {
            return Ok(None);
        }
        let taken = self.readmit(&spot, launch).await?;
        Ok(taken.map(|running| Box::new(running) as _))
    }
}

/// Failure for the guest: overlong arguments are its own fault, all else is the machine's.
fn not_started(why: &SpawnError) -> Failure {
    if matches!(why, SpawnError::TooLong { .. }) {
        Failure::Invalid(why.to_string())
    } else {
        Failure::Unavailable(why.to_string())
    }
}
