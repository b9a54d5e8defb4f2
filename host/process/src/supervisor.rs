//! The owner of every process tree: counts them by whom they serve, and ends them all when the hub does.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::tree::{self, TreeSettings};
use super::{Child, DATA_MARKER, Launch, SpawnError, proc};

/// Starts programs and owns what they start. Clones are one supervisor.
#[derive(Clone, Debug)]
pub struct Supervisor {
    settings: Arc<TreeSettings>,
    trees: watch::Sender<Trees>,
    tasks: TaskTracker,
    end: CancellationToken,
}

/// The trees that live, or may still.
#[derive(Debug, Default)]
struct Trees {
    closed: bool,
    by_owner: HashMap<String, usize>,
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
                open_files: None,
                hurry: CancellationToken::new(),
            }),
            trees: watch::Sender::default(),
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
        }
    }

    /// The same, whose programs may have so many files open. For a supervisor of no programs yet.
    #[must_use]
    pub fn with_open_files(self, open_files: u64) -> Self {
        let settings =
            TreeSettings { open_files: Some(open_files), ..TreeSettings::clone(&self.settings) };
        Self { settings: Arc::new(settings), ..self }
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
        let lease = (held, Lease::take(&self.trees, &launch)?);
        let (started, answer) = oneshot::channel();
        let program = launch.program.clone();
        let settings = Arc::clone(&self.settings);
        let (end, tasks) = (self.end.child_token(), self.tasks.clone());
        self.tasks.spawn(tree::run(settings, launch, end, tasks, started, lease));
        // No answer means that the runtime is going down.
        answer.await.unwrap_or(Err(SpawnError::ShuttingDown { program }))
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

/// One tree's place among those that live; dropped when it is gone.
struct Lease {
    trees: watch::Sender<Trees>,
    owner: String,
}

impl Lease {
    fn take(trees: &watch::Sender<Trees>, launch: &Launch) -> Result<Self, SpawnError> {
        let owner = launch.owner.clone();
        let taken = trees.send_if_modified(|trees| {
            if !trees.closed {
                *trees.by_owner.entry(owner.clone()).or_default() += 1;
            }
            !trees.closed
        });
        if !taken {
            return Err(SpawnError::ShuttingDown { program: launch.program.clone() });
        }
        Ok(Self { trees: trees.clone(), owner })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.trees.send_modify(|trees| {
            if let Some(count) = trees.by_owner.get_mut(&self.owner) {
                *count -= 1;
                if *count == 0 {
                    trees.by_owner.remove(&self.owner);
                }
            }
        });
    }
}
