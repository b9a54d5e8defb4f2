//! Record of a worktree: the file `worktree.json` in its folder, which only the hub reads and
//! writes.

use crate::{OwnPreparation, PortRange, WorktreeError};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

const RECORD: &str = "worktree.json";

/// One worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Task that it was made for.
    pub task: String,
    /// Top directory of its files.
    pub tree: PathBuf,
    /// Directory that the task works in: as deep below `tree` as the requested directory is below
    /// its checkout.
    pub directory: PathBuf,
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
    /// Stores of objects that the worktree reads.
    pub objects: Vec<PathBuf>,
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
    /// Owner of its task.
    #[serde(default)]
    pub owner: WorktreeOwner,
    /// Wishes of its repository that count.
    #[serde(default)]
    pub own: OwnPreparation,
    /// Warning of its creation that was not reported yet.
    #[serde(default)]
    pub note: Option<String>,
}

/// Owner of a worktree's task. Conflicts with other tasks of the same tenant are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeOwner {
    /// Name of the tenant; empty for the default one.
    pub tenant: String,
    /// Task that began the task, if one did. Its children compete, or work one after the other.
    pub parent: Option<String>,
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
        let worktree = Folder::above(root, directory)?.read().ok()?;
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
    pub(crate) fn of(root: &Path, task: &str) -> Result<Self, WorktreeError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if task.is_empty() || task.len() > 128 || !task.chars().all(is_plain) {
            return Err(WorktreeError::NotFound(task.to_owned()));
        }
        Ok(Self { path: root.join(task), task: task.to_owned() })
    }

    /// Folder below `root` that contains `directory`.
    pub(crate) fn above(root: &Path, directory: &Path) -> Option<Self> {
        let task = directory.strip_prefix(root).ok()?.components().next()?;
        Self::of(root, task.as_os_str().to_str()?).ok()
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
        let text = fs::read(self.path.join(RECORD)).map_err(|why| {
            if why.kind() == io::ErrorKind::NotFound {
                WorktreeError::NotFound(self.task.clone())
            } else {
                WorktreeError::disk(why)
            }
        })?;
        serde_json::from_slice(&text).map_err(|why| WorktreeError::disk(why.into()))
    }

    /// Writes the record, whole or not at all.
    pub(crate) fn write(&self, worktree: &Worktree) -> io::Result<()> {
        self.replace(RECORD, &serde_json::to_vec_pretty(worktree)?)
    }

    /// Replaces a file of the hub in the folder, whole or not at all.
    pub(crate) fn replace(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let new = self.path.join(name).with_extension("new");
        fs::write(&new, text)?;
        fs::File::open(&new)?.sync_all()?;
        fs::rename(new, self.path.join(name))
    }

    /// Removes the folder. The record goes first, so that a half removed worktree is none.
    pub(crate) fn remove(&self) -> io::Result<()> {
        ok_if_missing(fs::remove_file(self.path.join(RECORD)))?;
        remove_all(&self.path)
    }

    /// Path of what is left in the directory of worktrees that no worktree needs; none for a
    /// worktree. A folder without a record gets a name that no task has.
    pub(crate) fn left_over(path: &Path) -> io::Result<Option<PathBuf>> {
        let name = path.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(b".") {
            return Ok(Some(path.to_owned()));
        }
        if path.join(RECORD).exists() {
            return Ok(None);
        }
        let mut left = OsString::from(".left-");
        left.push(name);
        let left = path.with_file_name(left);
        fs::rename(path, &left)?;
        Ok(Some(left))
    }
}

/// True for the folder of a task; others in the directory of worktrees are temporary.
pub(crate) fn is_folder(entry: &fs::DirEntry) -> bool {
    !entry.file_name().as_encoded_bytes().starts_with(b".")
}

/// Removes a directory with all that is in it, also if programs took the right to do so away.
pub(crate) fn remove_all(path: &Path) -> io::Result<()> {
    if fs::remove_dir_all(path).is_err() {
        open_up(path);
        ok_if_missing(fs::remove_dir_all(path))?;
    }
    Ok(())
}

fn ok_if_missing(done: io::Result<()>) -> io::Result<()> {
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
            assert!(matches!(Folder::of(root, task), Err(WorktreeError::NotFound(_))), "{task:?}");
        }
        let above = |path: &str| Folder::above(root, Path::new(path)).map(|it| it.task);
        assert_eq!(above("/r/t-1/tree/src").as_deref(), Some("t-1"));
        assert_eq!((above("/r"), above("/other/t"), above("/r/../t")), (None, None, None));
    }

    #[test]
    fn folder_with_closed_directories_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::of(place.path(), "t").unwrap();
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
