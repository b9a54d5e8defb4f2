//! Records of worktrees: files that only the hub reads and writes, in a directory of their own.
//! Neither an agent nor a step of git can write there, so each record is believed.

pub(crate) mod port_range;

use crate::{
    PortRange, RepositoryBounds, RepositoryPreparation, WorktreeError, listing::write_atomic,
};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

/// Record of an earlier version, in the folder of the worktree.
const OLD_RECORD: &str = "worktree.json";

/// Most results that a record names as applied.
const MAX_APPLIED: usize = 16;

/// One worktree. Paths in its folder are not in its record: the data directory may move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Task that it was made for.
    pub task: String,
    /// Top directory of its files.
    #[serde(skip)]
    pub tree: PathBuf,
    /// Directory that the task works in: as deep below `tree` as the requested directory is below
    /// its checkout.
    #[serde(skip)]
    pub directory: PathBuf,
    /// Path of `directory` below `tree`.
    pub prefix: PathBuf,
    /// Commit that the work starts from.
    pub base: String,
    /// Branch that was checked out in the user's repository, if one was.
    pub from: Option<String>,
    /// Branch of the worktree's own repository.
    pub branch: String,
    /// Top directory of the user's checkout; none for a bare repository.
    pub checkout: Option<PathBuf>,
    /// Git directory of that checkout.
    pub git_dir: PathBuf,
    /// Git directory with the repository's objects and refs.
    pub repository: PathBuf,
    /// Last commit below `base` that the user's repository has.
    pub pinned: String,
    /// Stores of objects of the user's repository.
    pub stores: Vec<PathBuf>,
    /// Stores of objects that the agent reads: those, and the hub's if `base` lies there.
    #[serde(skip)]
    pub objects: Vec<PathBuf>,
    /// Directories in which the repository, and what it refers to, may lie.
    #[serde(default)]
    pub bounds: RepositoryBounds,
    /// Task whose worktree this one was made of, if it was.
    pub parent: Option<String>,
    /// Time of creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// Ports that are reserved for it, if some are.
    #[serde(default)]
    pub ports: Option<PortRange>,
    /// True until the programs of its setup have run.
    #[serde(default)]
    pub is_unprepared: bool,
    /// True once a run of its task has begun.
    #[serde(default)]
    pub has_begun: bool,
    /// Owner of its task.
    #[serde(default)]
    pub owner: WorktreeOwner,
    /// Wishes of its repository that count.
    #[serde(default)]
    pub own: RepositoryPreparation,
    /// Files that were copied from the checkout, and are none of the result.
    #[serde(default)]
    pub copied: Vec<String>,
    /// Warning of its creation that was not reported yet.
    #[serde(default)]
    pub note: Option<String>,
    /// Latest results that were applied, with the checkouts that got them.
    #[serde(default)]
    pub applied: Vec<AppliedResult>,
}

/// A result of a worktree that a checkout got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedResult {
    /// Git directory of the checkout.
    pub git_dir: PathBuf,
    /// Commit with the result, in the hub's repository.
    pub commit: String,
}

/// Owner of a worktree's task. Conflicts with other tasks of the same tenant are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeOwner {
    /// Name of the tenant; empty for the default one.
    pub tenant: String,
    /// Task that began the task, if one did. Its children compete, or work one after the other.
    pub parent: Option<String>,
    /// Agent whose program asked for the task; none for a person's client.
    #[serde(default)]
    pub agent: Option<String>,
}

/// Rights that a task needs for its worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeAccess {
    /// Directory to read and write.
    pub tree: PathBuf,
    /// Directories to read: the objects.
    pub objects: Vec<PathBuf>,
    /// The user's checkout, or the bare repository. An agent that may not work there may not work
    /// in the worktree.
    pub origin: PathBuf,
    /// First of the ports that are reserved for the worktree, if some are.
    pub port_base: Option<u16>,
}

impl Worktree {
    /// Fills in what depends on the place of its folder.
    fn located_in(mut self, folder: &Folder) -> Self {
        self.tree = folder.tree();
        // A record of an older version, or of a damaged disk, leads nowhere else.
        let is_plain = self.prefix.components().all(|part| matches!(part, Component::Normal(_)));
        self.directory = self.tree.clone();
        if is_plain {
            self.directory.extend(self.prefix.components());
        }
        self.objects.clone_from(&self.stores);
        if self.parent.is_some() {
            self.objects.push(folder.git().join("objects"));
        }
        self
    }

    /// Results that a checkout got, the last one first.
    pub(crate) fn applied_to<'w>(&'w self, git_dir: &'w Path) -> impl Iterator<Item = &'w str> {
        let found = self.applied.iter().rev().filter(move |applied| applied.git_dir == git_dir);
        found.map(|applied| applied.commit.as_str())
    }

    /// Notes that a checkout got a result.
    pub(crate) fn note_applied(&mut self, applied: AppliedResult) {
        self.applied.retain(|known| *known != applied);
        self.applied.push(applied);
        let surplus = self.applied.len().saturating_sub(MAX_APPLIED);
        self.applied.drain(..surplus);
    }

    /// Rights that a task needs to work in this worktree.
    pub fn access(&self) -> WorktreeAccess {
        let origin = self.checkout.as_ref().unwrap_or(&self.repository).clone();
        let port_base = self.ports.map(|ports| ports.first);
        WorktreeAccess { tree: self.tree.clone(), objects: self.objects.clone(), origin, port_base }
    }
}

impl WorktreeAccess {
    /// Rights for the worktree below `root` that contains `directory`; none if none does. Blocks on
    /// the disk.
    pub fn to(root: &Path, directory: &Path) -> Option<Self> {
        let worktree = Folder::containing(root, directory)?.read().ok()?;
        directory.starts_with(&worktree.tree).then(|| worktree.access())
    }
}

/// Folder of one worktree.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    task: String,
}

impl Folder {
    pub(crate) fn new(root: &Path, task: &str) -> Result<Self, WorktreeError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if task.is_empty() || task.len() > 128 || !task.chars().all(is_plain) {
            return Err(WorktreeError::NotFound(task.to_owned()));
        }
        Ok(Self { path: root.join(task), task: task.to_owned() })
    }

    /// Folder below `root` that contains `directory`.
    pub(crate) fn containing(root: &Path, directory: &Path) -> Option<Self> {
        let task = directory.strip_prefix(root).ok()?.components().next()?;
        Self::new(root, task.as_os_str().to_str()?).ok()
    }

    pub(crate) fn task(&self) -> &str {
        &self.task
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Files of the worktree.
    pub(crate) fn tree(&self) -> PathBuf {
        self.path.join("tree")
    }

    /// Git directory of the hub.
    pub(crate) fn git(&self) -> PathBuf {
        self.path.join("git")
    }

    pub(crate) fn make(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700).recursive(true);
        builder.create(self.path.parent().unwrap_or(&self.path))?;
        builder.recursive(false).create(&self.path)
    }

    pub(crate) fn read(&self) -> Result<Worktree, WorktreeError> {
        let text = fs::read(self.record()).map_err(|why| {
            if why.kind() == io::ErrorKind::NotFound {
                WorktreeError::NotFound(self.task.clone())
            } else {
                WorktreeError::disk(why)
            }
        })?;
        let read: Worktree =
            serde_json::from_slice(&text).map_err(|why| WorktreeError::disk(why.into()))?;
        Ok(read.located_in(self))
    }

    /// Writes the record, whole or not at all.
    pub(crate) fn write(&self, worktree: &Worktree) -> io::Result<()> {
        let record = self.record();
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700).recursive(true).create(record.parent().unwrap_or(&record))?;
        write_atomic(&record, &serde_json::to_vec_pretty(worktree)?)
    }

    /// File with the record.
    fn record(&self) -> PathBuf {
        records(self.path.parent().unwrap_or(&self.path)).join(format!("{}.json", self.task))
    }

    /// Replaces a file of the hub in the folder, whole or not at all.
    pub(crate) fn replace(&self, name: &str, text: &[u8]) -> io::Result<()> {
        write_atomic(&self.path.join(name), text)
    }

    /// Removes the folder. The record goes first, so that a half removed worktree is none.
    pub(crate) fn remove(&self) -> io::Result<()> {
        self.forget()?;
        remove_all(&self.path)
    }

    /// Removes the record, and gives the folder a name that no task has. Returns its path, to be
    /// removed at leisure.
    pub(crate) fn set_aside(&self) -> io::Result<PathBuf> {
        self.forget()?;
        let renamed = leftover_name(&self.path);
        match fs::rename(&self.path, &renamed) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                remove_all(&self.path)?;
                Ok(renamed)
            }
            Ok(()) | Err(_) => Ok(renamed),
        }
    }

    fn forget(&self) -> io::Result<()> {
        ok_if_missing(fs::remove_file(self.record()))
    }

    /// Reads the record of an earlier version, which an agent's repository could write: paths count
    /// only if they are found anew.
    pub(crate) fn read_old(&self) -> Option<OldRecord> {
        serde_json::from_slice(&fs::read(self.path.join(OLD_RECORD)).ok()?).ok()
    }

    /// Removes the record of an earlier version.
    pub(crate) fn forget_old(&self) -> io::Result<()> {
        ok_if_missing(fs::remove_file(self.path.join(OLD_RECORD)))
    }

    /// True if the folder has a record of this or an earlier version.
    fn is_recorded(&self) -> bool {
        self.record().exists() || self.path.join(OLD_RECORD).exists()
    }

    /// Path of what is left in the directory of worktrees that no worktree needs; none for a
    /// worktree. A folder without a record gets a name that no task has.
    pub(crate) fn leftover(path: &Path) -> io::Result<Option<PathBuf>> {
        let name = path.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(b".") {
            return Ok(Some(path.to_owned()));
        }
        let folder = name.to_str().and_then(|task| Self::new(path.parent()?, task).ok());
        if folder.is_some_and(|folder| folder.is_recorded()) {
            return Ok(None);
        }
        let renamed = leftover_name(path);
        fs::rename(path, &renamed)?;
        Ok(Some(renamed))
    }
}

/// Directory with the records of the worktrees below `root`.
pub(crate) fn records(root: &Path) -> PathBuf {
    root.with_file_name("worktree-records")
}

/// Tasks that have records, in no order.
pub(crate) fn recorded_tasks(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(records(root)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect()
}

fn leftover_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(".left-");
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

/// Record of an earlier version.
#[derive(Debug, Deserialize)]
pub(crate) struct OldRecord {
    pub(crate) tree: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) base: String,
    pub(crate) from: Option<String>,
    pub(crate) branch: String,
    pub(crate) checkout: Option<PathBuf>,
    pub(crate) repository: PathBuf,
    pub(crate) pinned: String,
    pub(crate) parent: Option<String>,
    pub(crate) created_ms: u64,
    #[serde(default)]
    pub(crate) ports: Option<PortRange>,
    #[serde(default)]
    pub(crate) is_unprepared: bool,
    #[serde(default)]
    pub(crate) owner: WorktreeOwner,
    #[serde(default)]
    pub(crate) own: RepositoryPreparation,
}

/// Removes a directory with all that is in it, also if programs took the right to do so away.
pub(crate) fn remove_all(path: &Path) -> io::Result<()> {
    if fs::remove_dir_all(path).is_err() {
        open_up(path);
        ok_if_missing(fs::remove_dir_all(path))?;
    }
    Ok(())
}

/// The result of a removal, to which a missing file is no error.
pub(crate) fn ok_if_missing(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|why| if why.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(why) })
}

/// Gives the owner all rights to a directory and those below it, without following links.
fn open_up(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_strange_task_does_not_exist() {
        let root = Path::new("/r");
        for task in ["", ".", "..", "a/b", "a b", "a\0", "ä", &"x".repeat(200)] {
            assert!(matches!(Folder::new(root, task), Err(WorktreeError::NotFound(_))), "{task:?}");
        }
        let above = |path: &str| Folder::containing(root, Path::new(path)).map(|it| it.task);
        assert_eq!(above("/r/t-1/tree/src").as_deref(), Some("t-1"));
        assert_eq!((above("/r"), above("/other/t"), above("/r/../t")), (None, None, None));
    }

    #[test]
    fn folder_with_closed_directories_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path(), "t").unwrap();
        folder.make().unwrap();
        let closed = folder.tree().join("a/b");
        fs::create_dir_all(&closed).unwrap();
        fs::write(closed.join("file"), "").unwrap();
        std::os::unix::fs::symlink("/", closed.join("link")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
        folder.remove().unwrap();
        assert!(!folder.path().exists());
        folder.remove().unwrap();
    }
}
