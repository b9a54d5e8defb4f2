//! Changes of a checkout's files that happen all or not at all.
//!
//! ```text
//!  stage new files ─► journal ─► move old files aside ─► move new files in ─► index, ref ─► end
//!                                 └── any error, or a kill: everything goes back ──────┘
//! ```
//!
//! Files are moved and never rewritten, so the old ones come back as they were. A file that
//! somebody changes meanwhile is noticed when it has been moved aside, and goes back too. The
//! journal lies in the folder of the worktree; a hub that was killed finds it at its start.

use crate::{
    WorktreeError,
    apply::receiving::unchanged,
    listing::{EXECUTABLE, LINK, mode_of, write_atomic},
    reader::{OpenDirectory, ReadError, as_path},
    record::{Folder, remove_all},
    repository::refs::{Refs, make_directories},
    snapshot::walk::plain_text,
};
use ring::digest::{Context, SHA256};
use rustix::{
    fs::{Access, AtFlags, FileType, RenameFlags, accessat, renameat, renameat_with, unlinkat},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Name of the journal in the worktree's folder.
const JOURNAL: &str = "apply.json";

/// Largest journal, in bytes.
const JOURNAL_LIMIT: u64 = 256 << 20;

/// Most entries of a directory in the way that are looked at.
const MAX_IN_THE_WAY: usize = 10_000;

/// Mode and digest of a file in a checkout, as its bytes are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    pub(crate) mode: u32,
    /// SHA-256 in hex.
    pub(crate) digest: String,
}

/// One file that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StagedChange {
    pub(crate) path: Vec<u8>,
    /// File that must be there; none if nothing may be.
    pub(crate) before: Option<FileState>,
    /// File that will be there; none if it is removed.
    pub(crate) after: Option<FileState>,
}

/// A transaction, as its journal has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ApplyJournal {
    pub(crate) checkout: PathBuf,
    pub(crate) git_dir: PathBuf,
    pub(crate) common: PathBuf,
    /// Directory with the new files in `new`, and the old ones in `old`, by their number.
    pub(crate) staging: PathBuf,
    pub(crate) changes: Vec<StagedChange>,
    /// Directories that are to be made.
    missing: Vec<PathBuf>,
    /// Digest of the new index, if the index changes. Once it is in place, all has happened.
    pub(crate) index: Option<String>,
    /// Commit that `HEAD` will be at, if a commit is made. Then that decides.
    pub(crate) commit: Option<String>,
}

/// Counts the calls that write, so that a test can have any of them fail.
#[derive(Debug, Default)]
pub(crate) struct WriteFaults {
    remaining: AtomicUsize,
    /// True if the call stops the apply without a chance to take anything back, as a kill does.
    stops: AtomicBool,
}

impl WriteFaults {
    /// Has the call with this number fail, once, or stop everything.
    pub(crate) fn fail_at(&self, number: usize, stops: bool) {
        self.stops.store(stops, Ordering::Relaxed);
        self.remaining.store(number, Ordering::Relaxed);
    }

    /// To be asked before each call that writes.
    pub(crate) fn check(&self) -> io::Result<()> {
        let counted =
            self.remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| {
                remaining.checked_sub(1)
            });
        match counted {
            Ok(1) if self.stops.load(Ordering::Relaxed) => {
                std::panic::resume_unwind(Box::new("stopped"))
            }
            Ok(1) => Err(io::Error::other("a fault of the disk, for a test")),
            _ => Ok(()),
        }
    }

    /// True if the call is still to come.
    pub(crate) fn is_pending(&self) -> bool {
        self.remaining.load(Ordering::Relaxed) > 0
    }
}

/// A file of a checkout, read.
#[derive(Debug)]
pub(crate) enum PresentState {
    Missing,
    File {
        mode: u32,
        bytes: Vec<u8>,
    },
    /// A directory, or something that is no file.
    InTheWay,
}

impl PresentState {
    /// Reads a file of a checkout of at most `limit` bytes.
    pub(crate) fn read(
        top: &OpenDirectory,
        path: &[u8],
        limit: u64,
    ) -> Result<Self, WorktreeError> {
        let refused = |why: &ReadError| {
            WorktreeError::Refused(format!(
                "`{}` of the checkout {why}; nothing was changed",
                plain_text(path)
            ))
        };
        let stat = match top.stat(as_path(path)) {
            Ok(Some(stat)) => stat,
            Ok(None) => return Ok(Self::Missing),
            Err(ReadError::Link) => return Ok(Self::InTheWay),
            Err(why) => return Err(refused(&why)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(Self::InTheWay),
            FileType::Symlink => {
                let bytes = top.link(as_path(path)).map_err(|why| refused(&why))?;
                Ok(Self::File { mode: LINK, bytes })
            }
            FileType::RegularFile => {
                let bytes = top.bytes(as_path(path), limit).map_err(|why| refused(&why))?;
                let bytes = bytes.unwrap_or_default();
                Ok(Self::File { mode: mode_of(stat.st_mode), bytes })
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(Self::InTheWay),
        }
    }

    pub(crate) fn state(&self) -> Option<FileState> {
        match self {
            Self::File { mode, bytes } => Some(FileState { mode: *mode, digest: digest_of(bytes) }),
            Self::Missing | Self::InTheWay => None,
        }
    }
}

pub(crate) fn digest_of(bytes: &[u8]) -> String {
    hex::encode(ring::digest::digest(&SHA256, bytes))
}

/// State of a file in a directory; none if it is missing, or no file.
pub(crate) fn state_of(directory: &OpenDirectory, path: &Path) -> io::Result<Option<FileState>> {
    let failed = |why: ReadError| io::Error::other(why.to_string());
    let Some(stat) = directory.stat(path).map_err(failed)? else { return Ok(None) };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = directory.link(path).map_err(failed)?;
            Ok(Some(FileState { mode: LINK, digest: digest_of(&target) }))
        }
        FileType::RegularFile => {
            let Some(mut file) = directory.file(path).map_err(failed)? else { return Ok(None) };
            let mut context = Context::new(&SHA256);
            let mut buffer = vec![0; 64 << 10];
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    count => context.update(&buffer[..count]),
                }
            }
            let digest = hex::encode(context.finish());
            Ok(Some(FileState { mode: mode_of(stat.st_mode), digest }))
        }
        FileType::Directory
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Ok(None),
    }
}

impl ApplyJournal {
    /// Prepares a transaction: all that can be known before the first write is checked here. The
    /// new files lie in `staging` already.
    pub(crate) fn prepare(
        (checkout, git_dir, common): (PathBuf, PathBuf, PathBuf),
        staging: PathBuf,
        changes: Vec<StagedChange>,
    ) -> Result<Self, WorktreeError> {
        let (missing, index, commit) = Default::default();
        let mut journal =
            Self { checkout, git_dir, common, staging, changes, missing, index, commit };
        let top = OpenDirectory::open(&journal.checkout).map_err(WorktreeError::disk)?;
        journal.check(&top)?;
        Ok(journal)
    }

    fn check(&mut self, top: &OpenDirectory) -> Result<(), WorktreeError> {
        let removed: BTreeSet<&[u8]> =
            self.changes.iter().filter(|it| it.before.is_some()).map(|it| &it.path[..]).collect();
        let mut missing = BTreeSet::new();
        let mut checked = BTreeSet::new();
        for change in &self.changes {
            let path = as_path(&change.path);
            let in_the_way = |obstacle: &str| {
                let name = plain_text(&change.path);
                WorktreeError::Refused(format!(
                    "the checkout has something in the way of `{name}`: {obstacle}; nothing was changed"
                ))
            };
            for ancestor in
                path.ancestors().skip(1).filter(|ancestor| !ancestor.as_os_str().is_empty())
            {
                if !checked.insert(ancestor.to_owned()) {
                    break;
                }
                let stat = match top.stat(ancestor) {
                    Ok(stat) => stat,
                    Err(why) => return Err(in_the_way(&format!("`{}` {why}", ancestor.display()))),
                };
                let name = ancestor.as_os_str().as_encoded_bytes();
                match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
                    Some(FileType::Directory) => {}
                    None => {
                        missing.insert(ancestor.to_owned());
                    }
                    Some(_) if removed.contains(name) => {
                        missing.insert(ancestor.to_owned());
                    }
                    Some(_) => {
                        return Err(in_the_way(&format!("`{}` is no directory", plain_text(name))));
                    }
                }
            }
            let parent = path.ancestors().skip(1).find(|ancestor| !missing.contains(*ancestor));
            if let Some(parent) = parent {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                let access = Access::WRITE_OK | Access::EXEC_OK;
                if let Err(why) = accessat(top.handle(), parent, access, AtFlags::EACCESS) {
                    let shown = self.checkout.join(parent);
                    return Err(WorktreeError::Refused(format!(
                        "`{}` cannot be changed: {}; nothing was changed",
                        shown.display(),
                        io::Error::from(why)
                    )));
                }
            }
            if change.after.is_some() && change.before.is_none() {
                let found = top.stat(path).ok().flatten();
                match found.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
                    None => {}
                    Some(FileType::Directory) => {
                        if let Some(other) = other_file_in(top, &change.path, &removed) {
                            let name = plain_text(&other);
                            return Err(in_the_way(&format!(
                                "a directory with `{name}`, which the repository does not track"
                            )));
                        }
                    }
                    Some(_) => return Err(in_the_way("a file")),
                }
            }
        }
        self.missing = missing.into_iter().collect();
        Ok(())
    }

    /// Writes the journal: from now on, a hub that starts finds the transaction.
    pub(crate) fn write(&self, folder: &Folder) -> io::Result<()> {
        write_atomic(&folder.path().join(JOURNAL), &serde_json::to_vec(self)?)
    }

    /// Changes the files. After an error, the caller takes everything back.
    pub(crate) fn change_files(&self, faults: &WriteFaults) -> Result<(), WorktreeError> {
        let disk = |why| unchanged(&self.checkout, &why);
        let top = OpenDirectory::open(&self.checkout).map_err(disk)?;
        let staging = OpenDirectory::open(&self.staging).map_err(disk)?;
        faults.check().and_then(|()| make_directories(&staging, Path::new("old"))).map_err(disk)?;
        for (number, change) in self.changes.iter().enumerate() {
            let Some(before) = &change.before else { continue };
            let old = old_name(number);
            let changed = || {
                WorktreeError::Refused(format!(
                    "`{}` was changed meanwhile; nothing was changed, do it again",
                    plain_text(&change.path)
                ))
            };
            let moved = faults
                .check()
                .and_then(|()| Ok(rename(&top, as_path(&change.path), &staging, &old)?));
            moved.map_err(|why| {
                let is_missing = why.kind() == io::ErrorKind::NotFound;
                if is_missing { changed() } else { disk(named(&change.path, &why)) }
            })?;
            let moved = state_of(&staging, &old).map_err(disk)?;
            let is_same = moved.is_some_and(|now| {
                now.digest == before.digest && is_same_kind(now.mode, before.mode)
            });
            if !is_same {
                return Err(changed());
            }
        }
        // Directories that give place to files; the others are removed once all has happened.
        let placed: BTreeSet<&Path> = self
            .changes
            .iter()
            .filter(|it| it.after.is_some())
            .map(|it| as_path(&it.path))
            .collect();
        for change in self.changes.iter().filter(|change| change.before.is_some()) {
            if as_path(&change.path).ancestors().skip(1).any(|ancestor| placed.contains(ancestor)) {
                remove_empty_parents(&top, &change.path);
            }
        }
        for (number, change) in self.changes.iter().enumerate() {
            if change.after.is_none() {
                continue;
            }
            let path = as_path(&change.path);
            let install = || -> io::Result<()> {
                faults.check()?;
                // An empty directory in its place, which git would not keep.
                let _ = unlinkat(top.handle(), path, AtFlags::REMOVEDIR);
                make_directories(&top, path.parent().unwrap_or(Path::new("")))?;
                Ok(rename(&staging, &new_name(number), &top, path)?)
            };
            install().map_err(|why| disk(named(&change.path, &why)))?;
        }
        Ok(())
    }

    /// Takes the changes of the files back. What somebody changed since stays, and the old file is
    /// then left in the staging directory; their paths are returned.
    pub(crate) fn take_back(&self) -> io::Result<Vec<PathBuf>> {
        let top = OpenDirectory::open(&self.checkout)?;
        let staging = match OpenDirectory::open(&self.staging) {
            Ok(staging) => staging,
            // Nothing was moved yet.
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(why) => return Err(why),
        };
        let failed = |why: ReadError| io::Error::other(why.to_string());
        let mut unrestored = Vec::new();
        for (number, change) in self.changes.iter().enumerate().rev() {
            let (path, new) = (as_path(&change.path), new_name(number));
            let Some(after) = &change.after else { continue };
            if staging.stat(&new).map_err(failed)?.is_none()
                && state_of(&top, path)?.as_ref() == Some(after)
            {
                rename(&top, path, &staging, &new)?;
            }
        }
        for directory in self.missing.iter().rev() {
            let _ = unlinkat(top.handle(), directory, AtFlags::REMOVEDIR);
        }
        for (number, change) in self.changes.iter().enumerate().rev() {
            let (path, old) = (as_path(&change.path), old_name(number));
            if staging.stat(&old).map_err(failed)?.is_none() {
                continue;
            }
            make_directories(&top, path.parent().unwrap_or(Path::new("")))?;
            match rename(&staging, &old, &top, path) {
                Ok(()) => {}
                Err(Errno::EXIST) => unrestored.push(self.staging.join(&old)),
                Err(why) => return Err(why.into()),
            }
        }
        Ok(unrestored)
    }

    /// Removes the directories that the changes left empty, as git does.
    pub(crate) fn remove_empty_directories(&self) {
        let Ok(top) = OpenDirectory::open(&self.checkout) else { return };
        for change in self.changes.iter().filter(|change| change.after.is_none()) {
            remove_empty_parents(&top, &change.path);
        }
    }

    /// Ends the transaction: removes the journal, and then what is left of the old files.
    pub(crate) fn end(&self, folder: &Folder, keeps_staging: bool) -> io::Result<()> {
        match fs::remove_file(folder.path().join(JOURNAL)) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            Ok(()) | Err(_) => {}
        }
        if keeps_staging { Ok(()) } else { remove_staging(&self.staging) }
    }

    /// True if all of it has happened, by the index and the commit that it made.
    fn is_complete(&self) -> bool {
        if let Some(commit) = &self.commit {
            let head = Refs::open(&self.git_dir, &self.common).and_then(|refs| refs.head());
            return head.is_ok_and(|head| head.commit() == Some(commit));
        }
        let Some(wanted) = &self.index else { return false };
        let index =
            OpenDirectory::open(&self.git_dir).and_then(|it| state_of(&it, Path::new("index")));
        index.is_ok_and(|index| index.is_some_and(|index| index.digest == *wanted))
    }
}

/// Finishes a transaction that a killed hub left in a worktree's folder: it has happened, or is
/// taken back. Blocks on the disk.
pub(crate) fn recover(folder: &Folder) -> io::Result<()> {
    let bytes = OpenDirectory::open(folder.path())?.bytes(JOURNAL, JOURNAL_LIMIT);
    let bytes = bytes.map_err(|why| io::Error::other(why.to_string()))?;
    let Some(bytes) = bytes else { return Ok(()) };
    let journal: ApplyJournal = serde_json::from_slice(&bytes)?;
    let (task, checkout) = (folder.task(), journal.checkout.display().to_string());
    if journal.is_complete() {
        tracing::info!(task, checkout, "interrupted apply was complete");
        return journal.end(folder, false);
    }
    let unrestored = journal.take_back()?;
    for path in &unrestored {
        tracing::warn!(task, path = %path.display(), "interrupted apply was rolled back, but a file has changed since; its old content is at this path");
    }
    restore_index(&journal, task)?;
    tracing::info!(task, checkout, "interrupted apply was rolled back");
    journal.end(folder, !unrestored.is_empty())
}

/// Puts the old index back, if the new one is in place and no commit followed, and removes the
/// locks of the hub that was killed.
pub(crate) fn restore_index(journal: &ApplyJournal, task: &str) -> io::Result<()> {
    let git_dir = OpenDirectory::open(&journal.git_dir)?;
    if let Some(wanted) = &journal.index {
        let now = state_of(&git_dir, Path::new("index"))?;
        if now.is_some_and(|now| now.digest == *wanted) {
            let staging = OpenDirectory::open(&journal.staging)?;
            renameat(staging.handle(), OLD_INDEX, git_dir.handle(), "index")?;
        }
        let is_hub_lock = |lock: &FileState| {
            lock.digest == *wanted || lock.digest == digest_of(lock_mark(task).as_bytes())
        };
        remove_lock(&git_dir, "index.lock", is_hub_lock)?;
    }
    if let Some(commit) = &journal.commit {
        let is_hub_lock =
            |lock: &FileState| lock.digest == digest_of(format!("{commit}\n").as_bytes());
        remove_lock(&git_dir, "HEAD.lock", is_hub_lock)?;
        if let Some(branch) = crate::repository::refs::branch(&journal.git_dir) {
            let common = OpenDirectory::open(&journal.common)?;
            remove_lock(&common, &format!("refs/heads/{branch}.lock"), is_hub_lock)?;
        }
    }
    Ok(())
}

fn remove_lock(
    directory: &OpenDirectory,
    name: &str,
    is_hub_lock: impl Fn(&FileState) -> bool,
) -> io::Result<()> {
    let path = Path::new(name);
    if state_of(directory, path)?.is_some_and(|lock| is_hub_lock(&lock)) {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = directory.directory(parent.unwrap_or(Path::new(".")));
        if let Ok(Some(parent)) = parent {
            unlinkat(parent.handle(), path.file_name().unwrap_or_default(), AtFlags::empty())?;
        }
    }
    Ok(())
}

/// Content of the lock of an index while a task is applied.
pub(crate) fn lock_mark(task: &str) -> String {
    format!("a2a-hub applies task {task}\n")
}

/// Name of the old index in the staging directory.
pub(crate) const OLD_INDEX: &str = "old.index";

/// Path of a new file in the staging directory.
pub(crate) fn new_name(number: usize) -> PathBuf {
    PathBuf::from(format!("new/{number:08}"))
}

fn old_name(number: usize) -> PathBuf {
    PathBuf::from(format!("old/{number:08}"))
}

/// Removes a staging directory, and the one above it if it is empty.
pub(crate) fn remove_staging(staging: &Path) -> io::Result<()> {
    remove_all(staging)?;
    if let Some(parent) = staging.parent() {
        let _ = fs::remove_dir(parent);
    }
    Ok(())
}

/// Modes of files are compared by kind where the file system has no executable bits.
const fn is_same_kind(a: u32, b: u32) -> bool {
    (a == LINK) == (b == LINK) && (a == b || (a | 0o111) == EXECUTABLE || (b | 0o111) == EXECUTABLE)
}

/// A file below a directory that is not about to be removed.
fn other_file_in(top: &OpenDirectory, path: &[u8], removed: &BTreeSet<&[u8]>) -> Option<Vec<u8>> {
    let mut pending = vec![path.to_vec()];
    while let Some(at) = pending.pop() {
        let Ok(Some(directory)) = top.directory(as_path(&at)) else { return Some(at) };
        let Ok(entries) = directory.entries(MAX_IN_THE_WAY) else { return Some(at) };
        for entry in entries {
            let child = crate::snapshot::walk::child_path(&at, &entry.name);
            if entry.kind == FileType::Directory {
                pending.push(child);
            } else if !removed.contains(&child[..]) {
                return Some(child);
            }
        }
    }
    None
}

/// Removes the directories above a path that are empty, from the deepest up.
fn remove_empty_parents(top: &OpenDirectory, path: &[u8]) {
    for ancestor in
        as_path(path).ancestors().skip(1).filter(|ancestor| !ancestor.as_os_str().is_empty())
    {
        let Some((parent, name)) = ancestor.parent().zip(ancestor.file_name()) else { break };
        let parent =
            if parent.as_os_str().is_empty() { top.directory(".") } else { top.directory(parent) };
        let Ok(Some(parent)) = parent else { break };
        if unlinkat(parent.handle(), name, AtFlags::REMOVEDIR).is_err() {
            break;
        }
    }
}

/// Moves a file beneath one directory to a path beneath another one, where nothing may be.
fn rename(from: &OpenDirectory, path: &Path, to: &OpenDirectory, new: &Path) -> Result<(), Errno> {
    let open = |directory: &OpenDirectory, path: &Path| -> Result<OpenDirectory, Errno> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let opened = directory.directory(parent.unwrap_or(Path::new(".")));
        opened.ok().flatten().ok_or(Errno::NOENT)
    };
    let (source, target) = (open(from, path)?, open(to, new)?);
    let (old, new) = (path.file_name().unwrap_or_default(), new.file_name().unwrap_or_default());
    match renameat_with(source.handle(), old, target.handle(), new, RenameFlags::NOREPLACE) {
        // The file system cannot do that in one step.
        Err(Errno::INVAL | Errno::NOSYS) => match target.stat(new) {
            Ok(None) => renameat(source.handle(), old, target.handle(), new),
            Ok(Some(_)) | Err(_) => Err(Errno::EXIST),
        },
        renamed => renamed,
    }
}

fn named(path: &[u8], why: &io::Error) -> io::Error {
    io::Error::new(why.kind(), format!("`{}`: {why}", plain_text(path)))
}
