//! Worktrees: working copies of a git repository, one for each task that asks for one. A task works
//! in its worktree, and the operator takes the result over, or not.
//!
//! ```text
//!  user's repository          root/TASK/                               seen by the agent
//!  ┌──────────┐ check out     ┌─ tree/   files, own .git               read and write
//!  │ checkout │ ────────────► │    ▲ walk, hash                        its objects: read only
//!  │ .git     │               └─ git/    bare repository of the hub     no
//!  │          │ ◄──────────── apply: a checked pack, then files, index and ref, all or none
//!  └──────────┘               root/../worktree-records/TASK.json        no
//! ```
//!
//! Three rules make this safe:
//!
//! - Git runs in bare repositories that only the hub writes (type `HubRepository`). It sees neither
//!   a work tree nor the settings, attributes and hooks of anybody else. The hub itself reads and
//!   writes the files of worktrees and checkouts, and the refs of the user's repository.
//! - One module, `reader`, reads what an agent or a repository may have made: beneath a directory,
//!   through no link, without waiting, and bounded.
//! - An apply is a transaction (module `transaction`): all checks come before the first write, and
//!   any error, or a kill, leaves files, index and branches as they were.
//!
//! The crate knows no tasks and no hub. Its caller decides who may do what.

mod apply;
mod conflicts;
mod create;
mod disk_use;
mod error;
mod git;
mod listing;
mod ports;
mod reader;
mod record;
mod repository;
mod retention;
mod rules;
mod selection;
mod setup;
mod shares;
mod snapshot;

pub use apply::{Applied, Target, sensitive::is_sensitive_path};
pub use conflicts::WorktreeConflict;
pub use create::NewWorktree;
pub use create::repository_config::{
    DecideConfigTrust, MAX_REPOSITORY_CONFIG, REPOSITORY_CONFIG, RepositoryConfigTrust,
    RepositoryPreparation,
};
pub use error::WorktreeError;
pub use ports::PortRange;
pub use record::{AppliedResult, Worktree, WorktreeAccess, WorktreeOwner};
pub use repository::settings::GitHome;
pub use repository::{RepositoryBounds, RepositoryPaths};
pub use retention::{RestingWorktree, WorktreeRetention, WorktreeTotals};
pub use rules::{FindProgram, Preparation, WorktreeRules};
pub use selection::{ChangedFile, ChangedFileList, FileVersion};
pub use setup::{PORT_BASE, PendingSetup};
pub use snapshot::walk::Omission;
pub use snapshot::{Diff, DiffQuery, WorktreeSnapshot};

use a2a_hub_process::{Supervisor, run_blocking};
use apply::transaction::{self, WriteFaults};
use git::Git;
use parking_lot::Mutex;
use ports::Reservations;
use record::Folder;
use repository::refs::Refs;
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Name of the folder of worktrees in the hub's data directory.
pub const FOLDER: &str = "worktrees";

/// Begin of the names of refs that the hub sets in the user's repositories.
const RESULTS: &str = "refs/a2a-hub/";

/// Result of a removed worktree that a repository keeps as a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedResult {
    /// Task of the worktree.
    pub task: String,
    /// True if the repository keeps the base, too, as it does for a worktree that exists: another
    /// hub may have it.
    pub has_base: bool,
}

/// Refs of a task in the user's repository: its base, and its result.
pub(crate) fn refs_of(task: &str) -> [String; 2] {
    ["base", "result"].map(|name| format!("{RESULTS}{task}/{name}"))
}

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
    decide: OnceLock<DecideConfigTrust>,
    /// Rules for new worktrees.
    rules: Mutex<Arc<WorktreeRules>>,
    ports: Reservations,
    /// The user's settings of git.
    home: GitHome,
    /// One lock for each task whose worktree is in use: steps of one worktree do not overlap.
    locks: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
    /// One lock for each repository of the user: changes of it do not overlap.
    repositories: Mutex<HashMap<PathBuf, Arc<AsyncMutex<()>>>>,
    /// Worktrees that this process made or is making, by task: their tasks may not be stored yet.
    created: Mutex<HashMap<String, WorktreeOwner>>,
    /// Faults of the disk, for tests.
    faults: Arc<WriteFaults>,
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

    /// Removes a worktree with all its files. The refs in the user's repository are removed as
    /// well. The files are removed later, on another thread.
    ///
    /// # Errors
    /// The task has no worktree, files cannot be removed, or without `force`, parts of the worktree
    /// are in no result.
    pub async fn discard(&self, task: &str, force: bool) -> Result<(), WorktreeError> {
        let _guard = self.lock(task).await;
        let folder = self.folder(task)?;
        let worktree = folder.read()?;
        if !force {
            self.require_complete_locked(&folder).await?;
        }
        self.discard_locked(folder, worktree).await
    }

    async fn discard_locked(
        &self,
        folder: Folder,
        worktree: Worktree,
    ) -> Result<(), WorktreeError> {
        let (of, task) = (folder.clone(), &worktree.task);
        if let Err(why) = blocking(move || transaction::recover(&of)).await? {
            tracing::warn!(task, %why, "cannot roll back an interrupted apply");
        }
        // A repository that is gone has no refs, and must not keep its worktrees alive.
        if let Err(why) = self.remove_refs(&worktree).await {
            tracing::warn!(task, %why, "cannot remove the refs of a worktree from its repository");
        }
        self.remove(folder).await
    }

    /// Removes a worktree that differs in nothing from its base; false if it has changes, commits,
    /// or parts that cannot be read. With `keeps_ignored`, a worktree with files that git ignores
    /// stays. `is_at_rest` is asked after the look at the files, and before the removal.
    ///
    /// # Errors
    /// The task has no worktree, or git or the disk fails.
    pub async fn discard_unchanged(
        &self,
        task: &str,
        keeps_ignored: bool,
        is_at_rest: impl Future<Output = bool> + Send,
    ) -> Result<bool, WorktreeError> {
        let _guard = self.lock(task).await;
        let folder = self.folder(task)?;
        let open = self.snapshot_locked(&folder).await?;
        let is_changed = open.taken.commit != open.worktree.base
            || open.has_commits
            || !open.taken.left_out.is_empty();
        if is_changed || (keeps_ignored && open.has_ignored) || !is_at_rest.await {
            return Ok(false);
        }
        self.discard_locked(folder, open.worktree).await.map(|()| true)
    }

    /// Latest known changes of a worktree; none before its first snapshot. Blocks on the disk.
    pub fn latest(&self, task: &str) -> Option<WorktreeSnapshot> {
        Self::latest_snapshot(&self.folder(task).ok()?)
    }

    /// Results of removed worktrees that the repository of a directory keeps.
    ///
    /// # Errors
    /// The directory is in no repository, or its refs cannot be read.
    pub async fn retained_results(
        &self,
        directory: PathBuf,
    ) -> Result<Vec<RetainedResult>, WorktreeError> {
        let worktrees = self.clone();
        let read = blocking(move || {
            let found = RepositoryPaths::find(&directory)?;
            let all = Refs::open(&found.repository, &found.repository)?.all()?;
            let results = all.keys().filter_map(|name| {
                let task = name.strip_prefix(RESULTS)?.strip_suffix("/result")?;
                let is_removed = matches!(worktrees.find(task), Err(WorktreeError::NotFound(_)));
                let [base, _] = refs_of(task);
                let has_base = all.contains_key(&base);
                is_removed.then(|| RetainedResult { task: task.to_owned(), has_base })
            });
            Ok(results.collect())
        });
        read.await?
    }

    /// Removes the refs of these tasks from the repository of a directory.
    ///
    /// # Errors
    /// The directory is in no repository, or its refs cannot be changed.
    pub async fn forget_results(
        &self,
        directory: PathBuf,
        tasks: &[String],
    ) -> Result<(), WorktreeError> {
        let found = blocking(move || RepositoryPaths::find(&directory)).await??;
        let names = tasks.iter().flat_map(|task| refs_of(task)).collect();
        self.remove_named_refs(found.repository, names).await
    }

    /// Refuses to discard a worktree that has what its result lacks.
    ///
    /// # Errors
    /// The task has no worktree, or [`WorktreeError::Refused`] with the missing part.
    pub async fn require_complete(&self, task: &str) -> Result<(), WorktreeError> {
        let _guard = self.lock(task).await;
        let folder = self.folder(task)?;
        folder.read()?;
        self.require_complete_locked(&folder).await
    }

    async fn require_complete_locked(&self, folder: &Folder) -> Result<(), WorktreeError> {
        let task = folder.task();
        match self.snapshot_locked(folder).await {
            Ok(snapshot) => snapshot
                .taken
                .require_complete(task, &format!("a2a-hub task discard --force {task}")),
            // Nothing can be taken over from it any more.
            Err(why) => {
                tracing::info!(task, %why, "cannot read a worktree, allowing its removal");
                Ok(())
            }
        }
    }

    /// Notes that a run of the task begins: from now on, the files may be somebody's work.
    ///
    /// # Errors
    /// The task has no worktree, or the disk fails.
    pub async fn begin(&self, task: &str) -> Result<(), WorktreeError> {
        let _guard = self.lock(task).await;
        let folder = self.folder(task)?;
        blocking(move || {
            let mut worktree = folder.read()?;
            if worktree.has_begun {
                return Ok(());
            }
            worktree.has_begun = true;
            folder.write(&worktree).map_err(WorktreeError::disk)
        })
        .await?
    }

    /// Puts in order what a killed hub left half made or half removed: interrupted applies, folders
    /// without a record, and directories of git's steps. To be called before a task begins. The
    /// files themselves are removed later, on another thread.
    ///
    /// # Errors
    /// The directory cannot be read or changed.
    pub fn sweep(&self) -> io::Result<()> {
        let mut leftovers = Vec::new();
        let entries = match fs::read_dir(&self.0.root) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            match Folder::leftover(&entry.path())? {
                Some(path) => leftovers.push(path),
                None => self.put_in_order(&entry.file_name().to_string_lossy()),
            }
        }
        // A folder that is gone needs no record.
        for task in record::recorded_tasks(&self.0.root) {
            if let Ok(folder) = self.folder(&task)
                && !folder.path().exists()
            {
                folder.remove()?;
            }
        }
        drop(run_blocking(move || {
            for path in leftovers {
                if let Err(why) = record::remove_all(&path) {
                    let path = path.display();
                    tracing::warn!(%path, %why, "cannot remove leftover files of a worktree");
                }
            }
        }));
        Ok(())
    }

    /// Finishes what was interrupted in one worktree.
    fn put_in_order(&self, task: &str) {
        let Ok(folder) = self.folder(task) else { return };
        if let Err(why) = self.upgrade(&folder) {
            tracing::warn!(task, %why, "a worktree of an earlier version cannot be used");
        }
        if let Err(why) = transaction::recover(&folder) {
            tracing::warn!(task, %why, "cannot roll back an interrupted apply; `a2a-hub task apply` tries again");
        }
        if let Err(why) = remove_steps(folder.path()) {
            tracing::debug!(task, %why, "cannot remove temporary step directories");
        }
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

    /// Removes a folder, and the lock and the ports of its task. Waits for the end of programs that
    /// set it up.
    pub(crate) async fn remove(&self, folder: Folder) -> Result<(), WorktreeError> {
        let task = folder.task().to_owned();
        self.setup_over(&task).await;
        let leftover = blocking(move || folder.set_aside()).await?.map_err(WorktreeError::disk)?;
        drop(run_blocking(move || {
            if let Err(why) = record::remove_all(&leftover) {
                tracing::warn!(path = %leftover.display(), %why, "cannot remove a worktree");
            }
        }));
        self.0.locks.lock().remove(&task);
        self.0.created.lock().remove(&task);
        self.0.ports.release(&task);
        Ok(())
    }

    fn folder(&self, task: &str) -> Result<Folder, WorktreeError> {
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

    async fn lock(&self, task: &str) -> OwnedMutexGuard<()> {
        let lock = Arc::clone(self.0.locks.lock().entry(task.to_owned()).or_default());
        lock.lock_owned().await
    }
}

/// Removes the directories of steps and of half made packs that a killed hub left in a folder.
fn remove_steps(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_step = name.as_encoded_bytes().starts_with(b".step-");
        if is_step || name == "import" {
            record::remove_all(&entry.path())?;
        }
    }
    Ok(())
}

/// Runs work that blocks on the disk.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorktreeError> {
    run_blocking(work).await.map_err(|why| WorktreeError::disk(io::Error::other(why)))
}
