//! Owner of all process trees of a hub: counts them by owner, and ends them when the hub ends.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::confine::{Confinement, NotConfined, Support};
use super::lineage::{Minders, TreeOwner};
use super::ownership::{Lease, LiveTrees, Owned};
use super::tree::{self, TreeSettings};
use super::{
    Child, DATA_MARKER, Launch, Output, ProcessOrigin, SpawnError, System, WorkingDirectory, proc,
};

/// Number of the next tree, unique within this process.
static NEXT_TREE: AtomicU64 = AtomicU64::new(0);

/// Starts programs and owns their trees. Clones share state.
#[derive(Clone, Debug)]
pub struct Supervisor {
    settings: Arc<TreeSettings>,
    trees: watch::Sender<LiveTrees>,
    tasks: TaskTracker,
    end: CancellationToken,
    /// Confinement features of this machine, cached once a trial has succeeded.
    support: Arc<OnceLock<Support>>,
}

impl Supervisor {
    /// Creates a supervisor.
    ///
    /// `minder` is the hub's executable (`/proc/self/exe` stays correct when an update replaces the
    /// file), `data_dir` marks the processes of this hub, and `grace` is the time between SIGTERM
    /// and SIGKILL.
    pub fn new(minder: PathBuf, data_dir: PathBuf, grace: Duration) -> Self {
        let data_dir = canonical(data_dir);
        Self {
            settings: Arc::new(TreeSettings {
                system: System::default(),
                minder,
                data_dir,
                grace,
                rehearses: false,
                open_files: None,
                hurry: CancellationToken::new(),
                minders: Minders::default(),
                adopts: false,
            }),
            trees: watch::Sender::default(),
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
            support: Arc::default(),
        }
    }

    /// Selects the operating system interface. To be called first, before any program is started.
    #[must_use]
    pub fn with_system(self, system: System) -> Self {
        let settings = TreeSettings { system, ..TreeSettings::clone(&self.settings) };
        Self { settings: Arc::new(settings), ..self }
    }

    /// Limits the open files of programs. To be called before any program is started.
    #[must_use]
    pub fn with_open_files(self, open_files: u64) -> Self {
        let settings =
            TreeSettings { open_files: Some(open_files), ..TreeSettings::clone(&self.settings) };
        Self { settings: Arc::new(settings), ..self }
    }

    /// Configures the supervisor for a process that is only a hub: it becomes a subreaper
    /// (`prctl(2)`), so that orphans of a killed minder stay below it, and an unknown process below
    /// it belongs to nobody. If it is alone in a delegated control group, confined programs get
    /// groups in it. To be called before any program is started.
    ///
    /// # Errors
    /// The system's error, though no reason to refuse is known.
    pub fn adopting_orphans(self) -> io::Result<Self> {
        self.settings.system.calls().become_hub()?;
        let settings = TreeSettings { adopts: true, ..TreeSettings::clone(&self.settings) };
        Ok(Self { settings: Arc::new(settings), ..self })
    }

    /// Relation of the process `pid` to this hub. Reads `/proc`: tens of microseconds. A system
    /// that lists no processes recognizes this process and the sessions of minders; all others are
    /// [`ProcessOrigin::Unknown`], because an escaped program looks like the operator.
    pub fn origin(&self, pid: i32) -> ProcessOrigin {
        let TreeSettings { minders, system, adopts, .. } = &*self.settings;
        match system.calls().lists_processes() {
            true => minders.origin(pid, *adopts),
            false => minders.origin_by_session(pid, *adopts),
        }
    }

    /// Relation of the holders of the sockets with these inodes, in order. One call reads this
    /// process's descriptors once, and those of all processes of this user while programs run: some
    /// milliseconds, independent of the number of inodes.
    pub fn origins_of_sockets(&self, inodes: &[u64]) -> Vec<ProcessOrigin> {
        let TreeSettings { minders, system, adopts, .. } = &*self.settings;
        match system.calls().lists_processes() {
            true => minders.origins_of_sockets(inodes, *adopts),
            // The holder of a socket is found by no other means.
            false => vec![ProcessOrigin::Unknown; inodes.len()],
        }
    }

    /// Current behalf of the tree with this [`TreeOwner::tree`]; none if it is gone.
    pub fn of_tree(&self, tree: &str) -> Option<TreeOwner> {
        self.settings.minders.of_tree(tree)
    }

    /// Starts a program, and returns once it runs. Dropping the future ends what was started.
    ///
    /// # Errors
    /// A [`SpawnError`] names the reason and the remedy.
    pub async fn spawn(&self, launch: Launch) -> Result<Child, SpawnError> {
        self.spawn_holding(launch, ()).await
    }

    /// Starts a program like [`Supervisor::spawn`]; `guard` is dropped once the whole tree is gone.
    ///
    /// # Errors
    /// As [`Supervisor::spawn`].
    pub async fn spawn_holding(
        &self,
        launch: Launch,
        guard: impl Send + 'static,
    ) -> Result<Child, SpawnError> {
        // In this order: when a wait for the owner's end returns, `guard` is dropped already.
        let (owned, lease) = self.lease(&launch)?;
        self.start(Arc::clone(&self.settings), launch, (owned, (guard, lease))).await
    }

    /// Registers the tree among the live ones.
    fn lease(&self, launch: &Launch) -> Result<(Owned, Lease), SpawnError> {
        let tree = format!("{}.{}", std::process::id(), NEXT_TREE.fetch_add(1, Ordering::Relaxed));
        let behalf = TreeOwner { agent: launch.agent.clone(), owner: launch.owner.clone(), tree };
        Lease::acquire(&self.trees, behalf)
            .ok_or_else(|| SpawnError::ShuttingDown { program: launch.program.clone() })
    }

    async fn start(
        &self,
        settings: Arc<TreeSettings>,
        launch: Launch,
        lease: (Owned, impl Send + 'static),
    ) -> Result<Child, SpawnError> {
        let (started, answer) = oneshot::channel();
        let program = launch.program.clone();
        let (end, tasks) = (self.end.child_token(), self.tasks.clone());
        self.tasks.spawn(tree::run(settings, launch, end, tasks, started, lease));
        // No answer means that the runtime is shutting down.
        answer.await.unwrap_or(Err(SpawnError::ShuttingDown { program }))
    }

    /// Confinement features of this machine: tried without a program. A failed trial is repeated on
    /// the next call, because an operator may mend it.
    ///
    /// # Errors
    /// As [`Supervisor::spawn`], if the trial could not be made.
    pub async fn support(&self) -> Result<Support, SpawnError> {
        if let Some(known) = self.support.get() {
            return Ok(known.clone());
        }
        let support = Support::found(self.rehearse().await?);
        if support.works() {
            // A concurrent call has found the same.
            let _ = self.support.set(support.clone());
        }
        Ok(support)
    }

    /// Confines an empty launch, to see whether that works.
    async fn rehearse(&self) -> Result<Result<(), NotConfined>, SpawnError> {
        let settings = TreeSettings { rehearses: true, ..TreeSettings::clone(&self.settings) };
        let (temporary, program) = (settings.data_dir.clone(), PathBuf::from("/"));
        let cwd = WorkingDirectory::open(&program)
            .map_err(|source| SpawnError::System { program: program.clone(), source })?;
        let launch = Launch {
            agent: String::new(),
            owner: "confinement".to_owned(),
            program,
            args: Vec::new(),
            env: Vec::new(),
            cwd,
            confinement: Some(Confinement { temporary, ..Confinement::default() }),
        };
        let lease = self.lease(&launch)?;
        match self.start(Arc::new(settings), launch, lease).await {
            Ok(mut tree) => {
                while !matches!(tree.next().await, Output::Exited(_)) {}
                Ok(Ok(()))
            }
            Err(SpawnError::NotConfined { source, .. }) => Ok(Err(source)),
            Err(why) => Err(why),
        }
    }

    /// Waits until no tree of `owner` is left.
    pub async fn ended(&self, owner: &str) {
        self.until(|trees| !trees.by_owner.contains_key(owner)).await;
    }

    /// Number of live trees.
    pub fn running(&self) -> usize {
        self.trees.borrow().by_owner.values().sum()
    }

    /// Shortens all current and future grace periods to a quarter of a second.
    pub fn hurry(&self) {
        self.settings.hurry.cancel();
    }

    /// Refuses new starts, ends all trees, and waits until none is left.
    pub async fn shutdown(&self) {
        self.trees.send_modify(|trees| trees.closed = true);
        self.end.cancel();
        self.until(|trees| trees.by_owner.is_empty()).await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Kills processes that a hub with this data directory left behind when it was killed together
    /// with its minders; returns their number. To be called before this hub starts programs,
    /// because it would kill those too. Blocks for milliseconds, at most a few seconds. A system
    /// that lists no processes finds none.
    pub fn sweep_leftovers(system: System, data_dir: &Path) -> usize {
        let hub = proc::variable(DATA_MARKER, &canonical(data_dir.to_path_buf()));
        system.calls().kill_leftovers(&hub)
    }

    async fn until(&self, reached: impl Fn(&LiveTrees) -> bool) {
        // Fails only without a sender, and `self` is one.
        let _ = self.trees.subscribe().wait_for(|trees| reached(trees)).await;
    }
}

/// Canonical name of the data directory, equal after a restart.
fn canonical(data_dir: PathBuf) -> PathBuf {
    let absolute = data_dir.canonicalize().or_else(|_| std::path::absolute(&data_dir));
    absolute.unwrap_or(data_dir)
}
