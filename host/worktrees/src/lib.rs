//! Worktrees: working copies of a git repository, one for each task that asks for one. A task works
//! in its worktree, and the operator takes the result over, or not.
//!
//! ```text
//!  user's repository                root/TASK/                        seen by the agent
//!  ┌──────────────┐  create   ┌─ worktree.json  record                no
//!  │ checkout     │ ────────► ├─ tree/          files, own .git       read and write
//!  │ .git/objects │ ◄─ reads ─┤   its objects are those of the user   read only
//!  │              │           └─ git/           index and snapshots   no
//!  │              │ ◄──────────────── apply: one verified pack, then a patch
//!  └──────────────┘
//! ```
//!
//! Two rules make this safe:
//!
//! - Git never reads a configuration that an agent can write. A snapshot is taken with the hub's
//!   own git directory, `git/`; the agent's `.git` is only a store of objects, and the id of its
//!   `HEAD` is read without git. The user's repository receives a pack whose objects git hashes
//!   anew.
//! - Each git process sees and writes only the directories that its step needs, without network,
//!   hooks, and external programs (module `git`). If this machine cannot confine programs, git runs
//!   with the same settings unconfined, as all agents do there.
//!
//! The crate knows no tasks and no hub. Its caller decides who may do what.

mod apply;
mod conflicts;
mod copied;
mod create;
mod disk_use;
mod error;
mod git;
mod head;
mod own_file;
mod ports;
mod record;
mod repository;
mod retention;
mod rules;
mod sensitive;
mod setup;
mod snapshot;

pub use apply::{Applied, Target};
pub use conflicts::WorktreeConflict;
pub use create::NewWorktree;
pub use error::WorktreeError;
pub use own_file::{DecideOwnFile, MAX_OWN_FILE, OWN_FILE, OwnFileTrust, OwnPreparation};
pub use ports::PortRange;
pub use record::{Worktree, WorktreeAccess, WorktreeOwner};
pub use repository::RepositoryPaths;
pub use retention::{RestingWorktree, WorktreeRetention, WorktreeTotals};
pub use rules::{FindProgram, Preparation, WorktreeRules};
pub use setup::{PORT_BASE, PendingSetup};
pub use snapshot::{Diff, WorktreeSnapshot};

use a2a_hub_process::{Supervisor, run_blocking};
use git::Git;
use parking_lot::Mutex;
use ports::Reservations;
use record::Folder;
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Name of the folder of worktrees in the hub's data directory.
pub const FOLDER: &str = "worktrees";

/// All worktrees of one hub. Clones share the same state.
#[derive(Clone)]
pub struct Worktrees(Arc<WorktreesState>);

struct WorktreesState {
    /// Directory with one folder for each task.
    root: PathBuf,
    git: Git,
    /// Finds the programs of a setup.
    find: FindProgram,
    /// Decides about the files of repositories; without it, none counts.
    decide: OnceLock<DecideOwnFile>,
    /// Rules for new worktrees.
    rules: Mutex<Arc<WorktreeRules>>,
    ports: Reservations,
    /// Home directory of the user, with the user's settings of git.
    home: Option<PathBuf>,
    /// One lock for each task whose worktree is in use: steps of one worktree do not overlap.
    locks: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

impl Worktrees {
    /// Creates the service. `root` need not exist. If `find` finds no git, all operations that need
    /// git fail with [`WorktreeError::NoGit`]. The settings of git in `home` say who the author of
    /// commits is.
    pub fn new(
        root: PathBuf,
        supervisor: Supervisor,
        find: FindProgram,
        home: Option<PathBuf>,
    ) -> Self {
        let git = Git::new(supervisor, find("git"));
        let (decide, rules, ports, locks) = Default::default();
        Self(Arc::new(WorktreesState { root, git, find, decide, rules, ports, home, locks }))
    }

    /// Lets files of repositories count as this decides. The first decision holds.
    pub fn decide_own_files_by(&self, decide: DecideOwnFile) {
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
        let entries = fs::read_dir(&self.0.root).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut found: Vec<_> = names.filter_map(|task| self.find(&task).ok()).collect();
        found.sort_by(|a, b| (a.created_ms, &a.task).cmp(&(b.created_ms, &b.task)));
        found
    }

    /// Removes a worktree with all its files. The refs in the user's repository are removed as
    /// well.
    ///
    /// # Errors
    /// The task has no worktree, or files cannot be removed.
    pub async fn discard(&self, task: &str) -> Result<(), WorktreeError> {
        let _held = self.lock(task).await;
        let folder = self.folder(task)?;
        let worktree = folder.read()?;
        // A repository that is gone has no refs, and must not keep its worktrees alive.
        if let Err(why) = self.remove_refs(&worktree).await {
            tracing::warn!(task, %why, "the refs of a worktree stay in its repository");
        }
        self.remove(folder).await
    }

    /// Removes what a killed hub left half made or half removed: folders without a record, and
    /// directories of git's steps. To be called before a task begins. The files themselves are
    /// removed later, on another thread.
    ///
    /// # Errors
    /// The directory cannot be read or changed.
    pub fn sweep(&self) -> io::Result<()> {
        let mut left = Vec::new();
        let entries = match fs::read_dir(&self.0.root) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            match Folder::left_over(&entry.path())? {
                Some(path) => left.push(path),
                None => continue,
            }
        }
        drop(run_blocking(move || {
            for path in left {
                if let Err(why) = record::remove_all(&path) {
                    let path = path.display();
                    tracing::warn!(%path, %why, "cannot remove what is left of a worktree");
                }
            }
        }));
        Ok(())
    }

    /// Number of worktrees, with those that are made just now.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub async fn count(&self) -> Result<usize, WorktreeError> {
        let root = self.0.root.clone();
        let count = move || match fs::read_dir(root) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(0),
            entries => {
                Ok(entries?.filter(|entry| entry.as_ref().is_ok_and(record::is_folder)).count())
            }
        };
        blocking(count).await?.map_err(WorktreeError::disk)
    }

    /// Removes a folder, and the lock and the ports of its task. Waits for the end of programs that
    /// set it up.
    pub(crate) async fn remove(&self, folder: Folder) -> Result<(), WorktreeError> {
        let task = folder.task().to_owned();
        self.setup_over(&task).await;
        blocking(move || folder.remove()).await?.map_err(WorktreeError::disk)?;
        self.0.locks.lock().remove(&task);
        self.0.ports.release(&task);
        Ok(())
    }

    fn folder(&self, task: &str) -> Result<Folder, WorktreeError> {
        Folder::of(&self.0.root, task)
    }

    async fn lock(&self, task: &str) -> OwnedMutexGuard<()> {
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
