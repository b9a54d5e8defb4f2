//! The owner of every process tree: counts them by whom they serve, and ends them all when the hub does.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{getpid, set_child_subreaper};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::confine::{Confinement, NotConfined, Support};
use super::control_group;
use super::lineage::{Minders, OnBehalf};
use super::ownership::{Lease, Owned, Trees};
use super::tree::{self, TreeSettings};
use super::{Child, DATA_MARKER, Kin, Launch, Output, SpawnError, WorkingDirectory, proc};

/// Tells the trees of one hub apart.
static NEXT_TREE: AtomicU64 = AtomicU64::new(0);

/// Starts programs and owns what they start. Clones are one supervisor.
#[derive(Clone, Debug)]
pub struct Supervisor {
    settings: Arc<TreeSettings>,
    trees: watch::Sender<Trees>,
    tasks: TaskTracker,
    end: CancellationToken,
    /// What was found out of this machine, once confinement was seen to work.
    support: Arc<OnceLock<Support>>,
}

impl Supervisor {
    /// A supervisor of no programs yet.
    ///
    /// `minder` is the hub's executable (`/proc/self/exe` stays right when an update replaces the file), `data_dir`
    /// marks what belongs to this hub, and `grace` is the time between SIGTERM and SIGKILL.
    pub fn new(minder: PathBuf, data_dir: PathBuf, grace: Duration) -> Self {
        let data_dir = canonical(data_dir);
        Self {
            settings: Arc::new(TreeSettings {
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

    /// The same, whose programs may have so many files open. For a supervisor of no programs yet.
    #[must_use]
    pub fn with_open_files(self, open_files: u64) -> Self {
        let settings =
            TreeSettings { open_files: Some(open_files), ..TreeSettings::clone(&self.settings) };
        Self { settings: Arc::new(settings), ..self }
    }

    /// The same in a process that is the hub's alone: the orphans of a minder that was killed stay below it (it becomes a
    /// subreaper, `prctl(2)`), and who is below it without a minder is nobody's; and if it is alone in a control group that was delegated
    /// to it, confined programs get groups of their own there. For a supervisor of no programs yet.
    ///
    /// # Errors
    /// The system's, which knows no reason to refuse.
    pub fn adopting_orphans(self) -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        control_group::take();
        let settings = TreeSettings { adopts: true, ..TreeSettings::clone(&self.settings) };
        Ok(Self { settings: Arc::new(settings), ..self })
    }

    /// Whose the process with this number is. Reads `/proc`: tens of microseconds.
    pub fn kin(&self, pid: i32) -> Kin {
        self.settings.minders.kin(pid, self.settings.adopts)
    }

    /// Whose each of the sockets with these inodes is, in that order, by who has it open. However many they are, this looks once at the
    /// descriptors of this process, and while programs run at all of this user: some milliseconds.
    pub fn kin_of_sockets(&self, inodes: &[u64]) -> Vec<Kin> {
        self.settings.minders.kin_of_sockets(inodes, self.settings.adopts)
    }

    /// On whose behalf the tree that [`OnBehalf::tree`] names runs now; none if it is gone.
    pub fn of_tree(&self, tree: &str) -> Option<OnBehalf> {
        self.settings.minders.of_tree(tree)
    }

    /// Starts a program, and returns once it runs. Dropping the future ends what was started.
    ///
    /// # Errors
    /// A [`SpawnError`] says why it does not run, and the way out.
    pub async fn spawn(&self, launch: Launch) -> Result<Child, SpawnError> {
        self.spawn_holding(launch, ()).await
    }

    /// The same; `held` is dropped once nothing of the program and what it started is left.
    ///
    /// # Errors
    /// As [`Supervisor::spawn`].
    pub async fn spawn_holding(
        &self,
        launch: Launch,
        held: impl Send + 'static,
    ) -> Result<Child, SpawnError> {
        // In this order: who waits for the end finds what was held free.
        let (owned, lease) = self.lease(&launch)?;
        self.start(Arc::clone(&self.settings), launch, (owned, (held, lease))).await
    }

    /// A place for the tree among those that live.
    fn lease(&self, launch: &Launch) -> Result<(Owned, Lease), SpawnError> {
        let tree = format!("{}.{}", std::process::id(), NEXT_TREE.fetch_add(1, Ordering::Relaxed));
        let behalf = OnBehalf { agent: launch.agent.clone(), owner: launch.owner.clone(), tree };
        Lease::take(&self.trees, behalf)
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
        // No answer means that the runtime is going down.
        answer.await.unwrap_or(Err(SpawnError::ShuttingDown { program }))
    }

    /// Whether this machine can confine programs: tried once with no program, and again as long as it fails, for an operator may
    /// mend it meanwhile.
    ///
    /// # Errors
    /// As [`Supervisor::spawn`], where it was not even tried.
    pub async fn support(&self) -> Result<Support, SpawnError> {
        if let Some(known) = self.support.get() {
            return Ok(known.clone());
        }
        let support = Support::found(self.rehearse().await?);
        if support.works() {
            // Another who asked at the same time found the same.
            let _ = self.support.set(support.clone());
        }
        Ok(support)
    }

    /// Confines nothing, to see whether that works.
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

    /// Returns when nothing that was started for `owner` is left.
    pub async fn ended(&self, owner: &str) {
        self.until(|trees| !trees.by_owner.contains_key(owner)).await;
    }

    /// How many programs run, or are being ended.
    pub fn running(&self) -> usize {
        self.trees.borrow().by_owner.values().sum()
    }

    /// Ends everything at once: what is being ended, and what is started from now on, is killed within a quarter of a second.
    pub fn hurry(&self) {
        self.settings.hurry.cancel();
    }

    /// Starts nothing more, ends everything, and returns when nothing is left.
    pub async fn shutdown(&self) {
        self.trees.send_modify(|trees| trees.closed = true);
        self.end.cancel();
        self.until(|trees| trees.by_owner.is_empty()).await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Kills what a hub with this data directory started and, having been killed together with its minders, left
    /// behind; says how many processes that were. For the start of a hub, before it starts programs itself: it would
    /// find those too. Blocks for milliseconds, and at most for a few seconds.
    pub fn sweep_leftovers(data_dir: &Path) -> usize {
        let hub = proc::variable(DATA_MARKER, &canonical(data_dir.to_path_buf()));
        // A user may have set the hub's marker for a whole desktop. A tree's marker comes from a minder only.
        proc::sweep(|process| process.was_given(&hub) && process.was_minded())
    }

    async fn until(&self, reached: impl Fn(&Trees) -> bool) {
        // Fails only without a sender, and `self` is one.
        let _ = self.trees.subscribe().wait_for(|trees| reached(trees)).await;
    }
}

/// One name for one directory, so that a hub knows its own after a restart.
fn canonical(data_dir: PathBuf) -> PathBuf {
    let absolute = data_dir.canonicalize().or_else(|_| std::path::absolute(&data_dir));
    absolute.unwrap_or(data_dir)
}
