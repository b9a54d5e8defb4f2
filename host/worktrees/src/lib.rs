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
mod service;
mod setup;
mod shares;
mod snapshot;

pub use apply::{Applied, Target, sensitive::is_sensitive_path};
pub use conflicts::WorktreeConflict;
pub use create::NewWorktree;
pub use create::preparation::{DecideConfigTrust, RepositoryConfigTrust, RepositoryPreparation};
pub use create::repository_config::{MAX_REPOSITORY_CONFIG, REPOSITORY_CONFIG};
pub use error::WorktreeError;
pub use record::port_range::PortRange;
pub use record::{AppliedResult, Worktree, WorktreeAccess, WorktreeOwner};
pub use repository::settings::GitHome;
pub use repository::{RepositoryPaths, bounds::RepositoryBounds};
pub use retention::{RestingWorktree, WorktreeRetention, WorktreeTotals};
pub use rules::{FindProgram, Preparation, WorktreeRules};
pub use selection::{ChangedFile, ChangedFileList, FileVersion};
pub use service::Worktrees;
pub use setup::{PORT_BASE, PendingSetup};
pub use snapshot::walk::Omission;
pub use snapshot::{Diff, DiffQuery, WorktreeSnapshot};

use a2a_hub_process::run_blocking;
use apply::transaction;
use record::Folder;
use repository::refs::{RESULTS, Refs, refs_of};
use service::blocking;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Name of the folder of worktrees in the hub's data directory.
pub const FOLDER: &str = "worktrees";

/// Result of a removed worktree that a repository keeps as a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedResult {
    /// Task of the worktree.
    pub task: String,
    /// True if the repository keeps the base, too, as it does for a worktree that exists: another
    /// hub may have it.
    pub has_base: bool,
}

impl Worktrees {
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
