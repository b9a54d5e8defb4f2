//! The worktrees of a hub: their directory, rules, locks and shares.

use crate::{
    FindProgram, GitHome, Worktree, WorktreeError, WorktreeOwner, WorktreeRules,
    apply::transaction::WriteFaults,
    create::preparation::DecideConfigTrust,
    git::Git,
    ports::Reservations,
    record::{self, Folder},
    shares,
};
use a2a_hub_process::{Supervisor, run_blocking};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// All worktrees of one hub. Clones share the same state.
#[derive(Clone)]
pub struct Worktrees(pub(crate) Arc<WorktreesState>);

pub(crate) struct WorktreesState {
    /// Directory with one folder for each task.
    pub(crate) root: PathBuf,
    pub(crate) git: Git,
    /// Finds the programs of a setup.
    pub(crate) find: FindProgram,
    /// Decides about the files of repositories; without it, none counts.
    pub(crate) decide: OnceLock<DecideConfigTrust>,
    /// Rules for new worktrees.
    pub(crate) rules: Mutex<Arc<WorktreeRules>>,
    pub(crate) ports: Reservations,
    /// The user's settings of git.
    pub(crate) home: GitHome,
    /// One lock for each task whose worktree is in use: steps of one worktree do not overlap.
    pub(crate) locks: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
    /// One lock for each repository of the user: changes of it do not overlap.
    pub(crate) repositories: Mutex<HashMap<PathBuf, Arc<AsyncMutex<()>>>>,
    /// Worktrees that this process made or is making, by task: their tasks may not be stored yet.
    pub(crate) created: Mutex<HashMap<String, WorktreeOwner>>,
    /// Faults of the disk, for tests.
    pub(crate) faults: Arc<WriteFaults>,
}

impl Worktrees {
    /// Creates the service. `root` need not exist. If `find` finds no git, all operations that need
    /// git fail with [`WorktreeError::NoGit`]. The settings of git in `home` say who the author of
    /// commits is.
    pub fn new(root: PathBuf, supervisor: Supervisor, find: FindProgram, home: GitHome) -> Self {
        let git = Git::new(supervisor, find("git"));
        let (decide, rules, ports, locks, repositories) = Default::default();
        let (created, faults) = Default::default();
        Self(Arc::new(WorktreesState {
            root,
            git,
            find,
            decide,
            rules,
            ports,
            home,
            locks,
            repositories,
            created,
            faults,
        }))
    }

    /// Has the call that writes with this number fail in the next apply, once, or stop the apply as
    /// a kill does. For tests.
    #[doc(hidden)]
    pub fn fail_write(&self, number: usize, stops: bool) {
        self.0.faults.fail_at(number, stops);
    }

    /// True if the call that is to fail did not come. For tests.
    #[doc(hidden)]
    pub fn is_failure_pending(&self) -> bool {
        self.0.faults.is_pending()
    }

    /// Lets files of repositories count as this decides. The first decision holds.
    pub fn set_config_trust(&self, decide: DecideConfigTrust) {
        let _ = self.0.decide.set(decide);
    }

    /// Follows these rules from now on.
    pub fn follow(&self, rules: WorktreeRules) {
        *self.0.rules.lock() = Arc::new(rules);
    }

    /// The rules for new worktrees.
    pub fn rules(&self) -> Arc<WorktreeRules> {
        Arc::clone(&self.0.rules.lock())
    }

    /// Directory with one folder for each task.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Worktree of a task.
    ///
    /// # Errors
    /// The task has none, or its record cannot be read.
    pub fn find(&self, task: &str) -> Result<Worktree, WorktreeError> {
        self.folder(task)?.read()
    }

    /// All worktrees, oldest first, without those whose record cannot be read. Blocks on the disk.
    pub fn list(&self) -> Vec<Worktree> {
        let names = record::recorded_tasks(&self.0.root).into_iter();
        let mut found: Vec<_> = names.filter_map(|task| self.find(&task).ok()).collect();
        found.sort_by(|a, b| (a.created_ms, &a.task).cmp(&(b.created_ms, &b.task)));
        found
    }

    /// True if an earlier process made the worktree, and no run of its task began: if the task is
    /// not stored either, nobody has worked there.
    pub fn is_orphan(&self, worktree: &Worktree) -> bool {
        !worktree.has_begun && !self.0.created.lock().contains_key(&worktree.task)
    }

    /// Takes a share of the worktrees for a task. Blocks on the disk.
    pub(crate) fn reserve(&self, task: &str, owner: &WorktreeOwner) -> Result<(), WorktreeError> {
        let stored = self.list();
        let mut created = self.0.created.lock();
        // Those that were made and removed since.
        let is_stored = |task: &str| stored.iter().any(|one| one.task == task);
        let making =
            created.iter().filter(|(task, _)| !is_stored(task) && self.is_being_created(task));
        let owners = stored.iter().map(|one| &one.owner).chain(making.map(|(_, owner)| owner));
        shares::admit(owner, owners).map_err(WorktreeError::Refused)?;
        created.insert(task.to_owned(), owner.clone());
        Ok(())
    }

    /// True if the folder of a worktree is there, or about to be.
    fn is_being_created(&self, task: &str) -> bool {
        self.0.locks.lock().contains_key(task)
    }

    pub(crate) fn folder(&self, task: &str) -> Result<Folder, WorktreeError> {
        Folder::new(&self.0.root, task)
    }

    /// Waits until nobody else of the hub changes a repository of the user.
    pub(crate) async fn lock_repository(&self, common: &Path) -> OwnedMutexGuard<()> {
        let lock = {
            let mut all = self.0.repositories.lock();
            all.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(all.entry(common.to_owned()).or_default())
        };
        lock.lock_owned().await
    }

    pub(crate) async fn lock(&self, task: &str) -> OwnedMutexGuard<()> {
        let lock = Arc::clone(self.0.locks.lock().entry(task.to_owned()).or_default());
        lock.lock_owned().await
    }
}

/// Runs work that blocks on the disk.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorktreeError> {
    run_blocking(work).await.map_err(|why| WorktreeError::disk(io::Error::other(why)))
}
